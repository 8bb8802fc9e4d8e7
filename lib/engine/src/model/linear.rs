//! A linear layer.

use crate::model::fused::floats;
use crate::model::kernel::Isa;
use crate::model::kernel::matmul::Packed;
use crate::model::weights::{Stored, WeightSource};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{CpuStorage, CustomOp1, D, DType, Layout, Module, Result, Shape, Storage, Tensor, bail};

/// Input widths that candle's fast quantised products ask for; shorter rows are padded with zeros.
const QUANTISED_WIDTH: usize = 256;

/// Who multiplies, and in what type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// candle, on any device and in any type.
    Candle,
    /// Our kernel, where the weights are f32 on a CPU; candle elsewhere.
    Kernel,
    /// candle's 8-bit integer product, over weights quantised to Q8_0 at load. CPU only.
    Q8,
}

/// `y = W · x + b`, with the weight laid out for whoever multiplies.
#[derive(Debug)]
pub struct Linear {
    weight: Weight,
    /// `[out]`.
    bias: Option<Tensor>,
}

#[derive(Debug)]
enum Weight {
    /// `[in, out]`.
    Dense(Tensor),
    Packed(Packed),
    /// Parts of the output, one behind the other; inputs are padded with this many zeros.
    Quantised {
        parts: Vec<QMatMul>,
        padding: usize,
    },
}

impl Linear {
    /// From the weights of a source, stacked: `parts` are names (without `.weight`) and their outputs.
    ///
    /// # Errors
    /// A missing tensor or a wrong shape, or a device out of memory.
    pub fn load(
        source: &dyn WeightSource,
        parts: &[(&str, usize)],
        inputs: usize,
        product: Product,
        bias: bool,
    ) -> Result<Linear> {
        let stored = parts
            .iter()
            .map(|(name, outputs)| source.stored(&format!("{name}.weight"), &[*outputs, inputs]))
            .collect::<Result<Vec<_>>>()?;
        let biases = if bias {
            let all = parts
                .iter()
                .map(|(name, outputs)| source.tensor(&format!("{name}.bias"), &[*outputs]))
                .collect::<Result<Vec<_>>>()?;
            Some(Tensor::cat(&all, 0)?)
        } else {
            None
        };
        Ok(Linear { weight: Weight::from_stored(stored, product)?, bias: biases })
    }

    /// `x` is `[rows, in]`; the result is `[rows, out]`.
    ///
    /// # Errors
    /// Shapes or devices that do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = match &self.weight {
            Weight::Dense(weight) => x.matmul(weight)?,
            Weight::Packed(weight) => x.apply_op1_no_bwd(&Multiply { weight })?,
            Weight::Quantised { parts, padding } => {
                let x = if *padding > 0 { &x.pad_with_zeros(D::Minus1, 0, *padding)? } else { x };
                match parts.as_slice() {
                    [whole] => whole.forward(x)?,
                    parts => {
                        let outputs = parts.iter().map(|part| part.forward(x)).collect::<Result<Vec<_>>>()?;
                        Tensor::cat(&outputs, 1)?
                    }
                }
            }
        };
        match &self.bias {
            Some(bias) => y.broadcast_add(bias),
            None => Ok(y),
        }
    }
}

impl Weight {
    /// Keeps quantised types only where all parts have one; otherwise anything that was quantised becomes Q8_0.
    fn from_stored(stored: Vec<Stored>, product: Product) -> Result<Weight> {
        if stored.iter().all(|part| matches!(part, Stored::Quantised(_))) {
            let parts = stored.into_iter().filter_map(|part| match part {
                Stored::Quantised(tensor) => Some(QMatMul::from_qtensor(tensor)),
                _ => None,
            });
            return Ok(Weight::Quantised { parts: parts.collect::<Result<_>>()?, padding: 0 });
        }
        let quantised = stored.iter().any(|part| !matches!(part, Stored::Dense(_)));
        let parts = stored.into_iter().map(Stored::into_dense).collect::<Result<Vec<_>>>()?;
        Weight::from_dense(&Tensor::cat(&parts, 0)?, if quantised { Product::Q8 } else { product })
    }

    /// For candle on a CPU a dense weight is stored as `[in, out]` contiguous: with the rows of a few decodes, its f32
    /// product over the other layout reaches a tenth of the speed. A GPU's library takes either, so there nothing is
    /// copied.
    fn from_dense(weight: &Tensor, product: Product) -> Result<Weight> {
        let on_cpu = weight.device().is_cpu();
        match product {
            Product::Q8 => {
                let inputs = weight.dim(1)?;
                let padding = inputs.next_multiple_of(QUANTISED_WIDTH) - inputs;
                let padded = weight.to_dtype(DType::F32)?.pad_with_zeros(1, 0, padding)?;
                let quantised = QTensor::quantize(&padded, GgmlDType::Q8_0)?;
                Ok(Weight::Quantised { parts: vec![QMatMul::from_qtensor(quantised)?], padding })
            }
            Product::Kernel if on_cpu && weight.dtype() == DType::F32 => {
                let (outputs, inputs) = weight.dims2()?;
                let weight = weight.contiguous()?;
                let (storage, layout) = weight.storage_and_layout();
                let Storage::Cpu(storage) = &*storage else { bail!("a CPU tensor without CPU storage") };
                Ok(Weight::Packed(Packed::new(floats(storage, layout)?, outputs, inputs)))
            }
            _ if on_cpu => Ok(Weight::Dense(weight.t()?.contiguous()?)),
            _ => Ok(Weight::Dense(weight.t()?)),
        }
    }
}

struct Multiply<'a> {
    weight: &'a Packed,
}

impl CustomOp1 for Multiply<'_> {
    fn name(&self) -> &'static str {
        "packed-matmul"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, inputs) = layout.shape().dims2()?;
        if inputs != self.weight.inputs() {
            bail!("rows of {inputs} for a weight of {} inputs", self.weight.inputs())
        }
        let mut out = vec![0f32; rows * self.weight.outputs()];
        self.weight.multiply(Isa::best(), floats(x, layout)?, &mut out);
        Ok((CpuStorage::F32(out), (rows, self.weight.outputs()).into()))
    }
}
