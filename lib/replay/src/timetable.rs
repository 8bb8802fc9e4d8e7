//! What is known beforehand: faults, their ends, and tables with a time.

use crate::faults::Fault;
use cr_routing::RoutingTable;
use cr_trace::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Something that happens at a time known beforehand. At one instant ends come before faults, and faults before tables.
#[derive(Clone, Debug)]
pub(crate) enum Due {
    /// The fault of this place in the list is over.
    FaultEnds(usize, Fault),
    /// The fault of this place in the list happens.
    Fault(usize, Fault),
    /// A table is installed.
    Table(Arc<RoutingTable>),
}

impl Due {
    fn rank(&self) -> u8 {
        match self {
            Due::FaultEnds(..) => 0,
            Due::Fault(..) => 1,
            Due::Table(_) => 2,
        }
    }
}

/// All of it, earliest first; at one instant in the order of the lists.
#[derive(Debug)]
pub(crate) struct Timetable(VecDeque<(Time, Due)>);

impl Timetable {
    pub(crate) fn new(faults: &[Fault], tables: &[Arc<RoutingTable>]) -> Timetable {
        let mut all: Vec<(Time, Due)> = Vec::new();
        for (place, &fault) in faults.iter().enumerate() {
            all.push((fault.at, Due::Fault(place, fault)));
            all.extend(fault.ends_at().map(|end| (end, Due::FaultEnds(place, fault))));
        }
        all.extend(tables.iter().map(|t| (Time::from_s(t.meta().from_s), Due::Table(Arc::clone(t)))));
        all.sort_by_key(|(time, due)| (*time, due.rank()));
        Timetable(all.into())
    }

    /// When the next thing is due.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.0.front().map(|(time, _)| *time)
    }

    /// Takes the next thing.
    pub(crate) fn pop(&mut self) -> Option<Due> {
        self.0.pop_front().map(|(_, due)| due)
    }
}
