//! The CPU kernels against the stock path, on random shapes, blocks and steps.
#![allow(clippy::unwrap_used)]

mod support;

use candle_core::Device;
use cr_engine::model::{AttnBackend, FusedAttention, Isa, Model, Step, StockAttention};
use proptest::prelude::*;
use std::sync::Arc;
use support::*;

/// Head width, key heads, query heads a key head, tokens of a block.
fn shape() -> impl Strategy<Value = (usize, usize, usize, usize)> {
    (prop::sample::select(vec![16usize, 32, 64, 96, 128]), 1usize..4, 1usize..6, 1usize..4)
        .prop_map(|(dim, kv_heads, group, tiles)| (dim, kv_heads, group, 16 * tiles))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Two steps, so that the second reads what the first wrote: prefill all but some rows, then the rest.
    #[test]
    fn attention_equals_the_stock_path(
        (dim, kv_heads, group, block_tokens) in shape(),
        parts in prop::collection::vec((0usize..70, 1usize..60), 1..5),
        seed in 0u64..1000,
    ) {
        let heads = kv_heads * group;
        let config = config(&format!(
            "hidden = {}\nff = 16\nlayers = 1\nheads = {heads}\nkv_heads = {kv_heads}\nvocab = 64\ncontext = 200",
            heads * dim,
        ));
        let model = Arc::new(Model::random(&config, seed, &Device::Cpu).unwrap());
        let lengths: Vec<usize> = parts.iter().map(|(before, rows)| before + rows).collect();
        let (tables, blocks) = scattered_tables(&lengths, block_tokens);
        let tokens = sequences(&lengths, 64);
        let mut first = Step::default();
        let mut second = Step::default();
        for (i, &(before, rows)) in parts.iter().enumerate() {
            if before > 0 {
                first.push(&tokens[i][..before], before, &tables[i], false);
            }
            second.push(&tokens[i][before..], before + rows, &tables[i], true);
        }
        let stock = StockAttention::new(&model).unwrap();
        let expect = attend(&model, &stock, [&first, &second], blocks, block_tokens, seed);
        for isa in Isa::available() {
            let fused = FusedAttention::for_model(&model, block_tokens, isa).unwrap();
            let ours = attend(&model, &fused, [&first, &second], blocks, block_tokens, seed);
            let worst = ours.iter().zip(&expect).fold(0f32, |m, (a, b)| m.max((a - b).abs()));
            prop_assert!(worst < 2e-5, "{isa}: off by {worst}");
        }
    }
}

/// Runs attention alone over random queries, keys and values; gives the output of the last step.
fn attend<A: AttnBackend>(
    model: &Arc<Model>,
    attention: &A,
    steps: [&Step<'_>; 2],
    blocks: usize,
    block_tokens: usize,
    seed: u64,
) -> Vec<f32> {
    let config = model.config();
    let width = config.q_width() + 2 * config.kv_width();
    let mut pool = attention.alloc(model, blocks, block_tokens).unwrap();
    let mut out = Vec::new();
    for (i, step) in steps.into_iter().enumerate() {
        let rows = step.tokens.len();
        if rows == 0 {
            continue;
        }
        let qkv = noise(seed + i as u64, rows, width);
        let plan = attention.plan(model, step, &pool).unwrap();
        let result = attention.write_and_attend(0, &qkv, &plan, &mut pool).unwrap();
        out = result.flatten_all().unwrap().to_vec1().unwrap();
    }
    out
}
