//! `chwbl`: consistent hashing with bounded loads.
//!
//! Rule: the first shard clockwise from the key's hash (see [`Ring`]) that is up and whose load is below
//! `⌈(1 + ε)(m + 1) / n⌉`, with m requests in flight on the n shards that are up. So no load ever exceeds that bound, and a
//! key leaves its shard only when that is full. Source: Mirrokni, Thorup, Zadimoghaddam, arXiv 1608.01350; the paper takes
//! ε = 0.25. At low load the bound is a request or two, and a key is spread by noise.

use super::{Policy, Ring, choose};
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Chwbl {
    ring: Ring,
    epsilon: f64,
}

impl Chwbl {
    /// A ring of `shards` shards with `vnodes` points each, and the slack ε, at least 0.
    pub fn new(shards: u32, vnodes: u32, epsilon: f64) -> Chwbl {
        Chwbl { ring: Ring::new(shards, vnodes), epsilon }
    }
}

/// The load that no shard may exceed once `in_flight + 1` requests are spread over `shards`.
pub(super) fn bound(in_flight: u64, shards: u64, epsilon: f64) -> f64 {
    ((1.0 + epsilon) * (in_flight + 1) as f64 / shards as f64).ceil()
}

impl Policy for Chwbl {
    fn name(&self) -> &'static str {
        "chwbl"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let (mut shards, mut in_flight) = (0, 0);
        for shard in view.shards.iter().filter(|shard| shard.up) {
            shards += 1;
            in_flight += u64::from(shard.load);
        }
        let bound = bound(in_flight, shards, self.epsilon);
        let free = |&shard: &ShardId| {
            let shard = view.shard(shard);
            shard.up && f64::from(shard.load) < bound
        };
        // Were all loads at the bound, their sum would exceed the requests in flight; so one is free, if any is up and has
        // a point on the ring.
        self.ring.clockwise(&request.key).find(free).or_else(|| choose::less_loaded(view.up(), view, rng))
    }
}
