//! The part of a layer that knows sequences: writing keys and values into the pool, and attending to them.

use crate::model::{KvPool, Model, Step};
use candle_core::{D, Result, Tensor};

/// Attention over a paged pool. An implementation owns the pool's layout.
pub trait AttnBackend: Send + Sync {
    /// What all layers of one step share: positions, slots, block tables, masks.
    type Plan<'a>;

    /// A zeroed pool for one shard.
    ///
    /// # Errors
    /// The device is out of memory.
    fn alloc(&self, model: &Model, blocks: usize, block_tokens: usize) -> Result<KvPool>;

    /// Prepares a step. The caller guarantees that [`Step::check`] passed for this pool.
    ///
    /// # Errors
    /// The device refuses.
    fn plan<'a>(&self, model: &Model, step: &'a Step<'a>, pool: &KvPool) -> Result<Self::Plan<'a>>;

    /// Rotates queries and keys, writes keys and values of all rows into the pool, and attends causally.
    ///
    /// `qkv` is `[rows, (heads + 2 · kv_heads) · head_dim]`, contiguous, queries first, then keys, then values, not yet
    /// rotated. The result is `[rows, heads · head_dim]`.
    ///
    /// # Errors
    /// The device refuses.
    fn write_and_attend(
        &self,
        layer: usize,
        qkv: &Tensor,
        plan: &Self::Plan<'_>,
        pool: &mut KvPool,
    ) -> Result<Tensor>;

    /// The activation of the feed-forward part: `[rows, 2 · ff]`, gate then up, to `[rows, ff]` as `silu(gate) · up`.
    ///
    /// # Errors
    /// The device refuses.
    fn swiglu(&self, gate_up: &Tensor) -> Result<Tensor> {
        candle_nn::ops::swiglu(gate_up)
    }

    /// The index of the largest logit of each row of `[rows, vocab]`, read back from the device in place of what `tokens`
    /// held.
    ///
    /// # Errors
    /// The device refuses.
    fn argmax(&self, logits: &Tensor, tokens: &mut Vec<u32>) -> Result<()> {
        *tokens = logits.argmax(D::Minus1)?.to_vec1()?;
        Ok(())
    }
}
