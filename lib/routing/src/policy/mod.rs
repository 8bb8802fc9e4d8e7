//! Routing policies: one file each, its rule and source at the top.
//!
//! Contract of the family. The caller calls [`Policy::on_arrival`] and then [`Policy::route`] once for every request in
//! order of arrival, and [`Policy::route`] once more where its shard died under it; [`Policy::on_finish`] once for every request that was routed and has finished or failed, and
//! [`Policy::on_fault`] whenever a shard goes down or comes back. A policy must return a shard that is up in the view,
//! or `None` exactly when no shard is up. It draws randomness only from the stream it is given, and reads no clock.
//!
//! * [`build`] and [`names`] — the registry; [`PolicyTuning`] — what some policies assume;
//! * `choose`, `index` and [`Ring`] — what several policies share.

mod cacheroute;
mod choose;
mod chwbl;
mod dualmap;
mod flat;
mod index;
mod ladder;
mod least_loaded;
mod lru_oracle;
mod preble;
mod recency;
mod registry;
mod ring;
mod round_robin;
mod sticky;

pub use cacheroute::CacheRoute;
pub use chwbl::Chwbl;
pub use dualmap::DualMap;
pub use flat::Flat;
pub use ladder::{Ladder, Rung};
pub use least_loaded::LeastLoaded;
pub use lru_oracle::LruOracle;
pub use preble::{Preble, PrebleTuning, Redirect};
pub use registry::{
    PolicyConfig, PolicyError, PolicyTuning, build, build_tuned, is_oracle, names, routes_by_table,
};
pub use ring::{DEFAULT_VNODES, Ring};
pub use round_robin::RoundRobin;
pub use sticky::Sticky;

use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream, Time};
use std::sync::Arc;

/// What a policy learns when a request leaves the fleet.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// The request.
    pub request: &'a Request,
    /// Where it was served.
    pub shard: ShardId,
    /// When it left.
    pub at: Time,
    /// Tokens decoded; 0 where it failed before its first.
    pub output_tokens: u32,
    /// Whether it has all its tokens; false where it failed.
    pub finished: bool,
}

/// A routing policy.
pub trait Policy: Send {
    /// The name by which users ask for it.
    fn name(&self) -> &'static str;

    /// Chooses a shard that is up, or `None` when none is.
    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId>;

    /// Whether the policy gives this key a place of its own (the `admitted` of events).
    fn is_admitted(&self, _key: &str) -> bool {
        false
    }

    /// A request arrives at `now`; called before it is routed.
    fn on_arrival(&mut self, _request: &Request, _now: Time) {}

    /// A request leaves the fleet.
    fn on_finish(&mut self, _departure: &Departure<'_>) {}

    /// A new routing table is installed.
    fn on_table(&mut self, _table: &Arc<crate::table::RoutingTable>) {}

    /// A shard goes down (`up` false; its cache is lost) or comes back.
    fn on_fault(&mut self, _shard: ShardId, _up: bool) {}
}

#[cfg(test)]
mod tests;
