//! The ablation's rungs.

use super::*;
use crate::planner::{PlanConfig, TableOptions, plan_table};
use crate::policy::ladder::random_shards;
use cr_trace::stream;

fn table() -> Arc<crate::RoutingTable> {
    let rates = (0..200).map(|n| (Key::from(format!("k{n}")), 200.0 / f64::from(n + 1))).collect();
    let config = PlanConfig::new(8, 40.0, 100.0);
    Arc::new(plan_table(&rates, &config, &TableOptions::default()).expect("is valid"))
}

/// The shards that a key is ever sent to.
fn shards_of(policy: &mut dyn Policy, key: &str) -> Vec<u32> {
    let mut fleet = idle(8);
    let mut rng = stream(4, "policy");
    for n in 0..400 {
        let chosen = policy.route(&request(n, key), &view(&fleet), &mut rng).expect("all are up");
        fleet[chosen.index()].load += 1;
    }
    (0..8).filter(|&shard| fleet[shard as usize].load > 0).collect()
}

#[test]
fn each_rung_adds_one_thing() {
    let table = table();
    let planned: Vec<u32> = table.shards_of("k0").expect("is admitted").iter().map(|shard| shard.0).collect();
    assert_eq!(planned.len(), 5, "200/s at 40/s a shard");
    let one = shards_of(&mut Ladder::new(Rung::Affinity, Some(&table)), "k0");
    assert_eq!(one.len(), 1);
    let some = shards_of(&mut Ladder::new(Rung::Replication, Some(&table)), "k0");
    assert_eq!(some.len(), 5);
    let mut full = Ladder::new(Rung::Lpt, None);
    full.on_table(&table);
    assert_eq!(shards_of(&mut full, "k0"), planned);
    let mut affinity = Ladder::new(Rung::Affinity, Some(&table));
    assert!(affinity.is_admitted("k0") && !affinity.is_admitted("x"));
    assert!(shards_of(&mut affinity, "x").len() > 4, "a cold key is spread");
}

#[test]
fn random_places_are_distinct_fixed_and_even() {
    let mut counts = [0u32; 8];
    for n in 0..8_000 {
        let shards = random_shards(&format!("k{n}"), 1, 8);
        assert_eq!(shards, random_shards(&format!("k{n}"), 1, 8));
        counts[shards[0].index()] += 1;
    }
    assert!(counts.iter().all(|&count| (850..1_150).contains(&count)), "{counts:?}");
    for copies in 0..12 {
        let shards = random_shards("k", copies, 8);
        assert_eq!(shards.len(), copies.min(8));
        assert!(shards.is_sorted_by(|a, b| a < b));
    }
}
