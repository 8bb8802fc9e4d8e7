//! Tables that a suite plans ahead of a run, from something else than its head.

use super::Suite;
use super::drawn::Slot;
use super::spec::PlanSource;
use crate::ReplayError;
use crate::learn::{Learner, PlanFor};
use compact_str::format_compact;
use cr_routing::RoutingTable;
use cr_routing::planner::{self, PlanConfig, TableOptions};
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

fn from_shares(suite: &Suite, seed: u64, qps: f64) -> Result<RoutingTable, String> {
    let spec = suite.workload_of(seed, Some(qps));
    let population = spec.popularity.draw(spec.seed, &suite.folder).map_err(|e| format!("workload: {e}"))?;
    let rates: Vec<f64> = population.shares.iter().map(|share| share * qps).collect();
    let named =
        |rank: usize| population.names.get(rank).cloned().unwrap_or_else(|| format_compact!("k{rank}"));
    let keys: Vec<Key> = (0..rates.len()).map(named).collect();
    let shards = suite.fleet.shards;
    let qcap = suite.qcap.unwrap_or(qps / f64::from(shards));
    let config = PlanConfig::new(shards, qcap, suite.warm_slots.unwrap_or(1.0));
    let plan = planner::plan(&rates, &config).map_err(|e| e.to_string())?;
    let options = TableOptions { generator: crate::GENERATOR.into(), ..TableOptions::default() };
    plan.to_table(&keys, &options).map_err(|e| e.to_string())
}

fn from_requests(
    suite: &Suite,
    requests: &mut dyn Iterator<Item = Arc<Request>>,
    in_sample: bool,
) -> Result<RoutingTable, String> {
    let mut learner = Learner::default();
    requests.for_each(|request| learner.record(&request));
    let learnt = learner.finish(None).map_err(|e| format!("plan: {e}"))?;
    let plan = PlanFor {
        fleet: planner::Fleet::uniform(suite.fleet.shards),
        kv_tokens: u64::from(suite.fleet.kv_blocks) * u64::from(suite.fleet.block_tokens),
        qcap: suite.qcap,
        warm_slots: suite.warm_slots,
        from_s: 0.0,
        in_sample,
        previous: None,
    };
    learnt.plan(plan).map_err(|e| e.to_string())
}
