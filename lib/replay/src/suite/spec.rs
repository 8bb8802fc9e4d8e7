//! The file of a suite (`cacheroute.suite/1`).

use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_engine::model::{ModelConfig, StepTimes};
use cr_report::events::Slo;
use cr_trace::Time;
use cr_workload::{Generator, Spec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Engine, ReplayError};

const SCHEMA: &str = "cacheroute.suite/1";

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct SuiteError {
    /// The file.
    pub file: String,
    /// What is wrong, with the place, and what would be right.
    pub what: String,
}

/// Policies × rates × seeds over one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    schema: String,
    /// A short name, for reports.
    pub name: String,
    /// The report's heading.
    pub title: String,
    /// What a reader should know besides, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Routing policies, in the order of the report.
    pub policies: Vec<String>,
    /// The policy that others are held against.
    pub baseline: String,
    /// The policy that the report is about.
    pub candidate: String,
    /// A run of every policy for every seed; runs of one seed serve the same requests.
    pub seeds: Vec<u64>,
    /// The share of every trace that a plan is learned from; served as flat, not measured.
    pub plan_from: f64,
    /// The share that follows, served under the plan but not measured, so that caches settle.
    #[serde(default)]
    pub settle: f64,
    /// The plan's ceiling for one key, in requests per second; a shard's fair share where absent.
    #[serde(default)]
    pub qcap: Option<f64>,
    /// The plan's warm prefixes a shard; KV tokens / mean repeated prefix where absent.
    #[serde(default)]
    pub warm_slots: Option<f64>,
    /// Requests that finish earlier are not measured, in seconds.
    #[serde(default)]
    pub warmup_s: f64,
    /// Requests not finished this long after their arrival are given up, in seconds.
    #[serde(default)]
    pub timeout_s: Option<f64>,
    /// Bounds that runs are held against.
    #[serde(default)]
    pub slo: Slo,
    /// How much traffic.
    pub load: Load,
    /// The shards.
    pub fleet: FleetSpec,
    /// What serves.
    pub engine: EngineSpec,
    /// The requests; seed and rate are set by the suite.
    pub workload: Spec,
    /// Where the suite lies: paths in its workload start there.
    #[serde(skip)]
    folder: PathBuf,
}

/// How much traffic: rates, or a share of what the fleet can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, untagged)]
pub enum Load {
    /// These rates, in requests per second.
    Rates {
        /// The rungs, ascending.
        qps: Vec<f64>,
    },
    /// One rate: a share of what the shards finish when each is handed requests all at once.
    Utilisation {
        /// The share, above 0.
        utilisation: f64,
        /// How many requests a shard is handed to find out.
        probe_requests: u64,
    },
}

/// The shards. Defaults are those of `cr-serve run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetSpec {
    /// Number of shards.
    pub shards: u32,
    /// Tokens a KV block.
    pub block_tokens: u32,
    /// KV blocks a shard.
    pub kv_blocks: u32,
    /// Most tokens fed in one step.
    pub token_budget: u32,
    /// Most requests in a batch.
    pub max_running: u32,
    /// Points a shard on hash rings.
    pub vnodes: u32,
}

impl Default for FleetSpec {
    fn default() -> FleetSpec {
        FleetSpec {
            shards: 4,
            block_tokens: 16,
            kv_blocks: 4096,
            token_budget: 512,
            max_running: 256,
            vnodes: cr_routing::policy::DEFAULT_VNODES,
        }
    }
}

/// What serves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum EngineSpec {
    /// A cost model.
    Sim {
        /// A built-in name or a path.
        cost: String,
    },
    /// A real model with random weights.
    Model {
        /// A built-in name or a path.
        model: String,
        /// Step times from this cost model instead of the clock.
        #[serde(default)]
        modelled: Option<String>,
    },
}

impl Suite {
    /// Parses a suite; `file` names it in errors.
    ///
    /// # Errors
    /// Text that is no TOML of this schema, unknown keys, or values that make no sense.
    pub fn from_toml(text: &str, file: &str) -> Result<Suite, SuiteError> {
        let fail = |what: String| SuiteError { file: file.into(), what };
        let mut suite: Suite = toml::from_str(text).map_err(|e| fail(e.to_string().trim_end().into()))?;
        suite.folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
        match suite.fault() {
            Some(what) => Err(fail(what)),
            None => Ok(suite),
        }
    }

