//! What happens next under the virtual clock.
//!
//! Events are ordered by (time, kind, index), kinds in the order step end < fault and table < arrival < step start, so
//! that a run never depends on the order in which things were put down. Only steps are kept here, at most one entry a
//! shard: a step ends, or one is to start. Kinds that come from elsewhere are here only to be compared with.

use cr_trace::{ShardId, Time};
use std::collections::VecDeque;
use std::hint::select_unpredictable;

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

/// The end of a step that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) shard: ShardId,
    pub(crate) at: Time,
    /// When the next one comes.
    pub(crate) then: Time,
}

/// No time: later than every other.
const NEVER: Time = Time::MAX;

/// The next step event of every shard.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// When steps end, as a tournament in which the earliest wins, so that a change costs one walk from the shard's leaf to the
    /// root: node n has the lesser of nodes 2n and 2n + 1, which stand here as pair n; the leaves are the upper half, one a shard.
    ends: Vec<Pair>,
    /// Steps that are to start, in order. Whatever is put down here is for the present instant, so these are few.
    starts: VecDeque<(Time, ShardId)>,
    /// Which shards have an entry there.
    is_to_start: Vec<bool>,
}

/// The winners of two nodes that meet.
#[derive(Clone, Copy, Debug)]
struct Pair {
    times: [Time; 2],
    shards: [u32; 2],
}

impl Pair {
    /// Nobody has played.
    const OPEN: Pair = Pair { times: [NEVER; 2], shards: [0; 2] };

    /// Puts down who came to this side, and says who wins; of equals the first.
    #[inline]
    fn meet(&mut self, side: usize, comes: (Time, u32)) -> (Time, u32) {
        (self.times[side], self.shards[side]) = comes;
        let waits = (self.times[1 - side], self.shards[1 - side]);
        let is_beaten = (waits.0 < comes.0) | ((waits.0 == comes.0) & (side == 1));
        // Who wins is anybody's guess, the processor's too.
        (select_unpredictable(is_beaten, waits.0, comes.0), select_unpredictable(is_beaten, waits.1, comes.1))
    }
}

impl Agenda {
    /// Nothing to do on any of this many shards.
    pub(crate) fn new(shards: usize) -> Agenda {
        let leaves = shards.next_power_of_two();
        Agenda { ends: vec![Pair::OPEN; leaves], starts: VecDeque::new(), is_to_start: vec![false; leaves] }
    }

    /// The node of a shard.
    #[inline]
    fn leaf(&self, shard: ShardId) -> usize {
        self.ends.len() + shard.index()
    }

    /// The earliest end of all, and of the first shard that has it. A single leaf is node 1, the root.
    #[inline]
    fn earliest(&self) -> (Time, ShardId) {
        (self.ends[0].times[1], ShardId(self.ends[0].shards[1]))
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
        let (mut node, mut winner) = (self.leaf(shard), (time, shard.0));
        while node > 0 {
            winner = self.ends[node / 2].meet(node % 2, winner);
            node /= 2;
        }
    }

    /// The shard whose step ends first, and when, where that comes before `others` and nothing is to start.
    #[inline]
    pub(crate) fn end_before(&self, others: Time) -> Option<Ending> {
        let (at, shard) = self.earliest();
        (at < others && self.starts.is_empty()).then(|| Ending { shard, at, then: self.after(shard) })
    }

    /// The earliest end of all but this one, whose step ends first: of those whom it has beaten.
    #[inline]
    fn after(&self, shard: ShardId) -> Time {
        let (mut node, mut then) = (self.leaf(shard), NEVER);
        while node > 1 {
            then = then.min(self.ends[node / 2].times[1 - node % 2]);
            node /= 2;
        }
        then
    }

    /// The earliest event, things that are known elsewhere included: when the next request arrives, and when the next thing is
    /// due. `None` where there is neither a step nor an arrival: what is due counts only while there is traffic, and never
    /// prolongs a run.
    #[inline]
    pub(crate) fn next(&self, arrival: Option<Time>, due: Option<Time>) -> Option<Entry> {
        let (end, shard) = self.earliest();
        let start = self.starts.front().map_or(NEVER, |&(time, _)| time);
        let (arrival, due) = (arrival.unwrap_or(NEVER), due.unwrap_or(NEVER));
        let traffic = end.min(start).min(arrival);
        let time = traffic.min(due);
        if traffic == NEVER {
            return None;
        }
        Some(match time {
            _ if time == end => (time, Kind::StepEnd, shard.0),
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
                let mut ends: Vec<Entry> = naive.iter().flatten().copied().collect();
                ends.sort_unstable();
                let only_ends = ends.iter().all(|entry| entry.1 == Kind::StepEnd);
                let first_end = ends.first().filter(|first| only_ends && first.0 < Time(4)).map(|first| Ending {
                    shard: ShardId(first.2),
                    at: first.0,
                    then: ends.get(1).map_or(NEVER, |second| second.0),
                });
                prop_assert_eq!(agenda.end_before(Time(4)), first_end);
                let first = naive.iter().flatten().min().copied();
                prop_assert_eq!(agenda.next(None, None), first);
                prop_assert_eq!(agenda.next(None, Some(Time(3))), first.map(|first| first.min((Time(3), Kind::Due, 0))));
                let arrival = (Time(4), Kind::Arrival, 0);
                prop_assert_eq!(agenda.next(Some(Time(4)), None), Some(first.map_or(arrival, |first| first.min(arrival))));
            }
        }
    }
}
