//! The routers: each has a policy, a random stream and a view of its own; all have the same tables.
//!
//! Requests are dealt to the routers in turn, by their place in the trace, and a request that is sent again goes through the
//! router that had it. Router 0 draws from the stream `policy`, router n from `policy/n`. An oracle is one router, however many share the
//! fleet.

use crate::lag::{Lag, Sent};
use cr_report::events::Plan;
use cr_routing::planner::TableDiff;
use cr_routing::policy::{self, Departure, Flat, PolicyConfig, PolicyError, PolicyTuning};
use cr_routing::{FleetView, Policy, RoutingTable, ShardView};
use cr_trace::{Request, ShardId, Stream, Time, stream};
use std::sync::Arc;

/// Where a request is to go.
pub(crate) struct Decision {
    pub(crate) shard: Option<ShardId>,
    pub(crate) admitted: bool,
}

/// A request as routers get it.
pub(crate) struct Incoming<'a> {
    pub(crate) request: &'a Request,
    /// Its place in the trace.
    pub(crate) ordinal: u64,
    /// It belongs to the part that the plan is learned from.
    pub(crate) head: bool,
}

struct Router {
    policy: Box<dyn Policy>,
    rng: Stream,
    sent: Sent,
}

/// All routers of a fleet.
pub(crate) struct Routers {
    routers: Vec<Router>,
    /// Serves the head of the trace that a plan is learned from, alike under every policy.
    flat: Flat,
    flat_rng: Stream,
    table: Option<Arc<RoutingTable>>,
    lag: Option<Lag>,
}

impl Routers {
    pub(crate) fn new(
        name: &str,
        config: &PolicyConfig,
        tuning: &PolicyTuning,
        (routers, lag, seed): (u32, Time, u64),
    ) -> Result<Routers, PolicyError> {
        let router = |n| {
            let purpose = if n == 0 { "policy".into() } else { format!("policy/{n}") };
            let policy = policy::build_tuned(name, config, tuning)?;
            Ok(Router { policy, rng: stream(seed, &purpose), sent: Sent::default() })
        };
        // What one router of an oracle learns, all know at once.
        let routers = if policy::is_oracle(name) { 1 } else { routers };
        Ok(Routers {
            routers: (0..routers.max(1)).map(router).collect::<Result<_, PolicyError>>()?,
            flat: Flat,
            flat_rng: stream(seed, "policy-of-the-head"),
            table: None,
            lag: (lag > Time::ZERO).then(|| Lag::new(lag, config.shards)),
        })
    }

    fn of(&mut self, ordinal: u64) -> &mut Router {
        let routers = self.routers.len() as u64;
        &mut self.routers[(ordinal % routers) as usize]
    }

    /// What lets views be stale; none where they are not.
    #[inline]
    pub(crate) fn lag(&mut self) -> Option<&mut Lag> {
        self.lag.as_mut()
    }

    /// A request arrives, which is routed now, and perhaps once more later.
    pub(crate) fn arrived(&mut self, ordinal: u64, request: &Request, now: Time) {
        self.of(ordinal).policy.on_arrival(request, now);
    }

    /// Routes one request at `now`, when the shards are in truth as `shards` say.
    pub(crate) fn route(&mut self, incoming: &Incoming<'_>, shards: &[ShardView], now: Time) -> Decision {
        let Incoming { request, ordinal, head } = *incoming;
        let routers = self.routers.len() as u64;
        let router = &mut self.routers[(ordinal % routers) as usize];
        let view = match &mut self.lag {
            None => FleetView { shards, as_of: now },
            Some(lag) => lag.view(&mut router.sent, shards, now),
        };
        let decision = if head {
            Decision { shard: self.flat.route(request, &view, &mut self.flat_rng), admitted: false }
        } else {
            let shard = router.policy.route(request, &view, &mut router.rng);
            Decision { shard, admitted: router.policy.is_admitted(&request.key) }
        };
        if let (Some(_), Some(shard)) = (&self.lag, decision.shard) {
            router.sent.push(now, shard, request.prompt_tokens());
        }
        decision
    }

    /// A request that was routed has come to its end.
    pub(crate) fn finished(&mut self, ordinal: u64, departure: &Departure<'_>) {
        self.of(ordinal).policy.on_finish(departure);
    }

    /// A shard goes down or comes back: known at once, since a connection to a dead one is refused.
    pub(crate) fn fault(&mut self, shard: ShardId, up: bool) {
        self.routers.iter_mut().for_each(|router| router.policy.on_fault(shard, up));
    }

    /// Installs a table at all routers and says what it changes.
    pub(crate) fn install(&mut self, table: Arc<RoutingTable>, now: Time) -> Plan {
        let (moved_keys, churn) = match &self.table {
            Some(before) => {
                let diff = TableDiff::between(before, &table);
                (diff.changed_keys() as u64, diff.churn())
            }
            None => (0, 0.0),
        };
        self.routers.iter_mut().for_each(|router| router.policy.on_table(&table));
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

    /// The table in force.
    pub(crate) fn table(&self) -> Option<&Arc<RoutingTable>> {
        self.table.as_ref()
    }

    /// The number of keys with a place of their own.
    pub(crate) fn admitted_keys(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.admitted_keys())
    }
}
