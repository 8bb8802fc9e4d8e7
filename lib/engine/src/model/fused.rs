//! Attention on the CPU with our own kernels, as candle custom operations.
//!
//! Rotation, the write to the pool and a paged online-softmax attention: nothing is gathered, padded, masked or
//! concatenated. See [`crate::model::kernel`] for the layout.

use crate::model::attention::AttnBackend;
use crate::model::kernel::attention::{Geometry, Heads, LayerPool, paged_attention};
use crate::model::kernel::write::{RowPlace, write_keys, write_values};
use crate::model::kernel::{Isa, argmax, swiglu};
use crate::model::{KvPool, Model, SeqSlice, Step};
use candle_core::{
    CpuStorage, CustomOp1, CustomOp3, DType, Device, InplaceOp2, Layout, Result, Shape, Tensor, bail,
};
use std::cell::Cell;

/// Tokens of a tile: block sizes must be a multiple.
const TILE_TOKENS: usize = 16;

/// The CPU's attention backend.
#[derive(Clone, Debug)]
pub struct FusedAttention {
    heads: Heads,
}

impl FusedAttention {
    /// For a model and a block size; none where the kernels do not cover them (another device or type, a head width
    /// they are not compiled for, a block size that is no multiple of 16), and the stock backend has to do.
    pub fn for_model(model: &Model, block_tokens: usize, isa: Isa) -> Option<FusedAttention> {
        let config = model.config();
        let geometry = Geometry {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            block_tokens,
        };
        let fits = model.device().is_cpu() && model.dtype() == DType::F32 && geometry.is_supported();
        fits.then(|| FusedAttention { heads: Heads { isa, rope: model.rope().clone(), geometry } })
    }
}

/// What all layers of one step share.
#[derive(Debug)]
pub struct FusedPlan<'a> {
    seqs: &'a [SeqSlice<'a>],
    rows: Vec<RowPlace>,
}

thread_local! {
    /// The buffer of the plan before, so that a step allocates none.
    static ROWS: Cell<Vec<RowPlace>> = const { Cell::new(Vec::new()) };
}

impl Drop for FusedPlan<'_> {
    fn drop(&mut self) {
        ROWS.set(std::mem::take(&mut self.rows));
    }
}

impl AttnBackend for FusedAttention {
    type Plan<'a> = FusedPlan<'a>;

    fn alloc(&self, model: &Model, blocks: usize, block_tokens: usize) -> Result<KvPool> {
        if block_tokens != self.heads.geometry.block_tokens {
            bail!("made for blocks of {} tokens, asked for {block_tokens}", self.heads.geometry.block_tokens)
        }
        let (heads, dim) = (self.heads.geometry.kv_heads, self.heads.geometry.head_dim);
        let tiles = blocks * block_tokens / TILE_TOKENS;
        let layers = |shape: (usize, usize, usize, usize)| {
            (0..model.config().layers)
                .map(|_| Tensor::zeros(shape, DType::F32, &Device::Cpu))
                .collect::<Result<Vec<_>>>()
        };
        let k = layers((tiles, heads, dim, TILE_TOKENS))?;
        Ok(KvPool { k, v: layers((tiles, heads, TILE_TOKENS, dim))?, blocks, block_tokens })
    }

    fn plan<'a>(&self, _model: &Model, step: &'a Step<'a>, pool: &KvPool) -> Result<FusedPlan<'a>> {
        let places = step.positions().zip(step.slots(pool.block_tokens));
        let mut rows = ROWS.take();
        rows.clear();
        rows.extend(places.map(|(position, slot)| RowPlace { position: position as u32, slot: slot as u32 }));
        Ok(FusedPlan { seqs: &step.seqs, rows })
    }

    fn write_and_attend(
        &self,
        layer: usize,
        qkv: &Tensor,
        plan: &FusedPlan<'_>,
        pool: &mut KvPool,
    ) -> Result<Tensor> {
        let write = |part| Write { heads: &self.heads, rows: &plan.rows, part };
        pool.k[layer].inplace_op2(qkv, &write(Part::Keys))?;
        pool.v[layer].inplace_op2(qkv, &write(Part::Values))?;
        let attend = Attend { heads: &self.heads, seqs: plan.seqs };
        qkv.apply_op3_no_bwd(&pool.k[layer], &pool.v[layer], &attend)
    }

    fn swiglu(&self, gate_up: &Tensor) -> Result<Tensor> {
        gate_up.apply_op1_no_bwd(&SwiGlu { isa: self.heads.isa })
    }

    fn argmax(&self, logits: &Tensor, tokens: &mut Vec<u32>) -> Result<()> {
        let (storage, layout) = logits.storage_and_layout();
        let candle_core::Storage::Cpu(storage) = &*storage else {
            bail!("argmax: logits are not on the CPU")
        };
        argmax::argmax_rows(self.heads.isa, floats(storage, layout)?, logits.dim(1)?, tokens);
        Ok(())
    }
}

/// The contiguous f32 values of a CPU tensor.
pub(super) fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("the CPU kernels want contiguous f32"),
    }
}

enum Part {
    Keys,
    Values,
}

/// Writes the keys or the values of a step into the pool.
struct Write<'a> {
    heads: &'a Heads,
    rows: &'a [RowPlace],
    part: Part,
}

impl InplaceOp2 for Write<'_> {
    fn name(&self) -> &'static str {
        "paged-write"
    }

    fn cpu_fwd(&self, pool: &mut CpuStorage, _: &Layout, qkv: &CpuStorage, layout: &Layout) -> Result<()> {
        let CpuStorage::F32(pool) = pool else { bail!("the CPU kernels want a pool of f32") };
        let qkv = floats(qkv, layout)?;
        match self.part {
            Part::Keys => write_keys(self.heads, qkv, self.rows, pool),
            Part::Values => write_values(self.heads, qkv, self.rows, pool),
        }
        Ok(())
    }
}

/// Attends from the rows of a step to the pool.
struct Attend<'a> {
    heads: &'a Heads,
    seqs: &'a [SeqSlice<'a>],
}

impl CustomOp3 for Attend<'_> {
    fn name(&self) -> &'static str {
        "paged-attention"
    }

    fn cpu_fwd(
        &self,
        qkv: &CpuStorage,
        qkv_layout: &Layout,
        k: &CpuStorage,
        k_layout: &Layout,
        v: &CpuStorage,
        v_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let geometry = &self.heads.geometry;
        let qkv = floats(qkv, qkv_layout)?;
        let pool = LayerPool { k: floats(k, k_layout)?, v: floats(v, v_layout)? };
        let shape = (qkv.len() / geometry.qkv_width(), geometry.heads * geometry.head_dim);
        let mut out = vec![0f32; shape.0 * shape.1];
        paged_attention(self.heads, qkv, pool, self.seqs, &mut out);
        Ok((CpuStorage::F32(out), shape.into()))
    }
}

struct SwiGlu {
    isa: Isa,
}

impl CustomOp1 for SwiGlu {
    fn name(&self) -> &'static str {
        "swiglu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = floats(x, layout)?;
        let (rows, width) = layout.shape().dims2()?;
        let mut out = vec![0f32; x.len() / 2];
        swiglu::swiglu(self.isa, x, width / 2, &mut out);
        Ok((CpuStorage::F32(out), (rows, width / 2).into()))
    }
}
