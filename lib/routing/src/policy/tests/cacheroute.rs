//! The planned table.

use super::*;
use crate::RoutingTable;
use cr_trace::stream;

fn table(places: &[(&str, &[u32])]) -> Arc<RoutingTable> {
    let meta = RoutingTable::empty(4).expect("is valid").meta().clone();
    let places = places
        .iter()
        .map(|&(key, shards)| (Key::new(key), shards.iter().map(|&id| ShardId(id)).collect()))
        .collect();
    Arc::new(RoutingTable::new(meta, places).expect("is valid"))
}

fn share(policy: &mut CacheRoute, fleet: &[ShardView], key: &str) -> [u32; 4] {
    let mut rng = stream(2, "policy");
    let mut counts = [0; 4];
    for id in 0..1_000 {
        counts[policy.route(&request(id, key), &view(fleet), &mut rng).expect("some is up").index()] += 1;
    }
    counts
}

#[test]
fn an_admitted_key_goes_to_its_least_loaded_shard_that_is_up() {
    let mut policy = CacheRoute::new(Some(table(&[("one", &[2]), ("two", &[0, 3])])));
    let mut fleet = idle(4);
    fleet[2].load = 1_000;
    assert_eq!(share(&mut policy, &fleet, "one"), [0, 0, 1_000, 0], "loyal whatever the load");
    let even = share(&mut policy, &fleet, "two");
    assert!(even[0] > 400 && even[3] > 400 && even[0] + even[3] == 1_000, "{even:?}");
    fleet[0].load = 5;
    assert_eq!(share(&mut policy, &fleet, "two"), [0, 0, 0, 1_000]);
    fleet[3].up = false;
    assert_eq!(share(&mut policy, &fleet, "two"), [1_000, 0, 0, 0], "the other replica takes over");
}

#[test]
fn a_cold_key_and_a_key_without_a_living_shard_fall_back_to_two_choices() {
    let mut policy = CacheRoute::new(Some(table(&[("one", &[2])])));
    let mut fleet = idle(4);
    assert!(policy.is_admitted("one") && !policy.is_admitted("cold"));
    assert!(share(&mut policy, &fleet, "cold").iter().all(|&n| n > 150));
    fleet[2].up = false;
    let spread = share(&mut policy, &fleet, "one");
    assert!(spread[2] == 0 && [0, 1, 3].iter().all(|&shard| spread[shard] > 200), "{spread:?}");
}

#[test]
fn a_new_table_holds_at_once_and_none_means_flat() {
    let mut policy = CacheRoute::new(None);
    let fleet = idle(4);
    assert!(!policy.is_admitted("one"));
    assert!(share(&mut policy, &fleet, "one").iter().all(|&n| n > 150));
    policy.on_table(&table(&[("one", &[1])]));
    assert_eq!(share(&mut policy, &fleet, "one"), [0, 1_000, 0, 0]);
}
