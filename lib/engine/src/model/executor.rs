//! [`Backend`] on a real model: batches of a scheduler in, durations out.

use crate::EngineError;
use crate::backend::{Backend, Batch, BatchSeq};
use crate::model::runner::best_runner;
use crate::model::{KvPool, Model, Runner, Step};
use candle_core::Device;
use cr_cost::CostModel;
use cr_trace::{ContentId, Request, RequestId, Time, tokens::token_at};
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
    contents: FxHashMap<RequestId, Contents>,
    tokens: Vec<u32>,
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
            contents: FxHashMap::default(),
            tokens: Vec::new(),
            emitted: Vec::new(),
        })
    }

    /// The greedy tokens of the last step's emitting rows, in the batch's order. Replay decodes under teacher forcing:
    /// the model computes them as a server would, and the trace's answer is what the sequence goes on with.
    pub fn emitted(&self) -> &[u32] {
        &self.emitted
    }

    /// The token values of the rows that one sequence feeds, into `self.tokens`.
    fn fill_tokens(&mut self, seq: &BatchSeq<'_>) {
        let contents = self.contents.entry(seq.request.id).or_insert_with(|| Contents::of(seq.request));
        self.tokens.clear();
        contents.push_tokens(seq.start, seq.tokens, self.vocab, &mut self.tokens);
    }
}

impl Backend for ModelBackend {
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError> {
        let mut step = Step { seqs: Vec::with_capacity(batch.seqs.len()), ..Step::default() };
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
            self.emitted = self.runner.argmax(&logits)?;
        }
        let measured = begin.elapsed();
        Ok(match &self.times {
            StepTimes::Measured => Time::from_s(measured.as_secs_f64()),
            StepTimes::Modelled(cost) => cost.step(&batch.work),
        })
    }

    fn forget(&mut self, request: &Request) {
        self.contents.remove(&request.id);
    }

    fn context_tokens(&self) -> Option<u32> {
        Some(self.context)
    }
}

/// The contents of a sequence, hashed once: its prompt's segments, then its answer without end.
struct Contents {
    /// The position behind each segment, and the hash of its content.
    segments: Vec<(u32, u64)>,
    answer: u64,
}

impl Contents {
    fn of(request: &Request) -> Contents {
        let mut end = 0;
        let segments = request
            .prompt
            .iter()
            .map(|segment| {
                end += segment.tokens();
                (end, segment.content().hash64())
            })
            .collect();
        Contents { segments, answer: ContentId::answer(request.id).hash64() }
    }

    /// Appends the token values of `count` positions from `start` on.
    fn push_tokens(&self, start: u32, count: u32, vocab: u32, out: &mut Vec<u32>) {
        let stop = start + count;
        let (mut position, mut begin) = (start, 0);
        for &(end, content) in &self.segments {
            let here = position..end.min(stop);
            out.extend(here.map(|p| token_at(content, p - begin, vocab)));
            position = position.max(end.min(stop));
            begin = end;
        }
        out.extend((position..stop).map(|p| token_at(self.answer, p - begin, vocab)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::Segment;
    use cr_trace::tokens::push_prompt_tokens;

    fn request() -> Request {
        Request {
            id: RequestId(7),
            t_s: 0.0,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: [Segment(ContentId::global("t"), 5), Segment(ContentId::key("k"), 3)]
                .into_iter()
                .collect(),
            output_tokens: 4,
        }
    }

    #[test]
    fn a_sequence_is_its_prompt_and_then_its_answer() {
        let mut expect = Vec::new();
        push_prompt_tokens(&request().prompt, 100, &mut expect);
        push_prompt_tokens(&[Segment(ContentId::answer(RequestId(7)), 4)], 100, &mut expect);
        let contents = Contents::of(&request());
        for start in 0..12u32 {
            for count in 1..=12 - start {
                let mut tokens = Vec::new();
                contents.push_tokens(start, count, 100, &mut tokens);
                assert_eq!(tokens, expect[start as usize..(start + count) as usize], "{start}+{count}");
            }
        }
    }
}
