//! A linear layer.

use crate::model::Quant;
use crate::model::fused::floats;
use crate::model::kernel::Isa;
use crate::model::kernel::matmul::Packed;
use crate::model::kernel::q8::PackedQ8;
use crate::model::weights::{Stored, WeightSource};
use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{CpuStorage, CustomOp1, D, DType, Layout, Module, Result, Shape, Storage, Tensor, bail};

/// The multiple of inputs that a Q8_0 tensor of candle's needs; shorter rows are padded with zeros.
const QUANTISED_WIDTH: usize = 32;

/// Who multiplies, and in what type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// candle, on any device and in any type.
    Candle,
    /// Our kernel, where the weights are f32 on a CPU; candle elsewhere.
    Kernel,
    /// Our kernel over weights rounded to bf16, the sums in f32, on a CPU; candle elsewhere.
    Bf16,
    /// 8-bit integers, over weights rounded to Q8_0 at load: our kernel on a CPU, candle's elsewhere.
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
    Q8(PackedQ8),
    /// candle's quantised products, in f32: parts of the output, one behind the other; inputs are padded with this many
    /// zeros.
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

    /// What the weights were rounded to, if they were.
    pub fn quant(&self) -> Option<Quant> {
        match &self.weight {
            Weight::Q8(_) | Weight::Quantised { .. } => Some(Quant::Q8),
            Weight::Packed(packed) if packed.is_bf16() => Some(Quant::Bf16),
            Weight::Packed(_) | Weight::Dense(_) => None,
        }
    }

    /// `x` is `[rows, in]`; the result is `[rows, out]`.
    ///
    /// # Errors
    /// Shapes or devices that do not fit.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = match &self.weight {
            Weight::Dense(weight) => x.matmul(weight)?,
            Weight::Packed(weight) => x.apply_op1_no_bwd(&Multiply { weight })?,
            Weight::Q8(weight) => x.apply_op1_no_bwd(&Multiply { weight })?,
            Weight::Quantised { parts, padding } => multiply_quantised(parts, *padding, x)?,
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
        let kept = |part: &Stored| match part {
            Stored::Quantised(tensor) => Some(tensor.dtype() == GgmlDType::Q8_0 && tensor.device().is_cpu()),
            _ => None,
        };
        match stored.iter().map(kept).collect::<Option<Vec<bool>>>() {
            Some(ours) if ours.iter().all(|ours| *ours) => return Ok(Weight::Q8(stack_q8(&stored)?)),
            Some(_) => {
                let parts = stored.into_iter().filter_map(|part| match part {
                    Stored::Quantised(tensor) => Some(QMatMul::from_qtensor(tensor)),
                    _ => None,
                });
                return Ok(Weight::Quantised { parts: parts.collect::<Result<_>>()?, padding: 0 });
            }
            None => {}
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
            Product::Q8 if !on_cpu => {
                let inputs = weight.dim(1)?;
                let padding = inputs.next_multiple_of(QUANTISED_WIDTH) - inputs;
                let padded = weight.to_dtype(DType::F32)?.pad_with_zeros(1, 0, padding)?;
                let quantised = QTensor::quantize(&padded, GgmlDType::Q8_0)?;
                Ok(Weight::Quantised { parts: vec![QMatMul::from_qtensor(quantised)?], padding })
            }
            Product::Q8 => pack(weight, |rows, n, k| Weight::Q8(PackedQ8::from_f32(rows, n, k))),
            Product::Bf16 if on_cpu => pack(weight, |rows, n, k| Weight::Packed(Packed::bf16(rows, n, k))),
            Product::Kernel if on_cpu && weight.dtype() == DType::F32 => {
                pack(weight, |rows, n, k| Weight::Packed(Packed::new(rows, n, k)))
            }
            _ if on_cpu => Ok(Weight::Dense(weight.t()?.contiguous()?)),
            _ => Ok(Weight::Dense(weight.t()?)),
        }
    }
}

/// Hands the values of a weight on a CPU, row by row, with its outputs and inputs to whoever packs them.
fn pack(weight: &Tensor, pack: impl FnOnce(&[f32], usize, usize) -> Weight) -> Result<Weight> {
    let (outputs, inputs) = weight.dims2()?;
    let weight = weight.to_dtype(DType::F32)?.contiguous()?;
    let (storage, layout) = weight.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { bail!("a CPU tensor without CPU storage") };
    Ok(pack(floats(storage, layout)?, outputs, inputs))
}

/// Q8_0 tensors of the same width, one behind the other.
fn stack_q8(parts: &[Stored]) -> Result<PackedQ8> {
    let (mut bytes, mut outputs, mut inputs) = (Vec::new(), 0, 0);
    for part in parts {
        let Stored::Quantised(tensor) = part else { bail!("not a quantised tensor") };
        let (rows, columns) = tensor.shape().dims2()?;
        bytes.extend_from_slice(&tensor.data()?);
        (outputs, inputs) = (outputs + rows, columns);
    }
    Ok(PackedQ8::from_file_blocks(&bytes, outputs, inputs))
}

/// candle's quantised products take and give f32.
fn multiply_quantised(parts: &[QMatMul], padding: usize, x: &Tensor) -> Result<Tensor> {
    let mut input = x.to_dtype(DType::F32)?;
    if padding > 0 {
        input = input.pad_with_zeros(D::Minus1, 0, padding)?;
    }
    let outputs = parts.iter().map(|part| part.forward(&input)).collect::<Result<Vec<_>>>()?;
    match outputs.as_slice() {
        [whole] => whole.to_dtype(x.dtype()),
        outputs => Tensor::cat(outputs, 1)?.to_dtype(x.dtype()),
    }
}

/// A packed weight.
trait Panels: Sync {
    fn shape(&self) -> (usize, usize);
    fn multiply(&self, x: &[f32], out: &mut [f32]);
}

impl Panels for Packed {
    fn shape(&self) -> (usize, usize) {
        (self.outputs(), self.inputs())
    }

    fn multiply(&self, x: &[f32], out: &mut [f32]) {
        Packed::multiply(self, Isa::best(), x, out);
    }
}

impl Panels for PackedQ8 {
    fn shape(&self) -> (usize, usize) {
        (self.outputs(), self.inputs())
    }

    fn multiply(&self, x: &[f32], out: &mut [f32]) {
        PackedQ8::multiply(self, Isa::best(), x, out);
    }
}

struct Multiply<'a, P> {
    weight: &'a P,
}

impl<P: Panels> CustomOp1 for Multiply<'_, P> {
    fn name(&self) -> &'static str {
        "packed-matmul"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (rows, width) = layout.shape().dims2()?;
        let (outputs, inputs) = self.weight.shape();
        if width != inputs {
            bail!("rows of {width} for a weight of {inputs} inputs")
        }
        let mut out = vec![0f32; rows * outputs];
        self.weight.multiply(floats(x, layout)?, &mut out);
        Ok((CpuStorage::F32(out), (rows, outputs).into()))
    }
}
