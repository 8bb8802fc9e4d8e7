//! `flat`: power of two choices, blind to caches.
//!
//! Rule: two distinct shards that are up, at random; the less loaded one wins, a tie is broken at random.
//! Source: Mitzenmacher 2001; the paper's Flat-LB. Balances best where nothing can be reused; a key returns to the same
//! of R shards only every R-th time, so the more shards, the fewer hits.

use super::{Policy, choose};
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};

/// See the module's page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flat;

impl Policy for Flat {
    fn name(&self) -> &'static str {
        "flat"
    }

    fn route(&mut self, _request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        choose::two_choices(view, rng)
    }
}
