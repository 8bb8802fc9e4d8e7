//! Attention from candle's own operations: runs on a CPU, on CUDA and on Metal, for every shape and block size.
//!
//! Keys and values lie as `[blocks · block_tokens, kv_heads · head_dim]`. A step scatters its rows to their slots and
//! gathers the blocks that its sequences name. The decodes at the head of a step go as one batch, padded to the longest;
//! prefill chunks go one by one.

use crate::model::attention::AttnBackend;
use crate::model::{KvPool, Model, SeqSlice, Step};
use candle_core::{DType, Device, IndexOp, Result, Tensor};
use candle_nn::{ops::softmax_last_dim, rotary_emb::rope_thd};

/// The portable attention backend.
#[derive(Clone, Debug)]
pub struct StockAttention {
    /// Rotary cosines, `[context, head_dim / 2]`.
    cos: Tensor,
    /// Rotary sines.
    sin: Tensor,
    shape: HeadShape,
}

#[derive(Clone, Copy, Debug)]
struct HeadShape {
    heads: usize,
    kv_heads: usize,
    dim: usize,
}

impl HeadShape {
    /// Query heads that share one key head.
    fn group(self) -> usize {
        self.heads / self.kv_heads
    }

    fn kv_width(self) -> usize {
        self.kv_heads * self.dim
    }

    fn q_width(self) -> usize {
        self.heads * self.dim
    }

    /// The factor on scores before softmax.
    fn scale(self) -> f64 {
        1.0 / (self.dim as f64).sqrt()
    }
}

/// What all layers of one step share.
#[derive(Debug)]
pub struct StockPlan {
    rows: usize,
    cos: Tensor,
    sin: Tensor,
    /// The slot of every row, repeated over the row's width: `[rows, kv_heads · head_dim]`.
    slots: Tensor,
    decodes: Option<DecodePlan>,
    chunks: Vec<ChunkPlan>,
}

/// Sequences that feed one row each, padded to the longest.
#[derive(Debug)]
struct DecodePlan {
    seqs: usize,
    /// Tokens of the longest, rounded up to whole blocks.
    padded: usize,
    /// `[seqs · blocks]`.
    tables: Tensor,
    /// `[seqs, 1, 1, padded]`: 0 where a key exists, −∞ behind the end.
    mask: Tensor,
}

/// One sequence with its own block table.
#[derive(Debug)]
struct ChunkPlan {
    q_start: usize,
    q_len: usize,
    kv_len: usize,
    table: Tensor,
    /// `[1, q_len, kv_len]`, causal; none for a single row, which sees everything.
    mask: Option<Tensor>,
}

impl StockAttention {
    /// For one model.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(model: &Model) -> Result<StockAttention> {
        let config = model.config();
        let (cos, sin) = model.rope().tensors(model.dtype(), model.device())?;
        let shape = HeadShape { heads: config.heads, kv_heads: config.kv_heads, dim: config.head_dim };
        Ok(StockAttention { cos, sin, shape })
    }

    /// The decodes at the head of a step, as one batch.
    fn attend_decodes(&self, q: &Tensor, k: &Tensor, v: &Tensor, plan: &DecodePlan) -> Result<Tensor> {
        let HeadShape { kv_heads, dim, .. } = self.shape;
        let (seqs, padded) = (plan.seqs, plan.padded);
        let gathered =
            |pool: &Tensor| pool.index_select(&plan.tables, 0)?.reshape((seqs, padded, kv_heads, dim));
        let k = gathered(k)?.permute((0, 2, 3, 1))?.contiguous()?;
        let v = gathered(v)?.transpose(1, 2)?.contiguous()?;
        let q = q.i((0, ..seqs))?.contiguous()?.reshape((seqs, kv_heads, self.shape.group(), dim))?;
        let scores = (q.matmul(&k)? * self.shape.scale())?.broadcast_add(&plan.mask)?;
        softmax_last_dim(&scores)?.matmul(&v)?.reshape((seqs, self.shape.q_width()))
    }

    /// One sequence's rows.
    fn attend_chunk(&self, q: &Tensor, k: &Tensor, v: &Tensor, plan: &ChunkPlan) -> Result<Tensor> {
        let HeadShape { heads, kv_heads, dim } = self.shape;
        let (rows, keys, group) = (plan.q_len, plan.kv_len, self.shape.group());
        let gathered = |pool: &Tensor| {
            let all = pool.index_select(&plan.table, 0)?.reshape(((), kv_heads, dim))?;
            all.narrow(0, 0, keys)?.transpose(0, 1)?.contiguous()
        };
        let (k, v) = (gathered(k)?, gathered(v)?);
        let q = q.i((0, plan.q_start..plan.q_start + rows))?.reshape((rows, kv_heads, group, dim))?;
        let q = q.permute((1, 2, 0, 3))?.contiguous()?.reshape((kv_heads, group * rows, dim))?;
        let mut scores = (q.matmul(&k.transpose(1, 2)?)? * self.shape.scale())?;
        if let Some(mask) = &plan.mask {
            scores = scores.reshape((heads, rows, keys))?.broadcast_add(mask)?;
            scores = scores.reshape((kv_heads, group * rows, keys))?;
        }
        let out = softmax_last_dim(&scores)?.matmul(&v)?.reshape((kv_heads, group, rows, dim))?;
        out.permute((2, 0, 1, 3))?.contiguous()?.reshape((rows, self.shape.q_width()))
    }
}

