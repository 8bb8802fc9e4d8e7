//! Golden results of a small suite with everything that can happen to a fleet, the same whatever the number of threads.
//!
//! `CR_UPDATE_GOLDEN=1` writes them anew; look at the difference first.

use cr_replay::suite::{Making, NoWatcher, Suite, Sweep};
use cr_report::RunReport;
use cr_routing::policy::names;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const SUITE: &str = r#"
schema = "cacheroute.suite/1"
name = "fleet"
title = "A small fleet in trouble"
policies = POLICIES
baseline = "flat"
candidate = "cacheroute"
seeds = [1, 2]
plan_from = 0.2
timeout_s = 20.0
load = { qps = [40] }
faults = ["down 1 at 6s for 3s", "slow 2 at 8s for 2s by 3x", "cold 3 at 12s"]
replan = { interval_s = 4.0, max_churn = 0.5 }
fleet = { shards = 4, kv_blocks = 160, routers = 2, view_lag_s = 0.05, protect_admitted = true }
engine = { kind = "sim", cost = "worked-example" }

[workload]
seed = 77
requests = 600
output_tokens = { model = "lognormal", mean = 8, sigma = 0.5 }
popularity = { model = "lognormal", keys = 40, sigma = 1.5 }
arrivals = { qps = 10.0 }

[[workload.prompt]]
scope = "global"
tokens = 32

[[workload.prompt]]
scope = "key"
tokens = { model = "lognormal", mean = 200, sigma = 0.5 }

[[workload.prompt]]
scope = "request"
tokens = 40
"#;

fn made(jobs: usize) -> Vec<RunReport> {
    let policies = format!("{:?}", names());
    let suite = Suite::from_toml(&SUITE.replace("POLICIES", &policies), "fleet.toml").expect("is valid");
    let interrupt = AtomicBool::new(false);
    let sweep = Sweep::new(suite, &interrupt).expect("is ready");
    let making = Making { jobs, journal: None, interrupt: &interrupt, watcher: &NoWatcher };
    sweep.make(&making).expect("runs").runs
}

fn table(runs: &[RunReport]) -> String {
    let mut out = String::new();
    for run in runs {
        let s = &run.summary;
        let r = &s.requests;
        writeln!(
            out,
            "{:<26} seed {}  completed {} failed {} rerouted {}  hit {:.4}  imbalance {:.3}  ttft p99 {:.4} s  jain {:.3}  admitted {}",
            s.policy, s.seed, r.completed, r.failed, r.rerouted, s.served_hit, s.imbalance.busy, s.ttft_s.p99, s.fairness.jain,
            s.fairness.admitted.requests
        )
        .expect("is memory");
    }
    out
}

#[test]
fn a_small_fleet_in_trouble() {
    let one = made(1);
    let four = made(4);
    let summaries = |runs: &[RunReport]| runs.iter().map(|run| run.summary.clone()).collect::<Vec<_>>();
    assert_eq!(summaries(&one), summaries(&four), "the number of threads changes nothing");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fleet.txt");
    let made = table(&one);
    if std::env::var_os("CR_UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().expect("has one")).expect("a folder");
        std::fs::write(&path, &made).expect("written");
    }
    let want = std::fs::read_to_string(&path).expect("a golden file");
    assert!(made == want, "look at the difference, then run with CR_UPDATE_GOLDEN=1:\n{made}");
}
