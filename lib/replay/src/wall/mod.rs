//! The wall clock: real time, one thread a shard, and all shards share the device.
//!
//! Arrivals are paced by the instants that the trace intends, never by gaps, so that being late once does not make the rest
//! late; latencies count from the intended arrival. Steps of the simulator sleep for as long as the cost model says. Each
//! shard's operations run on max(1, cores / shards) threads of a pool of its own, for shards step at the same time here.
//!
//! * this file — the desk's loop; * [`worker`] — one shard; * [`fleet`] — what the desk knows of them; * [`pace`] — whether arrivals are sent
//!   when they should be.

mod fleet;
mod pace;
mod worker;

use crate::desk::Desk;
use crate::run::{Outcome, RunSpec, Stop};
use crate::sink::EventSink;
use crate::{Fleet, ReplayError};
use cr_engine::EngineError;
use cr_trace::{Request, Time, TraceError};
use fleet::{News, WallFleet, What};
use pace::Pace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long the desk sleeps at most before it looks at the interrupt flag again.
const NAP: Duration = Duration::from_millis(50);

/// The zero of run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zero(Instant);

impl Zero {
    fn now(self) -> Time {
        Time::from_s(self.0.elapsed().as_secs_f64())
    }
}

/// Runs a trace in real time; see [`crate::run::run`].
pub(crate) fn run<I: Iterator<Item = Result<Arc<Request>, TraceError>>>(
    spec: &RunSpec,
    fleet: Fleet,
    trace: I,
    sink: &mut dyn EventSink,
    interrupt: &AtomicBool,
) -> Result<Outcome, ReplayError> {
    let zero = Zero(Instant::now());
    let (fleet, news) = WallFleet::start(fleet, zero)?;
    let desk = Desk::new(spec, fleet, trace, sink)?;
    let mut clock = WallClock { desk, news, zero, pace: Pace::default(), stopping: false };
    let stopped = clock.run(interrupt)?;
    clock.end(stopped)
}

struct WallClock<'a, I> {
    desk: Desk<'a, WallFleet, I>,
    news: Receiver<News>,
    zero: Zero,
    pace: Pace,
    /// Shards have been told to stop.
    stopping: bool,
}

impl<I: Iterator<Item = Result<Arc<Request>, TraceError>>> WallClock<'_, I> {
    fn run(&mut self, interrupt: &AtomicBool) -> Result<Option<Stop>, ReplayError> {
        self.desk.open()?;
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(Some(Stop::Interrupted));
            }
            match self.advance() {
                Ok(true) => {}
                // A trace that is interrupted while it waits for a line looks like one that has ended.
                Ok(false) if interrupt.load(Ordering::Relaxed) => return Ok(Some(Stop::Interrupted)),
                Ok(false) => return Ok(None),
                Err(ReplayError::Trace(error)) => return Ok(Some(Stop::Trace(error))),
                Err(ReplayError::Engine(error)) => return Ok(Some(Stop::Engine(error))),
                Err(other) => return Err(other),
            }
        }
    }

    /// Does what it is time for, or waits; false where nothing is left to do.
    fn advance(&mut self) -> Result<bool, ReplayError> {
        while let Ok(news) = self.news.try_recv() {
            self.hear(news)?;
        }
        let arrival = self.desk.next_arrival()?;
        if arrival.is_none() && self.desk.fleet.is_empty() {
            return Ok(false);
        }
        let due = self.desk.next_due();
        let now = self.zero.now();
        match (due, arrival) {
            (Some(due), arrival) if due <= now && arrival.is_none_or(|arrival| due <= arrival) => {
                self.desk.advance(now)?;
                self.desk.perform()?;
            }
            (_, Some(arrival)) if arrival <= now => {
                self.desk.advance(now)?;
                if let Some((offered, achieved)) = self.pace.sent(arrival, now) {
                    let detail = format!("offered {offered:.1}, achieved {achieved:.1} QPS");
                    self.desk.narrator.warn(now, "under-delivery", detail)?;
                }
                self.desk.arrive()?;
            }
            _ => self.wait([due, arrival].into_iter().flatten().min(), now)?,
        }
        Ok(true)
    }

    /// Waits for news, but not beyond the next thing to do.
    fn wait(&mut self, next: Option<Time>, now: Time) -> Result<(), ReplayError> {
        let until = next.map_or(NAP, |next| Duration::from_secs_f64(next.since(now).as_s()).min(NAP));
        match self.news.recv_timeout(until) {
            Ok(news) => self.hear(news),
            // Snapshots go on while nothing happens.
            Err(RecvTimeoutError::Timeout) if self.desk.fleet.ended().is_none() => {
                self.desk.advance(self.zero.now())
            }
            Err(_) => {
                let shard = self.desk.fleet.ended().map_or(0, |shard| shard.0);
                let what =
                    format!("the thread of shard {shard} has ended, which is a defect of this program");
                Err(EngineError::Config(what).into())
            }
        }
    }

    /// Takes in what a shard reports.
    fn hear(&mut self, news: News) -> Result<(), ReplayError> {
        // What came before is told first, with what was known then.
        self.desk.advance(news.at)?;
        let shard = news.shard;
        let Some((departed, what)) = self.desk.fleet.hear(news) else { return Ok(()) };
        match what {
            What::Stepped => self.desk.see_off(shard, &departed),
            // There is nowhere to go any more.
            What::Evacuated(_) if self.stopping => self.desk.interrupt(shard, departed),
            What::Evacuated(kind) => self.desk.evacuated(shard, departed, kind),
            What::Stopped => self.desk.interrupt(shard, departed),
            What::Failed(error) => Err(error.into()),
        }
    }

    /// Stops the shards and sums up.
    fn end(mut self, stopped: Option<Stop>) -> Result<Outcome, ReplayError> {
        self.desk.fleet.stop();
        self.stopping = true;
        while let Ok(news) = self.news.recv() {
            match self.hear(news) {
                // The first failure ended the run; what other shards say of it adds nothing.
                Err(ReplayError::Engine(_)) => {}
                other => other?,
            }
        }
        self.desk.advance(self.zero.now())?;
        if let Some((offered, achieved)) = self.pace.rest() {
            let detail = format!("offered {offered:.1}, achieved {achieved:.1} QPS");
            self.desk.narrator.warn(self.desk.now, "under-delivery", detail)?;
        }
        self.desk.end(stopped)
    }
}
