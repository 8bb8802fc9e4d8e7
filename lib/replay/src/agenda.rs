//! What happens next under the virtual clock.
//!
//! Events are ordered by (time, kind, index), kinds in the order step end < fault and table < arrival < step start, so
//! that a run never depends on the order in which things were put down. Only steps are kept here, at most one entry a
//! shard: a step ends, or one is to start. Kinds that come from elsewhere are here only to be compared with.

use cr_trace::{ShardId, Time};
use std::collections::VecDeque;

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

/// No time: later than every other.
const NEVER: Time = Time::MAX;

/// The next step event of every shard.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// When steps end, as a tournament in which the earliest wins, so that a change costs one walk from the shard's leaf to the
    /// root: node n has the lesser of nodes 2n and 2n + 1; the leaves are the upper half, one a shard.
    ends: Vec<Time>,
    /// Steps that are to start, in order. Whatever is put down here is for the present instant, so these are few.
    starts: VecDeque<(Time, ShardId)>,
    /// Which shards have an entry there.
    is_to_start: Vec<bool>,
}

impl Agenda {
    /// Nothing to do on any of this many shards.
    pub(crate) fn new(shards: usize) -> Agenda {
        let leaves = shards.next_power_of_two();
        Agenda { ends: vec![NEVER; 2 * leaves], starts: VecDeque::new(), is_to_start: vec![false; leaves] }
    }

    /// The step of the shard ends at that time; replaces what was known of the shard.
    pub(crate) fn ends(&mut self, shard: ShardId, time: Time) {
        self.forget_start(shard);
        self.put(shard, time.min(Time(NEVER.0 - 1)));
    }

    /// The shard starts a step at that time; replaces what was known of the shard.
    pub(crate) fn starts(&mut self, shard: ShardId, time: Time) {
        self.clear(shard);
        self.is_to_start[shard.index()] = true;
        let entry = (time, shard);
        match self.starts.back() {
            Some(&last) if entry < last => {
                let place = self.starts.partition_point(|&other| other < entry);
                self.starts.insert(place, entry);
            }
            _ => self.starts.push_back(entry),
        }
    }

    /// Nothing is known of the shard any more.
    pub(crate) fn clear(&mut self, shard: ShardId) {
        self.forget_start(shard);
        self.put(shard, NEVER);
    }

    fn forget_start(&mut self, shard: ShardId) {
        if !std::mem::take(&mut self.is_to_start[shard.index()]) {
            return;
        }
        // Mostly it is this one's turn.
        if self.starts.pop_front_if(|(_, first)| *first == shard).is_none() {
            self.starts.retain(|&(_, other)| other != shard);
        }
    }

    fn put(&mut self, shard: ShardId, time: Time) {
        let mut node = self.ends.len() / 2 + shard.index();
        self.ends[node] = time;
        while node > 1 {
            let winner = self.ends[node].min(self.ends[node ^ 1]);
            node /= 2;
            if self.ends[node] == winner {
                break;
            }
            self.ends[node] = winner;
        }
    }

    /// The shard whose step ends first, where that comes before `others` and nothing is to start.
    #[inline]
    pub(crate) fn end_before(&self, others: Time) -> Option<(ShardId, Time)> {
        let end = self.ends[1];
        (end < others && self.starts.is_empty()).then(|| (ShardId(self.first_that_ends_at(end)), end))
    }

    /// Whether, of what is known here, nothing comes before a step that the shard would start at `now`, the present instant. What is
    /// known of the shard itself is in the past.
    pub(crate) fn is_free(&self, shard: ShardId, now: Time) -> bool {
        let mut node = self.ends.len() / 2 + shard.index();
        let mut earliest = NEVER;
        while node > 1 {
            earliest = earliest.min(self.ends[node ^ 1]);
            node /= 2;
        }
        earliest > now && self.starts.is_empty()
    }

    /// The first shard whose step ends at that time, which is the earliest.
    fn first_that_ends_at(&self, time: Time) -> u32 {
        let mut node = 1;
        while node < self.ends.len() / 2 {
            node = 2 * node + usize::from(self.ends[2 * node] != time);
        }
        (node - self.ends.len() / 2) as u32
    }

    /// The earliest event, things that are known elsewhere included: when the next request arrives, and when the next thing is
    /// due. `None` where there is neither a step nor an arrival: what is due counts only while there is traffic, and never
    /// prolongs a run.
    #[inline]
    pub(crate) fn next(&self, arrival: Option<Time>, due: Option<Time>) -> Option<Entry> {
        // A single leaf is node 1, the root.
        let end = self.ends[1];
        let start = self.starts.front().map_or(NEVER, |&(time, _)| time);
        let (arrival, due) = (arrival.unwrap_or(NEVER), due.unwrap_or(NEVER));
        let traffic = end.min(start).min(arrival);
        let time = traffic.min(due);
        if traffic == NEVER {
            return None;
        }
        Some(match time {
            _ if time == end => (time, Kind::StepEnd, self.first_that_ends_at(end)),
            _ if time == due => (time, Kind::Due, 0),
            _ if time == arrival => (time, Kind::Arrival, 0),
            _ => (time, Kind::StepStart, self.starts.front().map_or(0, |&(_, shard)| shard.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The earliest of a plain list.
        #[test]
        fn it_knows_the_earliest(shards in 1usize..20, changes in proptest::collection::vec((0u32..20, proptest::option::of((0u64..9, any::<bool>()))), 0..200)) {
            let mut agenda = Agenda::new(shards);
            let mut naive: Vec<Option<Entry>> = vec![None; shards];
            for (shard, change) in changes {
                let shard = ShardId(shard % shards as u32);
                let entry = change.map(|(time, end)| (Time(time), if end { Kind::StepEnd } else { Kind::StepStart }));
                match entry {
                    Some((time, Kind::StepEnd)) => agenda.ends(shard, time),
                    Some((time, _)) => agenda.starts(shard, time),
                    None => agenda.clear(shard),
                }
                naive[shard.index()] = entry.map(|(time, kind)| (time, kind, shard.0));
                let others = naive.iter().flatten().filter(|entry| entry.2 != shard.0 || entry.1 == Kind::StepStart);
                let free = others.clone().all(|other| other.1 == Kind::StepEnd && other.0 > Time(4));
                prop_assert_eq!(agenda.is_free(shard, Time(4)), free);
                let first = naive.iter().flatten().min().copied();
                prop_assert_eq!(agenda.next(None, None), first);
                prop_assert_eq!(agenda.next(None, Some(Time(3))), first.map(|first| first.min((Time(3), Kind::Due, 0))));
                let arrival = (Time(4), Kind::Arrival, 0);
                prop_assert_eq!(agenda.next(Some(Time(4)), None), Some(first.map_or(arrival, |first| first.min(arrival))));
            }
        }
    }
}
