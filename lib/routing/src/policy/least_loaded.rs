//! `least-loaded`: the shard with the least load of all, blind to caches.
//!
//! Rule: the least loaded shard that is up, a tie broken at random. Source: join-shortest-queue (Winston 1977). Optimal for
//! equal work and a fresh view; with a stale one everybody rushes to the same shard.

use super::{Policy, choose};
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};

/// See the module's page.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastLoaded;

impl Policy for LeastLoaded {
    fn name(&self) -> &'static str {
        "least-loaded"
    }

    fn route(&mut self, _request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        choose::less_loaded(view.up(), view, rng)
    }
}
