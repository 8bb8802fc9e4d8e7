//! From batches of events to the state of the run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::{Shared, Step, lock};

pub(super) struct Folder {
    shared: Arc<Shared>,
    /// When the first event came.
    started: Option<Instant>,
}

impl Folder {
    pub(super) fn new(shared: Arc<Shared>) -> Folder {
        Folder { shared, started: None }
    }

    /// Takes over what comes until the input ends, is unusable, or the parsing thread is gone.
    pub(super) fn run(mut self, steps: &Receiver<Step>) {
        for step in steps {
            match step {
                Step::End => {
                    lock(&self.shared.run).end();
                    self.shared.over.store(true, Ordering::Release);
                    return;
                }
                Step::Fault(what) => {
                    *lock(&self.shared.fault) = Some(what);
                    return;
                }
                step => self.take(step),
            }
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
            }
            Step::BadLine(what) => lock(&self.shared.run).live.bad_line(what),
            Step::Note(note) => lock(&self.shared.run).live.note = Some(note),
            Step::Restart(why) => {
                self.started = None;
                lock(&self.shared.run).start_over(why);
            }
            Step::Reached => self.shared.reached.store(true, Ordering::Release),
            // Handled by the caller.
            Step::Fault(_) | Step::End => {}
        }
    }
}
