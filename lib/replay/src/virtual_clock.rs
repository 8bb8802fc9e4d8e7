//! The virtual clock: the earliest event of all shards comes next.
//!
//! Every shard has a time line of its own. A step really runs on the device, and its duration moves that shard's clock
//! only. So N logical shards on one device behave as N servers that each own such a device.

use crate::agenda::{Agenda, Ending, Kind};
use crate::desk::Desk;
use crate::run::Stop;
use crate::{Fleet, ReplayError};
use cr_engine::Departed;
use cr_trace::{Request, ShardId, Time, TraceError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The last instant at which anything happens: sums of times near the end of the numbers are not to be trusted.
const LAST: Time = Time((Time::MAX_S * 1e12) as u64);

/// What became of the next thing.
enum Next {
    Happened,
    /// There is none.
    Nothing,
    /// It lies beyond [`LAST`].
    Beyond,
}

/// Drives a desk from event to event.
pub(crate) struct VirtualClock<'a, I> {
    desk: Desk<'a, Fleet, I>,
    agenda: Agenda,
    departed: Vec<Departed>,
}

impl<'a, I: Iterator<Item = Result<Arc<Request>, TraceError>>> VirtualClock<'a, I> {
    pub(crate) fn new(desk: Desk<'a, Fleet, I>) -> Self {
        let agenda = Agenda::new(desk.fleet.len());
        VirtualClock { desk, agenda, departed: Vec::new() }
    }

    /// Runs to the end, or until `interrupt` is set or the trace or the engine fails; hands the desk back.
    pub(crate) fn run(
        mut self,
        interrupt: &AtomicBool,
    ) -> Result<(Desk<'a, Fleet, I>, Option<Stop>), ReplayError> {
        self.desk.open()?;
        let stopped = loop {
            if interrupt.load(Ordering::Relaxed) {
                break Some(Stop::Interrupted);
            }
            match self.advance(interrupt) {
                Ok(Next::Happened) => {}
                // A trace that is interrupted while it waits for a line looks like one that has ended.
                Ok(Next::Nothing) if interrupt.load(Ordering::Relaxed) => break Some(Stop::Interrupted),
                Ok(Next::Nothing) => break None,
                Ok(Next::Beyond) => break Some(Stop::ClockEnds),
                Err(ReplayError::Trace(error)) => break Some(Stop::Trace(error)),
                Err(ReplayError::Engine(error)) => break Some(Stop::Engine(error)),
                Err(other) => return Err(other),
            }
        };
        if stopped.is_some() {
            for (shard, departed) in self.desk.fleet.abandon(self.desk.now) {
                self.desk.interrupt(shard, departed)?;
            }
        }
        Ok((self.desk, stopped))
    }

    /// Does the next thing, or all steps that come before anything else.
    fn advance(&mut self, interrupt: &AtomicBool) -> Result<Next, ReplayError> {
        let (arrival, due) = (self.desk.next_arrival()?, self.desk.next_due());
        if self.steps_before(arrival, due, interrupt)? {
            return Ok(Next::Happened);
        }
        let Some((time, kind, index)) = self.agenda.next(arrival, due) else {
            return Ok(if arrival.is_some() { Next::Beyond } else { Next::Nothing });
        };
        if time > LAST {
            return Ok(Next::Beyond);
        }
        self.desk.advance(time)?;
        match kind {
            Kind::Arrival => self.desk.arrive()?,
            Kind::Due => self.desk.perform()?,
            Kind::StepEnd => {
                if self.end_step(ShardId(index), time)? {
                    self.agenda.starts(ShardId(index), time);
                }
            }
            Kind::StepStart => self.start_step(ShardId(index))?,
        }
        while let Some((shard, end)) = self.desk.fleet.next_moved() {
            match end {
                Some(end) => self.agenda.ends(shard, end),
                None => self.agenda.clear(shard),
            }
        }
        while let Some(shard) = self.desk.next_woken() {
            self.agenda.starts(shard, self.desk.now);
        }
        Ok(Next::Happened)
    }

    /// Most of what happens is that a step ends and its shard starts the next one at the same instant: as long as that comes before
    /// all else, nothing else is looked at. Says whether there was such a step.
    fn steps_before(
        &mut self,
        arrival: Option<Time>,
        due: Option<Time>,
        interrupt: &AtomicBool,
    ) -> Result<bool, ReplayError> {
        let others = arrival.unwrap_or(LAST).min(due.unwrap_or(LAST)).min(LAST);
        let mut any = false;
        while let Some(Ending { shard, at: now, then }) = self.agenda.end_before(others)
            && self.desk.pass(now)
        {
            any = true;
            let released = self.desk.released();
            let more = self.end_step(shard, now)?;
            let as_before = self.desk.released() == released;
            if more && as_before && then > now {
                self.start_step(shard)?;
            } else if more {
                self.agenda.starts(shard, now);
            }
            if !as_before || interrupt.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(any)
    }

    fn start_step(&mut self, shard: ShardId) -> Result<(), ReplayError> {
        match self.desk.fleet.start_step(shard, self.desk.now, &mut self.departed)? {
            Some(end) => self.agenda.ends(shard, end),
            None => self.agenda.clear(shard),
        }
        self.see_off(shard)
    }

    /// Says whether the shard has more to do.
    fn end_step(&mut self, shard: ShardId, now: Time) -> Result<bool, ReplayError> {
        let more = self.desk.fleet.end_step(shard, now, &mut self.departed);
        self.see_off(shard)?;
        if !more {
            self.agenda.clear(shard);
        }
        Ok(more)
    }

    /// Mostly nobody has left.
    #[inline]
    fn see_off(&mut self, shard: ShardId) -> Result<(), ReplayError> {
        if self.departed.is_empty() {
            self.desk.observe(shard);
            return Ok(());
        }
        self.see_off_all(shard)
    }

    #[inline(never)]
    fn see_off_all(&mut self, shard: ShardId) -> Result<(), ReplayError> {
        self.desk.see_off(shard, &self.departed)?;
        self.departed.clear();
        Ok(())
    }
}
