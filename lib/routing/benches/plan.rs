//! How fast plans are made: lognormal rates (σ = 1.648), all keys admitted, nearly all with one copy.
//!
//! `cargo bench -p cr-routing --bench plan`. Ten million keys need half a gigabyte.

use cr_routing::planner::{PlanConfig, TableOptions, plan};
use cr_trace::{Key, stream};
use divan::{Bencher, counter::ItemsCount};
use rand_distr::{Distribution, LogNormal};

fn main() {
    divan::main();
}

/// Lognormal rates that add up to 10,000 requests per second.
fn rates(keys: usize) -> Vec<f64> {
    let draw = LogNormal::new(0.0, 1.648).expect("is a distribution");
    let mut rng = stream(42, "bench");
    let mut rates: Vec<f64> = (0..keys).map(|_| draw.sample(&mut rng)).collect();
    let scale = 10_000.0 / rates.iter().sum::<f64>();
    rates.iter_mut().for_each(|rate| *rate *= scale);
    rates
}

/// Room for every key, and a ceiling that only the hottest few exceed.
fn config(keys: usize, shards: u32) -> PlanConfig {
    PlanConfig::new(shards, 10.0, 2.0 * keys as f64 / f64::from(shards))
}

/// The same keys on 30 and on 1,024 shards: the larger fleet shall cost less than twice the time.
const CASES: [(usize, u32); 6] = [
    (128_824, 30),
    (128_824, 1_024),
    (1_000_000, 30),
    (1_000_000, 1_024),
    (10_000_000, 30),
    (10_000_000, 1_024),
];

#[divan::bench(args = CASES, sample_count = 20, max_time = 10)]
fn all_admitted(bencher: Bencher<'_, '_>, (keys, shards): (usize, u32)) {
    let rates = rates(keys);
    let config = config(keys, shards);
    bencher
        .counter(ItemsCount::new(keys))
        .bench(|| plan(divan::black_box(&rates), &config).expect("is valid"));
}

/// The plan and its table by name, sorted and indexed for lookups.
#[divan::bench(args = [128_824, 1_000_000], sample_count = 10)]
fn with_table(bencher: Bencher<'_, '_>, keys: usize) {
    let rates = rates(keys);
    let config = config(keys, 30);
    let names: Vec<Key> = (0..keys).map(|n| Key::from(format!("k{n}"))).collect();
    let options = TableOptions::default();
    bencher.counter(ItemsCount::new(keys)).bench(|| {
        plan(divan::black_box(&rates), &config)
            .expect("is valid")
            .to_table(&names, &options)
            .expect("is valid")
    });
}
