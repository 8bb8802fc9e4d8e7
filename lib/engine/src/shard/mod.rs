//! One shard: a queue, a continuous batch, and a KV pool.
//!
//! Every step takes all decodes, then prefill chunks up to the token budget: first of sequences already in the batch,
//! then of waiting ones in order of arrival, for as long as the pool has room for their whole prompt. A step's effects
//! appear at its end: a request that arrives meanwhile joins the next one.
//!
//! When a decode needs a block and none is left, the sequence that joined last loses its blocks and goes back to the
//! head of the queue; its tokens are computed again later (preemption by recomputation).
//!
//! Where a cost model alone times the steps and the pool keeps runs of blocks, steps in which nothing happens but decoding
//! are taken in one [`leap`]: at every instant the shard is exactly as if it had taken them one by one.

mod complete;
mod leap;
#[cfg(test)]
mod leap_tests;
mod quotes;
mod schedule;
mod sequence;
mod steady;
#[cfg(test)]
mod tests;
mod waiting;

use crate::backend::BatchSeq;
use crate::pool::{Pool, PoolUsage};
use crate::recycle::recycle;
use crate::{Backend, EngineError};
use cr_cost::CostModel;
use cr_trace::{Request, RequestId, Time};
use leap::Leap;
use sequence::{Sequence, State};
use std::collections::VecDeque;
use std::sync::Arc;
use steady::Steady;
use waiting::{Newcomer, Waiting};

/// The limits of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardConfig {
    /// Tokens a KV block.
    pub block_tokens: u32,
    /// KV blocks.
    pub kv_blocks: u32,
    /// Most tokens fed in one step, a decoding sequence counting as one.
    pub token_budget: u32,
    /// Most sequences in the batch; never more than the token budget can decode.
    pub max_running: u32,
    /// Longest prompt plus output; none where the model does not limit it.
    pub context_tokens: Option<u32>,
    /// A request not finished this long after its arrival is given up.
    pub timeout: Option<Time>,
    /// Whether the pool evicts the blocks of keys that are not admitted first.
    pub protect_admitted: bool,
}

impl Default for ShardConfig {
    /// 4,096 blocks of 16 tokens, a budget of 512 tokens, a batch of 256, no other limits.
    fn default() -> ShardConfig {
        ShardConfig {
            block_tokens: 16,
            kv_blocks: 4096,
            token_budget: 512,
            max_running: 256,
            context_tokens: None,
            timeout: None,
            protect_admitted: false,
        }
    }
}

impl ShardConfig {
    /// Whether an empty shard could serve this request.
    ///
    /// # Errors
    /// A request that it could not.
    pub fn fits(&self, request: &Request) -> Result<(), Rejection> {
        self.prompt_of(request).map(|_| ())
    }

    /// When a request that arrived at that time is given up; [`Time::MAX`] where none is.
    #[inline]
    fn deadline(&self, arrival: Time) -> Time {
        self.timeout.map_or(Time::MAX, |timeout| arrival + timeout)
    }

    /// The prompt tokens of a request that an empty shard could serve.
    fn prompt_of(&self, request: &Request) -> Result<u32, Rejection> {
        let prompt = request.prompt.outline().tokens();
        let tokens = prompt + u64::from(request.output_tokens);
        if let Some(context) = self.context_tokens
            && tokens > u64::from(context)
        {
            return Err(Rejection::PromptTooLong { tokens, context });
        }
        // The last token is never fed, so it needs no room.
        let blocks = (tokens - 1).div_ceil(u64::from(self.block_tokens));
        if blocks > u64::from(self.kv_blocks) {
            return Err(Rejection::PoolTooSmall { blocks, pool: self.kv_blocks });
        }
        // No pool holds more than a u32 counts.
        Ok(u32::try_from(prompt).unwrap_or(u32::MAX))
    }
}

/// Why a request can never be served by a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Prompt and output exceed the context.
    PromptTooLong {
        /// Prompt plus output tokens.
        tokens: u64,
        /// The context.
        context: u32,
    },
    /// Prompt and output exceed the whole pool.
    PoolTooSmall {
        /// Blocks needed at the end of its answer.
        blocks: u64,
        /// Blocks of the pool.
        pool: u32,
    },
}

/// A request that a shard has not taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The request.
    pub request: Arc<Request>,
    /// Why.
    pub rejection: Rejection,
}

