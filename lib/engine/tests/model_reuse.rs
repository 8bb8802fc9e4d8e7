//! Reused keys and values give the logits of a cold run: across turns, after eviction, under preemption.
//!
//! "Reuse across sequences" is in `model_equality.rs`. Every test runs on the CPU kernels and on candle's operations.
#![allow(clippy::unwrap_used)]

mod support;

use cr_engine::model::{Isa, KvPool, Runner};
use support::*;

const BLOCK: usize = 16;

/// Relative to the largest logit.
const TOLERANCE: f32 = 1e-3;

fn on_every_backend(check: impl Fn(&dyn Runner)) {
    let config = even_config();
    let weights = checkpoint(&config);
    check(&fused(&config, &weights, BLOCK, Isa::best()));
    check(&stock(&config, &weights));
}

fn pool(runner: &dyn Runner) -> KvPool {
    runner.alloc(24, BLOCK).unwrap()
}

/// The logits after the last token of a sequence that is computed whole, in a pool of its own.
fn cold(runner: &dyn Runner, sequence: &[u32]) -> Vec<f32> {
    let table: Vec<u32> = (0..sequence.len().div_ceil(BLOCK) as u32).collect();
    let sequences = [sequence.to_vec()];
    run(runner, &mut pool(runner), &sequences, &[table], &[(0, 0, sequence.len(), true)]).remove(0)
}

#[test]
fn the_next_turn_reuses_prompt_and_answer() {
    on_every_backend(|runner| {
        let sequence = sequences(&[150], 500);
        let table = vec![vec![9, 3, 7, 1, 20, 11, 2, 5, 0, 14]];
        let mut pool = pool(runner);
        // Turn 1: a prompt of 70 tokens, an answer decoded token by token up to 96. Turn 2: 54 tokens on top.
        run(runner, &mut pool, &sequence, &table, &[(0, 0, 70, true)]);
        for position in 70..96 {
            run(runner, &mut pool, &sequence, &table, &[(0, position, 1, true)]);
        }
        let warm = run(runner, &mut pool, &sequence, &table, &[(0, 96, 54, true)]);
        assert_close(&warm[0], &cold(runner, &sequence[0]), TOLERANCE, "turn 2");
    });
}

#[test]
fn what_was_evicted_and_computed_again_is_as_new() {
    on_every_backend(|runner| {
        let seqs = sequences(&[100, 120], 500);
        let old: Vec<u32> = (0..8).collect();
        let mut pool = pool(runner);
        run(runner, &mut pool, &seqs, &[old.clone(), vec![]], &[(0, 0, 100, true)]);
        // The other sequence takes the last five of its blocks; two of the prefix stay.
        let other = vec![4, 3, 2, 6, 5, 8, 9, 10];
        run(runner, &mut pool, &seqs, &[old, other.clone()], &[(1, 0, 120, true)]);
        let again = vec![0, 1, 11, 7, 12, 13, 14];
        let warm = run(runner, &mut pool, &seqs, &[again, other.clone()], &[(0, 32, 68, true)]);
        assert_close(&warm[0], &cold(runner, &seqs[0]), TOLERANCE, "computed again");
        let kept = run(runner, &mut pool, &seqs, &[vec![], other], &[(1, 119, 1, true)]);
        assert_close(&kept[0], &cold(runner, &seqs[1]), TOLERANCE, "the one that evicted");
    });
}

#[test]
fn a_preempted_sequence_goes_on_where_it_was() {
    on_every_backend(|runner| {
        let sequence = sequences(&[90], 500);
        let mut pool = pool(runner);
        let first = vec![vec![5, 6, 7, 8, 9, 10]];
        run(runner, &mut pool, &sequence, &first, &[(0, 0, 60, true)]);
        for position in 60..80 {
            run(runner, &mut pool, &sequence, &first, &[(0, position, 1, true)]);
        }
        // It loses its blocks; prompt and answer so far are computed again in one chunk, in blocks that hold old rows.
        let second = vec![vec![10, 5, 0, 7, 6, 8]];
        run(runner, &mut pool, &sequence, &second, &[(0, 0, 80, true)]);
        let mut last = Vec::new();
        for position in 80..90 {
            last = run(runner, &mut pool, &sequence, &second, &[(0, position, 1, true)]).remove(0);
        }
        assert_close(&last, &cold(runner, &sequence[0]), TOLERANCE, "after preemption");
    });
}
