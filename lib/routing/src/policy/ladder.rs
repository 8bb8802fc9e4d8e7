//! `affinity` and `affinity+replication`: the paper's ablation, CacheRoute without its placement, and without its copies.
//!
//! Rule: as `cacheroute`, but the planned shards of an admitted key are replaced: by one shard at random (`affinity`), or by as
//! many random distinct shards as it was planned to have (`affinity+replication`). The choice is fixed by the key, so a new
//! table moves nothing but admission and copies. Source: Table 4 of the CacheRoute paper. `affinity+replication+lpt` is
//! `cacheroute` itself.

use super::{CacheRoute, Policy};
use crate::table::{RoutingTable, ShardSet};
use crate::view::FleetView;
use cr_trace::tokens::mix64;
use cr_trace::{Request, ShardId, Stream};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// How much of CacheRoute is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// One random shard a key.
    Affinity,
    /// The planned number of copies, on random shards.
    Replication,
    /// All of it.
    Lpt,
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Ladder {
    rung: Rung,
    inner: CacheRoute,
}

impl Ladder {
    /// One rung, with a table to start with.
    pub fn new(rung: Rung, table: Option<&Arc<RoutingTable>>) -> Ladder {
        Ladder { rung, inner: CacheRoute::new(table.map(|table| replaced(table, rung))) }
    }
}

/// The table with other places. Distinct, ascending shards of the fleet stay a valid table, so a refusal cannot happen; it
/// would leave the planned places.
fn replaced(table: &Arc<RoutingTable>, rung: Rung) -> Arc<RoutingTable> {
    if rung == Rung::Lpt {
        return Arc::clone(table);
    }
    let places = table.places().map(|(key, shards)| {
        let copies = if rung == Rung::Affinity { 1 } else { shards.len() };
        (key.clone(), random_shards(key, copies, table.shards()))
    });
    RoutingTable::new(table.meta().clone(), places.collect()).map_or_else(|_| Arc::clone(table), Arc::new)
}

/// Distinct shards drawn by the key's hash, ascending.
pub(super) fn random_shards(key: &str, copies: usize, shards: u32) -> ShardSet {
    let mut state = XxHash3_64::oneshot(key.as_bytes());
    let mut chosen = ShardSet::new();
    while chosen.len() < copies.min(shards as usize) {
        state = mix64(state);
        let shard = ShardId(((u128::from(state) * u128::from(shards)) >> 64) as u32);
        if !chosen.contains(&shard) {
            chosen.push(shard);
        }
    }
    chosen.sort_unstable();
    chosen
}

impl Policy for Ladder {
    fn name(&self) -> &'static str {
        match self.rung {
            Rung::Affinity => "affinity",
            Rung::Replication => "affinity+replication",
            Rung::Lpt => "affinity+replication+lpt",
        }
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        self.inner.route(request, view, rng)
    }

    fn is_admitted(&self, key: &str) -> bool {
        self.inner.is_admitted(key)
    }

    fn on_table(&mut self, table: &Arc<RoutingTable>) {
        self.inner.on_table(&replaced(table, self.rung));
    }
}
