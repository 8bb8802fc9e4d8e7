//! One run: a trace over a fleet under a policy, on the virtual clock.
//!
//! Every shard has a time line of its own. The fleet always advances the earliest event; a step really runs on the
//! device, and its duration moves that shard's clock only. So N logical shards on one device behave as N servers that
//! each own such a device.

use crate::agenda::{Agenda, Kind};
use crate::arrivals::{Arrival, Arrivals};
use crate::learn::{Learner, PlanFrom};
use crate::narrator::{Failure, Narrator};
use crate::router::Router;
use crate::sink::EventSink;
use crate::{Fleet, ReplayError};
use cr_engine::{Departed, Rejection};
use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, FailReason, Header};
use cr_report::summary::Summary;
use cr_routing::RoutingTable;
use cr_routing::policy::{Departure, PolicyConfig};
use cr_trace::{Request, ShardId, Time, TraceError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is run, beside the fleet and the trace.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// What the header of the events says; policy, seed and warm-up are taken from here.
    pub header: Header,
    /// Points a shard on hash rings.
    pub vnodes: u32,
    /// Tables, installed at their `from_s`.
    pub tables: Vec<Arc<RoutingTable>>,
    /// Learn the table from the head of the trace instead.
    pub plan_from: Option<PlanFrom>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// What was measured.
    pub summary: Summary,
    /// The sums behind it.
    pub aggregator: Aggregator,
    /// Why the run stopped early, if it did.
    pub stopped: Option<Stop>,
}

/// Why a run stopped early. What was measured until then is written and summed up.
#[derive(Debug)]
pub enum Stop {
    /// Somebody asked for it.
    Interrupted,
    /// The trace could not be read further.
    Trace(TraceError),
    /// The engine failed.
    Engine(cr_engine::EngineError),
}

/// Runs a trace. The run ends early, with everything in flight failed as `interrupted`, when `interrupt` is set or the
/// trace or the engine fails.
///
/// # Errors
/// Options that do not fit together, or events that cannot be written.
pub fn run(
    spec: &RunSpec,
    fleet: Fleet,
    trace: impl Iterator<Item = Result<Request, TraceError>>,
    sink: &mut dyn EventSink,
    interrupt: &AtomicBool,
) -> Result<Outcome, ReplayError> {
    let mut run = Run::new(spec, fleet, trace, sink)?;
    let stopped = loop {
        if interrupt.load(Ordering::Relaxed) {
            break Some(Stop::Interrupted);
        }
        match run.advance() {
            Ok(true) => {}
            Ok(false) => break None,
            Err(ReplayError::Trace(error)) => break Some(Stop::Trace(error)),
            Err(ReplayError::Engine(error)) => break Some(Stop::Engine(error)),
            Err(other) => return Err(other),
        }
    };
    run.end(stopped)
}

struct Run<'a, I> {
    fleet: Fleet,
    router: Router,
    arrivals: Arrivals<I>,
    agenda: Agenda,
    narrator: Narrator<'a>,
    tables: &'a [Arc<RoutingTable>],
    learner: Option<(Learner, PlanFrom)>,
    head_requests: u64,
    /// Shards that have a step start on the agenda.
    starting: Vec<bool>,
    departed: Vec<Departed>,
    now: Time,
}

