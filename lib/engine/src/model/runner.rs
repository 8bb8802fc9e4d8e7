//! A model and an attention backend, ready for steps.

use crate::EngineError;
use crate::model::kernel::Isa;
use crate::model::{AttnBackend, FusedAttention, KvPool, KvSpec, Model, Step, StockAttention};
use candle_core::Tensor;
use std::sync::Arc;

/// Executes packed steps over a paged pool.
pub trait Runner: Send {
    /// What one token takes in a pool.
    fn kv_spec(&self) -> KvSpec;

    /// A zeroed pool for one shard.
    ///
    /// # Errors
    /// The device is out of memory.
    fn alloc(&self, blocks: usize, block_tokens: usize) -> Result<KvPool, EngineError>;

    /// Feeds a step, leaving keys and values in the pool; gives the logits `[logit_rows, vocab]`.
    ///
    /// On a GPU the work may still be under way when this returns; reading the logits waits for it.
    ///
    /// # Errors
    /// A malformed step, or a device that refuses.
    fn step(&self, step: &Step<'_>, pool: &mut KvPool) -> Result<Tensor, EngineError>;

    /// The greedy token of each row of logits, in place of what `tokens` held; waits for the device.
    ///
    /// # Errors
    /// A device that refuses.
    fn argmax(&self, logits: &Tensor, tokens: &mut Vec<u32>) -> Result<(), EngineError>;
}

/// The fastest runner for a model and a block size: the CPU kernels where they cover both, else candle's operations.
///
/// # Errors
/// The device is out of memory.
pub fn best_runner(model: &Arc<Model>, block_tokens: usize) -> Result<Box<dyn Runner>, EngineError> {
    Ok(match FusedAttention::for_model(model, block_tokens, Isa::best()) {
        Some(fused) => Box::new(ModelRunner::new(Arc::clone(model), fused)),
        None => Box::new(ModelRunner::new(Arc::clone(model), StockAttention::new(model)?)),
    })
}

/// A model with its attention backend.
#[derive(Debug)]
pub struct ModelRunner<A> {
    model: Arc<Model>,
    attention: A,
}

impl<A: AttnBackend> ModelRunner<A> {
    /// Joins the two.
    pub fn new(model: Arc<Model>, attention: A) -> ModelRunner<A> {
        ModelRunner { model, attention }
    }
}

impl<A: AttnBackend> Runner for ModelRunner<A> {
    fn kv_spec(&self) -> KvSpec {
        self.model.kv_spec()
    }

    fn alloc(&self, blocks: usize, block_tokens: usize) -> Result<KvPool, EngineError> {
        if blocks == 0 || block_tokens == 0 {
            return Err(EngineError::Config(format!(
                "a KV pool needs blocks and tokens in them, got {blocks} blocks of {block_tokens}"
            )));
        }
        Ok(self.attention.alloc(&self.model, blocks, block_tokens)?)
    }

    fn step(&self, step: &Step<'_>, pool: &mut KvPool) -> Result<Tensor, EngineError> {
        let config = self.model.config();
        step.check(pool.blocks, pool.block_tokens, config.vocab, config.context)?;
        Ok(self.model.forward(&self.attention, step, pool)?)
    }

    fn argmax(&self, logits: &Tensor, tokens: &mut Vec<u32>) -> Result<(), EngineError> {
        Ok(self.attention.argmax(logits, tokens)?)
    }
}
