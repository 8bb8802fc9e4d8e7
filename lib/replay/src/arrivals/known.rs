//! What became of requests, by id: a window over ids that come about in order, and a map for those that do not.

use cr_trace::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How many ids the window spans, and how many ended strays are remembered.
const REMEMBERED: usize = 1 << 20;

/// An id that leaves out more than this many is a stray, so that the window stays dense.
const MOST_LEFT_OUT: u64 = 8;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing is known of it, or it ended too long ago.
    Unknown,
    /// It arrived or waits, and has not ended; its place in the trace.
    Live(u64),
    /// It ended.
    Ended { at: Time, finished: bool },
}

/// The fates of the requests that have not ended, and of about the last million that have.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The id that the first of `window` stands for.
    base: u64,
    window: VecDeque<Fate>,
    strays: FxHashMap<u64, Fate>,
    /// Strays that have ended, in that order.
    ended: VecDeque<u64>,
}

impl Known {
    fn slot(&mut self, id: u64) -> Option<&mut Fate> {
        self.window.get_mut(id.checked_sub(self.base)? as usize)
    }

    /// What became of a request.
    pub(super) fn fate(&self, id: u64) -> Fate {
        let slot = id.checked_sub(self.base).and_then(|slot| self.window.get(slot as usize));
        match slot {
            Some(&fate) if fate != Fate::Unknown || self.strays.is_empty() => fate,
            _ => self.strays.get(&id).copied().unwrap_or(Fate::Unknown),
        }
    }

    /// A request is there; `ordinal` is its place in the trace.
    pub(super) fn live(&mut self, id: u64, ordinal: u64) {
        if self.window.is_empty() {
            self.base = id;
        }
        let slot = id.checked_sub(self.base).filter(|slot| *slot <= self.window.len() as u64 + MOST_LEFT_OUT);
        let Some(slot) = slot.filter(|_| self.strays.is_empty() || !self.strays.contains_key(&id)) else {
            self.strays.insert(id, Fate::Live(ordinal));
            return;
        };
        while self.window.len() as u64 <= slot {
            self.window.push_back(Fate::Unknown);
        }
        self.window[slot as usize] = Fate::Live(ordinal);
        while self.window.len() > REMEMBERED && !matches!(self.window.front(), Some(Fate::Live(_))) {
            self.window.pop_front();
            self.base += 1;
        }
    }

    /// A request has ended.
    pub(super) fn ended(&mut self, id: u64, at: Time, finished: bool) {
        let fate = Fate::Ended { at, finished };
        match self.slot(id) {
            Some(slot) if *slot != Fate::Unknown => *slot = fate,
            _ => {
                if self.ended.len() == REMEMBERED
                    && let Some(oldest) = self.ended.pop_front()
                {
                    self.strays.remove(&oldest);
                }
                self.strays.insert(id, fate);
                self.ended.push_back(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A plain map, whatever the order of the ids.
        #[test]
        fn it_knows_what_a_map_knows(ids in proptest::collection::vec(prop_oneof![0u64..40, any::<u64>()], 1..60), ends in proptest::collection::vec(any::<bool>(), 60)) {
            let mut known = Known::default();
            let mut plain: FxHashMap<u64, Fate> = FxHashMap::default();
            for (ordinal, (&id, &finished)) in (0..).zip(ids.iter().zip(&ends)) {
                known.live(id, ordinal);
                plain.insert(id, Fate::Live(ordinal));
                if ordinal % 3 > 0 {
                    let gone = ids[ordinal as usize / 2];
                    known.ended(gone, Time(ordinal), finished);
                    plain.insert(gone, Fate::Ended { at: Time(ordinal), finished });
                }
                for id in (0..50).chain(ids.iter().copied()) {
                    prop_assert_eq!(known.fate(id), plain.get(&id).copied().unwrap_or(Fate::Unknown), "id {}", id);
                }
            }
        }
    }

    #[test]
    fn the_oldest_ends_are_forgotten() {
        let mut known = Known::default();
        known.live(0, 0);
        known.ended(0, Time(7), true);
        for id in 1..=REMEMBERED as u64 {
            known.live(id, id);
        }
        assert_eq!((known.fate(0), known.fate(1)), (Fate::Unknown, Fate::Live(1)));
    }
}
