//! Products by their number of rows, on one thread: a table of GFLOP/s for each type and instruction set, best of several
//! rounds.
//!
//! How many rows share a pass over the weights is a table in `kernel/matmul.rs`, and some numbers compile badly; this shows
//! which. `cargo bench --workspace --bench product`.
#![allow(clippy::unwrap_used, clippy::print_stdout, unreachable_pub)]

use cr_engine::model::Isa;
use cr_engine::model::kernel::matmul::Packed;
use cr_engine::model::kernel::q8::PackedQ8;
use std::time::{Duration, Instant};

const INPUTS: usize = 576;
const OUTPUTS: usize = 512;
const ROUNDS: usize = 7;
/// How long a round takes at least.
const ROUND: Duration = Duration::from_millis(4);

/// Multiplies rows by a weight.
type Multiply<'a> = dyn Fn(Isa, &[f32], &mut [f32]) + Sync + 'a;

/// The fastest round of a product of `rows` rows, in GFLOP/s.
fn speed(multiply: &Multiply<'_>, isa: Isa, rows: usize) -> f64 {
    let x: Vec<f32> = (0..rows * INPUTS).map(|i| (i % 97) as f32 / 97.0 - 0.5).collect();
    let mut out = vec![0.0; rows * OUTPUTS];
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (start, mut products) = (Instant::now(), 0);
        while start.elapsed() < ROUND {
            multiply(isa, &x, &mut out);
            products += 1;
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(products));
    }
    2.0 * (rows * INPUTS * OUTPUTS) as f64 / best / 1e9
}

fn main() {
    let weight: Vec<f32> = (0..OUTPUTS * INPUTS).map(|i| (i % 89) as f32 / 89.0 - 0.5).collect();
    let (f32s, bf16s) = (Packed::new(&weight, OUTPUTS, INPUTS), Packed::bf16(&weight, OUTPUTS, INPUTS));
    let q8s = PackedQ8::from_f32(&weight, OUTPUTS, INPUTS);
    let kinds: [(&str, &Multiply<'_>); 3] = [
        ("f32", &|isa, x, out| f32s.multiply(isa, x, out)),
        ("bf16", &|isa, x, out| bf16s.multiply(isa, x, out)),
        ("q8", &|isa, x, out| q8s.multiply(isa, x, out)),
    ];
    let columns: Vec<_> = kinds
        .iter()
        .flat_map(|&(name, multiply)| Isa::available().into_iter().map(move |isa| (name, multiply, isa)))
        .collect();
    let titles: Vec<String> =
        columns.iter().map(|(name, _, isa)| format!("{:>15}", format!("{name} {isa}"))).collect();
    println!("{INPUTS} inputs, {OUTPUTS} outputs, one thread, GFLOP/s\nrows {}", titles.concat());
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for rows in (1..=26).chain([32, 48, 96]) {
        let speeds: Vec<String> = columns
            .iter()
            .map(|(_, multiply, isa)| format!("{:15.1}", one.install(|| speed(*multiply, *isa, rows))))
            .collect();
        println!("{rows:>4} {}", speeds.concat());
    }
}
