//! How much memory a plan takes beside its rates: `plan_memory KEYS SHARDS`. Linux only: it reads the process's own peak.
//!
//! Prints JSON: bytes a key at the peak of planning, and what the finished plan keeps.

use cr_routing::planner::{PlanConfig, plan};
use cr_trace::stream;
use rand_distr::{Distribution, LogNormal};
use std::error::Error;

/// A field of /proc/self/status in bytes.
fn status(field: &str) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with(field)).ok_or("the system does not tell")?;
    let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("the system does not tell")?.parse()?;
    Ok(kilobytes * 1024.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [keys, shards] = args.as_slice() else { return Err("usage: plan_memory KEYS SHARDS".into()) };
    let (keys, shards): (usize, u32) = (keys.parse()?, shards.parse()?);
    let draw = LogNormal::new(0.0, 1.648)?;
    let mut rng = stream(42, "bench");
    let mut rates: Vec<f64> = (0..keys).map(|_| draw.sample(&mut rng)).collect();
    let scale = 10_000.0 / rates.iter().sum::<f64>();
    rates.iter_mut().for_each(|rate| *rate *= scale);
    let before = status("VmRSS")?;
    let plan = plan(&rates, &PlanConfig::new(shards, 10.0, 2.0 * keys as f64 / f64::from(shards)))?;
    let (peak, after) = (status("VmHWM")?, status("VmRSS")?);
    let out = serde_json::json!({
        "keys": keys,
        "shards": shards,
        "admitted": plan.placements().len(),
        "peak_bytes_per_key": ((peak - before) / keys as f64).round(),
        "plan_bytes_per_key": ((after - before) / keys as f64).round(),
    });
    print(&out.to_string());
    Ok(())
}

/// The crate's lints forbid printing in the library; an example is a program.
#[allow(clippy::print_stdout)]
fn print(text: &str) {
    println!("{text}");
}
