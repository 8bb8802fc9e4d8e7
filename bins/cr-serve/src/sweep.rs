//! `cr-serve sweep`: every policy, rate, seed and variant of a suite, and the report.

use crate::args::{MakingArgs, SweepArgs};
use crate::board::Board;
use crate::report;
use anyhow::Context;
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, InputContext, Output, bad_input};
use cr_replay::Stop;
use cr_replay::suite::{Journal, Made, Making, Suite, Sweep};
use cr_report::SuiteReport;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The finished runs of a suite, in the folder of its report.
const JOURNAL: &str = "cells.jsonl";

/// Runs the suite; every finished run is written at once, so that an interruption loses nothing.
pub(crate) fn run(args: &SweepArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let mut suite = read(&args.suite)?;
    if let Some(share) = args.making.refine {
        suite.refine(share).map_err(|what| bad_input(format!("--refine: {what}")))?;
    }
    let dir = args.report.clone().unwrap_or_else(|| PathBuf::from("reports").join(&suite.name));
    report::prepare(&dir)?;
    let events = args.output.as_deref().map(|path| Output::create(Some(path))).transpose()?;
    let made = Suited::make(suite, &dir, &args.making, events, common, |sweep| {
        let mut report = sweep.report();
        report.commands = vec![command("sweep", &args.suite, &dir, args.making.refine)];
        report
    })?;
    anstream::print!("{}", report::answer(&dir)?);
    made.exit()
}

/// Reads and checks a suite.
pub(crate) fn read(path: &str) -> anyhow::Result<Suite> {
    let text = cr_cli::input::read_to_string(path)?;
    Suite::from_toml(&text, path).bad_input()
}

/// The command that makes the report again.
pub(crate) fn command(verb: &str, suite: &str, dir: &Path, refine: Option<f64>) -> String {
    let refine = refine.map(|share| format!(" --refine {}%", 100.0 * share)).unwrap_or_default();
    format!("cr-serve {verb} {suite} --report {}{refine}", dir.display())
}

/// A suite whose runs have been made and whose report has been written.
pub(crate) struct Suited {
    made: Made,
}

impl Suited {
    /// Makes the runs and writes the report into `dir`; `frame` gives the report's frame.
    pub(crate) fn make(
        suite: Suite,
        dir: &Path,
        args: &MakingArgs,
        events: Option<Output>,
        common: &CommonArgs,
        frame: impl Fn(&Sweep) -> SuiteReport,
    ) -> anyhow::Result<Suited> {
        let started = SystemTime::now();
        let interrupt = Interrupt::install()?;
        let flag = interrupt.flag();
        let sweep = Sweep::new(suite, &flag).map_err(crate::run::classify)?;
        common.note(setting(&sweep));
        let path = dir.join(JOURNAL);
        let journal = Journal::open(&path, &build()?, args.restart).map_err(|error| {
            bad_input(format!("cannot keep finished runs in {}: {error}", path.display()))
        })?;
        let report = frame(&sweep);
        // Events of several runs at once would mix in one file.
        let alone = events.is_some() || !sweep.parallel();
        let board = Board::new(&sweep, common, events, alone, |runs| {
            let partial = SuiteReport { runs, ..report.clone() };
            report::write(dir, &partial, sweep.engine().device(), started)
        });
        let making = Making {
            jobs: if alone { 1 } else { jobs(args) },
            journal: Some(&journal),
            interrupt: &flag,
            watcher: &board,
        };
        let made = sweep.make(&making);
        board.finish();
        let mut made = made.map_err(crate::run::classify)?;
        let expected = report.expected_runs.map(|runs| runs + made.refined as u64);
        let report =
            SuiteReport { runs: std::mem::take(&mut made.runs), expected_runs: expected, ..report.clone() };
        report::write(dir, &report, sweep.engine().device(), started)?;
        drop(board);
        if made.stopped.is_none() && !sweep.repeatable() {
            journal.remove().with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(Suited { made })
    }

    /// How the process ends.
    pub(crate) fn exit(self) -> anyhow::Result<Exit> {
        match self.made.stopped {
            None => Ok(Exit::Done),
            Some(Stop::Interrupted) => Ok(Exit::Interrupted),
            Some(Stop::Trace(error)) => Err(error).bad_input(),
            Some(Stop::Engine(error)) => Err(error).context("the suite stopped"),
        }
    }
}

fn jobs(args: &MakingArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    args.jobs.map_or_else(cores, |jobs| jobs as usize)
}

/// Names this very program, so that runs of another build are not taken for its own.
fn build() -> anyhow::Result<String> {
    let bytes =
        std::env::current_exe().and_then(std::fs::read).context("cannot read this program's own file")?;
    Ok(cr_replay::suite::journal::digest(&bytes))
}

/// What is run, in a line.
fn setting(sweep: &Sweep) -> String {
    let (suite, engine) = (sweep.suite(), sweep.engine());
    let rates: Vec<String> = sweep.rates().iter().map(|qps| format!("{qps}")).collect();
    let variants = match sweep.variants() {
        1 => String::new(),
        count => format!(" {count} variants,"),
    };
    format!(
        "suite {}: {} on {} ({}), {} shards,{variants} {} QPS, {} runs",
        suite.name,
        engine.name(),
        engine.device(),
        engine.durations(),
        suite.fleet.shards,
        rates.join(", "),
        sweep.cells().len(),
    )
}
