//! `cr-serve sweep`: every policy, rate, seed and variant of a suite, and the report.

use crate::args::{MakingArgs, SweepArgs};
use crate::board::{Board, Events};
use crate::report;
use anyhow::Context;
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, InputContext, Output, bad_input};
use cr_replay::sink::{JsonLines, Losses, Spared};
use cr_replay::suite::{Journal, Making, Suite, Sweep};
use cr_replay::{ReplayError, Stop};
use cr_report::SuiteReport;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// The finished runs of a suite, in the folder of its report.
const JOURNAL: &str = "cells.jsonl";

/// Runs the suite; every finished run is written at once, so that an interruption loses nothing.
pub(crate) fn run(args: &SweepArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    suite("sweep", "", args, common, Sweep::new)
}

/// Runs the suite as it stands, and with each of the parameters moved that it lists.
pub(crate) fn sensitivity(args: &SweepArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    suite("sensitivity", "-sensitivity", args, common, Sweep::sensitivity)
}

fn suite(
    verb: &str,
    suffix: &str,
    args: &SweepArgs,
    common: &CommonArgs,
    ready: impl Fn(Suite, &AtomicBool) -> Result<Sweep, ReplayError>,
) -> anyhow::Result<Exit> {
    let mut suite = read(&args.suite)?;
    let instead = instead(args, &mut suite)?;
    if let Some(model) = suite.model() {
        crate::model::fetch(model, common)?;
    }
    if let Some(share) = args.making.refine {
        suite.refine(share).map_err(|what| bad_input(format!("--refine: {what}")))?;
    }
    let folder = || PathBuf::from("reports").join(format!("{}{suffix}", suite.name));
    let dir = args.report.clone().unwrap_or_else(folder);
    report::prepare(&dir)?;
    cr_cli::opened::plan(&dir.join(JOURNAL))?;
    let losses = Losses::default();
    let events = args.output.as_deref().map(|path| events(path, &losses)).transpose()?;
    let interrupt = Interrupt::install()?;
    // Nothing has been run yet: whatever is wrong is with what was asked for.
    let sweep = ready(suite, &interrupt.flag()).bad_input()?;
    common.note(setting(&sweep));
    let refine = args.making.refine.map(|share| format!(" --refine {}%", 100.0 * share)).unwrap_or_default();
    let command = format!("cr-serve {verb} {} --report {}{instead}{refine}", args.suite, dir.display());
    let keeps = report::is_finished(&dir);
    let stopped =
        Suited { sweep: &sweep, dir: &dir, args: &args.making, common, interrupt: &interrupt, keeps }
            .make(events, SuiteReport { commands: vec![command], ..sweep.report() })?;
    if stopped.is_some() && keeps {
        let dir = dir.display();
        common.note(format!("the finished report in {dir} was left as it is; what was made until now is in its {JOURNAL}, and the next sweep goes on there"));
    } else {
        anstream::stdout().write_all(report::answer(&dir)?.as_bytes())?;
    }
    crate::run::fail_for(&losses)?;
    match stopped {
        None => Ok(Exit::Done),
        Some(Stop::Interrupted) => Ok(Exit::Interrupted),
        Some(Stop::Trace(error)) => Err(error).bad_input(),
        Some(Stop::Engine(error)) => Err(error).context("the suite stopped"),
        Some(Stop::ClockEnds) => Err(bad_input(Stop::CLOCK_ENDS)),
    }
}

/// The file of `-o`, or stdout, whose reader may leave.
fn events(path: &str, losses: &Losses) -> anyhow::Result<Events> {
    let output = Output::create(Some(path))?;
    let to_reader = output.is_stdout();
    let sink = JsonLines::new(output);
    Ok(if to_reader { Spared::for_reader(sink) } else { losses.spare(sink) })
}

/// Changes what the flags change, and gives those flags back as typed.
fn instead(args: &SweepArgs, suite: &mut Suite) -> anyhow::Result<String> {
    let mut typed = String::new();
    if let Some(model) = &args.model {
        suite.serve_with(model);
        typed += &format!(" --model {model}");
    }
    if let Some(cost) = &args.cost {
        suite.simulate_with(cost);
        typed += &format!(" --cost {cost}");
    }
    if !args.qps.is_empty() {
        suite.run_at(args.qps.clone()).map_err(|what| bad_input(format!("--qps: {what}")))?;
        let rates: Vec<String> = args.qps.iter().map(f64::to_string).collect();
        typed += &format!(" --qps {}", rates.join(","));
    }
    Ok(typed)
}

/// Reads and checks the suite in a file; no output is written over it and the files that it names.
pub(crate) fn read(path: &str) -> anyhow::Result<Suite> {
    let text = cr_cli::input::read_to_string(path)?;
    for (table, folder) in cr_replay::suite::tables_of(&text, path) {
        cr_cli::opened::reserve_named(&serde_json::to_value(table)?, &folder);
    }
    Suite::from_toml(&text, path).bad_input()
}

/// A suite whose runs are to be made and reported on.
struct Suited<'a> {
    sweep: &'a Sweep,
    dir: &'a Path,
    args: &'a MakingArgs,
    common: &'a CommonArgs,
    interrupt: &'a Interrupt,
    /// The folder has a finished report, which only another finished one replaces.
    keeps: bool,
}

impl Suited<'_> {
    /// Makes the runs and writes the report, which is `frame` with the runs; says why it stopped early, if it did.
    fn make(&self, events: Option<Events>, frame: SuiteReport) -> anyhow::Result<Option<Stop>> {
        let (started, sweep, dir) = (SystemTime::now(), self.sweep, self.dir);
        let path = dir.join(JOURNAL);
        let journal = Journal::open(&path, &build()?, self.args.restart).map_err(|error| {
            bad_input(format!("cannot keep finished runs in {}: {error}", path.display()))
        })?;
        // Events of several runs at once would mix in one file.
        let alone = events.is_some() || !sweep.parallel();
        let board = Board::new(sweep, self.common, events, alone, |runs| {
            if self.keeps {
                return Ok(());
            }
            let partial = SuiteReport { runs, ..frame.clone() };
            report::write(dir, &partial, sweep.engine().device(), started)
        });
        let flag = self.interrupt.flag();
        let making = Making {
            jobs: if alone { 1 } else { jobs(self.args) },
            journal: Some(&journal),
            interrupt: &flag,
            watcher: &board,
        };
        let made = sweep.make(&making);
        board.finish();
        let made = made.map_err(crate::run::classify)?;
        let expected_runs = frame.expected_runs.map(|runs| runs + made.refined as u64);
        let report = SuiteReport { runs: made.runs, expected_runs, ..frame.clone() };
        if made.stopped.is_none() || !self.keeps {
            report::write(dir, &report, sweep.engine().device(), started)?;
        }
        if made.stopped.is_none() && !sweep.repeatable() {
            drop(board);
            journal.remove().with_context(|| format!("cannot remove {}", path.display()))?;
        }
        Ok(made.stopped)
    }
}

fn jobs(args: &MakingArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    args.jobs.map_or_else(cores, |jobs| jobs as usize)
}

/// Names this very program, so that runs of another build are not taken for its own.
fn build() -> anyhow::Result<String> {
    std::env::current_exe()
        .and_then(|path| cr_replay::suite::journal::digest_of_file(&path))
        .context("cannot read this program's own file")
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