/// A request that has left the shard.
#[derive(Clone, Debug)]
pub struct Departed {
    /// The request.
    pub request: Arc<Request>,
    /// Whether its key was in the plan when it was routed.
    pub admitted: bool,
    /// Intended arrival, or release.
    pub arrival: Time,
    /// When it first joined a batch; none where it never did.
    pub scheduled_at: Option<Time>,
    /// When its first token was there.
    pub first_token_at: Option<Time>,
    /// When it left.
    pub left_at: Time,
    /// Its prompt.
    pub prompt_tokens: u32,
    /// Prompt tokens found in the pool at first scheduling.
    pub cached_tokens: u32,
    /// Tokens decoded.
    pub output_tokens: u32,
    /// How often it lost its blocks.
    pub preemptions: u32,
    /// Whether it has all its tokens; false where it ran out of time or the shard died.
    pub finished: bool,
}

/// Counters since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardTotals {
    /// Time spent in steps that have ended.
    pub busy: Time,
    /// Steps that have ended.
    pub steps: u64,
    /// Requests finished.
    pub requests: u64,
    /// Prompt tokens of requests first scheduled.
    pub prompt_tokens: u64,
    /// Of those, found in the pool.
    pub cached_tokens: u64,
    /// Prompt tokens computed for the first time.
    pub computed_tokens: u64,
    /// Tokens computed again after a preemption.
    pub recomputed_tokens: u64,
    /// Tokens decoded.
    pub output_tokens: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
}

/// One shard. Drive it with [`Shard::enqueue`], [`Shard::start_step`] and [`Shard::end_step`].
pub struct Shard<P: Pool> {
    config: ShardConfig,
    pool: P,
    backend: Box<dyn Backend>,
    /// What times the steps, where the backend computes nothing.
    timed: Option<Arc<CostModel>>,
    waiting: VecDeque<Waiting<P::Held>>,
    /// Whoever waits arrived no later than those behind it, which only faults and preemptions can change.
    queue_in_order: bool,
    running: Vec<Sequence<P::Held>>,
    /// Boxes of those that have left, to be used again.
    left: Vec<Box<State<P::Held>>>,
    /// What steps need to know of the sequences that decode.
    steady: Steady,
    /// The buffer of batches, empty between steps.
    batch: Vec<BatchSeq<'static>>,
    /// The step in progress, and the uneventful ones after it.
    step: Option<Leap>,
    /// Whether uneventful steps are taken in one leap.
    leaps: bool,
    /// Whether some request had the answer to another one in its prompt.
    answers_are_asked: bool,
    /// What a request alone has, its turn and its answer, is kept apart: so far nobody has asked for another one's.
    defers: bool,
    /// The highest id so far: a request beyond it is a new one.
    newest: Option<RequestId>,
    /// Nobody in the batch runs out of time before.
    running_expiry: Time,
    /// Nobody in the queue runs out of time before.
    waiting_expiry: Time,
    pending_tokens: u64,
    /// How many times as long as usual steps take.
    pace: f64,
    totals: ShardTotals,
}

