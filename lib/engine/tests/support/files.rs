//! Checkpoints as files: a folder as Hugging Face publishes them, and a GGUF file as llama.cpp does.

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use cr_engine::model::{ModelConfig, RopeScaling};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

/// Writes a safetensors folder as Hugging Face lays it out, its tensors in two files.
pub fn write_folder(folder: &Path, family: &str, config: &ModelConfig, weights: &HashMap<String, Tensor>) {
    let (a, b): (HashMap<_, _>, HashMap<_, _>) =
        weights.clone().into_iter().partition(|(name, _)| name.contains("layers.0"));
    candle_core::safetensors::save(&a, folder.join("model-00001-of-00002.safetensors")).unwrap();
    candle_core::safetensors::save(&b, folder.join("model-00002-of-00002.safetensors")).unwrap();
    let rope_scaling = match &config.rope_scaling {
        Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => json!({
            "rope_type": "llama3", "factor": factor, "low_freq_factor": low_freq_factor,
            "high_freq_factor": high_freq_factor, "original_max_position_embeddings": original_context,
        }),
        _ => json!(null),
    };
    let text = json!({
        "architectures": ["X"], "model_type": family, "hidden_size": config.hidden, "intermediate_size": config.ff,
        "num_hidden_layers": config.layers, "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads, "head_dim": config.head_dim, "vocab_size": config.vocab,
        "max_position_embeddings": config.context, "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_eps, "tie_word_embeddings": config.tied_embeddings,
        "rope_scaling": rope_scaling,
    });
    std::fs::write(folder.join("config.json"), text.to_string()).unwrap();
}

/// Writes a GGUF file as llama.cpp lays it out; linear layers in `dtype`.
pub fn write_gguf(
    path: &Path,
    family: &str,
    config: &ModelConfig,
    weights: &HashMap<String, Tensor>,
    dtype: GgmlDType,
) {
    let number = |n: usize| Value::U32(n as u32);
    let metadata: Vec<(String, Value)> = [
        ("embedding_length", number(config.hidden)),
        ("feed_forward_length", number(config.ff)),
        ("block_count", number(config.layers)),
        ("attention.head_count", number(config.heads)),
        ("attention.head_count_kv", number(config.kv_heads)),
        ("attention.key_length", number(config.head_dim)),
        ("attention.layer_norm_rms_epsilon", Value::F32(config.norm_eps as f32)),
        ("rope.freq_base", Value::F32(config.rope_theta as f32)),
        ("context_length", number(config.context)),
    ]
    .into_iter()
    .map(|(key, value)| (format!("{family}.{key}"), value))
    .chain([("general.architecture".to_string(), Value::String(family.into()))])
    .collect();
    let mut tensors: Vec<(String, QTensor)> = weights
        .iter()
        .map(|(name, tensor)| {
            let is_qk = name.contains("q_proj") || name.contains("k_proj");
            let tensor =
                if family == "llama" && is_qk { interleave(tensor, config.head_dim) } else { tensor.clone() };
            let dtype = if tensor.rank() == 2 { dtype } else { GgmlDType::F32 };
            (gguf_name(name), QTensor::quantize(&tensor, dtype).unwrap())
        })
        .collect();
    if let Some(divisors) = divisors(config) {
        let tensor = Tensor::from_vec(divisors, config.head_dim / 2, &Device::Cpu).unwrap();
        tensors.push(("rope_freqs.weight".into(), QTensor::quantize(&tensor, GgmlDType::F32).unwrap()));
    }
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(k, v)| (k.as_str(), v)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(k, v)| (k.as_str(), v)).collect();
    gguf_file::write(&mut std::fs::File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

/// Llama 3's scaling as a divisor for each frequency, which is how llama.cpp converts it.
fn divisors(config: &ModelConfig) -> Option<Vec<f32>> {
    let Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) =
        config.rope_scaling
    else {
        return None;
    };
    let dim = config.head_dim as f64;
    Some(
        (0..config.head_dim / 2)
            .map(|i| {
                let wavelength = std::f64::consts::TAU * config.rope_theta.powf(2.0 * i as f64 / dim);
                if wavelength < original_context / high_freq_factor {
                    1.0
                } else if wavelength > original_context / low_freq_factor {
                    factor as f32
                } else {
                    let smooth = (original_context / wavelength - low_freq_factor)
                        / (high_freq_factor - low_freq_factor);
                    (1.0 / ((1.0 - smooth) / factor + smooth)) as f32
                }
            })
            .collect(),
    )
}

/// Rows `i` and `i + head_dim / 2` of each head to `2i` and `2i + 1`: what llama.cpp's converter does.
fn interleave(tensor: &Tensor, head_dim: usize) -> Tensor {
    let (rows, columns) = tensor.dims2().unwrap();
    let by_half = tensor.reshape((rows / head_dim, 2, head_dim / 2, columns)).unwrap();
    by_half.transpose(1, 2).unwrap().contiguous().unwrap().reshape((rows, columns)).unwrap()
}

fn gguf_name(name: &str) -> String {
    [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers", "blk"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("post_attention_layernorm", "ffn_norm"),
        ("input_layernorm", "attn_norm"),
    ]
    .iter()
    .fold(name.to_string(), |name, (from, to)| name.replace(from, to))
}
