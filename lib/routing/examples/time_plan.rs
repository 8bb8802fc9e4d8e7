//! Times the planner on a file of rates: `time_plan RATES.csv SHARDS QCAP WARM_SLOTS RUNS`.
//!
//! Prints JSON: the milliseconds of each run, the keys admitted and the planned loads, so that a comparison with
//! another planner can first make sure that both plan the same.

use cr_routing::planner::{PlanConfig, plan};
use cr_routing::rates::from_list::from_csv;
use std::error::Error;
use std::fs::File;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, shards, qcap, warm_slots, runs] = args.as_slice() else {
        return Err("usage: time_plan RATES.csv SHARDS QCAP WARM_SLOTS RUNS".into());
    };
    let rates = from_csv(File::open(path)?, path)?;
    let config = PlanConfig::new(shards.parse()?, qcap.parse()?, warm_slots.parse()?);
    let mut milliseconds = Vec::new();
    let mut last = None;
    for _ in 0..runs.parse::<usize>()? {
        let start = Instant::now();
        let plan = plan(rates.rates(), &config)?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        last = Some(plan);
    }
    let plan = last.ok_or("RUNS must be at least 1")?;
    let out = serde_json::json!({
        "ms": milliseconds,
        "admitted": plan.placements().len(),
        "loads": plan.loads(),
    });
    print(&out.to_string());
    Ok(())
}

/// The crate's lints forbid printing in the library; an example is a program.
#[allow(clippy::print_stdout)]
fn print(text: &str) {
    println!("{text}");
}
