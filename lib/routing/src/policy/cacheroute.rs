//! `cacheroute`: a planned table first, power of two choices for the rest.
//!
//! Rule (Algorithm 1, step 4): an admitted key goes to the least-loaded member of its planned shards *now*; any other
//! key, and an admitted key all of whose shards are down, to power of two choices over the fleet.
//! Source: the CacheRoute paper. Without a table, or where no key is worth a place, it is `flat`. It plans, it does not
//! reserve: cold traffic can still evict an admitted prefix.

use super::{Policy, choose};
use crate::table::RoutingTable;
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};
use std::sync::Arc;

/// See the module's page.
#[derive(Clone, Debug, Default)]
pub struct CacheRoute {
    table: Option<Arc<RoutingTable>>,
}

impl CacheRoute {
    /// Routes by this table; without one, until [`Policy::on_table`] brings it, as `flat`.
    pub fn new(table: Option<Arc<RoutingTable>>) -> CacheRoute {
        CacheRoute { table }
    }
}

impl Policy for CacheRoute {
    fn name(&self) -> &'static str {
        "cacheroute"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let planned = self.table.as_ref().and_then(|table| table.shards_of(&request.key));
        planned
            .and_then(|shards| choose::of_set(shards, view, rng))
            .or_else(|| choose::two_choices(view, rng))
    }

    fn is_admitted(&self, key: &str) -> bool {
        self.table.as_ref().is_some_and(|table| table.is_admitted(key))
    }

    fn on_table(&mut self, table: &Arc<RoutingTable>) {
        self.table = Some(Arc::clone(table));
    }
}
