//! Every case of `vectors/planner.json`: values that the published single-process module computes.

use cr_routing::planner::{PlanConfig, TableOptions, copies, plan};
use cr_trace::Key;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: String,
    input: Input,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    n_shards: u32,
    qcap: f64,
    warm_slots_per_shard: f64,
    rates: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expect {
    capacity: f64,
    kb: BTreeMap<String, u32>,
    /// In plan order.
    admitted: Vec<i64>,
    table: BTreeMap<String, Vec<u32>>,
    expected_load: Vec<f64>,
    admitted_rate_total: f64,
    unadmitted_rate_total: f64,
    imbalance: f64,
    /// −1 for a key that is not admitted.
    preferred_shard: BTreeMap<String, i64>,
}

/// The names of the admitted keys in the order in which the module's mapping lists them: a name that is there twice
/// keeps its first position.
fn first_mentions(names: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

#[test]
fn every_case_of_the_module_comes_out_the_same_to_the_last_bit() {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors/planner.json")).expect("parses");
    assert_eq!(vectors.cases.len(), 20);
    for Case { name, input, expect, .. } in vectors.cases {
        let config = PlanConfig::new(input.n_shards, input.qcap, input.warm_slots_per_shard);
        let rates: Vec<f64> = input.rates.iter().map(|&(_, rate)| rate).collect();
        let keys: Vec<Key> = input.rates.iter().map(|(key, _)| Key::from(key.to_string())).collect();
        let plan = plan(&rates, &config).expect("is valid");
        assert_eq!(config.capacity(), expect.capacity, "{name}");
        assert_eq!(
            first_mentions(plan.placements().map(|(at, _)| input.rates[at].0)),
            expect.admitted,
            "{name}"
        );
        for &(key, rate) in &input.rates {
            // Where a key is there twice, the vector shows its last row.
            let last = input.rates.iter().rev().find(|row| row.0 == key).map_or(rate, |row| row.1);
            assert_eq!(
                copies(last, input.qcap, input.n_shards),
                expect.kb[&key.to_string()],
                "{name}: {key}"
            );
        }
        assert_eq!(plan.loads(), expect.expected_load, "{name}");
        assert_eq!(plan.admitted_rate(), expect.admitted_rate_total, "{name}");
        assert_eq!(plan.cold_rate(), expect.unadmitted_rate_total, "{name}");
        assert_eq!(plan.imbalance(), expect.imbalance, "{name}");

        let table = plan.to_table(&keys, &TableOptions::default()).expect("is valid");
        let places: BTreeMap<String, Vec<u32>> = table
            .places()
            .map(|(key, shards)| (key.to_string(), shards.iter().map(|shard| shard.0).collect()))
            .collect();
        assert_eq!(places, expect.table, "{name}");
        for (key, &shard) in &expect.preferred_shard {
            let found = table.preferred_shard(key).map_or(-1, |shard| i64::from(shard.0));
            assert_eq!(found, shard, "{name}: preferred shard of {key}");
        }
    }
}
