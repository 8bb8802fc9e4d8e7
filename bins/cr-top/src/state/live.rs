//! One run as it is now: everything that a view draws, and nothing that grows with the length of the run.

use cr_report::aggregate::ShardTotals;
use cr_report::events::{Event, Fail, FailReason, Fault, Finish, Gate, Header, Plan};
use cr_report::summary::Summary;
use cr_routing::table::RoutingTable;
use std::collections::VecDeque;
use std::sync::Arc;

use super::compare::KnownBlocks;
use super::dist::Dist;
use super::findings::Finding;
use super::fleet::Fleet;
use super::keys::TopKeys;
use super::log::{Kind, Log};
use super::series::Series;

/// The most installed tables that are kept.
pub const MAX_PLANS: usize = 200;

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has come.
    #[default]
    Waiting,
    /// Events come.
    Running,
    /// The run said its summary.
    Ended,
    /// The stream ended without a summary.
    CutShort,
}

/// Distributions over the measured part of the run.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Time to first token.
    pub ttft: Dist,
    /// Time per output token.
    pub tpot: Dist,
    /// Time in the queue.
    pub queue: Dist,
}

/// What a run of a stream came to, once the next one has begun.
#[derive(Clone, Debug)]
pub struct Past {
    /// What its measured part came down to.
    pub summary: Summary,
    /// What was to be warned of at its end.
    pub findings: Vec<Finding>,
    /// What a gate said after it.
    pub gate: Option<Gate>,
}

/// A run as it is now.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// What to call it: a path, or `<stdin>`.
    pub name: String,
    /// The stream's first line.
    pub header: Option<Header>,
    /// Where the stream stands.
    pub phase: Phase,
    /// The latest run time in seconds.
    pub t_s: f64,
    /// Wall time that the run was watched for, in seconds.
    pub wall_s: f64,
    /// Requests that had come to an end before.
    pub done_unwatched: u64,
    /// Valid lines read.
    pub events: u64,
    /// Requests finished, warm-up and planning included.
    pub finished: u64,
    /// Requests failed, those never released left out.
    pub failed: u64,
    /// Requests never released because their predecessor failed.
    pub cancelled: u64,
    /// Lines that are no event.
    pub bad_lines: u64,
    /// The shards.
    pub fleet: Fleet,
    /// What happened over time.
    pub series: Series,
    /// Distributions of the measured part.
    pub latencies: Latencies,
    /// The hottest keys.
    pub keys: TopKeys,
    /// Installed tables, newest last.
    pub plans: VecDeque<Plan>,
    /// Everything else that happened.
    pub log: Log,
    /// What the measured part comes down to so far; the run's own word once it has ended.
    pub summary: Option<Summary>,
    /// The runs that the same stream held before.
    pub runs_before: u64,
    /// What the last of them came to, oldest first.
    pub earlier: VecDeque<Past>,
    /// What is to be warned of.
    pub findings: Vec<Finding>,
    /// What a gate says, once the runs that it is from are over.
    pub gate: Option<Gate>,
    /// The routing tables that the user named, in order of the time they are installed at.
    pub tables: Arc<Vec<RoutingTable>>,
    /// Why nothing has come yet, in words.
    pub note: Option<String>,
    /// Each shard's totals in the measured window.
    pub totals: Vec<ShardTotals>,
    /// What a comparison last made of the series.
    pub blocks: KnownBlocks,
}

impl Live {
    /// A run of which nothing is known yet.
    pub fn new(name: impl Into<String>) -> Live {
        Live { name: name.into(), ..Live::default() }
    }

    /// Takes over one event. Events are expected to have passed the reader's checks.
    pub fn observe(&mut self, event: &Event) {
        self.events += 1;
        if self.phase == Phase::Waiting {
            self.phase = Phase::Running;
        }
        match event {
            Event::Header(header) => self.start(header),
            Event::Finish(finish) => self.finish(finish),
            Event::Fail(fail) => self.fail(fail),
            Event::Shards(shards) => {
                self.pass(shards.t_s);
                let change = self.fleet.snapshot(shards);
                self.series.shards(shards, &change);
            }
            Event::Plan(plan) => self.plan(plan),
            Event::Fault(fault) => self.fault(fault),
            Event::Warning(warning) => {
                self.pass(warning.t_s);
                self.log.push(warning.t_s, Kind::Warning, format!("{}: {}", warning.name, warning.detail));
            }
            Event::Gate(gate) => self.gate = Some(gate.clone()),
            Event::Summary(summary) => {
                self.phase = Phase::Ended;
                let end = if summary.complete { "the run is over" } else { "the run was stopped" };
                self.log.push(self.t_s, Kind::Note, end);
                self.summary = Some(summary.as_ref().clone());
            }
        }
    }

