//! From batches of events to the state of the run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use super::{Shared, Step, lock};

pub(super) struct Folder {
    shared: Arc<Shared>,
    /// Since when the run is watched: its first event, or the first moment in which nothing more was there to read.
    watched: Option<Watched>,
}

#[derive(Clone, Copy)]
struct Watched {
    since: Instant,
    has_caught_up: bool,
    /// The run of the stream.
    run: u64,
}

impl Folder {
    pub(super) fn new(shared: Arc<Shared>) -> Folder {
        Folder { shared, watched: None }
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
                let mut run = lock(&self.shared.run);
                batch.iter().for_each(|event| run.observe(event));
                let now = Watched { since: Instant::now(), has_caught_up: false, run: run.live.runs_before };
                let watched = self.watched.filter(|watched| watched.run == now.run).unwrap_or(now);
                self.watched = Some(watched);
                run.live.wall_s = watched.since.elapsed().as_secs_f64();
                self.shared.reached.store(false, Ordering::Release);
            }
            Step::BadLine(what) => lock(&self.shared.run).live.bad_line(what),
            Step::Note(note) => lock(&self.shared.run).live.note = Some(note),
            Step::Restart(why) => {
                self.watched = None;
                lock(&self.shared.run).start_over(why);
            }
            Step::Reached => {
                self.catch_up();
                self.shared.reached.store(true, Ordering::Release);
            }
            // Handled by the caller.
            Step::Fault(_) | Step::End => {}
        }
    }

    /// What was there when reading began took no time that says anything of the run's pace.
    fn catch_up(&mut self) {
        if let Some(watched) = self.watched.as_mut().filter(|watched| !watched.has_caught_up) {
            (watched.since, watched.has_caught_up) = (Instant::now(), true);
            let live = &mut lock(&self.shared.run).live;
            (live.wall_s, live.done_unwatched) = (0.0, live.done_requests());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::run::Run;
    use cr_report::events::{Event, Fail, FailReason, Header};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;

    fn events(requests: u64) -> Step {
        let header = Header { shards: 1, requests_expected: Some(100), ..Header::default() };
        let fail = |id: u64| Fail {
            t_s: id as f64,
            id: cr_trace::RequestId(id),
            key: "k".into(),
            shard: None,
            reason: FailReason::Timeout,
            detail: "late".into(),
            measured: true,
            arrival_s: None,
            retries: 0,
        };
        let fails = (0..requests).map(|id| Event::Fail(fail(id)));
        Step::Events(std::iter::once(Event::Header(header)).chain(fails).collect())
    }

    #[test]
    fn the_pace_is_that_of_what_was_watched() {
        let shared = Arc::new(Shared {
            run: Mutex::new(Run::new("x")),
            over: AtomicBool::new(false),
            reached: AtomicBool::new(false),
            fault: Mutex::new(None),
        });
        let mut folder = Folder::new(Arc::clone(&shared));
        let state = || {
            let live = &lock(&shared.run).live;
            (live.wall_s > 0.0, live.done_unwatched, live.eta_s().is_some())
        };
        folder.take(events(50));
        assert_eq!(state(), (true, 0, true));
        // All that was there is read; from now on the run can be watched.
        folder.take(Step::Reached);
        assert_eq!(state(), (false, 50, false));
        folder.take(Step::Reached);
        assert_eq!(state(), (false, 50, false));
        // The next run of the stream has a pace of its own.
        folder.take(events(10));
        assert_eq!(state(), (true, 0, true));
    }
}
