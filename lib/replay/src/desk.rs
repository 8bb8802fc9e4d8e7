//! The desk: everything of a run but its clock. Requests are dealt out, faults and plans take effect, ends are told.
//!
//! A clock tells the desk what is due and when; the desk never looks at one. What the desk does with a request:
//! it arrives, is counted for plans, routed and handed to a shard; when its shard dies it is routed once more, and fails
//! as `shard_down` when that shard dies too.
//!
//! * this file — arrivals; [`plans`], [`faults`], [`ends`] — what the names say.

mod ends;
mod faults;
mod plans;

use crate::ReplayError;
use crate::arrivals::{Arrival, Arrivals, Taken};
use crate::control::Control;
use crate::health::Health;
use crate::learn::{Learner, PlanFrom};
use crate::narrator::{Failure, Narrator};
use crate::router::{Incoming, Routers};
use crate::run::{Outcome, RunSpec, Stop};
use crate::serving::Serving;
use crate::sink::EventSink;
use crate::timetable::{Due, Timetable};
use cr_engine::Refused;
use cr_report::events::FailReason;
use cr_routing::policy::{Departure, PolicyConfig};
use cr_trace::{Request, RequestId, ShardId, Time, TraceError};
use ends::{explain, interrupted, never_arrived};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// See the module's page.
pub(crate) struct Desk<'a, S, I> {
    pub(crate) fleet: S,
    pub(crate) narrator: Narrator<'a>,
    routers: Routers,
    arrivals: Arrivals<I>,
    timetable: Timetable,
    health: Health,
    learner: Option<(Learner, PlanFrom)>,
    head_requests: u64,
    spec: &'a RunSpec,
    control: Option<Control>,
    /// Requests that were sent again and have not ended.
    retried: FxHashSet<RequestId>,
    /// Idle shards that were handed something since the clock last asked.
    woken: Vec<ShardId>,
    pub(crate) now: Time,
}

impl<'a, S: Serving, I: Iterator<Item = Result<Arc<Request>, TraceError>>> Desk<'a, S, I> {
    pub(crate) fn new(
        spec: &'a RunSpec,
        fleet: S,
        trace: I,
        sink: &'a mut dyn EventSink,
    ) -> Result<Self, ReplayError> {
        let header = &spec.header;
        let shards = fleet.views().len();
        spec.check(shards as u32)?;
        let first = spec.tables.iter().rfind(|table| table.meta().from_s <= 0.0).cloned();
        let config = PolicyConfig { shards: shards as u32, vnodes: spec.vnodes, table: first };
        let routing = (spec.routers, Time::from_s(spec.view_lag_s), header.seed);
        Ok(Desk {
            routers: Routers::new(&header.policy, &config, &spec.tuning, routing)?,
            arrivals: Arrivals::new(trace),
            timetable: Timetable::new(&spec.faults, &spec.tables),
            health: Health::new(shards),
            narrator: Narrator::new(spec.full_header(), sink)?,
            learner: spec.plan_from.map(|options| (Learner::default(), options)),
            head_requests: spec.plan_from.map_or(0, |options| options.requests),
            control: spec.replan.filter(|_| spec.plan_from.is_none()).map(|o| Control::new(o, Time::ZERO)),
            spec,
            retried: FxHashSet::default(),
            woken: Vec::new(),
            fleet,
            now: Time::ZERO,
        })
    }

    /// What has to be done before anything happens: the fresh plan of interval 0.
    pub(crate) fn open(&mut self) -> Result<(), ReplayError> {
        if self.control.as_ref().is_some_and(Control::is_fresh) { self.plan_interval(false) } else { Ok(()) }
    }

    /// When the next request arrives.
    pub(crate) fn next_arrival(&mut self) -> Result<Option<Time>, ReplayError> {
        Ok(self.arrivals.next_at()?)
    }

    /// When the next thing known beforehand is due. It counts only while there is traffic.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let plan = self.control.as_ref().map(Control::ends_at);
        match (self.timetable.next_at(), plan) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// An idle shard that has been handed something; each once.
    pub(crate) fn next_woken(&mut self) -> Option<ShardId> {
        self.woken.pop()
    }

    /// Time passes: snapshots before `now` are told.
    pub(crate) fn advance(&mut self, now: Time) -> Result<(), ReplayError> {
        if !self.pass(now) {
            self.narrator.snapshots_before(now, &mut self.fleet)?;
            self.now = self.now.max(now);
        }
        Ok(())
    }

    /// Time passes, if no snapshot is due before `now`; says whether it does.
    #[inline]
    pub(crate) fn pass(&mut self, now: Time) -> bool {
        let passes = self.narrator.pass(now);
        if passes {
            self.now = self.now.max(now);
        }
        passes
    }

