//! The default model against candle's own operations and against candle-transformers' Llama, in one run, as ratios: sides take turns, and
//! the fastest round of each counts, as what else the machine does only ever makes a round slower. Where it is never quiet, the CPU
//! time (of Linux; waiting threads that spin count) says more than the clock.
#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub)]

#[path = "../tests/support/theirs.rs"]
mod theirs;

use candle_core::{D, DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::llama::{Cache, Llama};
use cr_engine::model::weights::{RandomWeights, WeightSource};
use cr_engine::model::{
    FusedAttention, Isa, KvPool, Model, ModelConfig, ModelRunner, Product, Runner, Step, StockAttention,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

const BLOCK: usize = 16;
const CONTEXT: usize = 512;
const ROUNDS: usize = 15;
/// Decode steps of a round.
const STEPS: usize = 8;

/// One implementation, with sequences of [`CONTEXT`] tokens in its cache.
trait Side {
    /// Feeds `rows` tokens to each sequence from position `from` on, and reads the greedy tokens back.
    fn feed(&mut self, from: usize, rows: usize);
}

/// Ours, on either attention backend.
struct Paged {
    runner: Box<dyn Runner>,
    pool: KvPool,
    tables: Vec<Vec<u32>>,
    greedy: Vec<u32>,
}

impl Paged {
    fn new(runner: Box<dyn Runner>, seqs: usize) -> Paged {
        let each = (CONTEXT / BLOCK) as u32 + 4;
        let tables: Vec<Vec<u32>> = (0..seqs as u32).map(|i| (i * each..(i + 1) * each).collect()).collect();
        let pool = runner.alloc(seqs * each as usize, BLOCK).unwrap();
        Paged { runner, pool, tables, greedy: Vec::new() }
    }
}

impl Side for Paged {
    fn feed(&mut self, from: usize, rows: usize) {
        let tokens = tokens(from, rows);
        let mut step = Step::default();
        for table in &self.tables {
            step.push(&tokens, from + rows, table, true);
        }
        let logits = self.runner.step(&step, &mut self.pool).unwrap();
        self.runner.argmax(&logits, &mut self.greedy).unwrap();
    }
}

/// candle-transformers' Llama, its sequences in one batch of equal lengths.
struct Transformers {
    llama: Llama,
    seqs: usize,
    empty: Cache,
    cache: Cache,
}

impl Side for Transformers {
    fn feed(&mut self, from: usize, rows: usize) {
        if from == 0 {
            self.cache = self.empty.clone();
        }
        let tokens = tokens(from, rows).repeat(self.seqs);
        let input = Tensor::from_vec(tokens, (self.seqs, rows), &Device::Cpu).unwrap();
        let logits = self.llama.forward(&input, from, &mut self.cache).unwrap();
        logits.argmax(D::Minus1).unwrap().to_vec1::<u32>().unwrap();
    }
}

fn tokens(from: usize, rows: usize) -> Vec<u32> {
    (from..from + rows).map(|i| (i * 37 % 8192) as u32).collect()
}

fn random() -> RandomWeights {
    RandomWeights { seed: 42, device: Device::Cpu, dtype: DType::F32 }
}

fn model(config: &ModelConfig, product: Product) -> Arc<Model> {
    Arc::new(Model::from_source(config, &random(), &Device::Cpu, product).unwrap())
}

fn fused(config: &ModelConfig, seqs: usize) -> Paged {
    let model = model(config, Product::Kernel);
    let attention = FusedAttention::for_model(&model, BLOCK, Isa::best()).unwrap();
    Paged::new(Box::new(ModelRunner::new(model, attention)), seqs)
}

fn stock(config: &ModelConfig, seqs: usize) -> Paged {
    let model = model(config, Product::Candle);
    let attention = StockAttention::new(&model).unwrap();
    Paged::new(Box::new(ModelRunner::new(model, attention)), seqs)
}

fn transformers(config: &ModelConfig, seqs: usize) -> Transformers {
    let theirs = theirs::llama_config(config);
    let vars = VarBuilder::from_tensors(weights(config), DType::F32, &Device::Cpu);
    let empty = Cache::new(true, DType::F32, &theirs, &Device::Cpu).unwrap();
    Transformers { llama: Llama::load(vars, &theirs).unwrap(), seqs, cache: empty.clone(), empty }
}

/// The same random weights, by name.
fn weights(config: &ModelConfig) -> HashMap<String, Tensor> {
    let (hidden, ff) = (config.hidden, config.ff);
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_string(), vec![config.vocab, hidden]),
        ("lm_head.weight".to_string(), vec![config.vocab, hidden]),
        ("model.norm.weight".to_string(), vec![hidden]),
    ];
    for layer in 0..config.layers {
        for (part, shape) in [
            ("input_layernorm", vec![hidden]),
            ("post_attention_layernorm", vec![hidden]),
            ("self_attn.q_proj", vec![config.q_width(), hidden]),
            ("self_attn.k_proj", vec![config.kv_width(), hidden]),
            ("self_attn.v_proj", vec![config.kv_width(), hidden]),
            ("self_attn.o_proj", vec![hidden, config.q_width()]),
            ("mlp.gate_proj", vec![ff, hidden]),
            ("mlp.up_proj", vec![ff, hidden]),
            ("mlp.down_proj", vec![hidden, ff]),
        ] {
            shapes.push((format!("model.layers.{layer}.{part}.weight"), shape));
        }
    }
    let source = random();
    shapes.into_iter().map(|(name, shape)| (name.clone(), source.tensor(&name, &shape).unwrap())).collect()
}

