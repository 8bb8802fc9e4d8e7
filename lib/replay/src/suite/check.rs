//! What is wrong with a suite, in words.

use super::spec::{Load, PlanSource, SCHEMA, Suite};
use super::vary::Variant;
use cr_report::objective::Objective;
use cr_report::result::METRICS;
use cr_routing::policy::PolicyError;
use cr_trace::Time;
use cr_trace::number::plain;
use cr_trace::request::is_printable;
use std::collections::BTreeMap;

fn positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

fn metric_names() -> String {
    let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    format!("there are capacity, {}", names.join(", "))
}

/// Names that claims and published values may use for a figure.
fn is_metric(name: &str) -> bool {
    name == "capacity" || METRICS.iter().any(|metric| metric.name == name)
}

impl Suite {
    /// What is wrong with the claims, published values and the map, which look at all variants.
    pub(super) fn design_fault(&self, variants: &[Variant]) -> Option<String> {
        let placed = |at: &BTreeMap<String, String>| {
            variants.iter().filter(|v| at.iter().all(|(axis, point)| v.at.get(axis) == Some(point))).count()
        };
        for claim in &self.claims {
            let what = |what: String| Some(format!("claim {:?}: {what}", claim.text));
            if placed(&claim.at) == 0 {
                return what(format!("no variant is at {:?}", claim.at));
            }
            if let Some(policy) =
                claim.check.policies().into_iter().find(|name| !self.policies.contains(name))
            {
                return what(format!("{policy:?} is not among the policies"));
            }
            if let Some(metric) = claim.check.metric().filter(|name| !is_metric(name)) {
                return what(format!("there is no metric {metric:?}; {}", metric_names()));
            }
            if let Some(fault) = claim.check.fault() {
                return what(fault.into());
            }
            if let Some(fault) = self.rate_fault(claim.qps, claim.ttft_p99_s) {
                return what(fault);
            }
        }
        for published in &self.published {
            let what = |what: String| {
                Some(format!("published {} of {}: {what}", published.metric, published.policy))
            };
            match placed(&published.at) {
                1 => {}
                count => return what(format!("{count} variants are at {:?}; name one", published.at)),
            }
            if !self.policies.contains(&published.policy) {
                return what("the policy is not among the policies".into());
            }
            if !is_metric(&published.metric) {
                return what(format!("there is no such metric; {}", metric_names()));
            }
            if let Some(fault) = self.rate_fault(published.qps, published.ttft_p99_s) {
                return what(fault);
            }
        }
        let map = self.map.as_ref()?;
        let missing = |name: &&String| !self.vary.iter().any(|axis| axis.name == **name);
        match [&map.x, &map.y].into_iter().find(missing) {
            Some(name) => Some(format!("map: there is no axis {name:?} under [[vary]]")),
            None => (map.x == map.y).then(|| "map: x and y are the same axis".into()),
        }
    }

    /// A rate that is no rung, or a bound that is no objective.
    fn rate_fault(&self, qps: Option<f64>, ttft_p99_s: Option<f64>) -> Option<String> {
        if let (Load::Rates { qps: rungs, .. }, Some(qps)) = (&self.load, qps)
            && !rungs.contains(&qps)
        {
            return Some(format!("{qps} is no rate of load.qps"));
        }
        let bound = Objective::ttft(ttft_p99_s?);
        let known = self.all_objectives().contains(&bound);
        (!known).then(|| format!("{} is no objective of the suite", bound.text()))
    }

    /// The first thing that makes no sense; `None` where all does.
    pub(super) fn fault(&self) -> Option<String> {
        self.policy_fault()
            .or_else(|| self.plan_fault())
            .or_else(|| self.load_fault())
            .or_else(|| self.time_fault())
            .or_else(|| self.limit_fault())
            .or_else(|| self.workload.check().err().map(|error| format!("workload: {error}")))
            .or_else(|| self.number_fault())
    }

    /// A number that is none: no report could be written with it.
    fn number_fault(&self) -> Option<String> {
        fn find(value: &toml::Value, path: &str) -> Option<String> {
            let inside = |name: &dyn std::fmt::Display| match path {
                "" => name.to_string(),
                _ => format!("{path}.{name}"),
            };
            match value {
                toml::Value::Float(number) if !number.is_finite() => {
                    Some(format!("{path} is {number}; it must be a finite number"))
                }
                toml::Value::Array(items) => {
                    items.iter().enumerate().find_map(|(index, item)| find(item, &inside(&index)))
                }
                toml::Value::Table(table) => table.iter().find_map(|(key, item)| find(item, &inside(key))),
                _ => None,
            }
        }
        find(&toml::Value::try_from(self).ok()?, "")
    }

    fn policy_fault(&self) -> Option<String> {
        if self.schema != SCHEMA {
            return Some(format!("schema is {:?}, expected {SCHEMA:?}", self.schema));
        }
        if self.name.is_empty() || self.name.starts_with('.') || self.name.contains(['/', '\\']) {
            return Some(format!(
                "name is {:?}; it names the folder of the report, so it has no slash and no dot before it",
                self.name
            ));
        }
        let texts = [&self.name, &self.title].into_iter().chain(&self.notes);
        if let Some(text) = texts.into_iter().find(|text| !is_printable(text)) {
            return Some(format!(
                "{text:?} has control characters; names, titles and notes are printable text"
            ));
        }
        let known = cr_routing::policy::names();
        for policy in self.policies.iter().chain([&self.baseline, &self.candidate]).chain(&self.ablation) {
            if !known.contains(&policy.as_str()) {
                return Some(PolicyError::Unknown { name: policy.clone() }.to_string());
            }
            if !self.policies.contains(policy) {
                return Some(format!(
                    "{policy:?} is a baseline, candidate or ablation but not among the policies"
                ));
            }
        }
        let twice = |(index, policy): (usize, &String)| self.policies[..index].contains(policy);
        if self.policies.iter().enumerate().any(twice) {
            return Some("policies names one of them twice".into());
        }
        if self.seeds.is_empty() {
            return Some("seeds is empty; give at least one, better three".into());
        }
        let twice = |(index, seed): (usize, &u64)| self.seeds[..index].contains(seed);
        self.seeds.iter().enumerate().any(twice).then(|| "seeds names one of them twice".into())
    }

