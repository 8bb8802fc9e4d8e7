//! Rates and plans from the requests of a run: its head (`--plan-from`) or an interval of it (`--replan`).

use cr_routing::RoutingTable;
use cr_routing::planner::{self, ChurnLimits, Demand, Fleet, PlanConfig, PlanError, TableOptions};
use cr_routing::rates::{KeyRates, TraceRates};
use cr_trace::Request;

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

/// Counts requests, key by key.
#[derive(Debug, Default)]
pub(crate) struct Learner {
    rates: TraceRates,
    prompt_tokens: u64,
}

/// What was counted.
#[derive(Clone, Debug)]
pub(crate) struct Learnt {
    pub(crate) rates: KeyRates,
    /// Tokens that a warm key takes: the mean prefix of the keys that repeat, or the mean prompt where none does.
    mean_prefix: f64,
}

impl Learner {
    pub(crate) fn record(&mut self, request: &Request) {
        self.rates.record(request);
        self.prompt_tokens += request.prompt.outline().tokens();
    }

    pub(crate) fn requests(&self) -> u64 {
        self.rates.requests()
    }

    /// Rates over the time between the first and the last request, or over `span_s` where that is given.
    pub(crate) fn finish(self, span_s: Option<f64>) -> Result<Learnt, String> {
        let mean_prompt = self.prompt_tokens as f64 / self.rates.requests().max(1) as f64;
        let rates = match span_s {
            Some(span_s) => self.rates.finish_over(span_s),
            None => self.rates.finish(),
        };
        let rates = rates.map_err(|e| e.to_string())?;
        let (mut sum, mut keys) = (0.0, 0u32);
        for &tokens in rates.prefix_tokens().unwrap_or_default().iter().filter(|&&tokens| tokens > 0) {
            sum += tokens as f64;
            keys += 1;
        }
        let mean_prefix = if keys == 0 { mean_prompt } else { sum / f64::from(keys) };
        Ok(Learnt { rates, mean_prefix })
    }
}

/// What a plan is made for, beside the rates.
pub(crate) struct PlanFor<'a> {
    /// The shards; one that is down has the speed 0.
    pub(crate) fleet: Fleet,
    /// KV tokens of a shard.
    pub(crate) kv_tokens: u64,
    pub(crate) qcap: Option<f64>,
    pub(crate) warm_slots: Option<f64>,
    /// When the table is to be installed.
    pub(crate) from_s: f64,
    /// Whether it is tested on the very requests that it is planned from.
    pub(crate) in_sample: bool,
    /// The table to start from, and how much of it may change; a plan that owes nothing to the past where absent.
    pub(crate) previous: Option<(&'a RoutingTable, ChurnLimits)>,
}

impl Learnt {
    /// The table of what was counted.
    pub(crate) fn plan(&self, plan: PlanFor<'_>) -> Result<RoutingTable, PlanError> {
        let total: f64 = self.rates.rates().iter().sum();
        let up = f64::from(plan.fleet.up().max(1));
        let qcap = plan.qcap.unwrap_or(total / up);
        let warm_slots = plan.warm_slots.unwrap_or(plan.kv_tokens as f64 / self.mean_prefix.max(1.0));
        let config = PlanConfig::for_fleet(plan.fleet, qcap, warm_slots);
        let options = TableOptions {
            generator: crate::GENERATOR.into(),
            from_s: plan.from_s,
            in_sample: plan.in_sample,
            ..TableOptions::default()
        };
        match plan.previous {
            None => planner::plan_table(&self.rates, &config, &options),
            Some((previous, limits)) => {
                let demand = Demand::of_keys(&self.rates);
                let (table, _) = planner::replan(previous, &self.rates, &demand, &config, &limits, &options)?;
                Ok(table)
            }
        }
    }
}
