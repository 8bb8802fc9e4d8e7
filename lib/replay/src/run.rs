//! One run: a trace over a fleet under a policy.

use crate::control::Replan;
use crate::desk::Desk;
use crate::faults::Fault;
use crate::learn::PlanFrom;
use crate::sink::EventSink;
use crate::virtual_clock::VirtualClock;
use crate::{Fleet, ReplayError, limits};
use cr_report::aggregate::Aggregator;
use cr_report::events::{Header, ReplanHeader};
use cr_report::summary::Summary;
use cr_routing::RoutingTable;
use cr_routing::policy::{DEFAULT_VNODES, PolicyTuning};
use cr_trace::number::plain;
use cr_trace::{Request, Time, TraceError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Every shard has a time line of its own, which its steps move.
    #[default]
    Virtual,
    /// Real time; all shards share the device.
    Wall,
}

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
    /// Plan anew every interval.
    pub replan: Option<Replan>,
    /// What happens to shards.
    pub faults: Vec<Fault>,
    /// How old the state is that routers see, in seconds.
    pub view_lag_s: f64,
    /// Routers that share the fleet, at least one; requests are dealt to them in turn.
    pub routers: u32,
    /// What policies assume of the shards.
    pub tuning: PolicyTuning,
    /// What time is.
    pub clock: Clock,
}

impl Default for RunSpec {
    /// One router with a true view, no tables, no faults, the published assumptions.
    fn default() -> RunSpec {
        RunSpec {
            header: Header::default(),
            vnodes: DEFAULT_VNODES,
            tables: Vec::new(),
            plan_from: None,
            replan: None,
            faults: Vec::new(),
            view_lag_s: 0.0,
            routers: 1,
            tuning: PolicyTuning::default(),
            clock: Clock::Virtual,
        }
    }
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
    /// Something would happen later than the clock can tell.
    ClockEnds,
}

impl Stop {
    /// What is said of [`Stop::ClockEnds`].
    pub const CLOCK_ENDS: &str = "something would happen more than 173 days into the run, where its clock ends: an arrival, a think time, a fault, a \
                                  cost or a prompt is too long";
}

impl RunSpec {
    /// The header of the events, with what this run is beside the rest.
    pub(crate) fn full_header(&self) -> Header {
        let replan = self.replan.map(|replan| ReplanHeader {
            interval_s: replan.interval_s,
            stale: replan.stale,
            fresh: replan.fresh,
            max_churn: replan.max_churn,
        });
        Header {
            clock: match self.clock {
                Clock::Virtual => "virtual".into(),
                Clock::Wall => "wall".into(),
            },
            in_sample: self.header.in_sample || replan.is_some_and(|replan| replan.fresh),
            replan,
            faults: self.faults.iter().map(Fault::to_string).collect(),
            routers: (self.routers > 1).then_some(self.routers),
            view_lag_s: (self.view_lag_s > 0.0).then_some(self.view_lag_s),
            assumes: self.tuning.assumed_by(&self.header.policy),
            ..self.header.clone()
        }
    }

    /// Whether the parts go together for a fleet of `shards` shards.
    pub(crate) fn check(&self, shards: u32) -> Result<(), ReplayError> {
        let config = |what: String| Err(ReplayError::Config(what));
        if let Some(table) = self.tables.iter().find(|table| table.shards() != shards) {
            let (planned, from_s) = (table.shards(), table.meta().from_s);
            return config(format!(
                "the table from {from_s} s is for {planned} shards, the fleet has {shards}"
            ));
        }
        if let Some(fault) = self.faults.iter().find(|fault| fault.shard.0 >= shards) {
            let last = shards.saturating_sub(1);
            return config(format!(
                "fault \"{fault}\": there is no shard {}; the last one is {last}",
                fault.shard
            ));
        }
        if self.replan.is_some() && self.tables.len() > 1 {
            let tables = self.tables.len();
            return config(format!(
                "{tables} tables, each with its time, and replanning as well; leave out one of the two"
            ));
        }
        if let Some(what) = limits::of_routers(self, shards) {
            return config(what);
        }
        if !(0.0..=Time::MAX_S).contains(&self.view_lag_s) {
            let lag_s = plain(self.view_lag_s);
            return config(format!("the view lags {lag_s} s; it lags from 0 s to 173 days"));
        }
        self.replan.and_then(|replan| replan.fault()).map_or(Ok(()), config)
    }
}

/// Runs a trace. The run ends early, with everything in flight failed as `interrupted`, when `interrupt` is set or the
/// trace or the engine fails.
///
/// # Errors
/// Options that do not fit together, events that cannot be written, or a run that breaks a law of its ledger.
pub fn run<R: Into<Arc<Request>>>(
    spec: &RunSpec,
    fleet: Fleet,
    trace: impl Iterator<Item = Result<R, TraceError>>,
    sink: &mut dyn EventSink,
    interrupt: &AtomicBool,
) -> Result<Outcome, ReplayError> {
    let trace = trace.map(|request| request.map(Into::into));
    if spec.clock == Clock::Wall {
        return crate::wall::run(spec, fleet, trace, sink, interrupt);
    }
    let desk = Desk::new(spec, fleet, trace, sink)?;
    let (desk, stopped) = VirtualClock::new(desk).run(interrupt)?;
    desk.end(stopped)
}