    /// How many requests have come to the end of their waiting for another one, and have not arrived.
    #[inline]
    pub(crate) fn released(&self) -> usize {
        self.arrivals.released()
    }

    /// Does what is due now and was known beforehand. Faults and tables come before a plan of the same instant.
    pub(crate) fn perform(&mut self) -> Result<(), ReplayError> {
        let plan = self.control.as_ref().map(Control::ends_at);
        match self.timetable.next_at() {
            Some(at) if plan.is_none_or(|plan| at <= plan) => match self.timetable.pop() {
                Some(Due::Table(table)) => self.install(table),
                Some(Due::Fault(place, fault)) => {
                    let change = self.health.change(place, fault.shard, fault.kind, true);
                    self.fault(fault.shard, fault.kind, change)
                }
                Some(Due::FaultEnds(place, fault)) => {
                    let change = self.health.change(place, fault.shard, fault.kind, false);
                    self.fault(fault.shard, fault.kind, change)
                }
                None => Ok(()),
            },
            _ => self.plan_interval(true),
        }
    }

    /// The request whose turn it is arrives, or turns out to wait or to be cancelled.
    pub(crate) fn arrive(&mut self) -> Result<(), ReplayError> {
        let Taken { offered, arrival } = self.arrivals.take();
        if let Some(id) = offered {
            self.narrator.offered(id)?;
        }
        if let Some(arrival) = arrival {
            self.receive(arrival)?;
        }
        self.cancel()
    }

    /// Counts and routes a request that arrives now.
    fn receive(&mut self, arrival: Arrival) -> Result<(), ReplayError> {
        self.learn(&arrival)?;
        self.routers.arrived(arrival.ordinal, &arrival.request, self.now);
        self.narrator.arrival(arrival.ordinal, self.now, &mut self.fleet)?;
        self.send(arrival)
    }

    /// Routes a request and hands it to the shard chosen.
    fn send(&mut self, arrival: Arrival) -> Result<(), ReplayError> {
        let head = arrival.ordinal < self.head_requests;
        let incoming = Incoming { request: &arrival.request, ordinal: arrival.ordinal, head };
        let decision = self.routers.route(&incoming, self.fleet.views(), self.now);
        let Arrival { request, at, ordinal } = arrival;
        let Some(shard) = decision.shard else {
            let detail = "no shard is up".into();
            let failure = Failure { shard: None, reason: FailReason::ShardDown, detail };
            return self.fail(&request, (at, ordinal), failure);
        };
        match self.fleet.enqueue(shard, self.now, request, at, decision.admitted) {
            Ok(idle) => {
                if idle {
                    self.woken.push(shard);
                }
                self.observe(shard);
                Ok(())
            }
            Err(Refused { request, rejection }) => {
                let (reason, detail) = explain(&rejection);
                self.fail(&request, (at, ordinal), Failure { shard: Some(shard), reason, detail })?;
                let gone =
                    Departure { request: &request, shard, at: self.now, output_tokens: 0, finished: false };
                self.routers.finished(ordinal, &gone);
                Ok(())
            }
        }
    }

    /// Routers will see how a shard is now, once their view has caught up.
    #[inline]
    pub(crate) fn observe(&mut self, shard: ShardId) {
        if let Some(lag) = self.routers.lag() {
            lag.observe(self.now, shard, self.fleet.views()[shard.index()]);
        }
    }

    /// The end of the run, with what was still to come failed where it was stopped.
    pub(crate) fn end(mut self, stopped: Option<Stop>) -> Result<Outcome, ReplayError> {
        if stopped.is_some() {
            for arrival in self.arrivals.drain_waiting() {
                self.narrator.fail(never_arrived(&arrival), self.now, interrupted(None))?;
            }
        } else if self.learner.is_some() {
            let wanted = self.head_requests;
            return Err(ReplayError::Plan(format!(
                "the trace ended within its first {wanted} requests; nothing is left to measure"
            )));
        }
        let (finished, admitted) = self.narrator.finished();
        let planned = self.routers.admitted_keys();
        let by_table = cr_routing::policy::routes_by_table(&self.spec.header.policy);
        if by_table && finished > 0 && admitted == 0 && planned > 0 {
            let detail =
                format!("none of {finished} finished requests has one of the table's {planned} keys");
            self.narrator.warn(self.now, "table-mismatch", detail)?;
        }
        let (summary, aggregator) = self.narrator.end(self.now, &mut self.fleet, stopped.is_none())?;
        Ok(Outcome { summary, aggregator, stopped })
    }
}
