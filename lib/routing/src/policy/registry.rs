//! Policies by name.

use super::{
    CacheRoute, Chwbl, DEFAULT_VNODES, DualMap, Flat, Ladder, LeastLoaded, LruOracle, Policy, Preble,
    PrebleTuning, Redirect, RoundRobin, Rung, Sticky, preble::MAX_WINDOW_S,
};
use crate::table::{MAX_SHARDS, RoutingTable};
use cr_cost::CostModel;
use std::sync::Arc;

/// What policies are built from. Each takes what it needs.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// The number of shards, at least one.
    pub shards: u32,
    /// Points a shard on hash rings, at least one.
    pub vnodes: u32,
    /// The table to start with; more may follow through [`Policy::on_table`].
    pub table: Option<Arc<RoutingTable>>,
}

impl PolicyConfig {
    /// The defaults for a fleet of this many shards.
    pub fn new(shards: u32) -> PolicyConfig {
        PolicyConfig { shards, vnodes: DEFAULT_VNODES, table: None }
    }
}

/// What some policies assume of the shards. None of it is observed; results hang on it, so reports should state it.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyTuning {
    /// `chwbl`: ε, the slack over the mean load.
    pub epsilon: f64,
    /// `dualmap`: the bound on TTFT within which pending prefill must clear, in seconds.
    pub slo_ttft_s: f64,
    /// `dualmap`: prefill tokens per second that a shard is assumed to clear.
    pub drain_tokens_per_s: f64,
    /// `dualmap`, `preble`: tokens that a shard's KV pool holds.
    pub kv_tokens: u64,
    /// `preble`: what prefill and decode cost.
    pub cost: CostModel,
    /// `preble`: its window and when it redirects.
    pub preble: PrebleTuning,
}

impl Default for PolicyTuning {
    /// The published values: ε 0.25, SLO 3.5 s, 40,071 blocks of 16 tokens, and Preble's prefill fit for a 70B on two H100
    /// with 0.14 ms a decoding sequence; a drain of one token in the fit's 0.07988 ms.
    fn default() -> PolicyTuning {
        PolicyTuning {
            epsilon: 0.25,
            slo_ttft_s: 3.5,
            drain_tokens_per_s: 1_000.0 / 0.07988,
            kv_tokens: 40_071 * 16,
            cost: published_cost(),
            preble: PrebleTuning::default(),
        }
    }
}

impl PolicyTuning {
    /// The published values, but for what `cost` and a pool of `kv_tokens` tokens tell: prefill drains at the marginal cost of
    /// a token.
    pub fn of_cost(cost: CostModel, kv_tokens: u64) -> PolicyTuning {
        const TOKENS: u64 = 1_000;
        let marginal_s = cost.prefill(TOKENS + 1, 0).since(cost.prefill(1, 0)).as_s();
        let published = PolicyTuning::default();
        let drain_tokens_per_s =
            if marginal_s > 0.0 { TOKENS as f64 / marginal_s } else { published.drain_tokens_per_s };
        PolicyTuning { drain_tokens_per_s, kv_tokens, cost, ..published }
    }

    /// What a policy of this name assumes, in words; nothing for one that assumes nothing.
    pub fn assumed_by(&self, policy: &str) -> Option<String> {
        let kv = self.kv_tokens;
        match policy {
            "chwbl" => Some(format!("epsilon {}", self.epsilon)),
            "dualmap" => Some(format!(
                "TTFT within {} s, {:.0} prefill tokens/s, {kv} KV tokens a shard",
                self.slo_ttft_s, self.drain_tokens_per_s
            )),
            "preble" => {
                Some(format!("cost model {}, {kv} KV tokens a shard; {}", self.cost.name, self.preble))
            }
            "lru-oracle" => Some(format!(
                "{kv} KV tokens a shard; every router sees where each key was last sent, at once"
            )),
            _ => None,
        }
    }
}

impl std::fmt::Display for PrebleTuning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let who = match self.redirect {
            Redirect::Heaviest => "the most loaded gives way above",
            Redirect::OverLeast | Redirect::OverMean => "a holder gives way above",
        };
        let of = if self.redirect == Redirect::OverMean { "mean" } else { "least" };
        write!(f, "{who} {} times the {of} load of {} s", self.load_ratio, self.window_s)
    }
}

/// Preble's published fit.
fn published_cost() -> CostModel {
    CostModel::by_name_or_path("70b-2xh100").expect("the built-in cost model is valid: a test parses it")
}

/// Points that all rings together may have: 16 million, half a gigabyte while they are built.
const MAX_POINTS: u64 = 1 << 24;

