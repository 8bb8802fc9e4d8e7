//! Making the runs of a suite: side by side where that disturbs nothing, each written down as soon as it is over.

use super::Journal;
use super::batch::Batch;
use super::drawn::Kept;
use super::spec::Load;
use super::sweep::{Cell, Sweep, three_digits};
use crate::sink::EventSink;
use crate::{ReplayError, Stop};
use cr_report::RunReport;
use cr_report::capacity::Capacity;
use cr_report::summary::Summary;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Follows the making of a suite, for people.
pub trait Watcher: Sync {
    /// So many runs are known of now; a refinement adds to them.
    fn planned(&self, _runs: usize) {}

    /// Takes the events of a run that is about to start.
    fn sink(&self, cell: &Cell) -> Box<dyn EventSink + '_>;

    /// A run is over, or was found in the journal.
    fn made(&self, _cell: &Cell, _run: &RunReport, _found: bool) {}

    /// A run is over and was not found: all that are, in the order of the suite.
    ///
    /// # Errors
    /// Whatever keeps the suite from going on.
    fn progress(&self, _runs: &mut dyn Iterator<Item = &RunReport>) -> Result<(), ReplayError> {
        Ok(())
    }
}

/// Watches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWatcher;

impl Watcher for NoWatcher {
    fn sink(&self, _cell: &Cell) -> Box<dyn EventSink + '_> {
        Box::new(crate::sink::NoSink)
    }
}

/// How the runs of a suite are made.
pub struct Making<'a> {
    /// How many at a time; one where runs are measured.
    pub jobs: usize,
    /// What has been run already.
    pub journal: Option<&'a Journal>,
    /// Set to stop.
    pub interrupt: &'a AtomicBool,
    /// Who watches.
    pub watcher: &'a dyn Watcher,
}

/// The runs that were made.
#[derive(Debug)]
pub struct Made {
    /// In the order of the suite, those of refinements last.
    pub runs: Vec<RunReport>,
    /// How many runs refinements added.
    pub refined: usize,
    /// Why the suite stopped early, if it did.
    pub stopped: Option<Stop>,
}

/// What the workers share.
struct Shared {
    done: Vec<Option<RunReport>>,
    stopped: Option<Stop>,
    failed: Option<ReplayError>,
}

impl Sweep {
    /// Makes all runs, and those that refine the capacities. The result is the same whatever the number of jobs.
    ///
    /// # Errors
    /// A workload that cannot be drawn, an engine that fails, or a journal that cannot be written.
    pub fn make(&self, making: &Making<'_>) -> Result<Made, ReplayError> {
        let mut cells = self.cells();
        let ladder = cells.len();
        let (mut runs, mut stopped) = self.make_cells(&cells, making, &[])?;
        while stopped.is_none() {
            let further = self.refinement(&cells, &runs);
            if further.is_empty() {
                break;
            }
            making.watcher.planned(cells.len() + further.len());
            let (more, stop) = self.make_cells(&further, making, &runs)?;
            runs.extend(more);
            cells.extend(further);
            stopped = stop;
        }
        let refined = cells.len() - ladder;
        Ok(Made { runs: self.in_order(runs, ladder), refined, stopped })
    }

    /// Refined runs by variant, policy, rate and seed, whatever the round that made them.
    fn in_order(&self, mut runs: Vec<RunReport>, ladder: usize) -> Vec<RunReport> {
        let mut refined = runs.split_off(ladder.min(runs.len()));
        let place = |summary: &Summary| {
            let variant = self.variants.iter().position(|ready| ready.label == summary.variant);
            let policy = self.suite().policies.iter().position(|policy| *policy == summary.policy);
            (variant, policy)
        };
        refined.sort_by(|a, b| {
            let (a, b) = (&a.summary, &b.summary);
            let rate = |summary: &Summary| summary.qps.unwrap_or(0.0);
            place(a).cmp(&place(b)).then(rate(a).total_cmp(&rate(b))).then(a.seed.cmp(&b.seed))
        });
        runs.extend(refined);
        runs
    }

