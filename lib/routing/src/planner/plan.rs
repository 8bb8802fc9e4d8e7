//! The plan, and the table it becomes.

use super::admission::Admitted;
use super::lpt::Placed;
use super::{PlanConfig, PlanError, imbalance};
use crate::rates::KeyRates;
use crate::table::{RoutingTable, ShardSet, TableError, TableMeta, sort_by_key};
use cr_trace::{Key, ShardId};

/// Where every admitted key is to be kept. Keys are positions in the list of rates that was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    config: PlanConfig,
    /// Admitted keys in plan order.
    keys: Vec<u32>,
    /// Where the shards of the n-th admitted key begin in `members`; one more at the end.
    starts: Vec<u32>,
    members: Vec<ShardId>,
    loads: Vec<f64>,
    admitted_rate: f64,
    cold_rate: f64,
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
    let table = super::plan(rates.rates(), config)?.to_table(rates.keys(), options)?;
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
    pub(super) fn new(config: &PlanConfig, admitted: Admitted, placed: Placed) -> Plan {
        let mut starts = Vec::with_capacity(admitted.copies.len() + 1);
        let mut start = 0;
        starts.push(start);
        starts.extend(admitted.copies.iter().map(|&copies| {
            start += copies;
            start
        }));
        Plan {
            config: config.clone(),
            keys: admitted.keys.iter().map(|item| item.key).collect(),
            starts,
            members: placed.members,
            loads: placed.loads,
            admitted_rate: admitted.admitted_rate,
            cold_rate: admitted.cold_rate,
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

    /// Max / mean of the loads over the shards that are up, each by its speed; 1 where nothing is planned.
    pub fn imbalance(&self) -> f64 {
        let speeds = self.config.fleet.speeds();
        let relative: Vec<f64> = self
            .loads
            .iter()
            .zip(speeds)
            .filter(|&(_, &speed)| speed > 0.0)
            .map(|(load, speed)| load / speed)
            .collect();
        imbalance(&relative)
    }

    /// Σ rate of the admitted keys, in requests per second.
    pub fn admitted_rate(&self) -> f64 {
        self.admitted_rate
    }

    /// Σ rate of the other keys, in requests per second.
    pub fn cold_rate(&self) -> f64 {
        self.cold_rate
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
            warm_slots: self.config.warm_slots,
            capacity: self.config.capacity(),
            from_s: options.from_s,
            in_sample: options.in_sample,
            admitted_rate: self.admitted_rate,
            cold_rate: self.cold_rate,
            expected_load: self.loads.clone(),
            imbalance: self.imbalance(),
        };
        RoutingTable::new(meta, places)
    }
}
