//! Logits equal candle-transformers' Llama on ragged batches, chunked prefill, scattered tables and mixed steps.
#![allow(clippy::unwrap_used)]

mod support;

use candle_core::Device;
use cr_engine::model::{
    FusedAttention, Isa, Model, ModelConfig, Product, Runner, StockAttention, best_runner,
};
use support::*;

/// Relative to the largest logit, about 100: 2e-4 in absolute terms, with room for the order of sums.
const TOLERANCE: f32 = 5e-6;

const LENGTHS: [usize; 4] = [37, 201, 64, 530];

/// Prefills in uneven chunks mixed with decodes, then decodes all last tokens as one ragged batch.
fn check(config: &ModelConfig, runner: &dyn Runner, expect: &[Vec<f32>], block_tokens: usize) {
    let seqs = sequences(&LENGTHS, config.vocab);
    let (tables, blocks) = scattered_tables(&LENGTHS, block_tokens);
    let mut pool = runner.alloc(blocks, block_tokens).unwrap();
    let mut step = |parts: &[Part]| run(runner, &mut pool, &seqs, &tables, parts);
    let what = |name: &str| format!("{name}, blocks of {block_tokens}");

    assert!(step(&[(0, 0, 35, false), (1, 0, 100, false)]).is_empty());
    step(&[(0, 35, 1, true), (1, 100, 99, false), (2, 0, 63, false), (3, 0, 1, false)]);
    step(&[(1, 199, 1, true), (3, 1, 300, false)]);
    let whole = step(&[(0, 36, 1, true), (3, 301, 229, true)]);
    assert_close(&whole[0], &expect[0], TOLERANCE, &what("a decode beside a chunk"));
    assert_close(&whole[1], &expect[3], TOLERANCE, &what("the last chunk of a prefill"));

    let decodes = step(&[(0, 36, 1, true), (1, 200, 1, true), (2, 63, 1, true), (3, 529, 1, true)]);
    for (i, logits) in decodes.iter().enumerate() {
        assert_close(logits, &expect[i], TOLERANCE, &what(&format!("a ragged decode, sequence {i}")));
    }
}

#[test]
fn stock_equals_candle_transformers() {
    for config in [even_config(), odd_config()] {
        let weights = checkpoint(&config);
        let expect = reference(&config, &weights, &sequences(&LENGTHS, config.vocab));
        let runner = stock(&config, &weights);
        for block_tokens in [7, 8, 16, 512] {
            check(&config, &runner, &expect, block_tokens);
        }
    }
}

#[test]
fn the_kernels_equal_candle_transformers() {
    let config = even_config();
    let weights = checkpoint(&config);
    let expect = reference(&config, &weights, &sequences(&LENGTHS, config.vocab));
    for isa in Isa::available() {
        for block_tokens in [16, 32, 512] {
            check(&config, &fused(&config, &weights, block_tokens, isa), &expect, block_tokens);
        }
    }
}

#[test]
fn shapes_the_kernels_do_not_cover_fall_back() {
    let load = |config: &ModelConfig| {
        std::sync::Arc::new(
            Model::from_source(config, &checkpoint(config), &Device::Cpu, Product::Kernel).unwrap(),
        )
    };
    let (even, odd) = (load(&even_config()), load(&odd_config()));
    assert!(FusedAttention::for_model(&even, 16, Isa::best()).is_some());
    assert!(FusedAttention::for_model(&even, 24, Isa::best()).is_none());
    assert!(FusedAttention::for_model(&odd, 16, Isa::best()).is_none());
    let weights = checkpoint(&odd_config());
    let expect = reference(&odd_config(), &weights, &sequences(&LENGTHS, odd_config().vocab));
    check(&odd_config(), &*best_runner(&odd, 16).unwrap(), &expect, 16);
}

#[test]
fn a_block_that_held_nan_is_clean_for_its_next_owner() {
    let config = even_config();
    let weights = checkpoint(&config);
    let runner = fused(&config, &weights, 16, Isa::best());
    let seqs = sequences(&[5], config.vocab);
    let mut pool = runner.alloc(2, 16).unwrap();
    let cold = run(&runner, &mut pool, &seqs, &[vec![1]], &[(0, 0, 5, true)]);
    for layer in pool.k.iter_mut().chain(&mut pool.v) {
        *layer = layer.affine(f64::NAN, f64::NAN).unwrap();
    }
    assert_eq!(run(&runner, &mut pool, &seqs, &[vec![1]], &[(0, 0, 5, true)]), cold);
}

#[test]
fn a_reused_prefix_gives_the_logits_of_a_cold_run() {
    let config = even_config();
    let weights = checkpoint(&config);
    for block_tokens in [8usize, 16, 512] {
        reuse(&config, &stock(&config, &weights), block_tokens);
    }
    for block_tokens in [16, 512] {
        reuse(&config, &fused(&config, &weights, block_tokens, Isa::best()), block_tokens);
    }
}

fn reuse(config: &ModelConfig, runner: &dyn Runner, block_tokens: usize) {
    // Sequence 1 shares its first 512 tokens with sequence 0 and nothing after.
    let mut seqs = sequences(&[600, 560], config.vocab);
    let donor = seqs[0][..512].to_vec();
    seqs[1][..512].copy_from_slice(&donor);
    let (mut tables, blocks) = scattered_tables(&[600, 560], block_tokens);
    let mut pool = runner.alloc(blocks, block_tokens).unwrap();
    let cold = run(runner, &mut pool, &seqs, &tables, &[(1, 0, 560, true)]);

    let mut pool = runner.alloc(blocks, block_tokens).unwrap();
    run(runner, &mut pool, &seqs, &tables, &[(0, 0, 600, false)]);
    let shared = 512 / block_tokens;
    let donor = tables[0][..shared].to_vec();
    tables[1][..shared].copy_from_slice(&donor);
    let warm = run(runner, &mut pool, &seqs, &tables, &[(1, 512, 48, true)]);
    assert_close(&warm[0], &cold[0], 1e-5, &format!("blocks of {block_tokens}"));
}

#[test]
fn another_seed_is_another_model_and_the_same_seed_the_same() {
    use std::sync::Arc;
    let config = ModelConfig::by_name_or_path("llama-tiny").unwrap();
    let logits = |seed| {
        let model = Arc::new(Model::random(&config, seed, &Device::Cpu).unwrap());
        let attention = StockAttention::new(&model).unwrap();
        let runner = runner(model, attention);
        let mut pool = runner.alloc(4, 16).unwrap();
        run(&runner, &mut pool, &sequences(&[40], 512), &[vec![2, 0, 3]], &[(0, 0, 40, true)])
    };
    assert_eq!(logits(1), logits(1));
    assert_ne!(logits(1), logits(2));
}