    fn make_cells(
        &self,
        cells: &[Cell],
        making: &Making<'_>,
        before: &[RunReport],
    ) -> Result<(Vec<RunReport>, Option<Stop>), ReplayError> {
        let keys: Vec<Option<String>> =
            cells.iter().map(|cell| Some(making.journal?.key(&self.variants[cell.variant], cell))).collect();
        let found = |key: &Option<String>| making.journal?.get(key.as_deref()?);
        let done: Vec<Option<RunReport>> = keys.iter().map(found).collect();
        for (cell, run) in cells.iter().zip(&done) {
            if let Some(run) = run {
                making.watcher.made(cell, run, true);
            }
        }
        let jobs = if self.parallel() { making.jobs.max(1) } else { 1 };
        let mut tasks = tasks(cells, &done, jobs);
        if self.parallel() {
            // From rate to rate of one seed, so that its requests are drawn once.
            tasks.sort_by_key(|task| task.first().map(|&index| (cells[index].variant, cells[index].seed)));
        }
        let (shared, next) = (Mutex::new(Shared { done, stopped: None, failed: None }), AtomicUsize::new(0));
        let work = || {
            let mut kept = Kept::default();
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let worker = Worker { sweep: self, making, cells, keys: &keys, shared: &shared, before };
                if let Err(error) = worker.task(task, &mut kept) {
                    lock(&shared).failed.get_or_insert(error);
                }
                let state = lock(&shared);
                if state.failed.is_some() || state.stopped.is_some() {
                    break;
                }
            }
        };
        match jobs.min(tasks.len()) {
            0 | 1 => work(),
            jobs => std::thread::scope(|scope| {
                (0..jobs).for_each(|_| {
                    scope.spawn(work);
                });
            }),
        }
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        match shared.failed {
            Some(error) => Err(error),
            None => Ok((shared.done.into_iter().flatten().collect(), shared.stopped)),
        }
    }

    /// The runs that halve the gaps around the capacities: between the last rung that passes and the first that fails, as long as they
    /// are further apart than the suite asks for.
    fn refinement(&self, cells: &[Cell], runs: &[RunReport]) -> Vec<Cell> {
        let Load::Rates { refine: Some(share), .. } = self.suite().load else { return Vec::new() };
        let mut further: Vec<Cell> = Vec::new();
        for (variant, ready) in self.variants.iter().enumerate() {
            for policy in &self.suite().policies {
                let of = |summary: &&Summary| summary.policy == *policy && summary.variant == ready.label;
                let own: Vec<&Summary> = runs.iter().map(|run| &run.summary).filter(of).collect();
                for objective in self.suite().all_objectives() {
                    let Some(capacity) = Capacity::of(policy, &own, objective, self.rates()) else {
                        continue;
                    };
                    for seed in &capacity.seeds {
                        let Some((passes, fails)) = seed.qps.zip(seed.fails_qps) else { continue };
                        let qps = three_digits((passes + fails) / 2.0);
                        let cell = Cell { variant, policy: policy.clone(), qps, seed: seed.seed };
                        let worth = fails - passes > share * fails && passes < qps && qps < fails;
                        if worth && !cells.contains(&cell) && !further.contains(&cell) {
                            further.push(cell);
                        }
                    }
                }
            }
        }
        further.sort_by(|a, b| (a.variant, a.seed).cmp(&(b.variant, b.seed)).then(a.qps.total_cmp(&b.qps)));
        further
    }
}

/// The places of cells that are to be run, in tasks: neighbours that serve the same requests go together, unless that would leave workers idle.
fn tasks(cells: &[Cell], done: &[Option<RunReport>], jobs: usize) -> Vec<Vec<usize>> {
    let open: Vec<usize> = (0..cells.len()).filter(|&index| done[index].is_none()).collect();
    let most = if jobs == 1 { usize::MAX } else { open.len().div_ceil(jobs * 4).max(1) };
    let mut tasks: Vec<Vec<usize>> = Vec::new();
    for index in open {
        match tasks.last_mut() {
            Some(task) if task.len() < most && cells[task[0]].shares_requests_with(&cells[index]) => {
                task.push(index);
            }
            _ => tasks.push(vec![index]),
        }
    }
    tasks
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Worker<'a> {
    sweep: &'a Sweep,
    making: &'a Making<'a>,
    cells: &'a [Cell],
    keys: &'a [Option<String>],
    shared: &'a Mutex<Shared>,
    before: &'a [RunReport],
}

impl Worker<'_> {
    /// Runs cells that serve the same requests.
    fn task(&self, task: &[usize], kept: &mut Kept) -> Result<(), ReplayError> {
        let Some(first) = task.first().map(|&index| &self.cells[index]) else { return Ok(()) };
        let batch = Batch::of(&self.sweep.variants[first.variant], first, kept)?;
        for &index in task {
            let stopped = |shared: &Shared| shared.failed.is_some() || shared.stopped.is_some();
            if stopped(&lock(self.shared)) || self.making.interrupt.load(Ordering::Relaxed) {
                lock(self.shared).stopped.get_or_insert(Stop::Interrupted);
                return Ok(());
            }
            self.cell(&batch, index)?;
        }
        Ok(())
    }

    fn cell(&self, batch: &Batch<'_>, index: usize) -> Result<(), ReplayError> {
        let (cell, watcher) = (&self.cells[index], self.making.watcher);
        let mut sink = watcher.sink(cell);
        let outcome = batch.run(cell, &mut *sink, self.making.interrupt)?;
        drop(sink);
        let mut run = RunReport::of(&outcome.aggregator, outcome.stopped.is_none());
        if let (None, Some(journal), Some(key)) = (&outcome.stopped, self.making.journal, &self.keys[index]) {
            run = journal.put(key, &run)?;
        }
        if outcome.stopped.is_none() {
            watcher.made(cell, &run, false);
        }
        let mut shared = lock(self.shared);
        shared.done[index] = Some(run);
        if let Some(stop) = outcome.stopped {
            shared.stopped.get_or_insert(stop);
            return Ok(());
        }
        watcher.progress(&mut self.before.iter().chain(shared.done.iter().flatten()))
    }
}
