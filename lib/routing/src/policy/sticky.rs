//! `sticky`: a consistent-hash ring, blind to load.
//!
//! Rule: the first point clockwise from the key's hash whose shard is up (see [`Ring`]).
//! Source: Karger et al. 1997; the paper's Sticky. Keeps every key's cache, and copies the skew of the keys onto the
//! queues: the hottest shard sets the fleet's tail. Not for skewed traffic near capacity.

use super::{Policy, Ring};
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Sticky {
    ring: Ring,
}

impl Sticky {
    /// A ring of `shards` shards with `vnodes` points each.
    pub fn new(shards: u32, vnodes: u32) -> Sticky {
        Sticky { ring: Ring::new(shards, vnodes) }
    }
}

impl Policy for Sticky {
    fn name(&self) -> &'static str {
        "sticky"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, _rng: &mut Stream) -> Option<ShardId> {
        self.ring.clockwise(&request.key).find(|&shard| view.shard(shard).up)
    }
}
