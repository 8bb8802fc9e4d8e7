//! From bytes to the state of a run, on a thread of its own.
//!
//! Lines are parsed without holding the run's lock; it is taken once a batch. Whoever draws holds it for a frame at most.

use cr_report::events::Event;
use cr_report::reader::{EventReader, ReadError};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::source::tap::{Line, Signal, Tap};
use crate::source::{self, Follow, Input, Stop};
use crate::state::run::{MAX_SHARDS, Run};

/// Events of one batch at most.
const BATCH: usize = 1024;
/// How long to wait for bytes before what has come is shown.
const PATIENCE: Duration = Duration::from_millis(30);
/// Time between two summaries of a run that goes on.
const REFRESH: Duration = Duration::from_millis(500);

/// A run that is being read.
#[derive(Debug)]
pub struct Feed {
    run: Arc<Mutex<Run>>,
    over: Arc<AtomicBool>,
    fault: Arc<Mutex<Option<String>>>,
    thread: JoinHandle<()>,
    stop: Stop,
}

/// The lock; a thread that panicked while it held it leaves a state that can still be drawn.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Starts to read.
    pub fn open(input: Input, follow: Follow) -> Feed {
        let run = Arc::new(Mutex::new(Run::new(input.name())));
        let (over, fault, stop) = (Arc::<AtomicBool>::default(), Arc::default(), Stop::default());
        let mut worker = Worker {
            name: input.name(),
            run: Arc::clone(&run),
            fault: Arc::clone(&fault),
            started: None,
            refreshed: Instant::now(),
            dirty: false,
            batch: Vec::with_capacity(BATCH),
        };
        let (done, stopped) = (Arc::clone(&over), stop.clone());
        let thread = thread::spawn(move || {
            worker.work(Line::new(source::spawn(input, follow, stopped.clone())), &stopped);
            done.store(true, Ordering::Release);
        });
        Feed { run, over, fault, thread, stop }
    }

    /// The run as it is now. Hold it for a moment only.
    pub fn run(&self) -> MutexGuard<'_, Run> {
        lock(&self.run)
    }

    /// Whether everything was read that will ever come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// What made the input unusable, in one sentence.
    pub fn fault(&self) -> Option<String> {
        lock(&self.fault).clone()
    }

    /// Whether the thread died of an error of its own.
    pub fn is_broken(&self) -> bool {
        self.thread.is_finished() && !self.is_over()
    }

    /// Tells the threads to end; they are not waited for, since a read from a pipe may never return.
    pub fn stop(&self) {
        self.stop.set();
    }
}

struct Worker {
    name: String,
    run: Arc<Mutex<Run>>,
    fault: Arc<Mutex<Option<String>>>,
    started: Option<Instant>,
    refreshed: Instant,
    dirty: bool,
    batch: Vec<Event>,
}

impl Worker {
    fn work(&mut self, line: Rc<Line>, stop: &Stop) {
        let mut reader = EventReader::growing(Tap::new(&line), &self.name);
        while !stop.is_set() {
            // While events flow nothing is waited for; once they stop, what has come is shown before waiting for more.
            let fatal = match reader.next_event() {
                Ok(Some(event)) => {
                    line.set_patience(Duration::ZERO);
                    self.take(event)
                }
                Err(error) => self.bad(error),
                Ok(None) => {
                    self.flush();
                    line.set_patience(PATIENCE);
                    match line.take_signal() {
                        None => None,
                        Some(Signal::Restart(why)) => {
                            reader = EventReader::growing(Tap::new(&line), &self.name);
                            self.restart(why);
                            None
                        }
                        Some(Signal::Note(note)) => {
                            lock(&self.run).live.note = Some(note);
                            None
                        }
                        Some(Signal::Failed(what)) => Some(what),
                        Some(Signal::End) => match self.end() {
                            Some(what) => Some(what),
                            None => return,
                        },
                    }
                }
            };
            if let Some(what) = fatal {
                self.flush();
                *lock(&self.fault) = Some(what);
                return;
            }
        }
    }

    /// Puts an event into the batch; says what makes the whole stream unusable here.
    fn take(&mut self, event: Event) -> Option<String> {
        if let Event::Header(header) = &event
            && header.shards > MAX_SHARDS
        {
            return Some(format!(
                "{}: {} shards; cr-top shows at most {MAX_SHARDS}",
                self.name, header.shards
            ));
        }
        self.batch.push(event);
        if self.batch.len() == BATCH {
            self.flush();
        }
        None
    }

    /// A line that is no event: counted, unless nothing valid came before it, which is fatal.
    fn bad(&mut self, error: ReadError) -> Option<String> {
        self.flush();
        let mut run = lock(&self.run);
        if run.live.header.is_none() {
            return Some(format!("{error}; is this the output of cr-serve run?"));
        }
        run.live.bad_line(error.to_string());
        None
    }

    /// Hands the batch over to the run.
    fn flush(&mut self) {
        let due = self.refreshed.elapsed() >= REFRESH;
        if self.batch.is_empty() && !(self.dirty && due) {
            return;
        }
        let started = *self.started.get_or_insert_with(Instant::now);
        let mut run = lock(&self.run);
        for event in self.batch.drain(..) {
            run.observe(&event);
            self.dirty = true;
        }
        run.live.wall_s = started.elapsed().as_secs_f64();
        if due || run.live.summary.is_none() {
            run.refresh();
            (self.refreshed, self.dirty) = (Instant::now(), false);
        }
    }

    fn restart(&mut self, why: &str) {
        self.flush();
        (self.started, self.dirty) = (None, false);
        let mut run = lock(&self.run);
        *run = Run::new(&self.name);
        run.live.log.push(0.0, crate::state::log::Kind::Note, why);
    }

    /// Nothing follows. An input without any event is of no use.
    fn end(&mut self) -> Option<String> {
        self.flush();
        let mut run = lock(&self.run);
        if run.live.header.is_none() {
            let hint = "pipe cr-serve run into cr-top, or name a file of events";
            return Some(format!("{}: no events, the input is empty; {hint}", self.name));
        }
        run.end();
        None
    }
}
