//! The product of f32 by its number of rows, on one thread: a table of GFLOP/s for each instruction set, best of several rounds.
//!
//! How many rows share a pass over the weights is a table in `kernel/matmul.rs`, and some numbers compile badly; this shows
//! which. `cargo bench --workspace --bench product`.
#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub)]

use cr_engine::model::Isa;
use cr_engine::model::kernel::matmul::Packed;
use std::time::{Duration, Instant};

const INPUTS: usize = 576;
const OUTPUTS: usize = 512;
const ROUNDS: usize = 7;
/// How long a round takes at least.
const ROUND: Duration = Duration::from_millis(4);

/// The fastest round of a product of `rows` rows, in GFLOP/s.
fn speed(packed: &Packed, isa: Isa, rows: usize) -> f64 {
    let x: Vec<f32> = (0..rows * INPUTS).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
    let mut out = vec![0.0; rows * OUTPUTS];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (start, mut products) = (Instant::now(), 0);
        while start.elapsed() < ROUND {
            packed.multiply(isa, &x, &mut out);
            products += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(products));
    }
    2.0 * (rows * INPUTS * OUTPUTS) as f64 / best / 1e9
}

fn main() {
    let weight: Vec<f32> = (0..OUTPUTS * INPUTS).map(|i| (i % 89) as f32 / 89.0 - 0.5).collect();
    let kinds =
        [("f32", Packed::new(&weight, OUTPUTS, INPUTS)), ("bf16", Packed::bf16(&weight, OUTPUTS, INPUTS))];
    let columns: Vec<_> = kinds
        .iter()
        .flat_map(|(name, packed)| Isa::available().into_iter().map(move |isa| (name, packed, isa)))
        .collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let titles: Vec<String> =
            columns.iter().map(|(name, _, isa)| format!("{:>16}", format!("{name} {isa}"))).collect();
        println!("{INPUTS} inputs, {OUTPUTS} outputs, one thread, GFLOP/s\nrows {}", titles.concat());
        for rows in (1..=26).chain([32, 48, 96]) {
            let speeds: Vec<String> = columns
                .iter()
                .map(|(_, packed, isa)| format!("{:16.1}", speed(packed, *isa, rows)))
                .collect();
            println!("{rows:>4} {}", speeds.concat());
        }
    });
}
