//! A cost model of this device, from steps of the real model.
//!
//! Steps of known work are executed and timed: prefill chunks over contexts of several lengths, and decodes of several
//! batch sizes and contexts. Each is repeated, in rounds over the whole grid, so that a machine that slows down for a
//! while slows every step a little rather than one of them a lot; the median counts. The cost model is fitted to these
//! (`cr_cost::CostModel::fit`). Mixed steps, prefill and decodes together as a busy shard makes them, are measured too and
//! kept out of the fit: the error on them is what the model is worth on steps that it has not seen.

use crate::ReplayError;
use cr_cost::{CostModel, FitError, Sample, StepWork};
use cr_engine::model::{Model, ModelBackend, StepTimes};
use cr_engine::{Backend, Batch, BatchSeq};
use cr_trace::stats::median;
use cr_trace::{ContentId, Request, RequestId, Segment, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Lengths of prefill chunks, in tokens.
const CHUNKS: [u32; 5] = [16, 64, 128, 256, 512];
/// Tokens of context that a chunk starts from, or that a decoding sequence attends to.
const CONTEXTS: [u32; 5] = [0, 128, 512, 1024, 2048];
/// Decoding sequences in a step.
const BATCHES: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Chunks and decodes of mixed steps.
const MIXED: [(u32, u32, u32, u32); 6] = [
    (32, 0, 4, 256),
    (100, 256, 8, 512),
    (200, 128, 2, 300),
    (256, 512, 16, 700),
    (400, 0, 1, 900),
    (480, 96, 24, 200),
];

/// How to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tokens a KV block.
    pub block_tokens: u32,
    /// Rounds over the grid.
    pub rounds: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { block_tokens: 16, rounds: 5 }
    }
}

/// A fitted cost model, and what it was fitted to.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The model.
    pub cost: CostModel,
    /// The measured steps of the fit.
    pub fitted: Vec<Sample>,
    /// The measured mixed steps, kept out of it.
    pub held_out: Vec<Sample>,
    /// The error on the steps of the fit.
    pub error: FitError,
    /// The error on the mixed steps.
    pub held_out_error: FitError,
}

/// Measures `model` on its device and fits a cost model; `on_step` hears (steps done, steps in all).
///
/// # Errors
/// A device that fails, a context too short to measure anything, a fit that cannot be made, or an interruption.
pub fn calibrate(
    model: &Arc<Model>,
    device: &str,
    options: Options,
    interrupt: &AtomicBool,
    on_step: &mut dyn FnMut(u64, u64),
) -> Result<Calibration, ReplayError> {
    let context = model.config().context as u32;
    let (grid, mixed) = (grid(context), mixed(context));
    let shapes: Vec<&StepShape> = grid.iter().chain(&mixed).collect();
    let most_blocks = shapes.iter().map(|shape| shape.blocks(options.block_tokens)).max().unwrap_or(0);
    let mut bench = Bench::new(model, most_blocks, options.block_tokens)?;
    let total = shapes.len() as u64 * u64::from(options.rounds + 1);
    let (mut times, mut done) = (vec![Vec::new(); shapes.len()], 0);
    for round in 0..=options.rounds {
        for (shape, times) in shapes.iter().zip(&mut times) {
            if interrupt.load(Ordering::Relaxed) {
                return Err(ReplayError::Interrupted);
            }
            let time = bench.measure(shape)?;
            // The first round maps memory and wakes threads.
            if round > 0 {
                times.push(time);
            }
            done += 1;
            on_step(done, total);
        }
    }
    let sample = |(shape, times): (&&StepShape, &mut Vec<Time>)| {
        let seconds = times.iter().map(|time| time.as_s()).collect();
        Sample { work: shape.work(), duration: Time::from_s(median(seconds).unwrap_or(0.0)) }
    };
    let mut fitted: Vec<Sample> = shapes.iter().zip(&mut times).map(sample).collect();
    let held_out = fitted.split_off(grid.len());
    let name = format!("{}-{device}", model.config().name);
    let rounds = options.rounds;
    let source =
        format!("cr-serve calibrate: {} kinds of steps, median of {rounds}, on {device}", fitted.len());
    let cost = CostModel::fit(&name, &source, &fitted).map_err(|e| ReplayError::Config(e.to_string()))?;
    let (error, held_out_error) = (cost.error_on(&fitted), cost.error_on(&held_out));
    Ok(Calibration { cost, fitted, held_out, error, held_out_error })
}

/// A step to be measured: at most one prefill chunk, and decodes that all attend to the same number of tokens.
#[derive(Clone, Copy, Debug, Default)]
struct StepShape {
    new: u32,
    new_ctx: u32,
    decodes: u32,
    decode_ctx: u32,
}

impl StepShape {
    fn work(&self) -> StepWork {
        let mut work = StepWork::default();
        (0..self.decodes).for_each(|_| work.add_decode(u64::from(self.decode_ctx)));
        if self.new > 0 {
            work.add_prefill(u64::from(self.new), u64::from(self.new_ctx));
        }
        work
    }

