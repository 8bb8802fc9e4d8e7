//! What happens next under the virtual clock.
//!
//! Events are ordered by (time, kind, index), kinds in the order step end < fault and table < arrival < step start, so
//! that a run never depends on the order in which things were put down. Only steps are here; arrivals
//! (`crate::arrivals`), faults and tables (`crate::timetable`) come from elsewhere, their kinds are here to be compared with.

use cr_trace::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A shard's step ends; the index is the shard.
    StepEnd,
    /// Something that was known beforehand is due: a fault, a table, a plan.
    Due,
    /// A request arrives.
    Arrival,
    /// A shard starts a step if it has work; the index is the shard.
    StepStart,
}

/// When, what, and which.
pub(crate) type Entry = (Time, Kind, u32);

/// The events to come, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Agenda(BinaryHeap<Reverse<Entry>>);

impl Agenda {
    pub(crate) fn push(&mut self, time: Time, kind: Kind, index: u32) {
        self.0.push(Reverse((time, kind, index)));
    }

    /// The earliest event.
    pub(crate) fn peek(&self) -> Option<Entry> {
        self.0.peek().map(|entry| entry.0)
    }

    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.0.pop().map(|entry| entry.0)
    }
}
