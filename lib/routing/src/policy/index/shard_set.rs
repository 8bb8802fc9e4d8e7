//! A set of shards, a bit each.

use cr_trace::ShardId;
use smallvec::{SmallVec, smallvec};

const BITS: usize = u64::BITS as usize;

/// Some of the shards of a fleet. That of a fleet of up to 64 takes no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardSet(SmallVec<[u64; 1]>);

impl ShardSet {
    /// None of a fleet of so many shards.
    pub(super) fn none(shards: usize) -> ShardSet {
        ShardSet(smallvec![0; shards.div_ceil(BITS)])
    }

    /// Makes it all of a fleet of so many shards.
    pub(super) fn fill(&mut self, shards: usize) {
        let words = self.0.iter_mut().zip((0..shards).step_by(BITS));
        words.for_each(|(word, first)| *word = u64::MAX >> (BITS - (shards - first).min(BITS)));
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    #[inline]
    pub(super) fn contains(&self, shard: ShardId) -> bool {
        self.0[shard.index() / BITS] >> (shard.index() % BITS) & 1 != 0
    }

    /// How many of its shards come before this one.
    #[inline]
    pub(super) fn rank(&self, shard: ShardId) -> usize {
        let (word, bit) = (shard.index() / BITS, shard.index() % BITS);
        let ones = |word: u64| word.count_ones() as usize;
        self.0[..word].iter().map(|&word| ones(word)).sum::<usize>() + ones(self.0[word] & ((1 << bit) - 1))
    }

    #[inline]
    pub(super) fn insert(&mut self, shard: ShardId) {
        self.0[shard.index() / BITS] |= 1 << (shard.index() % BITS);
    }

    #[inline]
    pub(super) fn remove(&mut self, shard: ShardId) {
        self.0[shard.index() / BITS] &= !(1 << (shard.index() % BITS));
    }

    /// Its shards, in order.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.0.iter().zip(0..).flat_map(|(&word, place)| shards_of(word, place))
    }

    /// Keeps those that another set of the same fleet has, too; tells which ones go.
    #[inline]
    pub(super) fn keep(&mut self, others: &ShardSet, mut goes: impl FnMut(ShardId)) {
        for ((own, other), place) in self.0.iter_mut().zip(&others.0).zip(0..) {
            shards_of(*own & !other, place).for_each(&mut goes);
            *own &= other;
        }
    }
}

/// The shards of one word.
#[inline]
fn shards_of(mut word: u64, place: u32) -> impl Iterator<Item = ShardId> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(ShardId(place * u64::BITS + bit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(
            fleet in prop_oneof![1u32..70, 120u32..200],
            changes in proptest::collection::vec((any::<u32>(), any::<bool>()), 0..80),
            others in proptest::collection::vec(any::<u32>(), 0..80),
        ) {
            let (mut set, mut naive) = (ShardSet::none(fleet as usize), BTreeSet::new());
            for (shard, joins) in changes {
                let shard = ShardId(shard % fleet);
                match joins {
                    true => (set.insert(shard), naive.insert(shard)).0,
                    false => (set.remove(shard), naive.remove(&shard)).0,
                }
                prop_assert_eq!(set.contains(shard), joins);
                prop_assert_eq!(set.rank(shard), naive.range(..shard).count());
                prop_assert_eq!(set.is_empty(), naive.is_empty());
                prop_assert!(set.iter().eq(naive.iter().copied()));
            }
            let (mut other, mut gone) = (ShardSet::none(fleet as usize), Vec::new());
            others.iter().for_each(|shard| other.insert(ShardId(shard % fleet)));
            set.keep(&other, |shard| gone.push(shard));
            let (kept, left): (Vec<_>, Vec<_>) = naive.into_iter().partition(|&shard| other.contains(shard));
            prop_assert!(set.iter().eq(kept));
            prop_assert_eq!(gone, left);
            set.fill(fleet as usize);
            prop_assert!(set.iter().eq((0..fleet).map(ShardId)));
        }
    }
}
