//! The ids that are open: a window of bits over ids that come in order, and a set for those that do not.

use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// Widest span of ids that bits are kept for, in words of 64.
const MOST_WORDS: usize = 1 << 14;

/// A set of ids, made for ids that are inserted about in order and removed soon after.
#[derive(Debug, Default)]
pub(super) struct OpenIds {
    /// The word that the first of `words` stands for.
    base: u64,
    words: VecDeque<u64>,
    strays: FxHashSet<u64>,
}

impl OpenIds {
    /// Adds an id; false where it was in already.
    pub(super) fn insert(&mut self, id: u64) -> bool {
        let (word, bit) = (id / 64, 1u64 << (id % 64));
        if self.words.is_empty() {
            self.base = word;
        }
        let slot = word.checked_sub(self.base).map(|slot| slot as usize).filter(|&slot| slot < MOST_WORDS);
        if self.strays.contains(&id) {
            return false;
        }
        let Some(slot) = slot else { return self.strays.insert(id) };
        if slot >= self.words.len() {
            self.words.resize(slot + 1, 0);
        }
        let fresh = self.words[slot] & bit == 0;
        self.words[slot] |= bit;
        fresh
    }

    /// Removes an id; false where it was not in.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let (word, bit) = (id / 64, 1u64 << (id % 64));
        let slot = word.checked_sub(self.base).and_then(|slot| self.words.get_mut(slot as usize));
        let Some(word) = slot.filter(|word| **word & bit != 0) else { return self.strays.remove(&id) };
        *word &= !bit;
        while self.words.front() == Some(&0) {
            self.words.pop_front();
            self.base += 1;
        }
        true
    }

    /// The lowest id.
    pub(super) fn first(&self) -> Option<u64> {
        let in_window = self.words.iter().zip(self.base..).find(|(word, _)| **word != 0);
        let in_window = in_window.map(|(word, at)| at * 64 + u64::from(word.trailing_zeros()));
        in_window.into_iter().chain(self.strays.iter().copied()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// It is a set, whatever the ids and their order.
        #[test]
        fn it_is_a_set(steps in proptest::collection::vec((any::<bool>(), prop_oneof![0u64..300, 0u64..3_000_000, any::<u64>()]), 0..200)) {
            let (mut open, mut naive) = (OpenIds::default(), BTreeSet::new());
            for (insert, id) in steps {
                if insert {
                    prop_assert_eq!(open.insert(id), naive.insert(id));
                } else {
                    let id = naive.range(id..).next().copied().unwrap_or(id);
                    prop_assert_eq!(open.remove(id), naive.remove(&id));
                }
                prop_assert_eq!(open.first(), naive.first().copied());
            }
        }
    }

    #[test]
    fn memory_follows_what_is_open() {
        let mut open = OpenIds::default();
        for id in 0..1_000_000 {
            assert!(open.insert(id));
            if id >= 1_000 {
                assert!(open.remove(id - 1_000));
            }
        }
        assert!(open.words.len() < 20 && open.strays.is_empty());
    }
}
