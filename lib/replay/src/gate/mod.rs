//! The deployment gate: may this trace's traffic be switched from one policy to another?
//!
//! The trace is replayed in the shadow, stretched to other rates. First the knee of the policy in service is found: the
//! highest rate at which it meets the objective. Then both policies are replayed at rates around the knee, several times over: on parts of the trace
//! that follow one another where it is long enough, and with choices of their own, so that the noise is known. [`decide`] compares them.

mod decide;
mod stretch;

pub use decide::{Decision, Gate, Load, Tolerance, decide};
pub use stretch::{natural_qps, stretched};

use crate::assume::Assume;
use crate::run::{Outcome, RunSpec, run};
use crate::sink::{EventSink, NoSink};
use crate::{Engine, PlanFrom, ReplayError, Stop, parallel};
use cr_engine::ShardConfig;
use cr_report::design::Design;
use cr_report::events::{Header, SCHEMA, Slo};
use cr_report::objective::Objective;
use cr_report::{RunReport, SuiteReport};
use cr_trace::Request;
use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

/// Rates at which both policies are replayed, as shares of the knee. The first is the low load, the one before the knee the near one.
pub const RUNGS: [f64; 8] = [0.5, 0.7, 0.9, 1.1, 1.4, 1.8, 2.4, 3.2];

/// The place of the low load in [`RUNGS`].
pub const LOW: usize = 0;

/// The place of the load near the knee.
pub const NEAR: usize = 2;

/// The lightest load that is tried, as a share of the trace's own rate.
const LIGHTEST: f64 = 1.0 / 64.0;

/// The heaviest.
const HEAVIEST: f64 = 1024.0;

/// The knee is found to this factor.
const KNEE_WITHIN: f64 = 1.08;

/// Where no objective is given, the p99 of TTFT may be so many times that at a light load.
const LIGHT_TIMES: f64 = 5.0;

/// Requests that a trace must have.
const FEWEST: usize = 100;

/// Requests that a part of the trace must have to be replayed by itself.
const PART_REQUESTS: usize = 2_000;

/// What is compared, and on what.
#[derive(Clone, Debug)]
pub struct GateSpec {
    /// The policy in service.
    pub baseline: String,
    /// The one that would replace it.
    pub candidate: String,
    /// Number of shards.
    pub shards: u32,
    /// Points a shard on hash rings.
    pub vnodes: u32,
    /// The limits of every shard.
    pub shard: ShardConfig,
    /// The share of the requests that a plan is learned from.
    pub plan_from: f64,
    /// The share that follows, not measured.
    pub settle: f64,
    /// The plan's ceiling for one key.
    pub qcap: Option<f64>,
    /// The plan's warm prefixes a shard.
    pub warm_slots: Option<f64>,
    /// The bound on the p99 of TTFT; from a light load where absent.
    pub slo_ttft_p99_s: Option<f64>,
    /// How often both are replayed at each rate.
    pub replicates: u32,
    /// The first seed.
    pub seed: u64,
}

/// What was found on the way to the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The highest rate at which the baseline meets the objective, in requests per second.
    pub qps: f64,
    /// The bound on the p99 of TTFT, in seconds.
    pub slo_ttft_p99_s: f64,
    /// The trace's own rate.
    pub natural_qps: f64,
    /// Into how many parts the trace was cut.
    pub parts: usize,
    /// Replays that it took to find.
    pub replays: u32,
}

/// Replays the trace in the shadow.
pub struct Shadow<'a> {
    spec: &'a GateSpec,
    engine: &'a Engine,
    parts: Vec<&'a [Request]>,
    /// Of the whole trace.
    natural_qps: f64,
    interrupt: &'a AtomicBool,
}

