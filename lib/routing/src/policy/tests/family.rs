//! What every policy promises.

use super::*;
use cr_trace::stream;
use proptest::prelude::*;

fn table(shards: u32) -> Arc<crate::RoutingTable> {
    let meta = crate::RoutingTable::empty(shards).expect("is valid").meta().clone();
    let places = (0..20u32)
        .map(|n| {
            let mut members = [ShardId(n % shards), ShardId((n / 2) % shards)].to_vec();
            members.sort_unstable();
            members.dedup();
            (Key::new(format!("k{n}")), members.into())
        })
        .collect();
    Arc::new(crate::RoutingTable::new(meta, places).expect("is valid"))
}

fn every_policy(shards: u32) -> Vec<Box<dyn Policy>> {
    let config = PolicyConfig { vnodes: 10, table: Some(table(shards)), ..PolicyConfig::new(shards) };
    names().into_iter().map(|name| build(name, &config).expect("is known")).collect()
}

proptest! {
    /// A policy returns a shard that is up, and `None` exactly when none is.
    #[test]
    fn routes_to_a_shard_that_is_up(
        states in proptest::collection::vec((any::<bool>(), 0u32..4), 1..9),
        keys in proptest::collection::vec(0u32..30, 1..20),
        seed in any::<u64>(),
    ) {
        let shards: Vec<ShardView> =
            states.iter().map(|&(up, load)| ShardView { up, load, ..ShardView::default() }).collect();
        for mut policy in every_policy(shards.len() as u32) {
            let mut rng = stream(seed, "policy");
            for (id, key) in keys.iter().enumerate() {
                let request = request(id as u64, &format!("k{key}"));
                policy.on_arrival(&request, Time::ZERO);
                let chosen = policy.route(&request, &view(&shards), &mut rng);
                prop_assert_eq!(chosen.is_some(), shards.iter().any(|shard| shard.up), "{}", policy.name());
                prop_assert!(chosen.is_none_or(|id| shards[id.index()].up), "{}", policy.name());
            }
        }
    }
}

/// A shard dies or returns, or a request is routed (and perhaps finishes at once).
type Event = Result<(u32, bool), (u32, bool)>;

proptest! {
    /// Whatever dies and returns, down to none being up: a policy goes on, and keeps its promise.
    #[test]
    fn copes_with_any_shards_being_down(
        shards in 1u32..6,
        events in proptest::collection::vec(prop_oneof![
            (0u32..6, any::<bool>()).prop_map(Event::Ok),
            (0u32..12, any::<bool>()).prop_map(Event::Err),
        ], 1..60),
        seed in any::<u64>(),
    ) {
        for mut policy in every_policy(shards) {
            let mut fleet = idle(shards);
            let mut rng = stream(seed, "policy");
            for (id, event) in events.iter().enumerate() {
                match *event {
                    Ok((shard, up)) => {
                        let shard = ShardId(shard % shards);
                        fleet[shard.index()] = ShardView { up, ..ShardView::default() };
                        policy.on_fault(shard, up);
                    }
                    Err((key, finishes)) => {
                        let request = request(id as u64, &format!("k{key}"));
                        policy.on_arrival(&request, Time::ZERO);
                        let chosen = policy.route(&request, &view(&fleet), &mut rng);
                        prop_assert_eq!(chosen.is_some(), fleet.iter().any(|shard| shard.up), "{}", policy.name());
                        let Some(shard) = chosen else { continue };
                        prop_assert!(fleet[shard.index()].up, "{}", policy.name());
                        if finishes {
                            policy.on_finish(&Departure { request: &request, shard, at: Time::ZERO, output_tokens: 1, finished: true });
                        } else {
                            fleet[shard.index()].load += 1;
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_same_stream_gives_the_same_route() {
    let shards = idle(5);
    for name in names() {
        let config = PolicyConfig { table: Some(table(5)), ..PolicyConfig::new(5) };
        let run = || {
            let mut policy = build(name, &config).expect("is known");
            let mut rng = stream(7, "policy");
            (0..200u64)
                .map(|n| policy.route(&request(n, &format!("k{}", n % 40)), &view(&shards), &mut rng))
                .collect::<Vec<_>>()
        };
        assert_eq!(run(), run(), "{name}");
    }
}

/// Regression of a class of bugs: a cache-aware policy that sends a whole workload to one shard.
#[test]
fn none_collapses_on_one_shard() {
    for mut policy in every_policy(8) {
        let mut shards = idle(8);
        let mut rng = stream(3, "policy");
        for n in 0..4_000u64 {
            let request = request(n, &format!("k{}", n % 500));
            policy.on_arrival(&request, Time::ZERO);
            let chosen = policy.route(&request, &view(&shards), &mut rng).expect("all are up");
            shards[chosen.index()].load += 1;
        }
        let hottest = shards.iter().map(|shard| shard.load).max().expect("has shards");
        assert!(shards.iter().all(|shard| shard.load > 0), "{}: {shards:?}", policy.name());
        assert!(hottest < 4_000 / 2, "{}: one shard took {hottest} of 4000", policy.name());
    }
}

#[test]
fn names_are_what_policies_call_themselves() {
    for name in names() {
        assert_eq!(build(name, &PolicyConfig::new(2)).expect("is known").name(), name);
    }
}

#[test]
fn an_unknown_name_lists_the_known_ones_and_the_nearest() {
    let error = build("stiky", &PolicyConfig::new(2)).err().expect("is unknown").to_string();
    let all = names().join(", ");
    assert_eq!(
        error,
        format!("there is no policy \"stiky\" (did you mean \"sticky\"?); supported are {all}")
    );
    let error = build("zzz", &PolicyConfig::new(2)).err().expect("is unknown").to_string();
    assert_eq!(error, format!("there is no policy \"zzz\"; supported are {all}"));
}

#[test]
fn absurd_configurations_are_refused() {
    let refused = |config: PolicyConfig| build("sticky", &config).err().expect("is refused").to_string();
    assert!(refused(PolicyConfig::new(0)).contains("a fleet has 1 to 65536"));
    assert!(refused(PolicyConfig { vnodes: 0, ..PolicyConfig::new(2) }).contains("0 virtual nodes"));
    assert!(refused(PolicyConfig { vnodes: u32::MAX, ..PolicyConfig::new(2) }).contains("at most 16777216"));
    assert_eq!(
        refused(PolicyConfig { table: Some(table(3)), ..PolicyConfig::new(2) }),
        "the table is for 3 shards, the fleet has 2"
    );
}
