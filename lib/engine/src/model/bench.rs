//! How fast a model is on a device: prefill, decode by batch, and what a cached prefix saves.

use crate::EngineError;
use crate::model::runner::{Runner, best_runner};
use crate::model::{KvPool, Model, Step};
use candle_core::{DType, Device, Tensor};
use std::sync::Arc;
use std::time::Instant;

const BLOCK_TOKENS: usize = 16;

/// Tokens of a prefill's step, as a shard's token budget has it by default.
const CHUNK: usize = 512;

/// Tokens computed behind a cached prompt.
const NEW_TOKENS: usize = 64;

/// What is measured.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Tokens of a prompt.
    pub prompt: usize,
    /// Batches of decodes.
    pub batches: Vec<usize>,
    /// Decode steps timed for a batch.
    pub steps: usize,
    /// How often everything is measured; medians are given.
    pub repeats: usize,
}

/// Medians of what was measured.
#[derive(Clone, Debug)]
pub struct BenchResult {
    /// Prompt tokens a second, one prompt at a time.
    pub prefill_per_s: f64,
    /// Batch, and decoded tokens a second of all its sequences, each behind a prompt.
    pub decode_per_s: Vec<(usize, f64)>,
    /// Time to the first token of a prompt and 64 more, cold, divided by the same with the prompt in the pool.
    pub reuse_gain: f64,
}

impl BenchResult {
    /// Bytes a second that a decode of one sequence reads at least: all weights.
    pub fn weight_bytes_per_s(&self, weight_bytes: u64) -> Option<f64> {
        let (_, rate) = self.decode_per_s.iter().find(|(batch, _)| *batch == 1)?;
        Some(rate * weight_bytes as f64)
    }
}

/// Measures a model.
///
/// # Errors
/// A prompt that does not fit in the context, or a device that refuses.
pub fn bench(model: &Arc<Model>, plan: &BenchPlan) -> Result<BenchResult, EngineError> {
    let longest = plan.prompt + NEW_TOKENS.max(plan.steps + 2);
    let context = model.config().context;
    if longest > context || plan.prompt == 0 || plan.steps == 0 {
        let (prompt, steps) = (plan.prompt, plan.steps);
        return Err(EngineError::Config(format!(
            "a prompt of {prompt} tokens and {steps} decoded ones must be at least 1 and fit in a context of {context}"
        )));
    }
    let bench = Bench {
        runner: best_runner(model, BLOCK_TOKENS)?,
        device: model.device().clone(),
        vocab: model.config().vocab,
        longest,
    };
    let repeats = plan.repeats.max(1);
    let median_of = |measure: &dyn Fn() -> Result<f64, EngineError>| {
        measure()?;
        (0..repeats).map(|_| measure()).collect::<Result<Vec<_>, _>>().map(median)
    };
    let decode = |&batch: &usize| Ok((batch, median_of(&|| bench.decode(batch, plan))?));
    Ok(BenchResult {
        prefill_per_s: median_of(&|| bench.prefill(plan.prompt))?,
        decode_per_s: plan.batches.iter().map(decode).collect::<Result<_, EngineError>>()?,
        reuse_gain: median_of(&|| bench.reuse(plan.prompt))?,
    })
}

/// Bytes a second that a device copies, reads and writes counted: what its memory gives in practice.
///
/// # Errors
/// A device that refuses.
pub fn copy_bytes_per_s(device: &Device) -> Result<f64, EngineError> {
    let elements = if device.is_cpu() { 32 << 20 } else { 128 << 20 };
    let source = Tensor::ones(elements, DType::F32, device)?;
    let mut rates = Vec::new();
    for _ in 0..6 {
        device.synchronize()?;
        let begin = Instant::now();
        let copy = source.affine(1.0, 0.0)?;
        device.synchronize()?;
        rates.push((2 * 4 * elements) as f64 / begin.elapsed().as_secs_f64());
        drop(copy);
    }
    Ok(median(rates.split_off(1)))
}