    fn fault(&self) -> Option<String> {
        if self.schema != SCHEMA {
            return Some(format!("schema is {:?}, expected {SCHEMA:?}", self.schema));
        }
        let known = cr_routing::policy::names();
        for policy in self.policies.iter().chain([&self.baseline, &self.candidate]) {
            if !known.contains(&policy.as_str()) {
                return Some(format!("there is no policy {policy:?}; supported are {}", known.join(", ")));
            }
            if !self.policies.contains(policy) {
                return Some(format!("{policy:?} is a baseline or candidate but not among the policies"));
            }
        }
        if self.seeds.is_empty() {
            return Some("seeds is empty; give at least one, better three".into());
        }
        if !(self.plan_from > 0.0 && self.plan_from < 1.0) {
            return Some(format!("plan_from is {}; it is a share between 0 and 1", self.plan_from));
        }
        if !(self.settle >= 0.0 && self.plan_from + self.settle < 1.0) {
            let (plan_from, settle) = (self.plan_from, self.settle);
            return Some(format!("plan_from {plan_from} and settle {settle} must leave requests to measure"));
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        match &self.load {
            Load::Rates { qps } if qps.is_empty() => return Some("load.qps is empty".into()),
            Load::Rates { qps } if !qps.iter().copied().all(positive) || !qps.is_sorted_by(|a, b| a < b) => {
                return Some("load.qps must be rates above 0, ascending".into());
            }
            Load::Utilisation { utilisation, probe_requests }
                if !positive(*utilisation) || *probe_requests == 0 =>
            {
                return Some("load.utilisation must be above 0 and load.probe_requests at least 1".into());
            }
            _ => {}
        }
        let fleet = &self.fleet;
        let counts =
            [fleet.shards, fleet.block_tokens, fleet.kv_blocks, fleet.token_budget, fleet.max_running];
        if counts.contains(&0) {
            return Some("every number of [fleet] must be at least 1".into());
        }
        let times = [Some(self.warmup_s), self.timeout_s, self.slo.ttft_p99_s];
        if times.iter().flatten().any(|s| !(0.0..=Time::MAX_S).contains(s)) {
            return Some("warmup_s, timeout_s and slo.ttft_p99_s are seconds, not negative".into());
        }
        if self.workload.requests.is_none() {
            return Some("workload.requests is missing; a suite plans from a share of a known number".into());
        }
        self.workload.check().err().map(|error| format!("workload: {error}"))
    }

    /// The limits of every shard.
    pub fn shard_config(&self) -> ShardConfig {
        ShardConfig {
            block_tokens: self.fleet.block_tokens,
            kv_blocks: self.fleet.kv_blocks,
            token_budget: self.fleet.token_budget,
            max_running: self.fleet.max_running,
            context_tokens: None,
            timeout: self.timeout_s.map(Time::from_s),
        }
    }

    /// The requests of one seed. They depend on the seed alone; a rate only stretches their arrivals.
    ///
    /// # Errors
    /// A workload that cannot be drawn.
    pub fn requests(&self, seed: u64, qps: Option<f64>) -> Result<Generator, ReplayError> {
        let mut spec = self.workload.clone();
        spec.seed = seed;
        if let Some(qps) = qps {
            spec.arrivals.qps = qps;
        }
        Generator::new(&spec, &self.folder).map_err(|e| ReplayError::Config(format!("workload: {e}")))
    }

    /// What serves; weights are drawn from the first seed.
    ///
    /// # Errors
    /// A cost model or a model that does not exist, or that the device cannot hold.
    pub fn engine(&self) -> Result<Engine, ReplayError> {
        let config = |error: String| ReplayError::Config(error);
        let cost = |name: &str| CostModel::by_name_or_path(name).map_err(|e| config(e.to_string()));
        match &self.engine {
            EngineSpec::Sim { cost: name } => Ok(Engine::Sim(Arc::new(cost(name)?))),
            EngineSpec::Model { model, modelled } => {
                let model = ModelConfig::by_name_or_path(model).map_err(|e| config(e.to_string()))?;
                let times = match modelled {
                    Some(name) => StepTimes::Modelled(cost(name)?),
                    None => StepTimes::Measured,
                };
                Engine::random_model(&model, self.seeds.first().copied().unwrap_or(0), times)
            }
        }
    }
}
