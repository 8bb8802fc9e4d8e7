//! The file of a suite (`cacheroute.suite/1`). `docs/suites.md` lists every field.

use super::vary::Axis;
use crate::{Assume, Engine, Fault, Replan, ReplayError};
use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_engine::model::{LoadOptions, StepTimes, load, pick_device};
use cr_report::claims::Claim;
use cr_report::events::Slo;
use cr_report::objective::Objective;
use cr_report::published::Published;
use cr_report::regimes::Map;
use cr_trace::Time;
use cr_workload::{Generator, Spec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const SCHEMA: &str = "cacheroute.suite/1";

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct SuiteError {
    /// The file.
    pub file: String,
    /// What is wrong, with the place, and what would be right.
    pub what: String,
}

/// Policies × rates × seeds over one workload, and over every variant where parameters vary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    pub(super) schema: String,
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
    /// Policies that build on one another step by step, for the ablation's waterfall.
    #[serde(default)]
    pub ablation: Vec<String>,
    /// A run of every policy for every seed; runs of one seed serve the same requests.
    pub seeds: Vec<u64>,
    /// What a seed draws anew.
    #[serde(default)]
    pub seeds_vary: SeedsVary,
    /// The share of every trace that a plan is learned from; served as flat, not measured.
    #[serde(default)]
    pub plan_from: Option<f64>,
    /// Plan from something else than the head of the trace.
    #[serde(default)]
    pub plan: Option<PlanSource>,
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
    /// Bounds that runs are held against; verdicts go by this one.
    #[serde(default, deserialize_with = "strict_slo")]
    pub slo: Slo,
    /// Further objectives, each with a capacity of its own.
    #[serde(default)]
    pub objectives: Vec<Objective>,
    /// A new table every interval, with the ceilings of the suite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan: Option<Replan>,
    /// What happens to shards, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// What policies assume of the shards.
    #[serde(default)]
    pub assume: Assume,
    /// How much traffic.
    pub load: Load,
    /// The shards.
    #[serde(default)]
    pub fleet: FleetSpec,
    /// What serves.
    pub engine: EngineSpec,
    /// The requests; seed and rate are set by the suite.
    pub workload: Spec,
    /// Parameters that vary; every combination is a variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vary: Vec<Axis>,
    /// Unstated parameters and their plausible values, moved one at a time by `cr-serve sensitivity`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Axis>,
    /// Which axes of `vary` make a regime map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<Map>,
    /// What the suite sets out to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Values that others published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Where the suite lies: paths in its workload start there.
    #[serde(skip)]
    pub(super) folder: PathBuf,
}

/// What a seed draws anew; the rest follows from the workload's own seed. Policies always choose by the run's seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeedsVary {
    /// Everything.
    #[default]
    All,
    /// Arrivals, keys, lengths and documents; the shares of the keys stay.
    Traffic,
    /// The shares of the keys; arrivals, lengths and documents stay.
    Population,
    /// Nothing but the choices of policies.
    Policy,
}

/// What a plan is made from, other than the head of the trace itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "from", rename_all = "kebab-case")]
pub enum PlanSource {
    /// The shares of the keys as they are drawn from, times the rate: what perfect forecasting would know. Needs `warm_slots`.
    TrueRates,
    /// Another trace of the same population.
    SeparateTrace {
        /// How many of its requests are counted.
        requests: u64,
    },
    /// The very requests that are served; the report says so.
    InSample,
}

/// How much traffic: rates, or a share of what the fleet can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "LoadFields")]
pub enum Load {
    /// These rates, in requests per second.
    Rates {
        /// The rungs, ascending.
        qps: Vec<f64>,
        /// Halve the gap between the last rung that passes and the first that fails until it is at most this share of the rate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refine: Option<f64>,
    },
    /// One rate: a share of what the shards finish when each is handed requests all at once.
    Utilisation {
        /// The share, above 0.
        utilisation: f64,
        /// How many requests a shard is handed to find out.
        probe_requests: u64,
    },
}

/// What may stand under `load`: one of the two, so that a fault is told of the field that has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadFields {
    qps: Option<Vec<f64>>,
    refine: Option<f64>,
    utilisation: Option<f64>,
    probe_requests: Option<u64>,
}

impl TryFrom<LoadFields> for Load {
    type Error = &'static str;

    fn try_from(fields: LoadFields) -> Result<Load, &'static str> {
        match fields {
            LoadFields { qps: Some(qps), refine, utilisation: None, probe_requests: None } => {
                Ok(Load::Rates { qps, refine })
            }
            LoadFields {
                qps: None,
                refine: None,
                utilisation: Some(utilisation),
                probe_requests: Some(probe_requests),
            } => Ok(Load::Utilisation { utilisation, probe_requests }),
            _ => Err("load needs either qps, a list of rates, or utilisation and probe_requests"),
        }
    }
}

/// `slo` of a suite. In events readers pass over what they do not know; here it is a slip of the keyboard.
fn strict_slo<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Slo, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        ttft_p99_s: Option<f64>,
    }
    Strict::deserialize(deserializer).map(|Strict { ttft_p99_s }| Slo { ttft_p99_s })
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
    /// Routers that share the fleet.
    pub routers: u32,
    /// How old the state is that routers see, in seconds.
    pub view_lag_s: f64,
    /// Whether pools evict blocks of keys that are not admitted first.
    pub protect_admitted: bool,
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
            routers: 1,
            view_lag_s: 0.0,
            protect_admitted: false,
        }
    }
}

