//! What happens next under the virtual clock.
//!
//! Events are ordered by (time, kind, index), kinds in the order step end < fault and table < arrival < step start, so
//! that a run never depends on the order in which things were put down. Only steps are kept here, at most one entry a
//! shard: a step ends, or one is to start. Kinds that come from elsewhere are here only to be compared with.

use cr_trace::{ShardId, Time};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
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

/// No entry: later than every other.
const NONE: u128 = u128::MAX;

/// The next step event of every shard: a tournament in which the earliest wins, so that a change costs one walk from the
/// shard's leaf to the root.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// Node n has the winner of nodes 2n and 2n + 1; the leaves are the upper half, one a shard.
    winners: Vec<u128>,
}

fn packed(time: Time, kind: Kind, shard: ShardId) -> u128 {
    u128::from(time.0) << 64 | (kind as u128) << 32 | u128::from(shard.0)
}

fn unpacked(entry: u128) -> Entry {
    let kind = match (entry >> 32) as u32 {
        0 => Kind::StepEnd,
        1 => Kind::Due,
        2 => Kind::Arrival,
        _ => Kind::StepStart,
    };
    (Time((entry >> 64) as u64), kind, entry as u32)
}

impl Agenda {
    /// Nothing to do on any of this many shards.
    pub(crate) fn new(shards: usize) -> Agenda {
        Agenda { winners: vec![NONE; 2 * shards.next_power_of_two()] }
    }

    /// A step of the shard ends or starts at that time; replaces what was known of the shard.
    pub(crate) fn set(&mut self, shard: ShardId, time: Time, kind: Kind) {
        self.put(shard, packed(time, kind, shard));
    }

    /// Nothing is known of the shard any more.
    pub(crate) fn clear(&mut self, shard: ShardId) {
        self.put(shard, NONE);
    }

    fn put(&mut self, shard: ShardId, entry: u128) {
        let mut node = self.winners.len() / 2 + shard.index();
        self.winners[node] = entry;
        while node > 1 {
            let winner = self.winners[node].min(self.winners[node ^ 1]);
            node /= 2;
            if self.winners[node] == winner {
                break;
            }
            self.winners[node] = winner;
        }
    }

    /// The earliest event, things that are known elsewhere included: when the next request arrives, and when the next thing is
    /// due. `None` where there is neither a step nor an arrival: what is due counts only while there is traffic, and never
    /// prolongs a run.
    #[inline]
    pub(crate) fn next(&self, arrival: Option<Time>, due: Option<Time>) -> Option<Entry> {
        let other = |time: Option<Time>, kind| time.map_or(NONE, |time| packed(time, kind, ShardId(0)));
        // A single leaf is node 1, the root.
        let traffic = self.winners[1].min(other(arrival, Kind::Arrival));
        (traffic != NONE).then(|| unpacked(traffic.min(other(due, Kind::Due))))
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
                    Some((time, kind)) => agenda.set(shard, time, kind),
                    None => agenda.clear(shard),
                }
                naive[shard.index()] = entry.map(|(time, kind)| (time, kind, shard.0));
                let first = naive.iter().flatten().min().copied();
                prop_assert_eq!(agenda.next(None, None), first);
                prop_assert_eq!(agenda.next(None, Some(Time(3))), first.map(|first| first.min((Time(3), Kind::Due, 0))));
                let arrival = (Time(4), Kind::Arrival, 0);
                prop_assert_eq!(agenda.next(Some(Time(4)), None), Some(first.map_or(arrival, |first| first.min(arrival))));
            }
        }
    }
}
