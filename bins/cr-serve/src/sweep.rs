//! `cr-serve sweep`: every policy, rate and seed of a suite, and the report.

use crate::args::SweepArgs;
use crate::report;
use crate::watch::Watch;
use anyhow::Context;
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, InputContext, Output, Progress};
use cr_replay::sink::{EventSink, JsonLines, Tee};
use cr_replay::suite::{Cell, Suite, Sweep};
use cr_replay::{Outcome, Stop};
use cr_report::events::Event;
use cr_report::{RunReport, SuiteReport};
use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

/// Runs the suite; the report is written anew after every run, so that an interruption loses nothing.
pub(crate) fn run(args: &SweepArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let started = SystemTime::now();
    let text = cr_cli::input::read_to_string(&args.suite)?;
    let suite = Suite::from_toml(&text, &args.suite).bad_input()?;
    let dir = args.report.clone().unwrap_or_else(|| PathBuf::from("reports").join(&suite.name));
    report::prepare(&dir)?;
    let events = match &args.output {
        Some(path) => Some(SharedLines(Rc::new(RefCell::new(JsonLines::new(Output::create(Some(path))?))))),
        None => None,
    };
    let interrupt = Interrupt::install()?;
    let sweep = Sweep::new(suite, &interrupt.flag()).map_err(crate::run::classify)?;
    common.note(setting(&sweep));

    let mut report = empty_report(&sweep, &args.suite, &dir);
    let cells = sweep.cells();
    let mut stopped = None;
    for (index, cell) in cells.iter().enumerate() {
        let outcome = one(&sweep, cell, index, cells.len(), events.clone(), common, &interrupt)?;
        stopped = outcome.stopped;
        report.runs.push(RunReport::of(&outcome.aggregator, stopped.is_none()));
        if index + 1 < cells.len() && stopped.is_none() {
            report::write(&dir, &report, sweep.engine().device(), started)?;
        } else {
            break;
        }
    }
    report::write(&dir, &report, sweep.engine().device(), started)?;
    anstream::print!("{}", report::answer(&dir)?);
    match stopped {
        None => Ok(Exit::Done),
        Some(Stop::Interrupted) => Ok(Exit::Interrupted),
        Some(Stop::Trace(error)) => Err(error).bad_input(),
        Some(Stop::Engine(error)) => Err(error).context("the suite stopped"),
    }
}

fn one(
    sweep: &Sweep,
    cell: &Cell,
    index: usize,
    cells: usize,
    events: Option<SharedLines>,
    common: &CommonArgs,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    let what = format!("[{}/{cells}] {} seed {}", index + 1, cell.policy, cell.seed);
    let progress = Progress::new(common, &what, "requests", sweep.suite().workload.requests);
    let mut sinks = Tee::default();
    if let Some(events) = events {
        sinks.0.push(Box::new(events));
    }
    sinks.0.push(Box::new(Watch::new(progress.clone())));
    let outcome = sweep.run(cell, &mut sinks, &interrupt.flag());
    progress.finish();
    let outcome = outcome.map_err(crate::run::classify)?;
    let summary = &outcome.summary;
    common.note(format!(
        "{what:<28} hit {:5.1} %  imbalance {:.2} requests {:.2} busy  p99 TTFT {:.3} s{}",
        100.0 * summary.served_hit,
        summary.imbalance.requests,
        summary.imbalance.busy,
        summary.ttft_s.p99,
        if summary.saturated { "  (saturated)" } else { "" },
    ));
    Ok(outcome)
}

/// What is run, in a line.
fn setting(sweep: &Sweep) -> String {
    let (suite, engine) = (sweep.suite(), sweep.engine());
    let cells = sweep.cells();
    let rates: Vec<String> = {
        let mut rates: Vec<f64> = cells.iter().map(|cell| cell.qps).collect();
        rates.dedup();
        rates.iter().map(|qps| format!("{qps}")).collect()
    };
    format!(
        "suite {}: {} on {} ({}), {} shards, {} QPS, {} runs",
        suite.name,
        engine.name(),
        engine.device(),
        engine.durations(),
        suite.fleet.shards,
        rates.join(", "),
        cells.len(),
    )
}

fn empty_report(sweep: &Sweep, path: &str, dir: &Path) -> SuiteReport {
    let suite = sweep.suite();
    let mut notes = suite.notes.clone();
    if let Some(capacity) = sweep.capacity_qps() {
        let (shards, qps) = (suite.fleet.shards, sweep.cells().first().map_or(0.0, |cell| cell.qps));
        notes.push(format!(
            "The rate of {qps} QPS is {:.0} % of {capacity:.1} QPS, what {shards} shards of this device finish when each is handed requests all at once.",
            100.0 * qps / capacity
        ));
    }
    SuiteReport {
        suite: suite.name.clone(),
        title: suite.title.clone(),
        baseline: Some(suite.baseline.clone()),
        candidate: Some(suite.candidate.clone()),
        slo: suite.slo,
        commands: vec![format!("cr-serve sweep {path} --report {}", dir.display())],
        notes,
        expected_runs: Some(sweep.cells().len() as u64),
        ..SuiteReport::default()
    }
}

/// One file of events for all runs, one after the other.
#[derive(Clone)]
struct SharedLines(Rc<RefCell<JsonLines<Output>>>);

impl EventSink for SharedLines {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.borrow_mut().event(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().flush()
    }
}