    fn plan_fault(&self) -> Option<String> {
        if let Some(share) = self.plan_from
            && !(share > 0.0 && share < 1.0)
        {
            return Some(format!("plan_from is {share}; it is a share between 0 and 1"));
        }
        let head = self.plan_from.unwrap_or(0.0);
        if !(self.settle >= 0.0 && head + self.settle < 1.0) {
            let settle = self.settle;
            return Some(format!("plan_from {head} and settle {settle} must leave requests to measure"));
        }
        match (self.plan_from, self.plan) {
            (Some(_), Some(_)) => return Some("give plan_from or [plan], not both".into()),
            (None, Some(PlanSource::TrueRates)) if self.warm_slots.is_none() => {
                return Some("plan from true-rates needs warm_slots: rates alone know no prefix".into());
            }
            (None, Some(PlanSource::SeparateTrace { requests: 0 })) => {
                return Some("plan.requests is 0; a plan needs requests to count".into());
            }
            (None, None) if self.replan.is_none() => {
                let planned = |policy: &&String| cr_routing::policy::routes_by_table(policy);
                if let Some(policy) = self.policies.iter().find(planned) {
                    return Some(format!("{policy} needs a plan: give plan_from = 0.2, [plan], or [replan]"));
                }
            }
            _ => {}
        }
        let bad = [("qcap", self.qcap), ("warm_slots", self.warm_slots)]
            .into_iter()
            .find(|(_, value)| value.is_some_and(|value| !positive(value)));
        bad.map(|(name, value)| format!("{name} is {}; it must be above 0", value.unwrap_or_default()))
    }

    fn load_fault(&self) -> Option<String> {
        match &self.load {
            Load::Rates { qps, .. } if qps.is_empty() => Some("load.qps is empty".into()),
            Load::Rates { qps, .. }
                if !qps.iter().copied().all(positive) || !qps.is_sorted_by(|a, b| a < b) =>
            {
                Some("load.qps must be rates above 0, ascending".into())
            }
            Load::Rates { refine: Some(share), .. } if !(*share >= 0.001 && *share < 1.0) => {
                Some(format!("load.refine is {share}; it is a share of the rate from 0.001 to 1"))
            }
            Load::Rates { qps, refine: Some(_) } if qps.len() < 2 || self.all_objectives().is_empty() => {
                Some("load.refine needs a ladder of at least two rates and an objective".into())
            }
            Load::Utilisation { utilisation, probe_requests }
                if !positive(*utilisation) || *probe_requests == 0 =>
            {
                Some("load.utilisation must be above 0 and load.probe_requests at least 1".into())
            }
            _ => None,
        }
    }

    fn time_fault(&self) -> Option<String> {
        let times = [
            ("fleet.view_lag_s", Some(self.fleet.view_lag_s)),
            ("warmup_s", Some(self.warmup_s)),
            ("timeout_s", self.timeout_s),
            ("slo.ttft_p99_s", self.slo.ttft_p99_s),
        ];
        let mut given = times.into_iter().filter_map(|(name, time_s)| Some((name, time_s?)));
        let (name, time_s) = given.find(|(_, time_s)| !(0.0..=Time::MAX_S).contains(time_s))?;
        Some(format!("{name} is {}; it lies between 0 and {} s", plain(time_s), Time::MAX_S))
    }

    fn limit_fault(&self) -> Option<String> {
        let fleet = &self.fleet;
        let counts =
            [fleet.shards, fleet.block_tokens, fleet.kv_blocks, fleet.token_budget, fleet.max_running];
        if counts.contains(&0) {
            return Some("every number of [fleet] must be at least 1".into());
        }
        if fleet.shards > cr_routing::table::MAX_SHARDS {
            let most = cr_routing::table::MAX_SHARDS;
            return Some(format!("fleet.shards is {}; a fleet has 1 to {most}", fleet.shards));
        }
        if u64::from(fleet.kv_blocks) * u64::from(fleet.block_tokens) > u64::from(u32::MAX) / 2 {
            return Some("fleet.kv_blocks times block_tokens is above 2 billion tokens a shard".into());
        }
        if let Some(fault) = self.faults.iter().find(|fault| fault.shard.0 >= fleet.shards) {
            return Some(format!(
                "fault \"{fault}\": there is no such shard; the last one is {}",
                fleet.shards - 1
            ));
        }
        if !(1..=crate::limits::MAX_ROUTERS).contains(&fleet.routers) {
            let most = crate::limits::MAX_ROUTERS;
            return Some(format!("fleet.routers is {}; there are 1 to {most}", fleet.routers));
        }
        if let Some(what) = self.replan.and_then(|replan| replan.fault()) {
            return Some(format!("replan: {what}"));
        }
        if self.workload.requests == Some(0) {
            return Some("workload.requests is 0; a run serves at least one".into());
        }
        if self.objectives.iter().any(|objective| !positive(objective.p99_s)) {
            return Some("objectives need a p99_s above 0".into());
        }
        None
    }
}
