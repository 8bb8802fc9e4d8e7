//! The planner against a naive oracle, and its invariants.

use super::*;
use cr_trace::ShardId;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Algorithm 1 as one would write it first.
fn naive(rates: &[f64], config: &PlanConfig) -> (BTreeMap<usize, Vec<ShardId>>, Vec<f64>) {
    let speeds = config.fleet.speeds();
    let up = config.fleet.up();
    let mut order: Vec<usize> = (0..rates.len()).filter(|&key| rates[key] > 0.0).collect();
    order.sort_by(|&a, &b| rates[b].total_cmp(&rates[a]));
    let (mut used, mut cold, mut admitted) = (0.0, 0.0, Vec::new());
    for key in order {
        let copies = f64::from(up).min((rates[key] / config.qcap).ceil().max(1.0));
        if used + copies <= config.capacity() {
            used += copies;
            admitted.push((key, copies as usize));
        } else {
            cold += rates[key];
        }
    }
    let total: f64 = speeds.iter().sum();
    let mut loads: Vec<f64> = speeds.iter().map(|speed| cold * speed / total).collect();
    let mut places = BTreeMap::new();
    for (key, copies) in admitted {
        let mut shards: Vec<usize> = (0..loads.len()).filter(|&shard| speeds[shard] > 0.0).collect();
        shards.sort_by(|&a, &b| (loads[a] / speeds[a]).total_cmp(&(loads[b] / speeds[b])).then(a.cmp(&b)));
        shards.truncate(copies);
        shards.sort_unstable();
        for &shard in &shards {
            loads[shard] += rates[key] / copies as f64;
        }
        places.insert(key, shards.into_iter().map(|shard| ShardId(shard as u32)).collect());
    }
    (places, loads)
}

fn rates() -> impl Strategy<Value = Vec<f64>> {
    // Small integers make ties common; the rest covers the magnitudes.
    let rate = prop_oneof![3 => (0u32..6).prop_map(f64::from), 1 => 0.0..200.0f64, 1 => 1e-9..1e9f64];
    proptest::collection::vec(rate, 0..60)
}

/// Speeds whose divisions are exact, so that the oracle's ties are the planner's.
fn fleet() -> impl Strategy<Value = Fleet> {
    prop_oneof![
        2 => (1u32..20).prop_map(Fleet::uniform),
        1 => proptest::collection::vec(prop_oneof![Just(0.0), Just(0.5), Just(1.0), Just(2.0)], 1..20)
            .prop_filter("some shard is up", |speeds| speeds.iter().any(|&speed| speed > 0.0))
            .prop_map(Fleet::with_speeds),
    ]
}

proptest! {
    #[test]
    fn the_plan_is_the_naive_one(rates in rates(), fleet in fleet(), qcap in 0.5..100.0f64, slots in 0.0..6.0f64) {
        let config = PlanConfig::for_fleet(fleet, qcap, slots);
        let plan = plan(&rates, &config).expect("is valid");
        let (places, loads) = naive(&rates, &config);
        let found: BTreeMap<usize, Vec<ShardId>> =
            plan.placements().map(|(key, shards)| (key, shards.to_vec())).collect();
        prop_assert_eq!(found, places);
        prop_assert_eq!(plan.loads(), loads.as_slice());
    }

    #[test]
    fn a_plan_keeps_its_promises(rates in rates(), fleet in fleet(), qcap in 0.5..100.0f64, slots in 0.0..6.0f64) {
        let config = PlanConfig::for_fleet(fleet, qcap, slots);
        let plan = plan(&rates, &config).expect("is valid");
        let (speeds, up) = (config.fleet.speeds(), config.fleet.up());
        let mut used = 0;
        let mut last = f64::INFINITY;
        for (key, shards) in plan.placements() {
            prop_assert!(rates[key] > 0.0 && rates[key] <= last, "by decreasing rate");
            last = rates[key];
            prop_assert!(shards.is_sorted_by(|a, b| a < b), "ascending and distinct");
            prop_assert!(shards.iter().all(|shard| speeds[shard.index()] > 0.0), "on shards that are up");
            prop_assert_eq!(shards.len() as u32, copies(rates[key], qcap, up));
            used += shards.len();
        }
        prop_assert!(used as f64 <= config.capacity());
        let total: f64 = rates.iter().sum();
        prop_assert!((plan.loads().iter().sum::<f64>() - total).abs() <= 1e-9 * total, "no rate is lost");
        prop_assert!((plan.admitted_rate() + plan.cold_rate() - total).abs() <= 1e-9 * total);
        prop_assert!(plan.imbalance() >= 1.0 - 1e-12);
        // A key left out did not fit where it stood in the order: with all that was admitted it never fits.
        let placed: std::collections::BTreeSet<usize> = plan.placements().map(|(key, _)| key).collect();
        for (key, &rate) in rates.iter().enumerate() {
            if rate > 0.0 && !placed.contains(&key) {
                prop_assert!((used as u32 + copies(rate, qcap, up)) as f64 > config.capacity());
            }
        }
    }
}