impl<'a> Shadow<'a> {
    /// Cuts the trace into parts, one a replicate, where each has requests enough.
    ///
    /// # Errors
    /// A trace that is too short to plan from, to let caches settle and to measure.
    pub fn new(
        spec: &'a GateSpec,
        engine: &'a Engine,
        trace: &'a [Request],
        interrupt: &'a AtomicBool,
    ) -> Result<Shadow<'a>, ReplayError> {
        if spec.plan_from <= 0.0 || spec.plan_from + spec.settle >= 1.0 {
            return Err(ReplayError::Config(
                "planning and settling must take a share of the requests and leave some to measure".into(),
            ));
        }
        let natural_qps = natural_qps(trace);
        if trace.len() < FEWEST || natural_qps <= 0.0 {
            let count = trace.len();
            return Err(ReplayError::Config(format!(
                "{count} requests are too few for a gate; give at least {FEWEST} that arrive over some time"
            )));
        }
        let linked = trace.iter().any(|request| request.after.is_some() || request.session.is_some());
        let parts = spec.replicates.max(1) as usize;
        // A session must not be cut in two.
        let cut: Vec<&[Request]> = trace.chunks(trace.len().div_ceil(parts)).collect();
        // A part that arrives all at once has no rate to be stretched from.
        let whole = linked
            || trace.len() / parts < PART_REQUESTS
            || cut.iter().any(|part| stretch::natural_qps(part) <= 0.0);
        let parts = if whole { vec![trace] } else { cut };
        Ok(Shadow { spec, engine, parts, natural_qps, interrupt })
    }

    /// One replay at a rate, with the bound on the p99 of TTFT where it is known; none where it was interrupted.
    fn replay(
        &self,
        policy: &str,
        (qps, slo_s): (f64, Option<f64>),
        replicate: u32,
        sink: &mut dyn EventSink,
    ) -> Result<Option<RunReport>, ReplayError> {
        let (spec, engine) = (self.spec, self.engine);
        let part = self.parts[replicate as usize % self.parts.len()];
        let share = |share: f64| (part.len() as f64 * share).floor() as u64;
        let head = share(spec.plan_from).max(1);
        let run_spec = RunSpec {
            header: Header {
                schema: SCHEMA.into(),
                generator: crate::GENERATOR.into(),
                policy: policy.into(),
                seed: spec.seed + u64::from(replicate),
                qps: Some(qps),
                engine: engine.kind().into(),
                model: engine.name().into(),
                device: engine.device().into(),
                shards: spec.shards,
                block_tokens: spec.shard.block_tokens,
                kv_blocks: spec.shard.kv_blocks,
                clock: "virtual".into(),
                durations: engine.durations().into(),
                requests_expected: Some(part.len() as u64),
                slo: Slo { ttft_p99_s: slo_s },
                plan_requests: head + share(spec.settle),
                ..Header::default()
            },
            vnodes: spec.vnodes,
            plan_from: Some(PlanFrom { requests: head, qcap: spec.qcap, warm_slots: spec.warm_slots }),
            tuning: Assume::default().over(engine.tuning(&spec.shard), slo_s),
            ..RunSpec::default()
        };
        let requests = stretched(part, natural_qps(part) / qps);
        let fleet = engine.fleet(spec.shards, spec.shard)?;
        let outcome = run(&run_spec, fleet, requests.into_iter().map(Ok), sink, self.interrupt)?;
        finished(outcome)
    }

    /// The bound on the p99 of TTFT, seconds: as given, or a multiple of the baseline's under a light load; none where that was interrupted.
    fn bound(&self) -> Result<Option<f64>, ReplayError> {
        if self.spec.slo_ttft_p99_s.is_some() {
            return Ok(self.spec.slo_ttft_p99_s);
        }
        let light = three_digits(self.natural_qps * LIGHTEST);
        let Some(run) = self.replay(&self.spec.baseline, (light, None), 0, &mut NoSink)? else {
            return Ok(None);
        };
        if run.summary.ttft_s.count == 0 {
            let failed: Vec<&str> =
                run.summary.requests.failed_by_reason.keys().map(String::as_str).collect();
            return Err(ReplayError::Config(format!(
                "no request finishes even at {light} QPS ({}); there is nothing to compare",
                failed.join(", ").replace('_', " ")
            )));
        }
        Ok(Some(LIGHT_TIMES * run.summary.ttft_s.p99))
    }

    /// Finds the baseline's knee: the highest rate at which it meets the objective in most replicates; none where it was interrupted.
    ///
    /// # Errors
    /// A trace on which the baseline never meets the objective, or always does.
    pub fn knee(&self, jobs: usize, note: &dyn Fn(String)) -> Result<Option<Knee>, ReplayError> {
        let natural = self.natural_qps;
        let baseline = &self.spec.baseline;
        let Some(slo_s) = self.bound()? else { return Ok(None) };
        let objective = Objective::ttft(slo_s);
        let replays = Cell::new(u32::from(self.spec.slo_ttft_p99_s.is_none()));
        let passes = |qps: f64| -> Result<Option<bool>, ReplayError> {
            let count = self.spec.replicates.max(1) as usize;
            replays.set(replays.get() + count as u32);
            let runs = parallel::in_order(self.jobs(jobs), count, |replicate| {
                self.replay(baseline, (qps, Some(slo_s)), replicate as u32, &mut NoSink)
            })?;
            let Some(runs) = runs.into_iter().collect::<Option<Vec<RunReport>>>() else { return Ok(None) };
            let meets = |run: &&RunReport| objective.met_by(&run.summary) && !run.summary.saturated;
            let meeting = runs.iter().filter(meets).count();
            note(format!(
                "{baseline} at {qps} QPS meets {}, unsaturated, in {meeting} of {count} replays",
                objective.text()
            ));
            Ok(Some(2 * meeting > count))
        };
        let (mut low, mut high) = (None, None);
        let mut qps = three_digits(natural);
        while low.is_none() || high.is_none() {
            let Some(passed) = passes(qps)? else { return Ok(None) };
            let tried = qps;
            if passed {
                low = Some(qps);
                qps = three_digits(qps * 2.0);
            } else {
                high = Some(qps);
                qps = three_digits(qps / 2.0);
            }
            if qps > natural * HEAVIEST || qps < natural * LIGHTEST / 2.0 {
                let what =
                    if passed { "meets it at any rate up to" } else { "misses it at every rate down to" };
                return Err(ReplayError::Config(format!(
                    "no knee: with {}, {baseline} {what} {tried} QPS",
                    objective.text()
                )));
            }
        }
        let (mut low, mut high) = (low.unwrap_or(qps), high.unwrap_or(qps));
        while high / low > KNEE_WITHIN {
            let middle = three_digits((low * high).sqrt());
            if middle <= low || middle >= high {
                break;
            }
            match passes(middle)? {
                None => return Ok(None),
                Some(true) => low = middle,
                Some(false) => high = middle,
            }
        }
        Ok(Some(Knee {
            qps: low,
            slo_ttft_p99_s: slo_s,
            natural_qps: natural,
            parts: self.parts.len(),
            replays: replays.get(),
        }))
    }

    /// Replays both policies at every rung, as a suite's report; none where it was interrupted. Where somebody takes the `events`, one replay after
    /// the other.
    ///
    /// # Errors
    /// A plan that cannot be made, or an engine that fails.
    pub fn compare(
        &self,
        knee: &Knee,
        jobs: usize,
        events: Option<&Mutex<Box<dyn EventSink + Send>>>,
        tick: &(dyn Fn() + Sync),
    ) -> Result<Option<SuiteReport>, ReplayError> {
        let spec = self.spec;
        let ladder: Vec<f64> = RUNGS.iter().map(|rung| three_digits(rung * knee.qps)).collect();
        let mut cells: Vec<(&str, f64, u32)> = Vec::new();
        for &qps in &ladder {
            for replicate in 0..spec.replicates.max(1) {
                cells.extend([&*spec.baseline, &*spec.candidate].map(|policy| (policy, qps, replicate)));
            }
        }
        let jobs = if events.is_some() { 1 } else { self.jobs(jobs) };
        let slo_s = Some(knee.slo_ttft_p99_s);
        let runs = parallel::in_order(jobs, cells.len(), |index| {
            let (policy, qps, replicate) = cells[index];
            let run = match events {
                Some(events) => {
                    let mut sink = events.lock().unwrap_or_else(PoisonError::into_inner);
                    self.replay(policy, (qps, slo_s), replicate, &mut **sink)
                }
                None => self.replay(policy, (qps, slo_s), replicate, &mut NoSink),
            };
            tick();
            run
        })?;
        let Some(runs) = runs.into_iter().collect::<Option<Vec<RunReport>>>() else { return Ok(None) };
        Ok(Some(SuiteReport {
            suite: "gate".into(),
            title: format!("Gate: {} for {}", spec.candidate, spec.baseline),
            baseline: Some(spec.baseline.clone()),
            candidate: Some(spec.candidate.clone()),
            slo: Slo { ttft_p99_s: Some(knee.slo_ttft_p99_s) },
            expected_runs: Some(cells.len() as u64),
            design: Design { ladder_qps: ladder, ..Design::default() },
            runs,
            ..SuiteReport::default()
        }))
    }

    /// A real model runs alone.
    fn jobs(&self, jobs: usize) -> usize {
        if self.engine.kind() == "sim" { jobs } else { 1 }
    }

    /// How many replays [`Shadow::compare`] makes.
    pub fn replays(&self) -> u64 {
        2 * RUNGS.len() as u64 * u64::from(self.spec.replicates.max(1))
    }
}

fn finished(outcome: Outcome) -> Result<Option<RunReport>, ReplayError> {
    match outcome.stopped {
        None => Ok(Some(RunReport::of(&outcome.aggregator, true))),
        Some(Stop::Interrupted) => Ok(None),
        Some(Stop::Trace(error)) => Err(error.into()),
        Some(Stop::Engine(error)) => Err(error.into()),
        Some(Stop::ClockEnds) => Err(ReplayError::Config(Stop::CLOCK_ENDS.into())),
    }
}

fn three_digits(value: f64) -> f64 {
    crate::suite::sweep::three_digits(value)
}
