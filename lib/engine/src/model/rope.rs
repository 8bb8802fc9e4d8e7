//! Rotary positions: the table of cosines and sines.

use crate::model::ModelConfig;
use candle_core::{DType, Device, Result, Tensor};
use std::sync::Arc;

/// Cosines and sines of every position, `[context, head_dim / 2]` each, in f32.
///
/// The angle of pair `i` at position `p` is `p · θ^(−2i / head_dim)`; pair `i` is elements `i` and `i + head_dim / 2`
/// (the NeoX order, which Hugging Face checkpoints use).
#[derive(Clone, Debug)]
pub struct RopeTable {
    /// Cosines, row by row.
    pub cos: Arc<Vec<f32>>,
    /// Sines, row by row.
    pub sin: Arc<Vec<f32>>,
    /// Entries of one position.
    pub half_dim: usize,
}

impl RopeTable {
    /// The table of a model.
    pub fn new(config: &ModelConfig) -> RopeTable {
        let half_dim = config.head_dim / 2;
        let frequencies: Vec<f32> = (0..half_dim)
            .map(|i| 1.0 / (config.rope_theta as f32).powf((2 * i) as f32 / config.head_dim as f32))
            .collect();
        let angles = || (0..config.context).flat_map(|p| frequencies.iter().map(move |f| p as f32 * f));
        RopeTable {
            cos: Arc::new(angles().map(f32::cos).collect()),
            sin: Arc::new(angles().map(f32::sin).collect()),
            half_dim,
        }
    }

    /// Cosines and sines as tensors `[context, head_dim / 2]` on a device.
    pub fn tensors(&self, dtype: DType, device: &Device) -> Result<(Tensor, Tensor)> {
        let tensor = |values: &[f32]| {
            Tensor::from_slice(values, (values.len() / self.half_dim, self.half_dim), device)?.to_dtype(dtype)
        };
        Ok((tensor(&self.cos)?, tensor(&self.sin)?))
    }
}