#[test]
fn copies_are_rounded_up_and_clamped() {
    for (rate, qcap, shards, expect) in [
        (0.0, 1.0, 4, 1),
        (1.0, 1.0, 4, 1),
        (1.000_001, 1.0, 4, 2),
        (1e300, 1e-300, 4, 4),
        (10.0, 3.0, 99, 4),
    ] {
        assert_eq!(copies(rate, qcap, shards), expect, "{rate} / {qcap}");
    }
}

#[test]
fn configurations_that_no_plan_can_have_are_refused() {
    let refused = |config: PlanConfig| plan(&[1.0], &config).expect_err("is refused").to_string();
    assert!(refused(PlanConfig::new(0, 1.0, 1.0)).contains("0 shards"));
    assert!(refused(PlanConfig::new(u32::MAX, 1.0, 1.0)).contains("a fleet has 1 to 65536"));
    assert!(refused(PlanConfig::new(1, 0.0, 1.0)).contains("qcap is 0"));
    assert!(refused(PlanConfig::new(1, f64::INFINITY, 1.0)).contains("qcap is inf"));
    assert!(refused(PlanConfig::new(1, 1.0, f64::NAN)).contains("warm_slots is NaN"));
    assert!(refused(PlanConfig::new(1, 1.0, -1.0)).contains("warm_slots is -1"));
    let fleet = Fleet::with_speeds(vec![0.0, 0.0]);
    assert_eq!(refused(PlanConfig::for_fleet(fleet, 1.0, 1.0)), "no shard is up");
    let fleet = Fleet::with_speeds(vec![1.0, -1.0]);
    assert!(refused(PlanConfig::for_fleet(fleet, 1.0, 1.0)).starts_with("shard 1 has the relative"));
}

#[test]
fn every_placement_puts_every_admitted_key_on_distinct_living_shards() {
    let names: Vec<cr_trace::Key> = (0..40).map(|n| cr_trace::Key::from(format!("k{n}"))).collect();
    let rates: Vec<f64> = (0..40).map(|n| 40.0 - f64::from(n)).collect();
    let demand = Demand { keys: Some(&names), ..Demand::of_rates(&rates) };
    let placements = [
        Placement::Lpt,
        Placement::LptRefine,
        Placement::Random { seed: 1 },
        Placement::Hash,
        Placement::RoundRobin,
    ];
    for placement in placements {
        let fleet = Fleet::with_speeds(vec![1.0, 0.0, 1.0, 0.5]);
        let config = PlanConfig { placement, ..PlanConfig::for_fleet(fleet, 15.0, 40.0) };
        let plan = plan_demand(&demand, &config).expect("is valid");
        assert_eq!(plan.placements().len(), 40, "{placement:?}");
        let mut loads = [0.0; 4];
        for (key, shards) in plan.placements() {
            assert_eq!(shards.len() as u32, copies(rates[key], 15.0, 3), "{placement:?}");
            assert!(shards.is_sorted_by(|a, b| a < b) && !shards.contains(&ShardId(1)), "{placement:?}");
            shards.iter().for_each(|shard| loads[shard.index()] += rates[key] / shards.len() as f64);
        }
        assert!(loads.iter().zip(plan.loads()).all(|(a, b)| (a - b).abs() < 1e-9), "{placement:?}");
        assert!(loads[0] > 0.0 && loads[2] > 0.0 && loads[3] > 0.0, "{placement:?}");
    }
    let config = PlanConfig { placement: Placement::Hash, ..PlanConfig::new(2, 1.0, 1.0) };
    assert_eq!(plan(&rates, &config), Err(PlanError::NoNames));
}

#[test]
fn work_is_balanced_where_it_is_told() {
    // One slow key of long prompts and many quick ones.
    let rates = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    let work = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1];
    let demand = Demand { work: Some(&work), ..Demand::of_rates(&rates) };
    let mut config = PlanConfig::new(2, 10.0, 10.0);
    let plan = plan_demand(&demand, &config).expect("is valid");
    let spent = plan.work().expect("is told");
    assert!((spent[0] - 0.5).abs() < 1e-12 && (spent[1] - 0.5).abs() < 1e-12, "{spent:?}");
    assert_eq!(plan.loads(), [1.0, 5.0]);
    assert!((plan.work_imbalance().expect("is told") - 1.0).abs() < 1e-12 && plan.imbalance() > 1.6);
    config.work_cap = Some(0.25);
    let plan = plan_demand(&demand, &config).expect("is valid");
    assert!(
        plan.placements().any(|(key, shards)| key == 0 && shards.len() == 2),
        "0.5 at 0.25 a shard is two copies"
    );
    let bad = [0.5, -0.1, 0.1, 0.1, 0.1, 0.1];
    let demand = Demand { work: Some(&bad), ..demand };
    assert_eq!(plan_demand(&demand, &config), Err(PlanError::Work { at: 1, work: -0.1 }));
    let demand = Demand { work: Some(&bad[..2]), ..demand };
    assert!(matches!(plan_demand(&demand, &config), Err(PlanError::Lengths { what: "work", .. })));
}