/// Seconds of CPU that this process has had, on all of its threads; nothing where the system does not say.
fn cpu_s() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    let ran_ns = |thread: std::fs::DirEntry| -> Option<f64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    threads.filter_map(|thread| ran_ns(thread.ok()?)).sum::<f64>() / 1e9
}

/// Seconds by the clock and of CPU of the fastest round of each side; they take turns.
fn race<const N: usize>(sides: [&mut dyn Side; N], round: impl Fn(&mut dyn Side)) -> [[f64; 2]; N] {
    let (mut sides, mut fastest) = (sides, [[f64::INFINITY; 2]; N]);
    for _ in 0..ROUNDS {
        for (side, fastest) in sides.iter_mut().zip(&mut fastest) {
            let (begin, cpu_begin) = (Instant::now(), cpu_s());
            round(*side);
            let took = [begin.elapsed().as_secs_f64(), cpu_s() - cpu_begin];
            *fastest = std::array::from_fn(|i| fastest[i].min(took[i]));
        }
    }
    fastest
}

fn row(what: &str, tokens: usize, [ours, stock, theirs]: [[f64; 2]; 3]) {
    let rate = |seconds: [f64; 2]| tokens as f64 / seconds[0];
    print!("{what:<20}{:>8.0}{:>8.0}{:>8.0}", rate(ours), rate(stock), rate(theirs));
    for clock in [0, 1] {
        print!("{:>10.2}{:>8.2}", stock[clock] / ours[clock], theirs[clock] / ours[clock]);
    }
    println!();
}

fn main() {
    // As the other benchmarks: a word that is not in this one's name means another one.
    if std::env::args().skip(1).any(|word| !word.starts_with('-') && !"ratios".contains(&word)) {
        return;
    }
    let config = ModelConfig::by_name_or_path("llama-8m").unwrap();
    println!(
        "llama-8m in f32, prompts of {CONTEXT} tokens, the fastest of {ROUNDS} rounds in turn: tokens/s, and how many times"
    );
    println!(
        "as fast ours is as our model on candle's operations (stock) and as candle-transformers (theirs)\n"
    );
    println!(
        "{:<20}{:>8}{:>8}{:>8}{:>18}{:>18}",
        "", "ours", "stock", "theirs", "by the clock", "by CPU time"
    );
    for seqs in [1, 8, 32] {
        let (mut ours, mut stock, mut theirs) =
            (fused(&config, seqs), stock(&config, seqs), transformers(&config, seqs));
        let sides: [&mut dyn Side; 3] = [&mut ours, &mut stock, &mut theirs];
        if seqs == 1 {
            row("prefill", CONTEXT, race(sides, |side| side.feed(0, CONTEXT)));
        } else {
            sides.into_iter().for_each(|side| side.feed(0, CONTEXT));
        }
        // A round of decoding ends where it began for the paged sides; the other one's cache grows by a few tokens.
        let times = race([&mut ours, &mut stock, &mut theirs], |side| {
            (CONTEXT..CONTEXT + STEPS).for_each(|at| side.feed(at, 1));
        });
        row(&format!("decode, batch {seqs}"), seqs * STEPS, times);
    }
    let (mut cold, mut cached) = (fused(&config, 1), fused(&config, 1));
    cached.feed(0, CONTEXT);
    let [cold] = race([&mut cold], |side| side.feed(0, CONTEXT + 64));
    let [cached] = race([&mut cached], |side| side.feed(CONTEXT, 64));
    println!(
        "\n512 cached and 64 new tokens against 576 cold: {:.1} times faster, with {:.1} times less CPU time",
        cold[0] / cached[0],
        cold[1] / cached[1]
    );
}
