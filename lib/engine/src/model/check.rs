//! Whether a model computes the same on its device, with its kernels and its types of weights, as in f32 by candle on the
//! CPU.

use crate::EngineError;
use crate::model::runner::{ModelRunner, Runner, best_runner};
use crate::model::{KvPool, Model, Quant, Step, StockAttention};
use candle_core::DType;
use std::sync::Arc;

const BLOCK_TOKENS: usize = 16;

/// Lengths of the sequences that are fed: within a block, across some, longer than a chunk.
const LENGTHS: [usize; 4] = [11, 37, 130, 600];

/// The last sequence starts with this many tokens of the longest one, found in the pool.
const SHARED: usize = 512;

/// One way of feeding the model, and how far its logits are off.
#[derive(Clone, Debug)]
pub struct CheckCase {
    /// What was fed.
    pub name: &'static str,
    /// The largest difference of a logit, relative to the largest logit of the reference.
    pub error: f64,
    /// How many rows of logits were compared.
    pub rows: usize,
    /// In how many of them the greedy token is the same.
    pub same_greedy: usize,
}

/// How far logits may be off for rounding alone, for the type of the weights and of the activations.
pub fn tolerance(quant: Option<Quant>, activations: DType) -> f64 {
    match (quant, activations) {
        (Some(Quant::Q8), _) => 0.1,
        (Some(Quant::Bf16), _) | (_, DType::BF16 | DType::F16) => 0.05,
        _ => 1e-3,
    }
}

/// Feeds both models the same prefills, chunks, decodes and reused prefixes, and compares their logits.
///
/// # Errors
/// Models of different shapes, a context that is too short, or a device that refuses.
pub fn check(model: &Arc<Model>, reference: &Arc<Model>) -> Result<Vec<CheckCase>, EngineError> {
    let (config, theirs) = (model.config(), reference.config());
    if (config.vocab, config.layers) != (theirs.vocab, theirs.layers) {
        return Err(EngineError::Config(format!("{} and {} are different models", config.name, theirs.name)));
    }
    if config.context < 700 {
        return Err(EngineError::Config(format!("a context of {} is too short to check", config.context)));
    }
    let stock = StockAttention::new(reference)?;
    let stock = ModelRunner::new(Arc::clone(reference), stock);
    let (mut ours, mut theirs) = (Side::new(best_runner(model, BLOCK_TOKENS)?)?, Side::new(Box::new(stock))?);
    let mut cases = Vec::new();
    for (name, parts) in steps() {
        let (a, b) = (ours.run(&parts, config.vocab)?, theirs.run(&parts, config.vocab)?);
        if !b.is_empty() {
            cases.push(compare(name, &a, &b));
        }
    }
    Ok(cases)
}

/// Sequence, first position, rows, whether logits are wanted.
type Part = (usize, usize, usize, bool);

/// The steps, in order: each reads what those before it wrote.
fn steps() -> Vec<(&'static str, Vec<Part>)> {
    let whole = |seq: usize| (seq, 0, LENGTHS[seq], true);
    let last = |seq: usize| (seq, LENGTHS[seq], 1, true);
    vec![
        ("prefill of whole prompts", vec![whole(0), whole(1), whole(2)]),
        ("", vec![(3, 0, 256, false)]),
        ("chunked prefill beside decodes", vec![last(0), last(1), (3, 256, 344, true)]),
        ("a batch of decodes", vec![(0, 12, 1, true), (1, 38, 1, true), last(2), last(3)]),
        ("a prefix found in the pool", vec![(4, SHARED, 40, true)]),
    ]
}

fn compare(name: &'static str, ours: &[Vec<f32>], reference: &[Vec<f32>]) -> CheckCase {
    let greedy = |row: &[f32]| row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i);
    let mut case = CheckCase { name, error: 0.0, rows: reference.len(), same_greedy: 0 };
    for (a, b) in ours.iter().zip(reference) {
        let scale = b.iter().fold(f32::MIN_POSITIVE, |m, v| m.max(v.abs()));
        // Not `max`, which would pass over NaN.
        let errors = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs() / scale));
        case.error = errors.fold(case.error, |worst, e| if e <= worst || worst.is_nan() { worst } else { e });
        case.same_greedy += usize::from(greedy(a) == greedy(b));
    }
    case
}

/// One model and its pool.
struct Side {
    runner: Box<dyn Runner>,
    pool: KvPool,
    tables: Vec<Vec<u32>>,
}

impl Side {
    fn new(runner: Box<dyn Runner>) -> Result<Side, EngineError> {
        // Interleaved and descending, so that neighbours never adjoin; the fifth sequence begins with the fourth's blocks.
        let each = 40u32;
        let blocks = 5 * each;
        let mut tables: Vec<Vec<u32>> =
            (0..5).map(|i| (0..each).map(|j| blocks - 1 - (j * 5 + i)).collect()).collect();
        let donor = tables[3][..SHARED / BLOCK_TOKENS].to_vec();
        tables[4][..donor.len()].copy_from_slice(&donor);
        let pool = runner.alloc(blocks as usize, BLOCK_TOKENS)?;
        Ok(Side { runner, pool, tables })
    }

    fn run(&mut self, parts: &[Part], vocab: usize) -> Result<Vec<Vec<f32>>, EngineError> {
        let mut step = Step::default();
        for &(seq, start, rows, emits) in parts {
            // The fifth sequence is the fourth as far as it is shared.
            let content = |p: usize| if seq == 4 && p < SHARED { 3 } else { seq };
            let token = |p: usize| ((p * 31 + content(p) * 17 + p * p) % vocab) as u32;
            let tokens: Vec<u32> = (start..start + rows).map(token).collect();
            step.push(&tokens, start + rows, &self.tables[seq], emits);
        }
        let logits = self.runner.step(&step, &mut self.pool)?;
        Ok(logits.to_dtype(DType::F32)?.to_vec2()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LoadOptions, load, load_reference};
    use candle_core::Device;

    fn against_reference(seed: u64, quant: Option<Quant>) -> Vec<CheckCase> {
        let reference = Arc::new(load_reference("llama-tiny", 1).expect("loads").model);
        let options = LoadOptions { seed, quant, ..LoadOptions::new(Device::Cpu) };
        check(&Arc::new(load("llama-tiny", &options).expect("loads").model), &reference).expect("runs")
    }

    #[test]
    fn the_same_weights_pass_in_every_type_and_others_fail() {
        for quant in [None, Some(Quant::Q8), Some(Quant::Bf16)] {
            let cases = against_reference(1, quant);
            assert_eq!(cases.iter().map(|case| case.rows).collect::<Vec<_>>(), [3, 3, 4, 1]);
            let tolerance = tolerance(quant, DType::F32);
            assert!(cases.iter().all(|case| case.error <= tolerance), "{quant:?}: {cases:?}");
        }
        assert!(against_reference(2, None).iter().all(|case| case.error > 0.2));
    }

    #[test]
    fn nan_is_no_agreement() {
        let case = compare("x", &[vec![f32::NAN, 1.0]], &[vec![1.0, 1.0]]);
        assert!(case.error.is_nan());
    }
}
