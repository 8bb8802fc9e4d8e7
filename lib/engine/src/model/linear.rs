//! A linear layer.

use candle_core::{Result, Tensor};

/// `y = x · W`, with the weight laid out for the device.
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[in, out]`.
    weight: Tensor,
}

impl Linear {
    /// From a weight `[out, in]`, as checkpoints store it.
    ///
    /// On a CPU it is stored as `[in, out]` contiguous: with the rows of a few decodes, candle's f32 product over the
    /// other layout reaches a tenth of the speed. A GPU's library takes either, so there nothing is copied.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(weight: Tensor) -> Result<Linear> {
        let transposed = weight.t()?;
        let weight = if weight.device().is_cpu() { transposed.contiguous()? } else { transposed };
        Ok(Linear { weight })
    }

    /// `x` is `[rows, in]`; the result is `[rows, out]`.
    ///
    /// # Errors
    /// Shapes or devices that do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)
    }
}
