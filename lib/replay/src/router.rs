//! The router: a policy, its random stream, and the tables it is given.

use cr_report::events::Plan;
use cr_routing::planner::TableDiff;
use cr_routing::policy::{self, Departure, Flat, PolicyConfig, PolicyError};
use cr_routing::{FleetView, Policy, RoutingTable};
use cr_trace::{Request, ShardId, Stream, Time, stream};
use std::sync::Arc;

/// Where a request is to go.
pub(crate) struct Decision {
    pub(crate) shard: Option<ShardId>,
    pub(crate) admitted: bool,
}

pub(crate) struct Router {
    policy: Box<dyn Policy>,
    rng: Stream,
    /// Serves the head of the trace that a plan is learned from, alike under every policy.
    flat: Flat,
    flat_rng: Stream,
    table: Option<Arc<RoutingTable>>,
}

impl Router {
    pub(crate) fn new(name: &str, config: &PolicyConfig, seed: u64) -> Result<Router, PolicyError> {
        Ok(Router {
            policy: policy::build(name, config)?,
            rng: stream(seed, "policy"),
            flat: Flat,
            flat_rng: stream(seed, "policy-of-the-head"),
            table: None,
        })
    }

    /// Routes one request; `head`: it belongs to the part that the plan is learned from.
    pub(crate) fn route(&mut self, request: &Request, view: &FleetView<'_>, head: bool) -> Decision {
        self.policy.on_arrival(request, view.as_of);
        if head {
            return Decision { shard: self.flat.route(request, view, &mut self.flat_rng), admitted: false };
        }
        let shard = self.policy.route(request, view, &mut self.rng);
        Decision { shard, admitted: self.policy.is_admitted(&request.key) }
    }

    pub(crate) fn finished(&mut self, departure: &Departure<'_>) {
        self.policy.on_finish(departure);
    }

    /// Installs a table and says what it changes.
    pub(crate) fn install(&mut self, table: Arc<RoutingTable>, now: Time) -> Plan {
        let (moved_keys, churn) = match &self.table {
            Some(before) => {
                let diff = TableDiff::between(before, &table);
                (diff.changed_keys() as u64, diff.churn())
            }
            None => (0, 0.0),
        };
        self.policy.on_table(&table);
        let plan = Plan {
            t_s: now.as_s(),
            admitted_keys: table.admitted_keys() as u64,
            moved_keys,
            churn,
            imbalance: table.meta().imbalance,
            cold_rate: table.meta().cold_rate,
        };
        self.table = Some(table);
        plan
    }

    /// The number of keys with a place of their own.
    pub(crate) fn admitted_keys(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.admitted_keys())
    }
}