    /// The table in force now, where the user named one.
    pub fn table(&self) -> Option<&RoutingTable> {
        let in_force = self.tables.iter().rev().find(|table| table.meta().from_s <= self.t_s);
        in_force.or(self.tables.first())
    }

    /// Requests known to have been offered: finished, failed, cancelled or in the fleet.
    pub fn seen_requests(&self) -> u64 {
        self.finished + self.failed + self.cancelled + self.fleet.in_flight()
    }

    /// Requests that came to an end.
    pub fn done_requests(&self) -> u64 {
        self.finished + self.failed + self.cancelled
    }

    /// The share of the expected requests that came to an end; `None` where their number is unknown.
    pub fn progress(&self) -> Option<f64> {
        let expected = self.header.as_ref()?.requests_expected.filter(|n| *n > 0)?;
        Some((self.done_requests() as f64 / expected as f64).min(1.0))
    }

    /// Wall seconds left at the pace of what was watched; `None` where that cannot be told.
    pub fn eta_s(&self) -> Option<f64> {
        let expected = self.header.as_ref()?.requests_expected?;
        let done = self.done_requests();
        let (left, watched) = (expected.saturating_sub(done), done.saturating_sub(self.done_unwatched));
        (self.phase == Phase::Running && left > 0 && watched > 0)
            .then(|| self.wall_s * left as f64 / watched as f64)
    }

    /// The stream is over. Without a summary before, the run was cut short.
    pub fn end(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::CutShort;
            self.log.push(self.t_s, Kind::Note, "the stream ended without a summary");
        }
    }

    /// Counts a line that is no event; `what` names its place.
    pub fn bad_line(&mut self, what: String) {
        self.bad_lines += 1;
        self.log.push(self.t_s, Kind::BadLine, what);
    }

    fn pass(&mut self, t_s: f64) {
        self.t_s = self.t_s.max(t_s);
    }

    fn start(&mut self, header: &Header) {
        self.fleet = Fleet::new(header.shards, header.kv_blocks);
        self.series = Series::of_fleet(header.shards);
        self.header = Some(header.clone());
    }

    fn finish(&mut self, finish: &Finish) {
        self.pass(finish.t_s);
        self.finished += 1;
        self.fleet.finish(finish);
        self.series.finish(finish);
        self.keys.finish(finish);
        if finish.measured {
            self.latencies.ttft.record(finish.ttft_s);
            self.latencies.queue.record(finish.queue_s);
            if let Some(tpot_s) = finish.tpot_s {
                self.latencies.tpot.record(tpot_s);
            }
        }
    }

    fn fail(&mut self, fail: &Fail) {
        self.pass(fail.t_s);
        if fail.reason == FailReason::PredecessorFailed {
            self.cancelled += 1;
            return;
        }
        // In flight when the run was stopped: neither completed nor failed.
        if fail.reason == FailReason::Interrupted {
            return;
        }
        self.failed += 1;
        self.series.at(fail.t_s).failed += 1;
        let place = fail.shard.map_or(String::new(), |shard| format!(" on shard {shard}"));
        let text = format!("{}{place}: {}", fail.reason.as_str().replace('_', " "), fail.detail);
        self.log.push(fail.t_s, Kind::Fail, text);
    }

    fn plan(&mut self, plan: &Plan) {
        self.pass(plan.t_s);
        if self.plans.len() == MAX_PLANS {
            self.plans.pop_front();
        }
        self.plans.push_back(plan.clone());
        let text = format!(
            "{} keys admitted, {} moved, churn {:.1} %, imbalance {:.2}",
            plan.admitted_keys,
            plan.moved_keys,
            plan.churn * 100.0,
            plan.imbalance
        );
        self.log.push(plan.t_s, Kind::Plan, text);
    }

    fn fault(&mut self, fault: &Fault) {
        self.pass(fault.t_s);
        match fault.kind.as_str() {
            "down" => self.fleet.set_up(fault.shard, false),
            "up" => self.fleet.set_up(fault.shard, true),
            _ => {}
        }
        let rerouted = match fault.rerouted {
            0 => String::new(),
            1 => ", 1 request rerouted".into(),
            n => format!(", {n} requests rerouted"),
        };
        let text = format!("shard {} is {}{rerouted}", fault.shard, fault.kind);
        let kind = if fault.kind == "up" { Kind::Recovery } else { Kind::Fault };
        self.log.push(fault.t_s, kind, text);
    }
}
