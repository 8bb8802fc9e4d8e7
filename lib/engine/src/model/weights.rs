//! Where tensors come from.

use candle_core::quantized::QTensor;
use candle_core::{DType, Device, Result, Tensor};
use cr_trace::stream;
use rand::Rng;

/// A weight as its source has it.
pub enum Stored {
    /// In the type to compute in.
    Dense(Tensor),
    /// Unpacked from a quantised type that has no fast path here: to be quantised again, as Q8_0.
    Unpacked(Tensor),
    /// In a quantised type to be kept.
    Quantised(QTensor),
}

impl Stored {
    /// As a dense tensor.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn into_dense(self) -> Result<Tensor> {
        match self {
            Stored::Dense(tensor) | Stored::Unpacked(tensor) => Ok(tensor),
            Stored::Quantised(tensor) => tensor.dequantize(&tensor.device()),
        }
    }
}

/// Gives weights by their Hugging Face names, such as `model.layers.0.self_attn.q_proj.weight`.
pub trait WeightSource: Sync {
    /// The weight of a name, `[out, in]` for a linear layer.
    ///
    /// # Errors
    /// No such tensor, or not of this shape.
    fn stored(&self, name: &str, shape: &[usize]) -> Result<Stored>;

    /// The weight of a name as a dense tensor.
    ///
    /// # Errors
    /// As for [`WeightSource::stored`].
    fn tensor(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        self.stored(name, shape)?.into_dense()
    }
}

/// Random weights: a pure function of seed, name and shape, the same on every machine and for every number of threads.
///
/// Norms are 1. Every other weight has mean 0 and variance 1 / fan-in, which keeps activations at the scale of the
/// input. A weight is the sum of the four 16-bit lanes of one word of the tensor's own stream (Irwin–Hall, close to
/// normal and bounded by 3.5 σ), so that it needs no logarithm, whose last bit would differ between systems.
#[derive(Clone, Debug)]
pub struct RandomWeights {
    /// The seed of the run.
    pub seed: u64,
    /// Where the tensors are put.
    pub device: Device,
    /// The type they are stored in.
    pub dtype: DType,
}

impl WeightSource for RandomWeights {
    fn stored(&self, name: &str, shape: &[usize]) -> Result<Stored> {
        if name.ends_with("norm.weight") {
            return Ok(Stored::Dense(Tensor::ones(shape, self.dtype, &self.device)?));
        }
        let fan_in = shape.last().copied().unwrap_or(1);
        let values = random_values(self.seed, name, shape.iter().product(), fan_in);
        Ok(Stored::Dense(Tensor::from_vec(values, shape, &self.device)?.to_dtype(self.dtype)?))
    }
}

/// `count` values of variance `1 / fan_in` from the stream `weights/name`.
fn random_values(seed: u64, name: &str, count: usize, fan_in: usize) -> Vec<f32> {
    /// The mean of the sum of four lanes of 0..=65535.
    const MEAN: f32 = 2.0 * 65535.0;
    /// Its standard deviation, 65536 · sqrt(4 / 12).
    const DEVIATION: f32 = 37_837.228;
    let scale = (1.0 / fan_in as f32).sqrt() / DEVIATION;
    let mut stream = stream(seed, &format!("weights/{name}"));
    (0..count)
        .map(|_| {
            let bits = stream.next_u64();
            let sum = (0..4).map(|lane| bits >> (16 * lane) & 0xffff).sum::<u64>();
            (sum as f32 - MEAN) * scale
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_fixed_for_all_time() {
        let values = random_values(42, "model.layers.0.mlp.up_proj.weight", 3, 256);
        assert_eq!(
            values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            [3_167_665_292, 1_042_688_036, 1_036_829_829]
        );
    }

    #[test]
    fn weights_have_the_variance_of_their_fan_in() {
        let values = random_values(1, "x", 100_000, 100);
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e5;
        let variance = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 1e-3, "{mean}");
        assert!((variance - 0.01).abs() < 2e-4, "{variance}");
        assert_ne!(values[..9], random_values(1, "y", 9, 100));
        assert_ne!(values[..9], random_values(2, "x", 9, 100));
    }
}
