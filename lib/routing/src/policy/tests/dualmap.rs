//! The pair, and when the better cache gives way.

use super::*;
use crate::policy::dualmap::candidates;
use cr_trace::stream;

fn run(policy: &mut DualMap, fleet: &[ShardView], key: &str) -> ShardId {
    policy.route(&request(0, key), &view(fleet), &mut stream(1, "policy")).expect("some is up")
}

#[test]
fn a_key_only_ever_sees_its_pair() {
    let mut policy = DualMap::new(10, &PolicyTuning::default());
    let mut fleet = idle(10);
    for n in 0..2_000u32 {
        let key = format!("k{}", n % 100);
        let (first, second) = candidates(&key, &view(&fleet)).expect("all are up");
        assert_ne!(first, second);
        let chosen = run(&mut policy, &fleet, &key);
        assert!(chosen == first || chosen == second);
        fleet[chosen.index()].load += 1;
    }
    // Pairs spread over the fleet.
    assert!(fleet.iter().all(|shard| shard.load > 100), "{fleet:?}");
}

#[test]
fn the_longer_prefix_wins_until_it_would_be_late() {
    let tuning = PolicyTuning { slo_ttft_s: 1.0, drain_tokens_per_s: 1_000.0, ..PolicyTuning::default() };
    let mut policy = DualMap::new(10, &tuning);
    let mut fleet = idle(10);
    let (first, second) = candidates("k", &view(&fleet)).expect("all are up");
    fleet[second.index()].load = 1;
    assert_eq!(run(&mut policy, &fleet, "k"), first, "nothing cached: the less loaded");
    fleet[second.index()].load = 0;
    fleet[first.index()].load = 9;
    assert_eq!(run(&mut policy, &fleet, "k"), first, "cached there, whatever the load");
    // The request misses 1 token of its 64: 999 pending tokens clear in time, 1,000 do not.
    fleet[first.index()].pending_tokens = 999;
    assert_eq!(run(&mut policy, &fleet, "k"), first);
    fleet[first.index()].pending_tokens = 1_000;
    assert_eq!(run(&mut policy, &fleet, "k"), second);
    policy.on_fault(first, false);
    policy.on_fault(second, false);
    fleet[first.index()].load = 0;
    fleet[second.index()].load = 1;
    fleet[first.index()].pending_tokens = 0;
    assert_eq!(run(&mut policy, &fleet, "k"), first, "a dead shard's cache is forgotten");
}

#[test]
fn a_dead_candidate_gives_way_to_its_neighbour() {
    let mut fleet = idle(10);
    let (first, second) = candidates("k", &view(&fleet)).expect("all are up");
    fleet[first.index()].up = false;
    let (other, same) = candidates("k", &view(&fleet)).expect("some are up");
    assert!(fleet[other.index()].up && other != same);
    assert!(same == second || other == second);
    let mut lone = vec![ShardView::default(); 10];
    lone[3].up = true;
    assert_eq!(candidates("k", &view(&lone)), Some((ShardId(3), ShardId(3))));
    assert_eq!(candidates("k", &view(&[])), None);
}
