//! The plan, and the table it becomes.

use super::admission::Admitted;
use super::lpt::{Loads, Placed};
use super::{Admission, Demand, PlanConfig, PlanError, TokenBudget, imbalance};
use crate::rates::KeyRates;
use crate::table::{RoutingTable, ShardSet, TableError, TableMeta, sort_by_key};
use cr_trace::{Key, ShardId, TraceDigest};

/// Where every admitted key is to be kept. Keys are positions in the list of rates that was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    config: PlanConfig,
    /// Admitted keys in plan order.
    keys: Vec<u32>,
    /// Where the shards of the n-th admitted key begin in `members`; one more at the end.
    starts: Vec<u32>,
    members: Vec<ShardId>,
    /// In requests per second.
    loads: Vec<f64>,
    /// In seconds of prefill per second, where the plan balances work.
    work: Option<Vec<f64>>,
    admitted_rate: f64,
    cold_rate: f64,
    /// What the cold tail weighs in the unit that is balanced.
    cold_weight: f64,
    tokens: Option<TokenBudget>,
}

/// What a table says beside the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableOptions {
    /// Program and version.
    pub generator: String,
    /// Run time at which it is to be installed, in seconds.
    pub from_s: f64,
    /// Whether the rates come from the very requests that the table will be tested on.
    pub in_sample: bool,
    /// The requests that the rates were counted over.
    pub source: Option<TraceDigest>,
    /// Whether it carries the rates (and prefix lengths) of all keys, cold ones included.
    pub with_rates: bool,
}

/// Plans, and makes the routing table of the plan.
///
/// # Errors
/// As [`super::plan`], and an empty key.
pub fn plan_table(
    rates: &KeyRates,
    config: &PlanConfig,
    options: &TableOptions,
) -> Result<RoutingTable, PlanError> {
    super::plan_demand(&Demand::of_keys(rates), config)?.into_table(rates, options)
}

/// Puts the rates into a table, where they are wanted.
pub(super) fn with_rates(
    table: RoutingTable,
    rates: &KeyRates,
    options: &TableOptions,
) -> Result<RoutingTable, PlanError> {
    if !options.with_rates {
        return Ok(table);
    }
    let keys = || rates.keys().iter().cloned();
    let table = table.with_rates(keys().zip(rates.rates().iter().copied()).collect())?;
    Ok(match rates.prefix_tokens() {
        Some(tokens) => table.with_prefix_tokens(keys().zip(tokens.iter().copied()).collect())?,
        None => table,
    })
}

impl Plan {
    pub(super) fn new(config: &PlanConfig, demand: &Demand<'_>, admitted: Admitted, placed: Placed) -> Plan {
        let mut starts = Vec::with_capacity(admitted.copies.len() + 1);
        let mut start = 0;
        starts.push(start);
        starts.extend(admitted.copies.iter().map(|&copies| {
            start += copies;
            start
        }));
        let mut plan = Plan {
            config: config.clone(),
            keys: admitted.keys.iter().map(|item| item.key).collect(),
            starts,
            members: placed.members,
            loads: placed.loads,
            work: None,
            admitted_rate: admitted.admitted_rate,
            cold_rate: admitted.cold_rate,
            cold_weight: admitted.cold_weight,
            tokens: admitted.tokens,
        };
        if demand.work.is_some() {
            let requests = plan.loads_of(demand.rates, plan.cold_rate);
            plan.work = Some(std::mem::replace(&mut plan.loads, requests));
        }
        plan
    }

    /// The plan that keeps these keys on these shards.
    pub(super) fn of_places(config: &PlanConfig, demand: &Demand<'_>, places: Vec<(u32, ShardSet)>) -> Plan {
        let mut admitted = vec![false; demand.rates.len()];
        places.iter().for_each(|(key, _)| admitted[*key as usize] = true);
        let sum = |list: &[f64], wanted: bool| -> f64 {
            let chosen = list.iter().zip(&admitted).filter(|(_, admitted)| **admitted == wanted);
            chosen.map(|(value, _)| value).sum()
        };
        let mut starts = vec![0];
        let mut members = Vec::new();
        for (_, shards) in &places {
            members.extend_from_slice(shards);
            starts.push(members.len() as u32);
        }
        let mut plan = Plan {
            config: config.clone(),
            keys: places.iter().map(|&(key, _)| key).collect(),
            starts,
            members,
            loads: Vec::new(),
            work: None,
            admitted_rate: sum(demand.rates, true),
            cold_rate: sum(demand.rates, false) + demand.other_rate,
            cold_weight: demand
                .work
                .map_or_else(|| sum(demand.rates, false) + demand.other_rate, |work| sum(work, false)),
            tokens: None,
        };
        plan.loads = plan.loads_of(demand.rates, plan.cold_rate);
        plan.work = demand.work.map(|work| plan.loads_of(work, plan.cold_weight));
        plan
    }

