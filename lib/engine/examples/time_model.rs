//! Times one model on the CPU: `time_model MODEL [q8|f32]` prints one JSON line of tokens per second.
//!
//! Prefill of 512 tokens; decode totals at batch 1, 4, 8 and 16 from 512 tokens of context on; the time to first token
//! of 64 new tokens behind 512 cached ones against 576 cold ones; the time to load.
#![allow(clippy::print_stdout)]

use anyhow::Context;
use candle_core::Device;
use cr_engine::model::{KvPool, LoadOptions, Model, Quant, Runner, Step, best_runner, load};
use std::sync::Arc;
use std::time::Instant;

const BLOCK: usize = 16;
const PROMPT: usize = 512;
const DECODE_STEPS: usize = 32;
const BATCHES: [usize; 4] = [1, 4, 8, 16];

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let spec = args.next().context("usage: time_model MODEL [q8|f32]")?;
    let quant = args.next().map(|name| Quant::from_name(&name).context("q8 or f32")).transpose()?;
    let begin = Instant::now();
    let options = LoadOptions { quant, ..LoadOptions::new(Device::Cpu) };
    let model = Arc::new(load(&spec, &options)?.model);
    let load_s = begin.elapsed().as_secs_f64();
    let bench = Bench::new(model)?;
    let mut figures = vec![("load_s".to_string(), load_s), ("prefill_512".to_string(), bench.prefill()?)];
    for batch in BATCHES {
        figures.push((format!("decode_{batch}"), bench.decode(batch)?));
    }
    let (cold, warm) = (bench.first_token(576)?, bench.first_token(64)?);
    figures.push(("reuse_512_of_576".into(), cold / warm));
    let fields: Vec<_> = figures.iter().map(|(name, value)| format!("\"{name}\":{value:.3}")).collect();
    println!("{{{}}}", fields.join(","));
    Ok(())
}

struct Bench {
    runner: Box<dyn Runner>,
    vocab: u32,
}

impl Bench {
    fn new(model: Arc<Model>) -> anyhow::Result<Bench> {
        Ok(Bench { runner: best_runner(&model, BLOCK)?, vocab: model.config().vocab as u32 })
    }

    /// Feeds `rows` tokens to each sequence, ending at `kv_len`, and reads the greedy tokens back.
    fn step(&self, pool: &mut KvPool, tables: &[Vec<u32>], rows: usize, kv_len: usize) -> anyhow::Result<()> {
        let tokens: Vec<u32> = (0..rows as u32).map(|i| (i * 37 + 11) % self.vocab).collect();
        let mut step = Step::default();
        for table in tables {
            step.push(&tokens, kv_len, table, true);
        }
        let logits = self.runner.step(&step, pool)?;
        self.runner.argmax(&logits)?;
        Ok(())
    }

    /// Block tables and a pool for so many sequences.
    fn sequences(&self, count: usize) -> anyhow::Result<(Vec<Vec<u32>>, KvPool)> {
        let each = ((PROMPT + 2 * DECODE_STEPS).div_ceil(BLOCK) + 1) as u32;
        let tables = (0..count as u32).map(|i| (i * each..(i + 1) * each).collect()).collect();
        Ok((tables, self.runner.alloc(count * each as usize, BLOCK)?))
    }

    fn prefill(&self) -> anyhow::Result<f64> {
        let (tables, mut pool) = self.sequences(1)?;
        self.step(&mut pool, &tables, PROMPT, PROMPT)?;
        let begin = Instant::now();
        self.step(&mut pool, &tables, PROMPT, PROMPT)?;
        Ok(PROMPT as f64 / begin.elapsed().as_secs_f64())
    }

    fn decode(&self, batch: usize) -> anyhow::Result<f64> {
        let (tables, mut pool) = self.sequences(batch)?;
        for table in &tables {
            self.step(&mut pool, std::slice::from_ref(table), PROMPT, PROMPT)?;
        }
        self.step(&mut pool, &tables, 1, PROMPT + 1)?;
        let begin = Instant::now();
        for i in 0..DECODE_STEPS {
            self.step(&mut pool, &tables, 1, PROMPT + 2 + i)?;
        }
        Ok((batch * DECODE_STEPS) as f64 / begin.elapsed().as_secs_f64())
    }

    /// Seconds to the first token of a prompt of 576 tokens of which `new` are not in the pool.
    fn first_token(&self, new: usize) -> anyhow::Result<f64> {
        let (tables, mut pool) = self.sequences(1)?;
        self.step(&mut pool, &tables, PROMPT, PROMPT)?;
        self.step(&mut pool, &tables, new, 576)?;
        let begin = Instant::now();
        self.step(&mut pool, &tables, new, 576)?;
        Ok(begin.elapsed().as_secs_f64())
    }
}