/// Why there is no such policy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy {name:?}{}; supported are {}", hint(name), names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The fleet is empty or absurd.
    #[error("{shards} shards; a fleet has 1 to {MAX_SHARDS}")]
    Shards {
        /// What was asked for.
        shards: u32,
    },
    /// The ring is empty or absurd.
    #[error("{vnodes} virtual nodes for {shards} shards; at least 1, and at most {MAX_POINTS} in all")]
    Vnodes {
        /// Points a shard.
        vnodes: u32,
        /// Shards.
        shards: u32,
    },
    /// An assumption that makes no sense.
    #[error("{field} is {value}; it must be finite and {rule}")]
    Tuning {
        /// Which.
        field: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        rule: &'static str,
    },
    /// A history of nothing, or one that is absurd.
    #[error("preble_window_s is {window_s}; it must be from 1 to {MAX_WINDOW_S}")]
    Window {
        /// Seconds.
        window_s: u32,
    },
    /// The table is for another fleet.
    #[error("the table is for {table} shards, the fleet has {shards}")]
    Table {
        /// Shards of the table.
        table: u32,
        /// Shards of the fleet.
        shards: u32,
    },
}

type Make = fn(&PolicyConfig, &PolicyTuning) -> Box<dyn Policy>;

/// Every policy: its name and how it is made.
const POLICIES: &[(&str, Make)] = &[
    ("flat", |_, _| Box::new(Flat)),
    ("round-robin", |_, _| Box::new(RoundRobin::default())),
    ("least-loaded", |_, _| Box::new(LeastLoaded)),
    ("sticky", |config, _| Box::new(Sticky::new(config.shards, config.vnodes))),
    ("chwbl", |config, tuning| Box::new(Chwbl::new(config.shards, config.vnodes, tuning.epsilon))),
    ("dualmap", |config, tuning| Box::new(DualMap::new(config.shards, tuning))),
    ("preble", |config, tuning| Box::new(Preble::new(config.shards, tuning))),
    ("lru-oracle", |config, tuning| Box::new(LruOracle::new(config.shards, tuning.kv_tokens))),
    ("cacheroute", |config, _| Box::new(CacheRoute::new(config.table.clone()))),
    ("affinity", |config, _| Box::new(Ladder::new(Rung::Affinity, config.table.as_ref()))),
    ("affinity+replication", |config, _| Box::new(Ladder::new(Rung::Replication, config.table.as_ref()))),
    ("affinity+replication+lpt", |config, _| Box::new(Ladder::new(Rung::Lpt, config.table.as_ref()))),
];

/// The names of all policies.
pub fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|&(name, _)| name).collect()
}

/// Whether a policy of this name routes by a table: `cacheroute` and the rungs of its ablation ladder.
pub fn routes_by_table(name: &str) -> bool {
    name == "cacheroute" || name == "affinity" || name.starts_with("affinity+")
}

/// Whether a policy of this name knows what no router could: routers that share a fleet share its state, too.
pub fn is_oracle(name: &str) -> bool {
    name == "lru-oracle"
}

/// Makes a policy by name, with the published assumptions.
///
/// # Errors
/// A name that is not in [`names`], or a configuration that no policy can have.
pub fn build(name: &str, config: &PolicyConfig) -> Result<Box<dyn Policy>, PolicyError> {
    build_tuned(name, config, &PolicyTuning::default())
}

/// Makes a policy by name.
///
/// # Errors
/// As [`build`], and an assumption that makes no sense.
pub fn build_tuned(
    name: &str,
    config: &PolicyConfig,
    tuning: &PolicyTuning,
) -> Result<Box<dyn Policy>, PolicyError> {
    let &(_, make) = POLICIES
        .iter()
        .find(|&&(known, _)| known == name)
        .ok_or_else(|| PolicyError::Unknown { name: name.into() })?;
    for (field, value, may_be_zero) in [
        ("epsilon", tuning.epsilon, true),
        ("slo_ttft_s", tuning.slo_ttft_s, true),
        ("drain_tokens_per_s", tuning.drain_tokens_per_s, false),
        ("preble_load_ratio", tuning.preble.load_ratio, false),
    ] {
        if !(value.is_finite() && (value > 0.0 || (may_be_zero && value == 0.0))) {
            let rule = if may_be_zero { "not negative" } else { "above 0" };
            return Err(PolicyError::Tuning { field, value, rule });
        }
    }
    let window_s = tuning.preble.window_s;
    if window_s == 0 || window_s > MAX_WINDOW_S {
        return Err(PolicyError::Window { window_s });
    }
    let PolicyConfig { shards, vnodes, .. } = *config;
    if shards == 0 || shards > MAX_SHARDS {
        return Err(PolicyError::Shards { shards });
    }
    if vnodes == 0 || u64::from(shards) * u64::from(vnodes) > MAX_POINTS {
        return Err(PolicyError::Vnodes { vnodes, shards });
    }
    match &config.table {
        Some(table) if table.shards() != shards => Err(PolicyError::Table { table: table.shards(), shards }),
        _ => Ok(make(config, tuning)),
    }
}

/// The nearest name, where one is near enough to be meant.
fn hint(name: &str) -> String {
    names()
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), known), known))
        .filter(|&(likeness, _)| likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| format!(" (did you mean {known:?}?)"))
        .unwrap_or_default()
}
