//! What a model is, without loading its weights.

use crate::EngineError;
use crate::model::linear::Product;
use crate::model::load::{LoadOptions, open};
use crate::model::{KvSpec, ModelConfig};

/// What a model is and what it takes.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The shape.
    pub config: ModelConfig,
    /// Where the weights come from, and their types.
    pub format: String,
    /// What one token takes in a KV pool on the device asked about.
    pub kv: KvSpec,
    /// About what the weights take there, as they would be loaded.
    pub weight_bytes: u64,
}

impl Inspection {
    /// Inspects what a model argument names: a built-in name, a TOML or GGUF file, a folder, a hub name.
    ///
    /// # Errors
    /// Nothing of that name, or a file that cannot be read as what it is.
    pub fn of(spec: &str, options: &LoadOptions) -> Result<Inspection, EngineError> {
        let source = open(spec)?;
        let config = source.config().clone();
        let (dtype, _) = options.dense();
        let kv =
            KvSpec { layers: config.layers, kv_heads: config.kv_heads, head_dim: config.head_dim, dtype };
        let weight_bytes = weight_bytes(&config, options, source.is_quantised());
        Ok(Inspection { format: source.format(), kv, weight_bytes, config })
    }

    /// Tokens of KV that fit in so many bytes.
    pub fn tokens_that_fit(&self, bytes: u64) -> u64 {
        bytes / self.kv.bytes_per_token()
    }
}

fn weight_bytes(config: &ModelConfig, options: &LoadOptions, quantised: bool) -> u64 {
    let (dtype, product) = options.dense();
    let on_cpu = options.device.is_cpu();
    let is_q8 = product == Product::Q8 || (quantised && on_cpu && !options.unpacks());
    // In 32nds of a byte, as 32 numbers of Q8_0 take 34.
    let per_32 = match product {
        _ if is_q8 => 34,
        Product::Bf16 if on_cpu => 64,
        _ => 32 * dtype.size_in_bytes() as u64,
    };
    let embedding = config.vocab as u64 * config.hidden as u64;
    let tables = if config.tied_embeddings { 1 } else { 2 };
    let linear = config.parameters() - tables * embedding;
    // A tied output projection is the same tensor only where nothing is packed for a kernel.
    let head = if config.tied_embeddings && !on_cpu && !is_q8 { 0 } else { embedding };
    (linear + head) * per_32 / 32 + embedding * dtype.size_in_bytes() as u64
}