    /// Blocks that its sequences need.
    fn blocks(&self, block_tokens: u32) -> u32 {
        let chunk = (self.new + self.new_ctx).div_ceil(block_tokens);
        chunk + self.decodes * (self.decode_ctx + 1).div_ceil(block_tokens)
    }

    fn longest(&self) -> u32 {
        (self.new + self.new_ctx).max(self.decode_ctx + 1)
    }
}

/// The steps of the fit that sequences of `context` tokens allow.
fn grid(context: u32) -> Vec<StepShape> {
    let mut grid = Vec::new();
    for new_ctx in CONTEXTS {
        grid.extend(CHUNKS.map(|new| StepShape { new, new_ctx, ..StepShape::default() }));
    }
    for decode_ctx in CONTEXTS.into_iter().filter(|ctx| *ctx > 0) {
        grid.extend(BATCHES.map(|decodes| StepShape { decodes, decode_ctx, ..StepShape::default() }));
    }
    grid.retain(|shape| shape.longest() <= context);
    grid
}

/// The steps that only test the fit.
fn mixed(context: u32) -> Vec<StepShape> {
    let shape = |(new, new_ctx, decodes, decode_ctx)| StepShape { new, new_ctx, decodes, decode_ctx };
    MIXED.into_iter().map(shape).filter(|shape| shape.longest() <= context).collect()
}

/// A backend with a pool of its own, whose blocks hold nothing of interest: attention takes as long over any content.
struct Bench {
    backend: ModelBackend,
    block_tokens: u32,
    request: Request,
}

impl Bench {
    fn new(model: &Arc<Model>, blocks: u32, block_tokens: u32) -> Result<Bench, ReplayError> {
        let backend = ModelBackend::new(model, blocks as usize, block_tokens as usize, StepTimes::Measured)?;
        let request = Request {
            id: RequestId(0),
            t_s: 0.0,
            key: "calibration".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: [Segment(ContentId::global("calibration"), model.config().context as u32)]
                .into_iter()
                .collect(),
            output_tokens: 1,
        };
        Ok(Bench { backend, block_tokens, request })
    }

    /// Executes the step once.
    fn measure(&mut self, shape: &StepShape) -> Result<Time, ReplayError> {
        let table: Vec<u32> = (0..shape.blocks(self.block_tokens)).collect();
        let mut batch = Batch { work: shape.work(), ..Batch::default() };
        let mut rest = table.as_slice();
        let mut part = |start: u32, tokens: u32| {
            let (blocks, behind) = rest.split_at((start + tokens).div_ceil(self.block_tokens) as usize);
            rest = behind;
            BatchSeq { request: &self.request, start, tokens, blocks, emits: true }
        };
        batch.seqs.extend((0..shape.decodes).map(|_| part(shape.decode_ctx, 1)));
        if shape.new > 0 {
            batch.seqs.push(part(shape.new_ctx, shape.new));
        }
        Ok(self.backend.step(&batch)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_engine::model::{ModelConfig, pick_device};

    #[test]
    fn a_tiny_model_is_measured_and_fitted() {
        let config = ModelConfig::by_name_or_path("llama-tiny").expect("is built in");
        let (device, kind) = pick_device();
        let model = Arc::new(Model::random(&config, 1, &device).expect("fits"));
        let mut heard = (0, 0);
        let options = Options { rounds: 1, ..Options::default() };
        let result = calibrate(&model, kind, options, &AtomicBool::new(false), &mut |done, total| {
            heard = (done, total);
        })
        .expect("calibrates");
        assert_eq!(heard.0, heard.1);
        assert_eq!(heard.1, 2 * (result.fitted.len() + result.held_out.len()) as u64);
        assert!(result.held_out.len() == MIXED.len() && result.fitted.len() > 40);
        // A thousand tokens of prefill cost more than ten: true of any device.
        assert!(result.cost.prefill(1000, 0) > result.cost.prefill(10, 0));
        // The file that is written can be read again and says the same.
        let again = CostModel::from_toml(&result.cost.to_toml(), "fit.toml").expect("parses");
        assert_eq!(again, result.cost);
    }

    #[test]
    fn an_interruption_ends_it() {
        let config = ModelConfig::by_name_or_path("llama-tiny").expect("is built in");
        let (device, kind) = pick_device();
        let model = Arc::new(Model::random(&config, 1, &device).expect("fits"));
        let result = calibrate(&model, kind, Options::default(), &AtomicBool::new(true), &mut |_, _| {});
        assert!(matches!(result, Err(ReplayError::Interrupted)));
    }

    #[test]
    fn short_contexts_shrink_the_grid() {
        assert!(grid(300).iter().all(|shape| shape.longest() <= 300) && !grid(300).is_empty());
        assert!(mixed(100).is_empty());
    }
}
