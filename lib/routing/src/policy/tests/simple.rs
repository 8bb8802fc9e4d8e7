//! Round robin and least loaded.

use super::*;
use cr_trace::stream;
use proptest::prelude::*;

#[test]
fn round_robin_takes_turns_and_skips_the_dead() {
    let mut policy = RoundRobin::default();
    let mut fleet = idle(4);
    let mut rng = stream(1, "policy");
    let mut next =
        |fleet: &[ShardView]| policy.route(&request(0, "k"), &view(fleet), &mut rng).expect("some is up").0;
    assert_eq!((0..6).map(|_| next(&fleet)).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1]);
    fleet[2].up = false;
    assert_eq!((0..4).map(|_| next(&fleet)).collect::<Vec<_>>(), [3, 0, 1, 3]);
}

proptest! {
    #[test]
    fn least_loaded_is_the_minimum(states in proptest::collection::vec((any::<bool>(), 0u32..5), 1..10), seed in any::<u64>()) {
        let fleet: Vec<ShardView> =
            states.iter().map(|&(up, load)| ShardView { up, load, ..ShardView::default() }).collect();
        let chosen = LeastLoaded.route(&request(0, "k"), &view(&fleet), &mut stream(seed, "policy"));
        let least = fleet.iter().filter(|shard| shard.up).map(|shard| shard.load).min();
        prop_assert_eq!(chosen.map(|shard| fleet[shard.index()].load), least);
    }
}
