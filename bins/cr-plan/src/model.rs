//! The flags that describe the fleet and the rules of the plan, and what they mean.

use clap::{Args, ValueEnum};
use cr_cli::{InputContext, bad_input, quantity};
use cr_cost::CostModel;
use cr_routing::planner::{Admission, Demand, Fleet, Placement, PlanConfig, work_of};
use cr_routing::rates::KeyRates;

/// The fleet and the rules.
#[derive(Args, Debug)]
#[command(next_help_heading = "Fleet and rules")]
pub(crate) struct ModelArgs {
    /// Number of shards to plan for
    #[arg(long, value_name = "R", required = true, value_parser = quantity::positive_u32)]
    pub(crate) shards: Option<u32>,
    /// Requests per second that one shard can serve of one key; a hotter key gets copies
    #[arg(long, value_name = "QPS", required = true, value_parser = quantity::positive)]
    pub(crate) qcap: Option<f64>,
    /// Prefixes that one shard can keep warm; may be fractional
    #[arg(long, value_name = "W", required_unless_present = "kv_tokens", value_parser = quantity::positive)]
    pub(crate) warm_slots: Option<f64>,
    /// Admit by warm slots, or by hit tokens won per KV token kept
    #[arg(long, value_enum, default_value_t = AdmissionRule::Slots)]
    pub(crate) admission: AdmissionRule,
    /// KV tokens that one shard can keep warm (admission by tokens)
    #[arg(long, value_name = "N", required_if_eq("admission", "tokens"), value_parser = quantity::count)]
    pub(crate) kv_tokens: Option<u64>,
    /// Balance requests, or the prefill work that they bring
    #[arg(long, value_enum, default_value_t = Sizing::Requests)]
    pub(crate) sizing: Sizing,
    /// The cost model of a shard: a built-in name (70b-2xh100) or a TOML file (sizing by work)
    #[arg(long, value_name = "NAME|FILE", required_if_eq("sizing", "work"))]
    pub(crate) cost: Option<String>,
    /// Seconds of prefill per second that one shard can do for one key (sizing by work)
    #[arg(long, value_name = "LOAD", value_parser = quantity::positive, requires = "cost")]
    pub(crate) work_cap: Option<f64>,
    /// Where admitted keys go; all but the first two are there to compare with
    #[arg(long, value_enum, default_value_t = PlacementRule::Lpt)]
    pub(crate) placement: PlacementRule,
    /// Seed of random placement
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Relative capacity of each shard, as 1,1,0.5 [default: all alike]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = quantity::positive)]
    pub(crate) capacity: Vec<f64>,
    /// Shards that are down and get nothing, as 3,5
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) down: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AdmissionRule {
    /// Every prefix takes one slot; by decreasing rate
    Slots,
    /// Every prefix takes its tokens; by value density
    Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sizing {
    /// Requests per second
    Requests,
    /// Seconds of prefill per second
    Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlacementRule {
    /// Longest processing time first
    Lpt,
    /// The same, then moves and exchanges until none helps
    #[value(name = "lpt+refine")]
    LptRefine,
    /// Distinct shards at random
    Random,
    /// Clockwise on a consistent ring
    Hash,
    /// In turn
    RoundRobin,
}

impl ModelArgs {
    /// clap has seen to required flags; a missing one is said again rather than assumed away.
    pub(crate) fn config(&self) -> anyhow::Result<PlanConfig> {
        let missing = |flag: &str| bad_input(format!("{flag} is missing; see cr-plan --help"));
        let fleet = self.fleet(self.shards.ok_or_else(|| missing("--shards"))?)?;
        let admission = match (self.admission, self.kv_tokens, self.warm_slots) {
            (AdmissionRule::Slots, None, _) => Admission::Slots,
            (AdmissionRule::Slots, Some(_), _) => {
                return Err(bad_input("--kv-tokens counts only with --admission tokens"));
            }
            (AdmissionRule::Tokens, _, Some(_)) => {
                return Err(bad_input("--warm-slots counts only with --admission slots; leave it out"));
            }
            (AdmissionRule::Tokens, tokens, None) => {
                Admission::Tokens { kv_tokens: tokens.ok_or_else(|| missing("--kv-tokens"))? as f64 }
            }
        };
        if self.sizing == Sizing::Requests && self.cost.is_some() {
            return Err(bad_input("--cost counts only with --sizing work"));
        }
        Ok(PlanConfig {
            fleet,
            qcap: self.qcap.ok_or_else(|| missing("--qcap"))?,
            warm_slots: match admission {
                Admission::Slots => self.warm_slots.ok_or_else(|| missing("--warm-slots"))?,
                Admission::Tokens { .. } => 0.0,
            },
            work_cap: self.work_cap,
            admission,
            placement: match self.placement {
                PlacementRule::Lpt => Placement::Lpt,
                PlacementRule::LptRefine => Placement::LptRefine,
                PlacementRule::Random => Placement::Random { seed: self.seed },
                PlacementRule::Hash => Placement::Hash,
                PlacementRule::RoundRobin => Placement::RoundRobin,
            },
        })
    }

    fn fleet(&self, shards: u32) -> anyhow::Result<Fleet> {
        if !self.capacity.is_empty() && self.capacity.len() != shards as usize {
            let given = self.capacity.len();
            return Err(bad_input(format!("--capacity lists {given} shards, --shards says {shards}")));
        }
        if self.capacity.is_empty() && self.down.is_empty() {
            return Ok(Fleet::uniform(shards));
        }
        let mut speeds = match self.capacity.as_slice() {
            [] => Fleet::uniform(shards).speeds().to_vec(),
            capacity => capacity.to_vec(),
        };
        for &down in &self.down {
            match speeds.get_mut(down as usize) {
                Some(speed) => *speed = 0.0,
                None => {
                    let last = shards - 1;
                    return Err(bad_input(format!("--down names shard {down}, the last shard is {last}")));
                }
            }
        }
        Ok(Fleet::with_speeds(speeds))
    }

    /// The cost model, where work is balanced.
    pub(crate) fn cost(&self) -> anyhow::Result<Option<CostModel>> {
        match (self.sizing, &self.cost) {
            (Sizing::Work, Some(name)) => {
                cr_cli::opened::reserve(name);
                Ok(Some(CostModel::by_name_or_path(name).bad_input()?))
            }
            _ => Ok(None),
        }
    }
}

/// The work of each key, where there is a cost model.
pub(crate) fn work(rates: &KeyRates, cost: Option<&CostModel>) -> anyhow::Result<Option<Vec<f64>>> {
    match cost {
        None => Ok(None),
        Some(cost) => match work_of(rates, cost) {
            Some(work) => Ok(Some(work)),
            None => Err(bad_input("--sizing work needs to know the prompts; plan from a trace of requests")),
        },
    }
}

/// All that is known of the keys.
pub(crate) fn demand<'a>(rates: &'a KeyRates, work: Option<&'a [f64]>) -> Demand<'a> {
    Demand { work, ..Demand::of_keys(rates) }
}