impl<'a, I: Iterator<Item = Result<Request, TraceError>>> Run<'a, I> {
    fn new(
        spec: &'a RunSpec,
        fleet: Fleet,
        trace: I,
        sink: &'a mut dyn EventSink,
    ) -> Result<Self, ReplayError> {
        let header = &spec.header;
        let shards = fleet.len() as u32;
        let first = spec.tables.iter().rfind(|table| table.meta().from_s <= 0.0).cloned();
        let config = PolicyConfig { shards, vnodes: spec.vnodes, table: first };
        let router = Router::new(&header.policy, &config, header.seed)?;
        let mut agenda = Agenda::default();
        for (index, table) in spec.tables.iter().enumerate() {
            if table.shards() != shards {
                let (planned, from_s) = (table.shards(), table.meta().from_s);
                return Err(ReplayError::Config(format!(
                    "the table from {from_s} s is for {planned} shards, the fleet has {shards}"
                )));
            }
            agenda.push(Time::from_s(table.meta().from_s), Kind::Table, index as u32);
        }
        Ok(Run {
            router,
            arrivals: Arrivals::new(trace),
            agenda,
            narrator: Narrator::new(header.clone(), sink)?,
            tables: &spec.tables,
            learner: spec.plan_from.map(|options| (Learner::default(), options)),
            head_requests: spec.plan_from.map_or(0, |options| options.requests),
            starting: vec![false; fleet.len()],
            fleet,
            departed: Vec::new(),
            now: Time::ZERO,
        })
    }

    /// Does the next thing; false where there is none.
    fn advance(&mut self) -> Result<bool, ReplayError> {
        let arrival = self.arrivals.next_at()?.map(|at| (at, Kind::Arrival, 0));
        let Some(next) = [self.agenda.peek(), arrival].into_iter().flatten().min() else { return Ok(false) };
        let (time, kind, index) = next;
        self.narrator.snapshots_before(time, &self.fleet)?;
        self.now = self.now.max(time);
        if kind == Kind::Arrival {
            if let Some(arrival) = self.arrivals.take() {
                self.arrive(arrival)?;
            }
            self.cancel()?;
            return Ok(true);
        }
        self.agenda.pop();
        match kind {
            Kind::StepEnd => {
                let shard = ShardId(index);
                let more = self.fleet.end_step(shard, time, &mut self.departed);
                self.see_off(shard)?;
                if more {
                    self.start_later(shard);
                }
            }
            Kind::StepStart => self.start_step(ShardId(index))?,
            Kind::Table => {
                let plan = self.router.install(Arc::clone(&self.tables[index as usize]), time);
                self.narrator.event(&Event::Plan(plan))?;
            }
            Kind::Arrival => {}
        }
        Ok(true)
    }

    fn start_later(&mut self, shard: ShardId) {
        if !std::mem::replace(&mut self.starting[shard.index()], true) {
            self.agenda.push(self.now, Kind::StepStart, shard.0);
        }
    }

    fn start_step(&mut self, shard: ShardId) -> Result<(), ReplayError> {
        self.starting[shard.index()] = false;
        let duration = self.fleet.start_step(shard, self.now, &mut self.departed)?;
        self.see_off(shard)?;
        if let Some(duration) = duration {
            // A step that took no time at all would let the clock stand still.
            let end = self.now + duration.max(Time(1));
            self.agenda.push(end, Kind::StepEnd, shard.0);
        }
        Ok(())
    }

    /// Routes a request that arrives now.
    fn arrive(&mut self, arrival: Arrival) -> Result<(), ReplayError> {
        let head = arrival.ordinal < self.head_requests;
        self.learn(&arrival, head)?;
        self.narrator.arrival(arrival.ordinal, self.now, &self.fleet)?;
        let decision = self.router.route(&arrival.request, &self.fleet.view(self.now), head);
        let Some(shard) = decision.shard else {
            let detail = "no shard is up".into();
            return self.fail(arrival, Failure { shard: None, reason: FailReason::ShardDown, detail });
        };
        match self.fleet.enqueue(shard, Arc::clone(&arrival.request), arrival.at, decision.admitted) {
            Ok(idle) => {
                if idle {
                    self.start_later(shard);
                }
                Ok(())
            }
            Err(rejection) => {
                let request = Arc::clone(&arrival.request);
                let (reason, detail) = explain(&rejection);
                self.fail(arrival, Failure { shard: Some(shard), reason, detail })?;
                self.router.finished(&Departure { request: &request, shard, at: self.now, output_tokens: 0 });
                Ok(())
            }
        }
    }