impl<P: Pool> Shard<P> {
    /// A shard with an empty pool.
    pub fn new(mut config: ShardConfig, backend: Box<dyn Backend>) -> Shard<P> {
        config.max_running = config.max_running.min(config.token_budget).max(1);
        config.context_tokens = match (config.context_tokens, backend.context_tokens()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let timed = backend.timed();
        let mut pool = P::new(config.kv_blocks, config.block_tokens);
        // How many blocks are spared can be seen at any time.
        let defers = P::LEAPS && !config.protect_admitted;
        if config.protect_admitted {
            pool.protect_admitted();
        }
        if defers {
            pool.keep_private();
        }
        Shard {
            pool,
            leaps: P::LEAPS && timed.is_some(),
            timed,
            answers_are_asked: false,
            defers,
            newest: None,
            running_expiry: Time::MAX,
            waiting_expiry: Time::MAX,
            config,
            backend,
            waiting: VecDeque::new(),
            queue_in_order: true,
            running: Vec::new(),
            left: Vec::new(),
            steady: Steady::new(config.block_tokens),
            batch: Vec::new(),
            step: None,
            pending_tokens: 0,
            pace: 1.0,
            totals: ShardTotals::default(),
        }
    }

    /// Puts a request at the end of the queue.
    ///
    /// # Errors
    /// A request that could not be served even by an empty shard.
    pub fn enqueue(&mut self, request: Arc<Request>, arrival: Time, admitted: bool) -> Result<(), Refused> {
        let prompt_tokens = match self.config.prompt_of(&request) {
            Ok(tokens) => tokens,
            Err(rejection) => return Err(Refused { request, rejection }),
        };
        self.look_for_quotes(&request);
        self.pending_tokens += u64::from(prompt_tokens);
        let in_order = self.waiting.back().is_none_or(|last| last.arrival() <= arrival);
        self.queue_in_order = in_order && (self.queue_in_order || self.waiting.is_empty());
        self.waiting.push_back(Waiting::New(Newcomer { request, prompt_tokens, arrival, admitted }));
        self.waiting_expiry = self.waiting_expiry.min(self.config.deadline(arrival));
        Ok(())
    }

    /// No request in the shard runs out of time before; `None` where none does at all.
    fn expiry(&self) -> Option<Time> {
        let expiry = self.running_expiry.min(self.waiting_expiry);
        (expiry < Time::MAX).then_some(expiry)
    }

    /// Whether a step is in progress.
    pub fn in_step(&self) -> bool {
        self.step.is_some()
    }

    /// Whether there is anything to do.
    pub fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    /// Requests that wait to join the batch.
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// Requests in the batch.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Uncached prompt tokens of requests without a first token; those not scheduled yet count in full.
    pub fn pending_tokens(&self) -> u64 {
        self.pending_tokens
    }

    /// Time spent in steps up to `now`, the step in progress included.
    pub fn busy(&self, now: Time) -> Time {
        self.totals.busy + self.step.map_or(Time::ZERO, |step| step.busy(now))
    }

    /// Steps that start from now on take `pace` times as long; 1 is usual.
    pub fn set_pace(&mut self, pace: f64) {
        self.pace = pace;
    }

    fn paced(&self, duration: Time) -> Time {
        if self.pace == 1.0 { duration } else { Time((duration.0 as f64 * self.pace).round() as u64) }
    }

    fn stop_step(&mut self, now: Time) {
        self.totals.busy = self.busy(now);
        self.step = None;
    }

    /// Counters since the start; of a step in progress nothing counts yet.
    pub fn totals(&self) -> &ShardTotals {
        &self.totals
    }

    /// The state of the pool.
    pub fn usage(&self) -> PoolUsage {
        self.pool.usage()
    }

    /// An empty shard with the same limits and backend, and a pool of another kind.
    pub fn rebuilt<Q: Pool>(self) -> Shard<Q> {
        Shard::new(self.config, self.backend)
    }

    /// A new plan decides anew whose blocks are spared; see [`Pool::lift_protection`].
    pub fn lift_protection(&mut self) {
        // Whoever waits was told to be admitted by the plan before.
        let queue = std::mem::take(&mut self.waiting);
        self.waiting =
            queue.into_iter().map(|one| Waiting::Seen(one.sequence(&self.pool, &mut self.left))).collect();
        self.pool.lift_protection();
    }

    /// The limits.
    pub fn config(&self) -> &ShardConfig {
        &self.config
    }

    /// Plans and executes a step from `now`. Returns how long it takes, or `None` where there is nothing to do now. Where
    /// nothing but decoding happens for a while, that is how long all steps until then take. Requests whose time is up are given up first and pushed onto `departed`.
    ///
    /// # Errors
    /// What the backend says; the shard is of no further use then.
    pub fn start_step(
        &mut self,
        now: Time,
        departed: &mut Vec<Departed>,
    ) -> Result<Option<Time>, EngineError> {
        debug_assert!(self.step.is_none(), "one step at a time");
        self.expire(now, departed);
        let survey = self.plan_step(now);
        let work = survey.work;
        if work.is_empty() {
            return Ok(None);
        }
        let duration = match &self.timed {
            Some(cost) => cost.step(&work),
            None => {
                let buffer = recycle(std::mem::take(&mut self.batch));
                let batch = schedule::batch(&self.running, work, &self.pool, buffer);
                let duration = self.backend.step(&batch)?;
                self.batch = recycle(batch.seqs);
                duration
            }
        };
        let duration = self.paced(duration);
        let step = self.leap_from(now, duration, &survey);
        if survey.first_done == step.steps() {
            self.first_done_approaches();
        }
        self.step = Some(step);
        Ok(Some(step.duration()))
    }

    /// Ends the step in progress at `now`: its KV blocks are published, finished requests are pushed onto `departed`.
    pub fn end_step(&mut self, now: Time, departed: &mut Vec<Departed>) {
        debug_assert!(self.step.is_some(), "a step is in progress");
        let steps = self.step.map_or(1, |leap| leap.steps());
        self.totals.steps += u64::from(steps);
        self.stop_step(now);
        self.complete_steps(steps, now, departed);
    }

    /// Gives up everything, as when the shard dies or the run is stopped; what was cached is lost.
    pub fn abandon(&mut self, now: Time, departed: &mut Vec<Departed>) {
        self.catch_up(now, false);
        self.stop_step(now);
        self.forget_sums();
        for mut sequence in std::mem::take(&mut self.running) {
            sequence.release(&mut self.pool);
            self.depart(sequence, now, false, departed);
        }
        for one in std::mem::take(&mut self.waiting) {
            self.turn_away(one, now, departed);
        }
        self.pool.clear();
    }
}
