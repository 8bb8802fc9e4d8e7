//! A model's shape as candle-transformers' Llama takes it; tests and benchmarks share it.

use candle_transformers::models::llama::{Config, Llama3RopeConfig, Llama3RopeType};
use cr_engine::model::{ModelConfig, RopeScaling};

/// The shape, its RoPE scaling included where that is Llama 3's.
pub fn llama_config(config: &ModelConfig) -> Config {
    let rope_scaling = match &config.rope_scaling {
        Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => {
            Some(Llama3RopeConfig {
                factor: *factor as f32,
                low_freq_factor: *low_freq_factor as f32,
                high_freq_factor: *high_freq_factor as f32,
                original_max_position_embeddings: *original_context as usize,
                rope_type: Llama3RopeType::Llama3,
            })
        }
        _ => None,
    };
    Config {
        hidden_size: config.hidden,
        intermediate_size: config.ff,
        vocab_size: config.vocab,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        num_key_value_heads: config.kv_heads,
        use_flash_attn: false,
        rms_norm_eps: config.norm_eps,
        rope_theta: config.rope_theta as f32,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling,
        max_position_embeddings: config.context,
        tie_word_embeddings: config.tied_embeddings,
    }
}
