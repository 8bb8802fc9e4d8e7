//! How fast each policy decides, its own bookkeeping included: 10,000 keys by Zipf, prompts of four segments.
//!
//! `cargo bench -p cr-routing --bench route`.

use cr_routing::planner::{PlanConfig, TableOptions, plan_table};
use cr_routing::policy::{PolicyConfig, build, names};
use cr_routing::{FleetView, ShardView};
use cr_trace::{ContentId, Key, Request, RequestId, Segment, Time, stream};
use divan::{Bencher, counter::ItemsCount};
use rand_distr::{Distribution, Zipf};
use std::sync::Arc;

const KEYS: usize = 10_000;
const REQUESTS: usize = 1 << 14;

fn main() {
    divan::main();
}

fn requests() -> Vec<Request> {
    let draw = Zipf::new(KEYS as f64, 1.0).expect("is a distribution");
    let mut rng = stream(42, "bench");
    (0..REQUESTS as u64)
        .map(|id| {
            let key = Key::from(format!("k{}", draw.sample(&mut rng) as usize - 1));
            let prompt = [
                Segment(ContentId::global("template"), 600),
                Segment(ContentId::key(&key), 180),
                Segment(ContentId::new(format!("d:{key}/{}", id % 3)), 300),
                Segment(ContentId::user(RequestId(id)), 120),
            ];
            Request {
                id: RequestId(id),
                t_s: id as f64 / 1_000.0,
                key,
                tenant: None,
                session: None,
                turn: None,
                after: None,
                think_s: None,
                prompt: prompt.into_iter().collect(),
                output_tokens: 1,
            }
        })
        .collect()
}

fn route(bencher: Bencher<'_, '_>, name: &str, shards: u32) {
    let rates = (0..KEYS).map(|n| (Key::from(format!("k{n}")), 1_000.0 / (n + 1) as f64)).collect();
    let plan = PlanConfig::new(shards, 20.0, 2_000.0);
    let table = Arc::new(plan_table(&rates, &plan, &TableOptions::default()).expect("is valid"));
    let config = PolicyConfig { table: Some(table), ..PolicyConfig::new(shards) };
    let mut policy = build(name, &config).expect("is known");
    let fleet: Vec<ShardView> =
        (0..shards).map(|n| ShardView { up: true, load: n % 7, ..ShardView::default() }).collect();
    let requests = requests();
    let mut rng = stream(1, "policy");
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        let view = FleetView { shards: &fleet, as_of: Time::ZERO };
        let mut sum = 0;
        for request in &requests {
            policy.on_arrival(request, request.arrival());
            sum += policy.route(request, &view, &mut rng).map_or(0, |shard| u64::from(shard.0));
        }
        sum
    });
}

#[divan::bench(args = names(), sample_count = 20)]
fn shards_30(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, name, 30);
}

#[divan::bench(args = ["cacheroute", "sticky", "flat"], sample_count = 20)]
fn shards_1024(bencher: Bencher<'_, '_>, name: &str) {
    route(bencher, name, 1_024);
}
