//! `round-robin`: the shards in turn, blind to caches and to load.
//!
//! Rule: the next shard that is up. Source: folklore; the baseline of every load balancer. Even in requests, not in work.

use super::Policy;
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};

/// See the module's page.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    next: usize,
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn route(&mut self, _request: &Request, view: &FleetView<'_>, _rng: &mut Stream) -> Option<ShardId> {
        let shards = view.len();
        let chosen = (0..shards).map(|n| (self.next + n) % shards).find(|&shard| view.shards[shard].up)?;
        self.next = (chosen + 1) % shards;
        Some(ShardId(chosen as u32))
    }
}
