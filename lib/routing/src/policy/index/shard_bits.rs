//! A set of shards, a bit each.

use cr_trace::ShardId;
use smallvec::SmallVec;

/// Some of the shards of a fleet. Memory grows with its shards, not with the fleet; of a fleet of up to 64 it takes none of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShardBits(SmallVec<[Word; 1]>);

/// The shards `64 * place..64 * (place + 1)`; never none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    place: u32,
    bits: u64,
}

/// The word of a shard, and its bit there.
#[inline]
fn position(shard: ShardId) -> (u32, u32) {
    (shard.0 / u64::BITS, shard.0 % u64::BITS)
}

impl ShardBits {
    /// Makes it all of a fleet of so many shards.
    pub(super) fn fill(&mut self, shards: u32) {
        self.0.clear();
        let words = (0..shards).step_by(u64::BITS as usize).zip(0..);
        self.0.extend(words.map(|(first, place)| {
            let absent = u64::BITS - (shards - first).min(u64::BITS);
            Word { place, bits: u64::MAX >> absent }
        }));
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the word of this place is, or belongs.
    #[inline]
    fn find(&self, place: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&place, |word| word.place)
    }

    /// How many of its shards come before this one, if it has it.
    #[inline]
    pub(super) fn rank(&self, shard: ShardId) -> Option<usize> {
        let (place, bit) = position(shard);
        let at = self.find(place).ok()?;
        (self.0[at].bits >> bit & 1 != 0).then(|| self.before(at, bit))
    }

    /// How many of its shards come before a bit of a word.
    #[inline]
    fn before(&self, at: usize, bit: u32) -> usize {
        let own = self.0[at].bits & ((1 << bit) - 1);
        self.0[..at].iter().map(|word| word.bits).chain([own]).map(|bits| bits.count_ones() as usize).sum()
    }

    /// Adds a shard; says how many come before it.
    #[inline]
    pub(super) fn insert(&mut self, shard: ShardId) -> usize {
        let (place, bit) = position(shard);
        let at = self.find(place).unwrap_or_else(|at| {
            self.0.insert(at, Word { place, bits: 0 });
            at
        });
        self.0[at].bits |= 1 << bit;
        self.before(at, bit)
    }

    #[inline]
    pub(super) fn remove(&mut self, shard: ShardId) {
        let (place, bit) = position(shard);
        let Ok(at) = self.find(place) else { return };
        self.0[at].bits &= !(1 << bit);
        if self.0[at].bits == 0 {
            self.0.remove(at);
        }
    }

    /// Its shards, in order.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.0.iter().flat_map(|&word| shards_of(word))
    }

    /// Keeps those that another set has, too; tells which ones go.
    #[inline]
    pub(super) fn keep(&mut self, others: &ShardBits, mut goes: impl FnMut(ShardId)) {
        let mut others = others.0.iter().copied().peekable();
        self.0.retain(|word| {
            while others.next_if(|other| other.place < word.place).is_some() {}
            let both = others.next_if(|other| other.place == word.place).map_or(0, |other| other.bits);
            shards_of(Word { bits: word.bits & !both, ..*word }).for_each(&mut goes);
            word.bits &= both;
            word.bits != 0
        });
    }
}

/// The shards of one word.
#[inline]
fn shards_of(Word { place, mut bits }: Word) -> impl Iterator<Item = ShardId> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| bits.trailing_zeros())?;
        bits &= bits - 1;
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
            let (mut set, mut naive) = (ShardBits::default(), BTreeSet::new());
            for (shard, joins) in changes {
                let shard = ShardId(shard % fleet);
                if joins {
                    naive.insert(shard);
                    prop_assert_eq!(Some(set.insert(shard)), set.rank(shard));
                } else {
                    naive.remove(&shard);
                    set.remove(shard);
                }
                prop_assert_eq!(set.rank(shard), joins.then(|| naive.range(..shard).count()));
                prop_assert_eq!(set.is_empty(), naive.is_empty());
                prop_assert!(set.iter().eq(naive.iter().copied()));
            }
            let (mut other, mut gone) = (ShardBits::default(), Vec::new());
            others.iter().for_each(|shard| _ = other.insert(ShardId(shard % fleet)));
            set.keep(&other, |shard| gone.push(shard));
            let (kept, left): (Vec<_>, Vec<_>) = naive.into_iter().partition(|&shard| other.rank(shard).is_some());
            prop_assert!(set.iter().eq(kept));
            prop_assert_eq!(gone, left);
            prop_assert_eq!(set.is_empty(), set.iter().next().is_none());
            set.fill(fleet);
            prop_assert!(set.iter().eq((0..fleet).map(ShardId)));
        }
    }
}
