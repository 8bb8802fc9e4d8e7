//! How fast a key finds its shard: a million planned keys, drawn by Zipf.
//!
//! `cargo bench -p cr-routing --bench lookup`.

use cr_routing::planner::{PlanConfig, TableOptions, plan};
use cr_routing::policy::{CacheRoute, Policy};
use cr_routing::table::ShardSet;
use cr_routing::{FleetView, RoutingTable, ShardView};
use cr_trace::{ContentId, Key, Request, RequestId, Segment, Time, stream};
use divan::{Bencher, counter::ItemsCount};
use indexmap::IndexMap;
use rand_distr::{Distribution, Zipf};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

const KEYS: usize = 1_000_000;
const DRAWS: usize = 1 << 16;

fn main() {
    divan::main();
}

fn table(shards: u32) -> RoutingTable {
    let rates: Vec<f64> = (1..=KEYS).map(|rank| 1_000.0 / rank as f64).collect();
    let names: Vec<Key> = (0..KEYS).map(|n| Key::from(format!("k{n}"))).collect();
    let config = PlanConfig::new(shards, 10.0, KEYS as f64);
    let options = TableOptions::default();
    plan(&rates, &config).expect("is valid").to_table(&names, &options).expect("is valid")
}

fn keys() -> Vec<Key> {
    let draw = Zipf::new(KEYS as f64, 1.0).expect("is a distribution");
    let mut rng = stream(42, "bench");
    (0..DRAWS).map(|_| Key::from(format!("k{}", draw.sample(&mut rng) as usize - 1))).collect()
}

/// One request, whose key the benchmark changes.
fn request() -> Request {
    Request {
        id: RequestId(0),
        t_s: 0.0,
        key: Key::new("k"),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        prompt: [Segment(ContentId::key("k"), 64)].into_iter().collect(),
        output_tokens: 1,
    }
}

/// What the table was before, for comparison: indices of a hash map into a list of keys, shards beside each.
#[divan::bench]
fn index_map(bencher: Bencher<'_, '_>) {
    let table = table(30);
    let map: IndexMap<Key, ShardSet, FxBuildHasher> =
        table.places().map(|(key, shards)| (key.clone(), shards.into())).collect();
    let keys = keys();
    bencher
        .counter(ItemsCount::new(DRAWS))
        .bench(|| keys.iter().filter_map(|key| map.get(key)).map(|shards| shards.len()).sum::<usize>());
}

#[divan::bench]
fn table_lookup(bencher: Bencher<'_, '_>) {
    let table = table(30);
    let keys = keys();
    bencher
        .counter(ItemsCount::new(DRAWS))
        .bench(|| keys.iter().filter_map(|key| table.shards_of(key)).map(<[_]>::len).sum::<usize>());
}

/// Lookup and choice of the replica.
#[divan::bench(args = [30, 1_024])]
fn cacheroute(bencher: Bencher<'_, '_>, shards: u32) {
    let mut policy = CacheRoute::new(Some(Arc::new(table(shards))));
    let fleet: Vec<ShardView> =
        (0..shards).map(|n| ShardView { up: true, load: n % 7, ..ShardView::default() }).collect();
    let keys = keys();
    let mut request = request();
    let mut rng = stream(1, "policy");
    bencher.counter(ItemsCount::new(DRAWS)).bench_local(|| {
        let view = FleetView { shards: &fleet, as_of: Time::ZERO };
        let mut sum = 0;
        for key in &keys {
            request.key.clone_from(key);
            sum += policy.route(&request, &view, &mut rng).map_or(0, |shard| u64::from(shard.0));
        }
        sum
    });
}
