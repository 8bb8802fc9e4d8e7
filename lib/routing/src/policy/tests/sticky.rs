//! The consistent ring.

use super::*;
use cr_trace::stream;

const KEYS: u32 = 20_000;

fn routes(policy: &mut Sticky, fleet: &[ShardView]) -> Vec<ShardId> {
    let mut rng = stream(1, "policy");
    (0..KEYS)
        .map(|n| {
            policy
                .route(&request(u64::from(n), &format!("k{n}")), &view(fleet), &mut rng)
                .expect("some is up")
        })
        .collect()
}

#[test]
fn a_shard_that_leaves_moves_its_own_keys_only() {
    let mut policy = Sticky::new(10, DEFAULT_VNODES);
    let mut fleet = idle(10);
    let before = routes(&mut policy, &fleet);
    fleet[4].up = false;
    let after = routes(&mut policy, &fleet);
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count();
    let owned = before.iter().filter(|&&shard| shard == ShardId(4)).count();
    assert_eq!(moved, owned, "only the keys of the shard that left move");
    let share = moved as f64 / f64::from(KEYS);
    assert!((0.07..0.13).contains(&share), "about 1/10 of the keys move: {share}");
    // They scatter over the others: none gets more than a third of them.
    for shard in 0..10 {
        let taken =
            before.iter().zip(&after).filter(|&(a, b)| *a == ShardId(4) && *b == ShardId(shard)).count();
        assert!(taken * 3 < owned, "shard {shard} takes {taken} of {owned}");
    }
    fleet[4].up = true;
    assert_eq!(routes(&mut policy, &fleet), before, "a shard that comes back gets its keys back");
}

/// The ring of one shard more is the same ring: only keys that the new shard takes move, about 1/R of them.
#[test]
fn a_shard_that_joins_takes_about_its_share() {
    let before = routes(&mut Sticky::new(9, DEFAULT_VNODES), &idle(9));
    let after = routes(&mut Sticky::new(10, DEFAULT_VNODES), &idle(10));
    let moved: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
    assert!(moved.iter().all(|(_, to)| **to == ShardId(9)));
    let share = moved.len() as f64 / f64::from(KEYS);
    assert!((0.07..0.13).contains(&share), "{share}");
}

#[test]
fn more_virtual_nodes_spread_the_keys_better() {
    let imbalance = |vnodes| {
        let mut counts = [0u32; 10];
        for shard in routes(&mut Sticky::new(10, vnodes), &idle(10)) {
            counts[shard.index()] += 1;
        }
        f64::from(counts.into_iter().max().expect("has shards")) / (f64::from(KEYS) / 10.0)
    };
    let (one, hundred) = (imbalance(1), imbalance(100));
    assert!(one > 1.5 && hundred < 1.3, "1: {one}, 100: {hundred}");
}

#[test]
fn load_does_not_matter() {
    let mut fleet = idle(10);
    let before = routes(&mut Sticky::new(10, 20), &fleet);
    for (n, shard) in fleet.iter_mut().enumerate() {
        shard.load = n as u32 * 100;
    }
    assert_eq!(routes(&mut Sticky::new(10, 20), &fleet), before);
}
