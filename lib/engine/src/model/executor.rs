//! [`Backend`] on a real model: batches of a scheduler in, durations out.

use crate::EngineError;
use crate::backend::{Backend, Batch, BatchSeq};
use crate::model::contents::{Answers, Contents};
use crate::model::runner::best_runner;
use crate::model::{KvPool, Model, Runner, Step};
use candle_core::Device;
use cr_cost::CostModel;
use cr_trace::{Request, RequestId, Time};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;

/// Where the duration of a step comes from. The model runs in either case.
#[derive(Clone, Debug)]
pub enum StepTimes {
    /// The wall clock around the step: from handing it to the device to having read the token ids it yields.
    Measured,
    /// A cost model, so that a noisy machine still gives repeatable latencies.
    Modelled(CostModel),
}

/// One shard's executor: the shared weights and a KV pool of its own.
pub struct ModelBackend {
    runner: Box<dyn Runner>,
    device: Device,
    pool: KvPool,
    times: StepTimes,
    vocab: u32,
    context: u32,
    /// Answers of the model itself, where it goes on from those.
    answers: Option<Answers>,
    contents: FxHashMap<RequestId, Contents>,
    tokens: Vec<u32>,
    /// The buffers of steps, empty between them.
    step: Step<'static>,
    emitted: Vec<u32>,
}

impl ModelBackend {
    /// A backend over `blocks` blocks of `block_tokens` tokens of the shared `model`.
    ///
    /// # Errors
    /// A pool that the device cannot hold.
    pub fn new(
        model: &Arc<Model>,
        blocks: usize,
        block_tokens: usize,
        times: StepTimes,
    ) -> Result<ModelBackend, EngineError> {
        let runner = best_runner(model, block_tokens)?;
        let config = model.config();
        Ok(ModelBackend {
            pool: runner.alloc(blocks, block_tokens)?,
            runner,
            device: model.device().clone(),
            times,
            vocab: config.vocab as u32,
            context: config.context as u32,
            answers: None,
            contents: FxHashMap::default(),
            tokens: Vec::new(),
            step: Step::default(),
            emitted: Vec::new(),
        })
    }

    /// Goes on from the model's own greedy tokens instead of the trace's answers; the length stays the trace's. `answers` is what all
    /// shards of a fleet share.
    #[must_use]
    pub fn free_running(mut self, answers: Answers) -> ModelBackend {
        self.answers = Some(answers);
        self
    }

    /// The greedy tokens of the last step's emitting rows, in the batch's order. Replay decodes under teacher forcing:
    /// the model computes them as a server would, and the trace's answer is what the sequence goes on with, unless it runs free.
    pub fn emitted(&self) -> &[u32] {
        &self.emitted
    }

    /// The token values of the rows that one sequence feeds, into `self.tokens`.
    fn fill_tokens(&mut self, seq: &BatchSeq<'_>) {
        let contents = self
            .contents
            .entry(seq.request.id)
            .or_insert_with(|| Contents::of(seq.request, self.answers.as_ref()));
        self.tokens.clear();
        contents.push_tokens(seq.start, seq.tokens, self.vocab, &mut self.tokens);
    }
}

impl Backend for ModelBackend {
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError> {
        let mut step = std::mem::take(&mut self.step).recycled();
        for seq in &batch.seqs {
            self.fill_tokens(seq);
            step.push(&self.tokens, (seq.start + seq.tokens) as usize, seq.blocks, seq.emits);
        }
        let begin = Instant::now();
        let logits = self.runner.step(&step, &mut self.pool)?;
        if step.logit_rows.is_empty() {
            self.emitted.clear();
            self.device.synchronize()?;
        } else {
            self.runner.argmax(&logits, &mut self.emitted)?;
        }
        let measured = begin.elapsed();
        self.step = step.recycled();
        if self.answers.is_some() {
            for (seq, &token) in batch.seqs.iter().filter(|seq| seq.emits).zip(&self.emitted) {
                if let Some(contents) = self.contents.get_mut(&seq.request.id) {
                    contents.decoded(seq.start + seq.tokens, token);
                }
            }
        }
        Ok(match &self.times {
            StepTimes::Measured => Time::from_s(measured.as_secs_f64()),
            StepTimes::Modelled(cost) => cost.step(&batch.work),
        })
    }

    fn forget(&mut self, request: &Request) {
        if let Some(contents) = self.contents.remove(&request.id) {
            contents.finish(self.answers.as_ref());
        }
    }

    fn context_tokens(&self) -> Option<u32> {
        Some(self.context)
    }
}