/// What serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "kind", rename_all = "lowercase")]
pub enum EngineSpec {
    /// A cost model.
    Sim {
        /// A built-in name or a path.
        cost: String,
    },
    /// A real model.
    Model {
        /// A built-in name or TOML file (random weights from the first seed), a GGUF file, a safetensors folder, or a hub name.
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
    /// Text that is no TOML of this schema, unknown keys, or values that make no sense, also in a variant.
    pub fn from_toml(text: &str, file: &str) -> Result<Suite, SuiteError> {
        let fail = |what: String| SuiteError { file: file.into(), what };
        let mut suite = super::extends::parse(text, file)?;
        suite.folder = Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
        match suite.fault() {
            Some(what) => Err(fail(what)),
            None => match suite.variants().and_then(|variants| {
                suite.sensitivity_variants()?;
                suite.design_fault(&variants).map_or(Ok(()), Err)
            }) {
                Ok(()) => Ok(suite),
                Err(what) => Err(fail(what)),
            },
        }
    }

    /// The limits of every shard.
    pub fn shard_config(&self) -> ShardConfig {
        ShardConfig {
            block_tokens: self.fleet.block_tokens,
            kv_blocks: self.fleet.kv_blocks,
            token_budget: self.fleet.token_budget,
            max_running: self.fleet.max_running,
            timeout: self.timeout_s.map(Time::from_s),
            protect_admitted: self.fleet.protect_admitted,
            ..ShardConfig::default()
        }
    }

    /// Refines capacities until the gap around each is at most `share` of the rate.
    ///
    /// # Errors
    /// A share out of range, or a suite without a ladder or an objective.
    pub fn refine(&mut self, share: f64) -> Result<(), String> {
        match &mut self.load {
            Load::Rates { refine, .. } => *refine = Some(share),
            Load::Utilisation { .. } => {
                return Err("a suite of one utilisation has no ladder to refine".into());
            }
        }
        self.fault().map_or(Ok(()), Err)
    }

    /// The model that it is served with, where it is a real one.
    pub fn model(&self) -> Option<&str> {
        match &self.engine {
            EngineSpec::Model { model, .. } => Some(model),
            EngineSpec::Sim { .. } => None,
        }
    }

    /// Serves with this model instead of the suite's engine; step times are measured.
    pub fn serve_with(&mut self, model: &str) {
        self.engine = EngineSpec::Model { model: model.into(), modelled: None };
    }

    /// Simulates with this cost model instead of the suite's engine.
    pub fn simulate_with(&mut self, cost: &str) {
        self.engine = EngineSpec::Sim { cost: cost.into() };
    }

    /// Runs at these rates instead of the suite's.
    ///
    /// # Errors
    /// Rates that are not above 0 and ascending.
    pub fn run_at(&mut self, qps: Vec<f64>) -> Result<(), String> {
        let refine = match self.load {
            Load::Rates { refine, .. } => refine,
            Load::Utilisation { .. } => None,
        };
        self.load = Load::Rates { qps, refine };
        self.fault().map_or(Ok(()), Err)
    }

    /// Every objective, the one of `slo` first.
    pub fn all_objectives(&self) -> Vec<Objective> {
        cr_report::objective::all(self.slo, &self.objectives)
    }

    /// The workload under one seed and rate.
    pub fn workload_of(&self, seed: u64, qps: Option<f64>) -> Spec {
        let mut spec = self.workload.clone();
        let own = spec.seed;
        let (traffic, population) = match self.seeds_vary {
            SeedsVary::All => (seed, spec.popularity.seed),
            SeedsVary::Traffic => (seed, Some(spec.popularity.seed.unwrap_or(own))),
            SeedsVary::Population => (own, Some(seed)),
            SeedsVary::Policy => (own, spec.popularity.seed),
        };
        (spec.seed, spec.popularity.seed) = (traffic, population);
        if let Some(qps) = qps {
            spec.arrivals.qps = qps;
        }
        spec
    }

    /// The requests of one seed. They depend on the seed alone; a rate only stretches the arrivals of their sessions.
    ///
    /// # Errors
    /// A workload that cannot be drawn.
    pub fn requests(&self, seed: u64, qps: Option<f64>) -> Result<Generator, ReplayError> {
        self.generator(&self.workload_of(seed, qps))
    }

    pub(super) fn generator(&self, spec: &Spec) -> Result<Generator, ReplayError> {
        Generator::new(spec, &self.folder).map_err(|e| ReplayError::Config(format!("workload: {e}")))
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
                let times = match modelled {
                    Some(name) => StepTimes::Modelled(cost(name)?),
                    None => StepTimes::Measured,
                };
                let (device, kind) = pick_device();
                let seed = self.seeds.first().copied().unwrap_or(0);
                let loaded = load(model, &LoadOptions { seed, ..LoadOptions::new(device) })?;
                Ok(Engine::Model { model: Arc::new(loaded.model), device: kind, times })
            }
        }
    }
}
