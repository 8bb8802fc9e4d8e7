//! Bounded loads.

use super::*;
use cr_trace::stream;
use proptest::prelude::*;
use rand::RngExt;

proptest! {
    /// The first shard clockwise below the bound, found the naive way.
    #[test]
    fn the_choice_is_the_naive_walk(
        states in proptest::collection::vec((any::<bool>(), 0u32..6), 1..8),
        key in 0u32..50,
        epsilon in 0.0..1.0f64,
    ) {
        let fleet: Vec<ShardView> =
            states.iter().map(|&(up, load)| ShardView { up, load, ..ShardView::default() }).collect();
        let shards = fleet.len() as u32;
        let key = format!("k{key}");
        let chosen = Chwbl::new(shards, 10, epsilon).route(&request(0, &key), &view(&fleet), &mut stream(1, "policy"));
        let up: Vec<u32> = fleet.iter().filter(|shard| shard.up).map(|shard| shard.load).collect();
        let limit = ((1.0 + epsilon) * (up.iter().sum::<u32>() + 1) as f64 / up.len() as f64).ceil();
        let naive = Ring::new(shards, 10)
            .clockwise(&key)
            .find(|shard| fleet[shard.index()].up && f64::from(fleet[shard.index()].load) < limit);
        prop_assert_eq!(chosen, naive);
    }
}

/// The published invariant, over a run of arrivals and departures of a skewed load.
#[test]
fn no_load_ever_exceeds_the_bound() {
    let mut policy = Chwbl::new(8, DEFAULT_VNODES, 0.25);
    let mut fleet = idle(8);
    let mut rng = stream(9, "policy");
    let mut running: Vec<ShardId> = Vec::new();
    for n in 0..20_000u64 {
        // One key makes half of the requests.
        let key = if rng.random_range(0..2u32) == 0 { "hot".to_string() } else { format!("k{}", n % 97) };
        let in_flight = running.len() as u64;
        let chosen = policy.route(&request(n, &key), &view(&fleet), &mut rng).expect("all are up");
        fleet[chosen.index()].load += 1;
        running.push(chosen);
        let limit = (1.25 * (in_flight + 1) as f64 / 8.0).ceil();
        assert!(f64::from(fleet[chosen.index()].load) <= limit, "{} of {limit}", fleet[chosen.index()].load);
        while running.len() > 40 || (!running.is_empty() && rng.random_range(0..2u32) == 0) {
            let gone = running.swap_remove(rng.random_range(0..running.len() as u32) as usize);
            fleet[gone.index()].load -= 1;
        }
    }
}

/// Regression of a class of bugs: bounded loads that act on noise. At low load the published bound is one request, so a key
/// leaves its shard when that serves anybody at all: that is the rule, and nothing beyond it may move a key.
#[test]
fn at_low_load_only_a_busy_home_moves_a_key() {
    let mut policy = Chwbl::new(8, DEFAULT_VNODES, 0.25);
    let mut sticky = Sticky::new(8, DEFAULT_VNODES);
    let mut rng = stream(1, "policy");
    for n in 0..200u64 {
        let request = request(n, &format!("k{n}"));
        let home = sticky.route(&request, &view(&idle(8)), &mut rng).expect("all are up");
        let mut go =
            |fleet: &[ShardView]| policy.route(&request, &view(fleet), &mut rng).expect("all are up");
        assert_eq!(go(&idle(8)), home, "an idle fleet");
        let mut fleet = idle(8);
        fleet[(home.index() + 3) % 8].load = 5;
        assert_eq!(go(&fleet), home, "noise elsewhere");
        // ⌈1.25 · 2 / 8⌉ = 1: one request at home is at the bound.
        let mut fleet = idle(8);
        fleet[home.index()].load = 1;
        assert_ne!(go(&fleet), home, "a busy home");
        // ⌈1.25 · 8 / 8⌉ = 2: one at home is none too many once every shard has one.
        let mut fleet = vec![ShardView { up: true, load: 1, ..ShardView::default() }; 8];
        fleet[(home.index() + 1) % 8].load = 0;
        assert_eq!(go(&fleet), home, "a fleet at work");
    }
}

/// With slack enough it is `sticky`; the hot key leaves its shard only when that is full.
#[test]
fn a_key_stays_while_there_is_room() {
    let mut policy = Chwbl::new(8, DEFAULT_VNODES, 1_000.0);
    let mut sticky = Sticky::new(8, DEFAULT_VNODES);
    let mut fleet = idle(8);
    let mut rng = stream(1, "policy");
    for n in 0..500 {
        let request = request(n, &format!("k{}", n % 50));
        let chosen = policy.route(&request, &view(&fleet), &mut rng).expect("all are up");
        assert_eq!(Some(chosen), sticky.route(&request, &view(&fleet), &mut rng));
        fleet[chosen.index()].load += 1;
    }
}
