//! A table against the requests it is to route: is it still right?

use crate::rates::KeyRates;
use crate::table::RoutingTable;
use cr_trace::Key;

/// What a table makes of these rates, where replicas of a key share evenly and cold keys spread evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct TableCheck {
    /// Σ rate, in requests per second.
    pub rate: f64,
    /// Of that, admitted keys.
    pub admitted_rate: f64,
    /// Admitted keys that nobody asks for.
    pub idle_keys: usize,
    /// Keys asked for that the table does not admit.
    pub cold_keys: usize,
    /// The rate of each shard.
    pub loads: Vec<f64>,
    /// How uneven these are, see [`super::imbalance`].
    pub imbalance: f64,
    /// Admitted keys whose rate a copy exceeds `qcap`, hottest first: key, rate, copies.
    pub over_qcap: Vec<(Key, f64, usize)>,
}

/// Routes these rates by this table.
pub fn check(table: &RoutingTable, rates: &KeyRates) -> TableCheck {
    let meta = table.meta();
    let uniform = vec![1.0; meta.shards as usize];
    let capacities = if meta.shard_capacity.is_empty() { &uniform } else { &meta.shard_capacity };
    let mut loads = vec![0.0; meta.shards as usize];
    let (mut admitted_rate, mut cold_rate) = (0.0, rates.other_rate());
    let (mut used_keys, mut cold_keys) = (0, 0);
    let mut over_qcap = Vec::new();
    for (key, &rate) in rates.keys().iter().zip(rates.rates()).filter(|(_, rate)| **rate > 0.0) {
        let Some(shards) = table.shards_of(key) else {
            cold_rate += rate;
            cold_keys += 1;
            continue;
        };
        used_keys += 1;
        admitted_rate += rate;
        let share = rate / shards.len() as f64;
        shards.iter().for_each(|shard| loads[shard.index()] += share);
        // A key on every shard can have no more copies.
        if share > meta.qcap && shards.len() < meta.shards as usize {
            over_qcap.push((key.clone(), rate, shards.len()));
        }
    }
    let total: f64 = capacities.iter().sum();
    loads.iter_mut().zip(capacities).for_each(|(load, capacity)| *load += cold_rate * capacity / total);
    over_qcap.sort_by(|a, b| b.1.total_cmp(&a.1));
    TableCheck {
        rate: admitted_rate + cold_rate,
        admitted_rate,
        idle_keys: table.admitted_keys() - used_keys,
        cold_keys,
        imbalance: super::imbalance(&loads, capacities),
        loads,
        over_qcap,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PlanConfig, TableOptions, plan_table};
    use super::*;

    fn rates(list: &[(&str, f64)]) -> KeyRates {
        list.iter().map(|&(key, rate)| (Key::new(key), rate)).collect()
    }

    #[test]
    fn planned_rates_check_out_and_others_show() {
        let planned = rates(&[("a", 12.0), ("b", 3.0), ("c", 2.0), ("d", 1.0)]);
        let table =
            plan_table(&planned, &PlanConfig::new(2, 10.0, 2.0), &TableOptions::default()).expect("is valid");
        let same = check(&table, &planned);
        assert_eq!((same.idle_keys, same.cold_keys, same.over_qcap.len()), (0, 1, 0));
        assert_eq!(same.loads, table.meta().expected_load);
        assert_eq!(same.imbalance, table.meta().imbalance);
        let other = check(&table, &rates(&[("b", 30.0), ("x", 2.0), ("zero", 0.0)]));
        assert_eq!((other.rate, other.admitted_rate, other.idle_keys, other.cold_keys), (32.0, 30.0, 2, 1));
        assert_eq!(other.over_qcap, [(Key::new("b"), 30.0, 1)]);
        assert_eq!(other.loads.iter().copied().fold(0.0, f64::max), 31.0);
    }
}
