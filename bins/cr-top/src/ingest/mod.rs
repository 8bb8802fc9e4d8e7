//! From bytes to the state of a run, on threads of their own.
//!
//! One thread reads bytes ([`crate::source`]), one parses lines ([`parse`]), one takes events over into the run ([`fold`]), with a
//! bounded queue between them. Only the last takes the run's lock, once a batch; whoever draws holds it for a frame at
//! most.

mod fold;
mod parse;

use cr_report::events::Event;
use cr_routing::table::RoutingTable;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::source::tap::Line;
use crate::source::{self, Follow, Input, Stop};
use crate::state::run::Run;

/// Batches that may wait between parsing and taking over.
const QUEUE: usize = 8;

/// What the parsing thread hands on.
#[derive(Debug)]
enum Step {
    /// Events that passed the reader's checks, in order.
    Events(Vec<Event>),
    /// A line that is no event, with its place.
    BadLine(String),
    /// What follows is a new stream, and why.
    Restart(&'static str),
    /// Why nothing comes.
    Note(String),
    /// Everything up to the limit, or everything there is so far, was handed on.
    Reached,
    /// The input is unusable, in one sentence.
    Fault(String),
    /// Nothing follows.
    End,
}

/// A run that is being read.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
    until_s: Limit,
    stop: Stop,
    is_file: bool,
}

/// What the threads and whoever draws share.
#[derive(Debug)]
struct Shared {
    run: Mutex<Run>,
    over: AtomicBool,
    reached: AtomicBool,
    fault: Mutex<Option<String>>,
}

/// Up to where a stream is read.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// The runs of the stream that are read whole.
    pub runs: u64,
    /// The time of the run after them, in seconds.
    pub t_s: f64,
}

impl Until {
    /// To its end.
    pub const END: Until = Until { runs: 0, t_s: f64::INFINITY };
}

/// The run time up to which events are taken, in seconds.
#[derive(Clone, Debug)]
struct Limit(Arc<AtomicU64>);

impl Limit {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, until_s: f64) {
        self.0.store(until_s.to_bits(), Ordering::Relaxed);
    }
}

/// The lock; a thread that panicked while it held it leaves a state that can still be drawn.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Feed {
    /// Starts to read.
    pub fn open(input: Input, follow: Follow, tables: Arc<Vec<RoutingTable>>, until: Until) -> Feed {
        let (name, is_file) = (input.name(), input.is_file());
        let run = Run::new(&name).with_tables(tables);
        let shared = Arc::new(Shared {
            run: Mutex::new(run),
            over: AtomicBool::new(false),
            reached: AtomicBool::new(false),
            fault: Mutex::new(None),
        });
        let (limit, stop) = (Limit(Arc::new(AtomicU64::new(until.t_s.to_bits()))), Stop::default());
        let (sender, receiver) = sync_channel(QUEUE);
        let (until_s, stopped) = (limit.clone(), stop.clone());
        thread::spawn(move || {
            let parser = parse::Parser::new(&input, until_s, until.runs, sender);
            parser.run(&Line::new(source::spawn(input, follow, stopped.clone())), &stopped);
        });
        let folder = fold::Folder::new(Arc::clone(&shared));
        let thread = thread::spawn(move || folder.run(&receiver));
        Feed { shared, thread, until_s: limit, stop, is_file }
    }

    /// The run as it is now. Hold it for a moment only.
    pub fn run(&self) -> MutexGuard<'_, Run> {
        lock(&self.shared.run)
    }

    /// Whether it reads a file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Whether everything was read that will ever come.
    pub fn is_over(&self) -> bool {
        self.shared.over.load(Ordering::Acquire)
    }

    /// What made the input unusable, in one sentence.
    pub fn fault(&self) -> Option<String> {
        lock(&self.shared.fault).clone()
    }

    /// Whether a thread died of an error of its own.
    pub fn is_broken(&self) -> bool {
        self.thread.is_finished() && !self.is_over() && self.fault().is_none() && !self.stop.is_set()
    }

    /// Moves the run time up to which events are taken; only forward, what was taken stays.
    pub fn set_limit(&self, until_s: f64) {
        self.until_s.set(until_s);
    }

    /// Whether it has taken all events up to its limit, or all that there are so far.
    pub fn has_caught_up(&self) -> bool {
        self.shared.reached.load(Ordering::Acquire) || self.is_over()
    }
}

impl Drop for Feed {
    /// Tells the threads to end; they are not waited for, since a read from a pipe may never return.
    fn drop(&mut self) {
        self.stop.set();
    }
}
