//! From bytes to the state of a run, on a thread of its own.
//!
//! Lines are parsed without holding the run's lock; it is taken once a batch. Whoever draws holds it for a frame at most.

use cr_report::events::Event;
use cr_report::reader::{EventReader, ReadError};
use cr_routing::table::RoutingTable;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    limit: Limit,
    stop: Stop,
}

/// The run time up to which events are taken, shared with the reading thread.
#[derive(Clone, Debug)]
pub struct Limit(Arc<LimitState>);

#[derive(Debug)]
struct LimitState {
    until_s: AtomicU64,
    reached: AtomicBool,
}

impl Limit {
    /// Events up to `until_s` seconds; infinity for all.
    pub fn until(until_s: f64) -> Limit {
        Limit(Arc::new(LimitState {
            until_s: AtomicU64::new(until_s.to_bits()),
            reached: AtomicBool::new(false),
        }))
    }

    fn until_s(&self) -> f64 {
        f64::from_bits(self.0.until_s.load(Ordering::Relaxed))
    }

    fn set_reached(&self) {
        self.0.reached.store(true, Ordering::Relaxed);
    }
}

/// The lock; a thread that panicked while it held it leaves a state that can still be drawn.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Starts to read, up to a run time.
    pub fn open(input: Input, follow: Follow, tables: Arc<Vec<RoutingTable>>, limit: Limit) -> Feed {
        let run = Arc::new(Mutex::new(Run::new(input.name()).with_tables(Arc::clone(&tables))));
        let (over, fault, stop) = (Arc::<AtomicBool>::default(), Arc::default(), Stop::default());
        let mut worker = Worker {
            name: input.name(),
            tables,
            limit: limit.clone(),
            held: None,
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
        Feed { run, over, fault, thread, limit, stop }
    }

    /// Moves the run time up to which events are taken; only forward, what was taken stays.
    pub fn set_limit(&self, until_s: f64) {
        self.limit.0.until_s.store(until_s.to_bits(), Ordering::Relaxed);
    }

    /// Whether it has once taken all events up to its limit, or all there are.
    pub fn has_caught_up(&self) -> bool {
        self.limit.0.reached.load(Ordering::Relaxed) || self.is_over()
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

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker {
    name: String,
    tables: Arc<Vec<RoutingTable>>,
    limit: Limit,
    /// An event beyond the limit.
    held: Option<Event>,
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
            if self.is_held() {
                continue;
            }
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
                        None => {
                            if self.started.is_some() {
                                self.limit.set_reached();
                            }
                            None
                        }
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
        if event.t_s().is_some_and(|t_s| t_s > self.limit.until_s()) {
            self.held = Some(event);
            return None;
        }
        self.batch.push(event);
        if self.batch.len() == BATCH {
            self.flush();
        }
        None
    }

    /// Whether an event waits for the limit to pass it; waits a moment if so.
    fn is_held(&mut self) -> bool {
        let Some(event) = self.held.take() else { return false };
        // An event was held for its time, so it has one.
        if event.t_s().is_some_and(|t_s| t_s > self.limit.until_s()) {
            self.held = Some(event);
            self.flush();
            self.limit.set_reached();
            thread::sleep(PATIENCE / 3);
            return true;
        }
        self.batch.push(event);
        false
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
        *run = Run::new(&self.name).with_tables(Arc::clone(&self.tables));
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
