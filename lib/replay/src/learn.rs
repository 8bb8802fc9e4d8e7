//! Planning from the head of a trace (`--plan-from`).

use crate::ReplayError;
use cr_routing::RoutingTable;
use cr_routing::planner::{self, PlanConfig, TableOptions};
use cr_routing::rates::TraceRates;
use cr_trace::Request;
use std::sync::Arc;

/// How to plan from the head of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanFrom {
    /// How many leading requests the plan is made from.
    pub requests: u64,
    /// The rate one shard can serve of one key; where absent, a shard's fair share of all requests, so that a key
    /// hotter than that is copied.
    pub qcap: Option<f64>,
    /// Warm prefixes a shard can keep; where absent, its KV tokens / the mean prefix of the keys that repeat.
    pub warm_slots: Option<f64>,
}

/// Counts the head of a trace and plans from it.
#[derive(Debug, Default)]
pub(crate) struct Learner {
    rates: TraceRates,
    prompt_tokens: u64,
}

impl Learner {
    pub(crate) fn record(&mut self, request: &Request) {
        self.rates.record(request);
        self.prompt_tokens += request.prompt_tokens();
    }

    /// The table of what was recorded, for shards of `kv_tokens` tokens, installed at `from_s`.
    pub(crate) fn plan(
        self,
        options: &PlanFrom,
        shards: u32,
        kv_tokens: u64,
        from_s: f64,
    ) -> Result<Arc<RoutingTable>, ReplayError> {
        let failed = |what: String| ReplayError::Plan(what);
        let mean_prompt = self.prompt_tokens as f64 / self.rates.requests().max(1) as f64;
        let rates = self.rates.finish().map_err(|e| failed(e.to_string()))?;
        let repeating: Vec<u64> =
            rates.prefix_tokens().unwrap_or_default().iter().copied().filter(|&tokens| tokens > 0).collect();
        let mean_prefix = match repeating.len() {
            0 => mean_prompt,
            n => repeating.iter().sum::<u64>() as f64 / n as f64,
        };
        let total: f64 = rates.rates().iter().sum();
        let qcap = options.qcap.unwrap_or(total / f64::from(shards));
        let warm_slots = options.warm_slots.unwrap_or(kv_tokens as f64 / mean_prefix.max(1.0));
        let table = TableOptions { generator: crate::GENERATOR.into(), from_s, ..TableOptions::default() };
        planner::plan_table(&rates, &PlanConfig::new(shards, qcap, warm_slots), &table)
            .map(Arc::new)
            .map_err(|e| failed(e.to_string()))
    }
}
