//! From batches of events to the state of the run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{Shared, Step, lock};

/// Time between two summaries of a run that goes on.
const REFRESH: Duration = Duration::from_millis(500);

pub(super) struct Folder {
    shared: Arc<Shared>,
    /// When the first event came.
    started: Option<Instant>,
    refreshed: Instant,
    /// Whether something came since the last summary.
    dirty: bool,
}

impl Folder {
    pub(super) fn new(shared: Arc<Shared>) -> Folder {
        Folder { shared, started: None, refreshed: Instant::now(), dirty: false }
    }

    /// Takes over what comes until the input ends, is unusable, or the parsing thread is gone.
    pub(super) fn run(mut self, steps: &Receiver<Step>) {
        loop {
            match steps.recv_timeout(REFRESH) {
                Ok(Step::End) => {
                    lock(&self.shared.run).end();
                    self.shared.over.store(true, Ordering::Release);
                    return;
                }
                Ok(Step::Fault(what)) => {
                    *lock(&self.shared.fault) = Some(what);
                    return;
                }
                Ok(step) => self.take(step),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.refresh();
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Events(batch) => {
                let started = *self.started.get_or_insert_with(Instant::now);
                let mut run = lock(&self.shared.run);
                batch.iter().for_each(|event| run.observe(event));
                run.live.wall_s = started.elapsed().as_secs_f64();
                self.shared.reached.store(false, Ordering::Release);
                self.dirty = true;
            }
            Step::BadLine(what) => lock(&self.shared.run).live.bad_line(what),
            Step::Note(note) => lock(&self.shared.run).live.note = Some(note),
            Step::Restart(why) => {
                (self.started, self.dirty) = (None, false);
                lock(&self.shared.run).start_over(why);
            }
            Step::Reached => self.shared.reached.store(true, Ordering::Release),
            // Handled by the caller.
            Step::Fault(_) | Step::End => {}
        }
    }

    /// Works out the summary so far, now and then; the first at once.
    fn refresh(&mut self) {
        if !self.dirty {
            return;
        }
        let mut run = lock(&self.shared.run);
        if run.live.summary.is_none() || self.refreshed.elapsed() >= REFRESH {
            run.refresh();
            (self.refreshed, self.dirty) = (Instant::now(), false);
        }
    }
}