    /// The load of each shard where keys weigh this much.
    fn loads_of(&self, weights: &[f64], cold: f64) -> Vec<f64> {
        let mut loads = Loads::cold(&self.config.fleet, cold);
        for (key, shards) in self.placements() {
            for shard in shards {
                loads.add(shard.0, weights[key] / shards.len() as f64);
            }
        }
        loads.into_inner()
    }

    /// Each shard's share of the cold tail, in the unit that is balanced.
    pub(super) fn cold_loads(&self) -> Vec<f64> {
        Loads::cold(&self.config.fleet, self.cold_weight).into_inner()
    }

    /// How many copies may be placed: the budget of slots; under admission by tokens, as many as this plan places.
    pub(super) fn copies_allowed(&self) -> f64 {
        match self.config.admission {
            Admission::Slots => self.config.capacity(),
            Admission::Tokens { .. } => self.members.len() as f64,
        }
    }

    /// The admitted keys in plan order (decreasing rate, ties in input order) and the shards of each, ascending.
    pub fn placements(&self) -> impl ExactSizeIterator<Item = (usize, &[ShardId])> {
        self.keys.iter().enumerate().map(|(n, &key)| {
            let (from, to) = (self.starts[n] as usize, self.starts[n + 1] as usize);
            (key as usize, &self.members[from..to])
        })
    }

    /// The planned rate of each shard, cold tail included, in requests per second.
    pub fn loads(&self) -> &[f64] {
        &self.loads
    }

    /// The planned work of each shard in seconds of prefill per second, where work was balanced.
    pub fn work(&self) -> Option<&[f64]> {
        self.work.as_deref()
    }

    /// How well the KV tokens are used, where tokens decided on admission.
    pub fn tokens(&self) -> Option<TokenBudget> {
        self.tokens
    }

    /// How uneven the loads are, see [`imbalance`]; 1 where nothing is planned.
    pub fn imbalance(&self) -> f64 {
        self.imbalance_of(&self.loads)
    }

    /// The same of the work, where work was balanced.
    pub fn work_imbalance(&self) -> Option<f64> {
        self.work.as_deref().map(|work| self.imbalance_of(work))
    }

    fn imbalance_of(&self, loads: &[f64]) -> f64 {
        imbalance(loads, self.config.fleet.speeds())
    }

    /// Σ rate of the admitted keys, in requests per second.
    pub fn admitted_rate(&self) -> f64 {
        self.admitted_rate
    }

    /// Σ rate of the other keys, in requests per second.
    pub fn cold_rate(&self) -> f64 {
        self.cold_rate
    }

    /// Prefixes a shard of speed 1: as given, or what the tokens came to.
    fn warm_slots(&self) -> f64 {
        match self.config.admission {
            Admission::Slots => self.config.warm_slots,
            Admission::Tokens { .. } => self.members.len() as f64 / self.config.fleet.total_speed(),
        }
    }

    /// What was planned for.
    pub fn config(&self) -> &PlanConfig {
        &self.config
    }

    /// The routing table of this plan. `keys` are the names, in the order of the rates; where a name is there twice,
    /// the later placement (of the lower rate) stands.
    ///
    /// # Errors
    /// An empty key.
    ///
    /// # Panics
    /// `keys` is shorter than the list of rates that was planned.
    pub fn to_table(&self, keys: &[Key], options: &TableOptions) -> Result<RoutingTable, TableError> {
        let mut places: Vec<(Key, ShardSet)> =
            self.placements().map(|(key, shards)| (keys[key].clone(), shards.into())).collect();
        sort_by_key(&mut places);
        // The order is stable: of equal names the one placed last comes last, and is kept.
        places.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(later, kept);
            }
            same
        });
        let meta = TableMeta {
            generator: options.generator.clone(),
            shards: self.config.fleet.shards(),
            qcap: self.config.qcap,
            warm_slots: self.warm_slots(),
            capacity: self.copies_allowed(),
            from_s: options.from_s,
            in_sample: options.in_sample,
            source: options.source,
            admitted_rate: self.admitted_rate,
            cold_rate: self.cold_rate,
            expected_load: self.loads.clone(),
            imbalance: self.imbalance(),
            shard_capacity: if self.config.fleet.is_uniform() {
                Vec::new()
            } else {
                self.config.fleet.speeds().to_vec()
            },
            expected_work: self.work.clone().unwrap_or_default(),
        };
        RoutingTable::new(meta, places)
    }

    /// The routing table of a plan for these very rates, with them where they are wanted.
    ///
    /// # Errors
    /// As [`Plan::to_table`].
    pub fn into_table(self, rates: &KeyRates, options: &TableOptions) -> Result<RoutingTable, PlanError> {
        with_rates(self.to_table(rates.keys(), options)?, rates, options)
    }
}