fn median(values: Vec<f64>) -> f64 {
    cr_trace::stats::median(values).unwrap_or(0.0)
}

struct Bench {
    runner: Box<dyn Runner>,
    device: Device,
    vocab: usize,
    longest: usize,
}

impl Bench {
    /// Block tables and a pool for so many sequences.
    fn sequences(&self, count: usize) -> Result<(Vec<Vec<u32>>, KvPool), EngineError> {
        let each = self.longest.div_ceil(BLOCK_TOKENS) as u32;
        let tables = (0..count as u32).map(|i| (i * each..(i + 1) * each).collect()).collect();
        Ok((tables, self.runner.alloc(count * each as usize, BLOCK_TOKENS)?))
    }

    /// Feeds positions `from..to` to each sequence in steps of a chunk, and reads the greedy tokens back.
    fn feed(
        &self,
        pool: &mut KvPool,
        tables: &[Vec<u32>],
        from: usize,
        to: usize,
    ) -> Result<(), EngineError> {
        for start in (from..to).step_by(CHUNK) {
            let end = to.min(start + CHUNK);
            let tokens: Vec<u32> = (start..end).map(|i| ((i * 37 + 11) % self.vocab) as u32).collect();
            let mut step = Step::default();
            for table in tables {
                step.push(&tokens, end, table, end == to);
            }
            let logits = self.runner.step(&step, pool)?;
            if end == to {
                self.runner.argmax(&logits, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    /// Seconds that feeding takes.
    fn time(
        &self,
        pool: &mut KvPool,
        tables: &[Vec<u32>],
        from: usize,
        to: usize,
    ) -> Result<f64, EngineError> {
        self.device.synchronize()?;
        let begin = Instant::now();
        self.feed(pool, tables, from, to)?;
        Ok(begin.elapsed().as_secs_f64())
    }

    fn prefill(&self, prompt: usize) -> Result<f64, EngineError> {
        let (tables, mut pool) = self.sequences(1)?;
        Ok(prompt as f64 / self.time(&mut pool, &tables, 0, prompt)?)
    }

    fn decode(&self, batch: usize, plan: &BenchPlan) -> Result<f64, EngineError> {
        let (tables, mut pool) = self.sequences(batch)?;
        for table in &tables {
            self.feed(&mut pool, std::slice::from_ref(table), 0, plan.prompt)?;
        }
        self.feed(&mut pool, &tables, plan.prompt, plan.prompt + 1)?;
        let mut seconds = 0.0;
        for position in plan.prompt + 1..=plan.prompt + plan.steps {
            seconds += self.time(&mut pool, &tables, position, position + 1)?;
        }
        Ok((batch * plan.steps) as f64 / seconds)
    }

    fn reuse(&self, prompt: usize) -> Result<f64, EngineError> {
        let (tables, mut pool) = self.sequences(1)?;
        let cold = self.time(&mut pool, &tables, 0, prompt + NEW_TOKENS)?;
        Ok(cold / self.time(&mut pool, &tables, prompt, prompt + NEW_TOKENS)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelConfig;

    #[test]
    fn everything_asked_for_is_measured() {
        let config = ModelConfig::by_name_or_path("llama-tiny").expect("built in");
        let model = Arc::new(Model::random(&config, 1, &Device::Cpu).expect("loads"));
        let plan = BenchPlan { prompt: 40, batches: vec![1, 3], steps: 4, repeats: 2 };
        let result = bench(&model, &plan).expect("runs");
        assert!(result.prefill_per_s > 0.0 && result.reuse_gain > 0.0);
        assert_eq!(result.decode_per_s.iter().map(|(batch, _)| *batch).collect::<Vec<_>>(), [1, 3]);
        let rate = result.decode_per_s[0].1;
        assert_eq!(result.weight_bytes_per_s(10), Some(10.0 * rate));
        let error = bench(&model, &BenchPlan { prompt: 4090, ..plan }).expect_err("too long").to_string();
        assert!(error.contains("context of 4096"), "{error}");
    }
}
