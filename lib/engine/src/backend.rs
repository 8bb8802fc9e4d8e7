//! What a batch is, and who executes it.

use crate::EngineError;
use cr_cost::{CostModel, StepWork};
use cr_trace::{Request, Time};
use std::sync::Arc;

/// One sequence's part of a step.
///
/// The sequence is the prompt of `request` followed by its answer (content `a:id`). The step feeds `tokens` of it from
/// position `start` on: a chunk of prefill, or the one token of a decode. Its KV lands in the paged pool.
#[derive(Clone, Copy, Debug)]
pub struct BatchSeq<'a> {
    /// Whose.
    pub request: &'a Request,
    /// The position of the first token fed. Everything before it is in the pool.
    pub start: u32,
    /// Tokens fed in this step, at least one.
    pub tokens: u32,
    /// The block table: position `p` lives in block `blocks[p / block_tokens]`, slot `p % block_tokens`.
    pub blocks: &'a [u32],
    /// Whether the last position fed yields a token (a decode, or the end of a prefill).
    pub emits: bool,
}

/// One step of one shard: decodes first, then prefill chunks.
#[derive(Clone, Debug, Default)]
pub struct Batch<'a> {
    /// The parts; never empty when executed.
    pub seqs: Vec<BatchSeq<'a>>,
    /// The work of all parts, in the terms of the cost model.
    pub work: StepWork,
}

/// Executes the steps of one shard.
pub trait Backend: Send {
    /// Executes the batch and says how long it took on this shard's own time line.
    ///
    /// # Errors
    /// Whatever the device says. The run cannot go on after that.
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError>;

    /// The cost model, where it alone says how long a step takes and nothing is computed; then [`Backend::step`] need not be
    /// called.
    fn timed(&self) -> Option<Arc<CostModel>> {
        None
    }

    /// A request has left the shard; whatever is remembered of it can go.
    fn forget(&mut self, _request: &Request) {}

    /// The longest sequence, prompt and output together, that the backend can hold; none where it does not matter.
    fn context_tokens(&self) -> Option<u32> {
        None
    }
}
