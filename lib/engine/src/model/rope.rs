//! Rotary positions: the table of cosines and sines.

use crate::model::{ModelConfig, RopeScaling};
use candle_core::{DType, Device, Result, Tensor};
use std::f32::consts::TAU;
use std::sync::Arc;

/// Cosines and sines of every position, `[context, head_dim / 2]` each, in f32.
///
/// The angle of pair `i` at position `p` is `p · θ^(−2i / head_dim)`, the frequency changed by the model's
/// [`RopeScaling`]; pair `i` is elements `i` and `i + head_dim / 2` (the NeoX order, which Hugging Face checkpoints use).
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
        let frequencies = frequencies(config);
        let angles = || (0..config.context).flat_map(|p| frequencies.iter().map(move |f| p as f32 * f));
        RopeTable {
            cos: Arc::new(angles().map(f32::cos).collect()),
            sin: Arc::new(angles().map(f32::sin).collect()),
            half_dim: config.head_dim / 2,
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

/// Radians a position, for each pair.
fn frequencies(config: &ModelConfig) -> Vec<f32> {
    let plain = (0..config.head_dim / 2)
        .map(|i| 1.0 / (config.rope_theta as f32).powf((2 * i) as f32 / config.head_dim as f32));
    match &config.rope_scaling {
        None => plain.collect(),
        Some(RopeScaling::Linear { factor }) => plain.map(|f| f / *factor as f32).collect(),
        Some(RopeScaling::Divisors { divisors }) => plain.zip(divisors).map(|(f, d)| f / d).collect(),
        Some(RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, original_context }) => {
            let (factor, context) = (*factor as f32, *original_context as f32);
            let (low, high) = (*low_freq_factor as f32, *high_freq_factor as f32);
            plain
                .map(|f| {
                    let turns = context * f / TAU;
                    if turns > high {
                        f
                    } else if turns < low {
                        f / factor
                    } else {
                        let kept = (turns - low) / (high - low);
                        (1.0 - kept) * f / factor + kept * f
                    }
                })
                .collect()
        }
    }
}
