//! The desk: everything of a run but its clock. Requests are dealt out, faults and plans take effect, ends are told.
//!
//! A clock tells the desk what is due and when; the desk never looks at one. What the desk does with a request:
//! it arrives, is counted for plans, routed and handed to a shard; when its shard dies it is routed once more, and fails
//! as `shard_down` when that shard dies too.

use crate::ReplayError;
use crate::arrivals::{Arrival, Arrivals, Taken};
use crate::control::{Control, Planned};
use crate::faults::FaultKind;
use crate::health::{Change, Health};
use crate::learn::{Learner, PlanFor, PlanFrom};
use crate::narrator::{Failure, Narrator};
use crate::router::{Incoming, Routers};
use crate::run::{Outcome, RunSpec, Stop};
use crate::serving::Serving;
use crate::sink::EventSink;
use crate::timetable::{Due, Timetable};
use cr_engine::{Departed, Rejection};
use cr_report::events::{Event, FailReason, Fault as FaultEvent};
use cr_routing::RoutingTable;
use cr_routing::planner::Fleet as PlannedFleet;
use cr_routing::policy::{Departure, PolicyConfig};
use cr_trace::{Request, RequestId, ShardId, Time, TraceError};
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

impl<'a, S: Serving, I: Iterator<Item = Result<Request, TraceError>>> Desk<'a, S, I> {
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
        [self.timetable.next_at(), plan].into_iter().flatten().min()
    }

    /// An idle shard that has been handed something; each once.
    pub(crate) fn next_woken(&mut self) -> Option<ShardId> {
        self.woken.pop()
    }

    /// Time passes: snapshots before `now` are told.
    pub(crate) fn advance(&mut self, now: Time) -> Result<(), ReplayError> {
        self.narrator.snapshots_before(now, &mut self.fleet)?;
        self.now = self.now.max(now);
        Ok(())
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
        self.narrator.arrival(arrival.ordinal, self.now, &mut self.fleet)?;
        self.send(arrival)
    }

    /// Routes a request and hands it to the shard chosen.
    fn send(&mut self, arrival: Arrival) -> Result<(), ReplayError> {
        let head = arrival.ordinal < self.head_requests;
        let incoming = Incoming { request: &arrival.request, ordinal: arrival.ordinal, head };
        let decision = self.routers.route(&incoming, self.fleet.views(), self.now);
        let Some(shard) = decision.shard else {
            let detail = "no shard is up".into();
            return self.fail(arrival, Failure { shard: None, reason: FailReason::ShardDown, detail });
        };
        match self.fleet.enqueue(shard, Arc::clone(&arrival.request), arrival.at, decision.admitted) {
            Ok(idle) => {
                if idle {
                    self.woken.push(shard);
                }
                self.observe(shard);
                Ok(())
            }
            Err(rejection) => {
                let (request, ordinal) = (Arc::clone(&arrival.request), arrival.ordinal);
                let (reason, detail) = explain(&rejection);
                self.fail(arrival, Failure { shard: Some(shard), reason, detail })?;
                let gone = Departure { request: &request, shard, at: self.now, output_tokens: 0 };
                self.routers.finished(ordinal, &gone);
                Ok(())
            }
        }
    }

    /// Routers will see how a shard is now, once their view has caught up.
    pub(crate) fn observe(&mut self, shard: ShardId) {
        let view = self.fleet.views()[shard.index()];
        self.routers.observe(self.now, shard, view);
    }

    /// Counts a request for the plans to come, and plans from the head of the trace when that has passed.
    fn learn(&mut self, arrival: &Arrival) -> Result<(), ReplayError> {
        if arrival.ordinal < self.head_requests {
            if let Some((learner, _)) = &mut self.learner {
                learner.record(&arrival.request);
            }
            return Ok(());
        }
        if let Some((learner, options)) = self.learner.take() {
            self.plan_head(learner, &options)?;
        }
        if let Some(control) = &mut self.control {
            control.record(&arrival.request);
        }
        Ok(())
    }

    /// The plan from the head of the trace; the control loop begins with it.
    fn plan_head(&mut self, learner: Learner, options: &PlanFrom) -> Result<(), ReplayError> {
        self.control = self.spec.replan.map(|replan| Control::new(replan, self.now));
        if self.control.as_ref().is_some_and(Control::is_fresh) {
            return self.plan_interval(false);
        }
        let learnt = learner.finish(None).map_err(ReplayError::Plan)?;
        let plan = PlanFor {
            fleet: self.planned_fleet(),
            kv_tokens: self.fleet.kv_tokens(),
            qcap: options.qcap,
            warm_slots: options.warm_slots,
            from_s: self.now.as_s(),
            in_sample: false,
            previous: None,
        };
        let table = learnt.plan(plan).map_err(|e| ReplayError::Plan(e.to_string()))?;
        self.install(Arc::new(table))
    }

    /// The shards as the planner sees them: all alike, but for those that are down.
    fn planned_fleet(&self) -> PlannedFleet {
        PlannedFleet::with_speeds(
            self.fleet.views().iter().map(|view| f64::from(u8::from(view.up))).collect(),
        )
    }

    /// Plans an interval of the control loop: the next one, or the one that has just begun.
    fn plan_interval(&mut self, next: bool) -> Result<(), ReplayError> {
        let fleet = self.planned_fleet();
        let Some(control) = &mut self.control else { return Ok(()) };
        let table = self.routers.table().cloned();
        let planned = Planned { fleet, kv_tokens: self.fleet.kv_tokens(), table: table.as_deref() };
        let ends = control.ends_at() + if next { control.interval() } else { Time::ZERO };
        let ahead = control.is_fresh().then(|| self.arrivals.look_ahead(ends)).into_iter().flatten();
        let table = if next { control.next(ahead, &planned) } else { control.plan(ahead, &planned) };
        match table.map_err(|e| ReplayError::Plan(e.to_string()))? {
            Some(table) => self.install(Arc::new(table)),
            None => Ok(()),
        }
    }

    fn install(&mut self, table: Arc<RoutingTable>) -> Result<(), ReplayError> {
        let plan = self.routers.install(table, self.now);
        self.fleet.lift_protection();
        self.narrator.event(&Event::Plan(plan))
    }

    /// A fault begins or ends.
    fn fault(&mut self, shard: ShardId, kind: FaultKind, change: Change) -> Result<(), ReplayError> {
        match (kind, change) {
            (_, Change::Dies) => {
                self.fleet.set_up(shard, false);
                self.routers.fault(shard, false);
                self.evacuate(shard, "down")
            }
            (_, Change::Returns) => {
                self.fleet.set_up(shard, true);
                self.observe(shard);
                self.routers.fault(shard, true);
                self.tell_fault(shard, "up", 0)
            }
            (_, Change::Paces(pace)) => {
                self.fleet.set_pace(shard, pace);
                self.tell_fault(shard, if pace == 1.0 { "paced" } else { "slow" }, 0)
            }
            (FaultKind::Cold, Change::Nothing) if !self.health.is_down(shard) => {
                self.routers.fault(shard, false);
                self.routers.fault(shard, true);
                self.evacuate(shard, "cold")
            }
            _ => Ok(()),
        }
    }

    /// Takes everything off a shard and sends it elsewhere.
    fn evacuate(&mut self, shard: ShardId, kind: &'static str) -> Result<(), ReplayError> {
        match self.fleet.evacuate(shard, self.now, kind) {
            Some(departed) => self.evacuated(shard, departed, kind),
            None => Ok(()),
        }
    }

    /// What was on a shard that died is sent elsewhere, once.
    pub(crate) fn evacuated(
        &mut self,
        shard: ShardId,
        departed: Vec<Departed>,
        kind: &'static str,
    ) -> Result<(), ReplayError> {
        self.observe(shard);
        let (again, lost): (Vec<_>, Vec<_>) =
            departed.into_iter().partition(|departed| !self.retried.contains(&departed.request.id));
        self.tell_fault(shard, kind, again.len() as u64)?;
        for departed in lost {
            let detail = "the shard that it was sent to again died as well".into();
            self.lose(
                shard,
                &departed,
                Failure { shard: Some(shard), reason: FailReason::ShardDown, detail },
            )?;
        }
        for departed in again {
            let id = departed.request.id;
            self.retried.insert(id);
            self.send(arrival_of(&departed, self.arrivals.ordinal(id)))?;
        }
        self.cancel()
    }

    fn tell_fault(&mut self, shard: ShardId, kind: &str, rerouted: u64) -> Result<(), ReplayError> {
        let event = FaultEvent { t_s: self.now.as_s(), shard, kind: kind.into(), rerouted };
        self.narrator.event(&Event::Fault(event))
    }

    fn fail(&mut self, arrival: Arrival, failure: Failure) -> Result<(), ReplayError> {
        let id = arrival.request.id;
        let retries = u32::from(self.retried.remove(&id));
        self.narrator.fail(&arrival, true, self.now, failure, retries)?;
        self.arrivals.ended(id, self.now, false);
        self.cancel()
    }

    /// Tells of requests that will never arrive because their predecessor failed.
    fn cancel(&mut self) -> Result<(), ReplayError> {
        while let Some((arrival, at)) = self.arrivals.next_cancelled() {
            let detail = match arrival.request.after {
                Some(predecessor) => format!("request {predecessor} failed at {} s", at.as_s()),
                None => String::new(),
            };
            let failure = Failure { shard: None, reason: FailReason::PredecessorFailed, detail };
            self.narrator.fail(&arrival, false, self.now, failure, 0)?;
            self.arrivals.ended(arrival.request.id, self.now, false);
        }
        Ok(())
    }

    /// Tells of the requests that have left a shard.
    pub(crate) fn see_off(
        &mut self,
        shard: ShardId,
        departed: impl Iterator<Item = Departed>,
    ) -> Result<(), ReplayError> {
        self.observe(shard);
        for departed in departed {
            if departed.finished {
                self.finish(shard, &departed)?;
            } else {
                let waited = departed.left_at.since(departed.arrival).as_s();
                let detail = format!("not finished {waited} s after its arrival");
                self.lose(
                    shard,
                    &departed,
                    Failure { shard: Some(shard), reason: FailReason::Timeout, detail },
                )?;
            }
        }
        self.cancel()
    }

    fn finish(&mut self, shard: ShardId, departed: &Departed) -> Result<(), ReplayError> {
        let id = departed.request.id;
        let (ordinal, retries) = (self.arrivals.ordinal(id), u32::from(self.retried.remove(&id)));
        self.narrator.finish(departed, shard, ordinal, retries)?;
        self.routers.finished(ordinal, &departure(departed, shard));
        self.arrivals.ended(id, self.now, true);
        Ok(())
    }

    /// A request leaves a shard for good without an answer.
    fn lose(&mut self, shard: ShardId, departed: &Departed, failure: Failure) -> Result<(), ReplayError> {
        let id = departed.request.id;
        let (ordinal, retries) = (self.arrivals.ordinal(id), u32::from(self.retried.remove(&id)));
        self.narrator.fail(&arrival_of(departed, ordinal), true, self.now, failure, retries)?;
        self.routers.finished(ordinal, &departure(departed, shard));
        self.arrivals.ended(id, self.now, false);
        Ok(())
    }

    /// Fails what was still on a shard when the run was stopped.
    pub(crate) fn interrupt(&mut self, shard: ShardId, departed: Vec<Departed>) -> Result<(), ReplayError> {
        for departed in departed {
            self.lose(shard, &departed, interrupted(Some(shard)))?;
        }
        Ok(())
    }

    /// The end of the run, with what was still to come failed where it was stopped.
    pub(crate) fn end(mut self, stopped: Option<Stop>) -> Result<Outcome, ReplayError> {
        if stopped.is_some() {
            for arrival in self.arrivals.drain_waiting() {
                self.narrator.fail(&arrival, false, self.now, interrupted(None), 0)?;
            }
        } else if self.learner.is_some() {
            let wanted = self.head_requests;
            return Err(ReplayError::Plan(format!(
                "the trace ended within its first {wanted} requests; nothing is left to measure"
            )));
        }
        let (finished, admitted) = self.narrator.finished();
        let planned = self.routers.admitted_keys();
        if finished > 0 && admitted == 0 && planned > 0 {
            let detail =
                format!("none of {finished} finished requests has one of the table's {planned} keys");
            self.narrator.warn(self.now, "table-mismatch", detail)?;
        }
        let (summary, aggregator) = self.narrator.end(self.now, &mut self.fleet, stopped.is_none())?;
        Ok(Outcome { summary, aggregator, stopped })
    }
}

fn arrival_of(departed: &Departed, ordinal: u64) -> Arrival {
    Arrival { request: Arc::clone(&departed.request), at: departed.arrival, ordinal }
}

fn departure(departed: &Departed, shard: ShardId) -> Departure<'_> {
    let output_tokens = departed.output_tokens;
    Departure { request: &departed.request, shard, at: departed.left_at, output_tokens }
}

fn interrupted(shard: Option<ShardId>) -> Failure {
    Failure { shard, reason: FailReason::Interrupted, detail: "the run was stopped".into() }
}

/// A rejection as the events tell it.
fn explain(rejection: &Rejection) -> (FailReason, String) {
    match rejection {
        Rejection::PromptTooLong { tokens, context } => {
            (FailReason::PromptTooLong, format!("{tokens} tokens of prompt and output, context is {context}"))
        }
        Rejection::PoolTooSmall { blocks, pool } => {
            (FailReason::PoolTooSmall, format!("{blocks} KV blocks needed, the pool has {pool}"))
        }
    }
}