impl AttnBackend for StockAttention {
    type Plan<'a> = StockPlan;

    fn alloc(&self, model: &Model, blocks: usize, block_tokens: usize) -> Result<KvPool> {
        let width = self.shape.kv_width();
        let zeros = || Tensor::zeros((blocks * block_tokens, width), model.dtype(), model.device());
        let layers = || (0..model.config().layers).map(|_| zeros()).collect::<Result<Vec<_>>>();
        Ok(KvPool { k: layers()?, v: layers()?, blocks, block_tokens })
    }

    fn plan<'a>(&self, model: &Model, step: &'a Step<'a>, pool: &KvPool) -> Result<StockPlan> {
        let device = model.device();
        let rows = step.tokens.len();
        let positions = Tensor::from_iter(step.positions().map(|p| p as u32), device)?;
        let slots = Tensor::from_iter(step.slots(pool.block_tokens).map(|s| s as u32), device)?;
        let slots = slots.reshape((rows, 1))?.broadcast_as((rows, self.shape.kv_width()))?.contiguous()?;
        let decodes = step.seqs.iter().take_while(|seq| seq.q_len == 1).count();
        let (batch, rest) = step.seqs.split_at(if decodes > 1 { decodes } else { 0 });
        Ok(StockPlan {
            rows,
            cos: self.cos.index_select(&positions, 0)?,
            sin: self.sin.index_select(&positions, 0)?,
            slots,
            decodes: if batch.is_empty() {
                None
            } else {
                Some(plan_decodes(batch, pool.block_tokens, model.dtype(), device)?)
            },
            chunks: rest
                .iter()
                .map(|seq| plan_chunk(seq, pool.block_tokens, model.dtype(), device))
                .collect::<Result<_>>()?,
        })
    }

    fn write_and_attend(
        &self,
        layer: usize,
        qkv: &Tensor,
        plan: &StockPlan,
        pool: &mut KvPool,
    ) -> Result<Tensor> {
        let HeadShape { heads, kv_heads, dim } = self.shape;
        let (q_width, kv_width) = (self.shape.q_width(), self.shape.kv_width());
        let part = |start, width| qkv.narrow(1, start, width)?.contiguous();
        let q = part(0, q_width)?.reshape((1, plan.rows, heads, dim))?;
        let k = part(q_width, kv_width)?.reshape((1, plan.rows, kv_heads, dim))?;
        let v = part(q_width + kv_width, kv_width)?;
        let q = rope_thd(&q, &plan.cos, &plan.sin)?;
        let k = rope_thd(&k, &plan.cos, &plan.sin)?.reshape((plan.rows, kv_width))?;
        pool.k[layer].scatter_set(&plan.slots, &k, 0)?;
        pool.v[layer].scatter_set(&plan.slots, &v, 0)?;

        let by_block = (pool.blocks, pool.block_tokens * kv_width);
        let (k, v) = (pool.k[layer].reshape(by_block)?, pool.v[layer].reshape(by_block)?);
        let mut parts = Vec::with_capacity(plan.chunks.len() + 1);
        if let Some(decodes) = &plan.decodes {
            parts.push(self.attend_decodes(&q, &k, &v, decodes)?);
        }
        for chunk in &plan.chunks {
            parts.push(self.attend_chunk(&q, &k, &v, chunk)?);
        }
        if parts.len() == 1 { Ok(parts.remove(0)) } else { Tensor::cat(&parts, 0) }
    }
}

fn plan_decodes(
    seqs: &[SeqSlice<'_>],
    block_tokens: usize,
    dtype: DType,
    device: &Device,
) -> Result<DecodePlan> {
    let used = |seq: &SeqSlice<'_>| seq.kv_len.div_ceil(block_tokens);
    let width = seqs.iter().map(used).max().unwrap_or(0);
    let padded = width * block_tokens;
    let mut tables = vec![0u32; seqs.len() * width];
    let mut mask = vec![f32::NEG_INFINITY; seqs.len() * padded];
    for (i, seq) in seqs.iter().enumerate() {
        let blocks = &seq.blocks[..used(seq)];
        tables[i * width..][..blocks.len()].copy_from_slice(blocks);
        mask[i * padded..][..seq.kv_len].fill(0.0);
    }
    Ok(DecodePlan {
        seqs: seqs.len(),
        padded,
        tables: Tensor::from_vec(tables, seqs.len() * width, device)?,
        mask: Tensor::from_vec(mask, (seqs.len(), 1, 1, padded), device)?.to_dtype(dtype)?,
    })
}

fn plan_chunk(seq: &SeqSlice<'_>, block_tokens: usize, dtype: DType, device: &Device) -> Result<ChunkPlan> {
    let &SeqSlice { q_start, q_len, kv_len, blocks } = seq;
    let table =
        Tensor::from_slice(&blocks[..kv_len.div_ceil(block_tokens)], kv_len.div_ceil(block_tokens), device)?;
    let mask = if q_len == 1 {
        None
    } else {
        let start = seq.start();
        let values: Vec<f32> = (0..q_len)
            .flat_map(|row| {
                (0..kv_len).map(move |key| if key > start + row { f32::NEG_INFINITY } else { 0.0 })
            })
            .collect();
        Some(Tensor::from_vec(values, (1, q_len, kv_len), device)?.to_dtype(dtype)?)
    };
    Ok(ChunkPlan { q_start, q_len, kv_len, table, mask })
}
