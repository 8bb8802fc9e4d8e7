//! Prefill and decode of the default model: candle's own operations against the CPU kernels.
#![allow(clippy::unwrap_used)]

use candle_core::{DType, Device};
use cr_engine::model::weights::RandomWeights;
use cr_engine::model::{
    FusedAttention, Isa, KvPool, Model, ModelConfig, ModelRunner, Product, Runner, Step, StockAttention,
};
use divan::Bencher;
use divan::counter::ItemsCount;
use std::sync::{Arc, LazyLock};

const BLOCK: usize = 16;
const CONTEXT: usize = 512;

/// With candle's products and with ours.
static MODELS: LazyLock<[Arc<Model>; 2]> = LazyLock::new(|| {
    let config = ModelConfig::by_name_or_path("llama-8m").unwrap();
    let source = RandomWeights { seed: 42, device: Device::Cpu, dtype: DType::F32 };
    [Product::Candle, Product::Kernel]
        .map(|product| Arc::new(Model::from_source(&config, &source, &Device::Cpu, product).unwrap()))
});

const BACKENDS: [&str; 2] = ["stock", "fused"];

fn runner(backend: &str) -> Box<dyn Runner> {
    match backend {
        "stock" => {
            let model = Arc::clone(&MODELS[0]);
            let stock = StockAttention::new(&model).unwrap();
            Box::new(ModelRunner::new(model, stock))
        }
        _ => {
            let model = Arc::clone(&MODELS[1]);
            let fused = FusedAttention::for_model(&model, BLOCK, Isa::best()).unwrap();
            Box::new(ModelRunner::new(model, fused))
        }
    }
}

/// Feeds `rows` tokens to each of the sequences, ending at `kv_len`, and reads the greedy tokens back.
fn step(runner: &dyn Runner, pool: &mut KvPool, tables: &[Vec<u32>], rows: usize, kv_len: usize) -> Vec<u32> {
    let tokens: Vec<u32> = (0..rows as u32).map(|i| i * 37 % 8192).collect();
    let mut step = Step::default();
    for table in tables {
        step.push(&tokens, kv_len, table, true);
    }
    let logits = runner.step(&step, pool).unwrap();
    let mut greedy = Vec::new();
    runner.argmax(&logits, &mut greedy).unwrap();
    greedy
}

fn tables(seqs: usize) -> Vec<Vec<u32>> {
    let each = (CONTEXT / BLOCK) as u32 + 8;
    (0..seqs as u32).map(|i| (i * each..(i + 1) * each).collect()).collect()
}

#[divan::bench(args = BACKENDS)]
fn prefill_512(bencher: Bencher<'_, '_>, backend: &str) {
    let (runner, tables) = (runner(backend), tables(1));
    let mut pool = runner.alloc(tables[0].len(), BLOCK).unwrap();
    bencher
        .counter(ItemsCount::new(CONTEXT))
        .bench_local(|| step(&*runner, &mut pool, &tables, CONTEXT, CONTEXT));
}

#[divan::bench(args = BACKENDS, consts = [1, 8, 32])]
fn decode_at_512<const SEQS: usize>(bencher: Bencher<'_, '_>, backend: &str) {
    let (runner, tables) = (runner(backend), tables(SEQS));
    let mut pool = runner.alloc(SEQS * tables[0].len(), BLOCK).unwrap();
    for table in &tables {
        step(&*runner, &mut pool, std::slice::from_ref(table), CONTEXT, CONTEXT);
    }
    bencher.counter(ItemsCount::new(SEQS)).bench_local(|| step(&*runner, &mut pool, &tables, 1, CONTEXT + 1));
}

/// A prompt of 576 tokens, cold, and with its first 512 found in the pool.
#[divan::bench(args = BACKENDS, consts = [576, 64])]
fn prompt_of_576_computing<const NEW: usize>(bencher: Bencher<'_, '_>, backend: &str) {
    let (runner, tables) = (runner(backend), tables(1));
    let mut pool = runner.alloc(tables[0].len(), BLOCK).unwrap();
    step(&*runner, &mut pool, &tables, CONTEXT, CONTEXT);
    bencher.bench_local(|| step(&*runner, &mut pool, &tables, NEW, 576));
}

#[divan::bench]
fn random_weights(bencher: Bencher<'_, '_>) {
    let config = ModelConfig::by_name_or_path("llama-8m").unwrap();
    bencher.bench_local(|| Model::random(&config, 42, &Device::Cpu).unwrap());
}

fn main() {
    divan::main();
}
