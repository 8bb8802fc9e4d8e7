//! What people see of a suite while its runs are made, and the report that grows with it.

use crate::watch::Watch;
use cr_cli::{CommonArgs, Output, Progress};
use cr_replay::ReplayError;
use cr_replay::sink::{EventSink, JsonLines, Spared};
use cr_replay::suite::{Cell, Sweep, Watcher};
use cr_report::RunReport;
use cr_report::events::Event;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often the report is written while runs are made.
const REPORT_EVERY: Duration = Duration::from_secs(20);

/// Suites of more runs than this say every tenth of them, not every run.
const EVERY_RUN: usize = 120;

/// Where the events of all runs go. The suite has its report and its journal without them.
pub(crate) type Events = Spared<JsonLines<Output>>;

type Write<'a> = dyn Fn(Vec<RunReport>) -> anyhow::Result<()> + Sync + 'a;

/// The watcher of a suite.
pub(crate) struct Board<'a> {
    sweep: &'a Sweep,
    common: &'a CommonArgs,
    all: Progress,
    /// Runs are made one at a time, each with a bar of its own.
    alone: bool,
    events: Option<Mutex<Events>>,
    write: Box<Write<'a>>,
    written: Mutex<Instant>,
    made: AtomicUsize,
    planned: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Board<'a> {
    pub(crate) fn new(
        sweep: &'a Sweep,
        common: &'a CommonArgs,
        events: Option<Events>,
        alone: bool,
        write: impl Fn(Vec<RunReport>) -> anyhow::Result<()> + Sync + 'a,
    ) -> Board<'a> {
        let planned = sweep.cells().len();
        let all = match alone {
            true => Progress::hidden(common),
            false => Progress::new(common, &sweep.suite().name, "runs", Some(planned as u64)),
        };
        Board {
            sweep,
            common,
            all,
            alone,
            events: events.map(Mutex::new),
            write: Box::new(write),
            written: Mutex::new(Instant::now()),
            made: AtomicUsize::new(0),
            planned: AtomicUsize::new(planned),
        }
    }

    pub(crate) fn finish(&self) {
        self.all.finish();
    }

    fn place(&self, cell: &Cell, number: usize) -> String {
        format!("[{number}/{}] {}", self.planned.load(Ordering::Relaxed), self.sweep.name(cell))
    }
}

impl Watcher for Board<'_> {
    fn planned(&self, runs: usize) {
        self.planned.store(runs, Ordering::Relaxed);
        self.all.length(runs as u64);
    }

    fn sink(&self, cell: &Cell) -> Box<dyn EventSink + '_> {
        let people: Box<dyn EventSink> = if self.alone {
            let requests = self.sweep.suite().workload.requests;
            Box::new(Watch::new(Progress::new(
                self.common,
                &self.place(cell, self.made.load(Ordering::Relaxed) + 1),
                "requests",
                requests,
            )))
        } else {
            Box::new(Warnings { progress: self.all.clone(), name: self.sweep.name(cell) })
        };
        Box::new(RunSink { events: self.events.as_ref(), people })
    }

    fn made(&self, cell: &Cell, run: &RunReport, found: bool) {
        let made = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        self.all.set(made as u64);
        let planned = self.planned.load(Ordering::Relaxed);
        if planned > EVERY_RUN {
            if !found && made.is_multiple_of((planned / 10).max(1)) {
                self.all.line(format!("{made} of {planned} runs"));
            }
            return;
        }
        let summary = &run.summary;
        let line = format!(
            "{:<34} hit {:5.1} %  imbalance {:.2} requests {:.2} busy  p99 TTFT {:.3} s{}{}",
            self.place(cell, made),
            100.0 * summary.served_hit,
            summary.imbalance.requests,
            summary.imbalance.busy,
            summary.ttft_s.p99,
            if summary.saturated { "  (saturated)" } else { "" },
            if found { "  (from before)" } else { "" },
        );
        self.all.line(line);
    }

    fn progress(&self, runs: &mut dyn Iterator<Item = &RunReport>) -> Result<(), ReplayError> {
        let mut written = lock(&self.written);
        if written.elapsed() < REPORT_EVERY {
            return Ok(());
        }
        (self.write)(runs.cloned().collect()).map_err(|error| ReplayError::Sink(io::Error::other(error)))?;
        *written = Instant::now();
        Ok(())
    }
}

/// The events of one run: into the file of all runs, one after the other, and for people.
struct RunSink<'a> {
    events: Option<&'a Mutex<Events>>,
    people: Box<dyn EventSink>,
}

impl EventSink for RunSink<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Some(events) = self.events {
            lock(events).event(event)?;
        }
        self.people.event(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.events.map_or(Ok(()), |events| lock(events).flush())
    }

    fn reads_snapshots(&self) -> bool {
        self.events.is_some() || self.people.reads_snapshots()
    }
}

/// Tells of warnings, with the run they are of.
struct Warnings {
    progress: Progress,
    name: String,
}

impl EventSink for Warnings {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::Warning(warning) = event {
            let (name, what) = (&self.name, &warning.name);
            self.progress.line(format!("warning: {name}: {what}: {}", warning.detail));
        }
        Ok(())
    }

    fn reads_snapshots(&self) -> bool {
        false
    }
}
