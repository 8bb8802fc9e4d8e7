//! What a model is, without loading its weights.

use crate::EngineError;
use crate::model::load::open;
use crate::model::{KvSpec, ModelConfig, compute_dtype};
use candle_core::Device;

/// What a model is and what it takes.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The shape.
    pub config: ModelConfig,
    /// Where the weights come from, and their types.
    pub format: String,
    /// What one token takes in a KV pool on the device asked about.
    pub kv: KvSpec,
}

impl Inspection {
    /// Inspects what a model argument names: a built-in name, a TOML or GGUF file, a folder, a hub name.
    ///
    /// # Errors
    /// Nothing of that name, or a file that cannot be read as what it is.
    pub fn of(spec: &str, device: &Device) -> Result<Inspection, EngineError> {
        let source = open(spec)?;
        let config = source.config().clone();
        let kv = KvSpec {
            layers: config.layers,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            dtype: compute_dtype(device),
        };
        Ok(Inspection { format: source.format(), kv, config })
    }

    /// Tokens of KV that fit in so many bytes.
    pub fn tokens_that_fit(&self, bytes: u64) -> u64 {
        bytes / self.kv.bytes_per_token()
    }
}