    /// Counts the head of the trace, and plans when it has passed.
    fn learn(&mut self, arrival: &Arrival, head: bool) -> Result<(), ReplayError> {
        if head {
            if let Some((learner, _)) = &mut self.learner {
                learner.record(&arrival.request);
            }
            return Ok(());
        }
        let Some((learner, options)) = self.learner.take() else { return Ok(()) };
        let kv_tokens = self.fleet.config().map_or(0, |c| u64::from(c.kv_blocks) * u64::from(c.block_tokens));
        let table = learner.plan(&options, self.fleet.len() as u32, kv_tokens, self.now.as_s())?;
        let plan = self.router.install(table, self.now);
        self.narrator.event(&Event::Plan(plan))
    }

    fn fail(&mut self, arrival: Arrival, failure: Failure) -> Result<(), ReplayError> {
        self.narrator.fail(&arrival, true, self.now, failure)?;
        self.arrivals.ended(arrival.request.id, self.now, false);
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
            self.narrator.fail(&arrival, false, self.now, failure)?;
            self.arrivals.ended(arrival.request.id, self.now, false);
        }
        Ok(())
    }

    /// Tells of the requests that have left a shard.
    fn see_off(&mut self, shard: ShardId) -> Result<(), ReplayError> {
        for departed in std::mem::take(&mut self.departed) {
            let id = departed.request.id;
            let ordinal = self.arrivals.ordinal(id);
            if departed.finished {
                self.narrator.finish(&departed, shard, ordinal)?;
            } else {
                let detail = format!("not finished {} s after its arrival", waited(&departed));
                let failure = Failure { shard: Some(shard), reason: FailReason::Timeout, detail };
                self.narrator.fail(&arrival_of(&departed, ordinal), true, self.now, failure)?;
            }
            self.router.finished(&Departure {
                request: &departed.request,
                shard,
                at: departed.left_at,
                output_tokens: departed.output_tokens,
            });
            self.arrivals.ended(id, self.now, departed.finished);
        }
        self.cancel()
    }

    /// The end of the run, with what is still in flight failed where it was stopped.
    fn end(mut self, stopped: Option<Stop>) -> Result<Outcome, ReplayError> {
        if stopped.is_some() {
            self.interrupt_all()?;
        }
        if let (None, Some(_)) = (&stopped, &self.learner) {
            let wanted = self.head_requests;
            return Err(ReplayError::Plan(format!(
                "the trace ended within its first {wanted} requests; nothing is left to measure"
            )));
        }
        let (finished, admitted) = self.narrator.finished();
        let planned = self.router.admitted_keys();
        if finished > 0 && admitted == 0 && planned > 0 {
            let detail =
                format!("none of {finished} finished requests has one of the table's {planned} keys");
            self.narrator.warn(self.now, "table-mismatch", detail)?;
        }
        let (summary, aggregator) = self.narrator.end(self.now, &self.fleet, stopped.is_none())?;
        Ok(Outcome { summary, aggregator, stopped })
    }

    fn interrupt_all(&mut self) -> Result<(), ReplayError> {
        let failure =
            |shard| Failure { shard, reason: FailReason::Interrupted, detail: "the run was stopped".into() };
        for (shard, departed) in self.fleet.abandon(self.now) {
            let arrival = arrival_of(&departed, self.arrivals.ordinal(departed.request.id));
            self.narrator.fail(&arrival, true, self.now, failure(Some(shard)))?;
        }
        for arrival in self.arrivals.drain_waiting() {
            self.narrator.fail(&arrival, false, self.now, failure(None))?;
        }
        Ok(())
    }
}

fn arrival_of(departed: &Departed, ordinal: u64) -> Arrival {
    Arrival { request: Arc::clone(&departed.request), at: departed.arrival, ordinal }
}

fn waited(departed: &Departed) -> f64 {
    departed.left_at.since(departed.arrival).as_s()
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
