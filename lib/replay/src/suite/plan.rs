//! Tables that a suite plans ahead of a run, from something else than its head.

use super::Suite;
use super::drawn::Slot;
use super::spec::PlanSource;
use crate::ReplayError;
use compact_str::format_compact;
use cr_routing::RoutingTable;
use cr_routing::planner::{self, PlanConfig, TableOptions};
use cr_routing::rates::TraceRates;
use cr_trace::{Key, Request};
use std::sync::Arc;

/// Sets the random streams of a separate trace apart from those of the trace that is served.
const SEPARATE: u64 = 0x5e9a_7a7e;

/// The table for one seed and rate; `requests` are those that will be served, `separate` keeps those that will not.
pub(super) fn table(
    suite: &Suite,
    source: PlanSource,
    (seed, qps): (u64, f64),
    requests: &mut dyn Iterator<Item = Arc<Request>>,
    separate: &mut Slot,
) -> Result<Arc<RoutingTable>, ReplayError> {
    let table = match source {
        PlanSource::TrueRates => from_shares(suite, seed, qps),
        PlanSource::InSample => from_requests(suite, requests, true),
        PlanSource::SeparateTrace { requests } => {
            let mut spec = suite.workload_of(seed, Some(qps));
            spec.popularity.seed.get_or_insert(spec.seed);
            spec.seed ^= SEPARATE;
            spec.requests = Some(requests);
            match separate.draw(suite, spec.clone())? {
                Some(kept) => from_requests(suite, &mut kept.iter().cloned(), false),
                None => from_requests(suite, &mut suite.generator(&spec)?.map(Arc::new), false),
            }
        }
    };
    table.map(Arc::new).map_err(ReplayError::Config)
}

fn options(in_sample: bool) -> TableOptions {
    TableOptions { generator: crate::GENERATOR.into(), in_sample, ..TableOptions::default() }
}

fn from_shares(suite: &Suite, seed: u64, qps: f64) -> Result<RoutingTable, String> {
    let spec = suite.workload_of(seed, Some(qps));
    let population = spec.popularity.draw(spec.seed, &suite.folder).map_err(|e| format!("workload: {e}"))?;
    let rates: Vec<f64> = population.shares.iter().map(|share| share * qps).collect();
    let named =
        |rank: usize| population.names.get(rank).cloned().unwrap_or_else(|| format_compact!("k{rank}"));
    let keys: Vec<Key> = (0..rates.len()).map(named).collect();
    let config = config(suite, qps, suite.warm_slots.unwrap_or(1.0));
    let plan = planner::plan(&rates, &config).map_err(|e| e.to_string())?;
    plan.to_table(&keys, &options(false)).map_err(|e| e.to_string())
}

fn from_requests(
    suite: &Suite,
    requests: &mut dyn Iterator<Item = Arc<Request>>,
    in_sample: bool,
) -> Result<RoutingTable, String> {
    let mut counted = TraceRates::default();
    let mut prompt_tokens = 0;
    for request in requests {
        counted.record(&request);
        prompt_tokens += request.prompt_tokens();
    }
    let mean_prompt = prompt_tokens as f64 / counted.requests().max(1) as f64;
    let rates = counted.finish().map_err(|e| format!("plan: {e}"))?;
    let prefixes: Vec<f64> =
        rates.prefix_tokens().unwrap_or_default().iter().map(|&tokens| tokens as f64).collect();
    let repeated: Vec<f64> = prefixes.into_iter().filter(|&tokens| tokens > 0.0).collect();
    let mean_prefix = match repeated.len() {
        0 => mean_prompt,
        count => repeated.iter().sum::<f64>() / count as f64,
    };
    let kv_tokens = f64::from(suite.fleet.kv_blocks) * f64::from(suite.fleet.block_tokens);
    let config = config(
        suite,
        rates.rates().iter().sum(),
        suite.warm_slots.unwrap_or(kv_tokens / mean_prefix.max(1.0)),
    );
    planner::plan_table(&rates, &config, &options(in_sample)).map_err(|e| e.to_string())
}

fn config(suite: &Suite, total_qps: f64, warm_slots: f64) -> PlanConfig {
    let shards = suite.fleet.shards;
    PlanConfig::new(shards, suite.qcap.unwrap_or(total_qps / f64::from(shards)), warm_slots)
}
