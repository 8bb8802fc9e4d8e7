//! The admitted keys and their shards, laid out for lookups that miss the cache once.
//!
//! Rows of 32 bytes stand in one array of twice as many slots as keys; a key's row is at its hash or in one of the next slots
//! (linear probing). A key in the row itself and its only shard beside it: so nearly every lookup among a million keys touches one
//! line of memory, where a map of indices into a list touches three, one after the other. The few hot keys of several
//! shards have these in a list of their own, short enough to stay in the cache.

use super::ShardSet;
use cr_trace::{Key, ShardId};
use rustc_hash::FxHasher;
use serde::{Serialize, Serializer};
use std::hash::Hasher;

/// Slots a key: half of them stay empty, and a search ends at the first empty one.
const SLOTS_A_KEY: usize = 2;

/// A key and where its shards are. The empty key, which no table has, marks an empty slot.
#[derive(Clone, Debug)]
struct Row {
    key: Key,
    /// Of one copy the shard itself; of several, the position of the first in `members`.
    place: ShardId,
    copies: u32,
}

const EMPTY: Row = Row { key: Key::const_new(""), place: ShardId(0), copies: 0 };

/// A map from keys to shards that is made once and then only read.
#[derive(Clone, Debug)]
pub(super) struct Places {
    rows: Vec<Row>,
    /// The slots of the keys, in the order in which they were given.
    order: Vec<u32>,
    /// The shards of keys of several copies.
    members: Vec<ShardId>,
}

impl Places {
    /// Of distinct keys, which are remembered in their order, each with at least one shard. An empty key is left out: [`super::RoutingTable`]
    /// refuses it before.
    pub(super) fn new(pairs: Vec<(Key, ShardSet)>) -> Places {
        // One slot more than keys at least, so that every search ends.
        let mut places = Places {
            rows: vec![EMPTY; SLOTS_A_KEY * pairs.len() + 1],
            order: Vec::with_capacity(pairs.len()),
            members: Vec::new(),
        };
        for (key, shards) in pairs.into_iter().filter(|(key, _)| !key.is_empty()) {
            let place = match shards.as_slice() {
                [only] => *only,
                several => {
                    let first = places.members.len() as u32;
                    places.members.extend_from_slice(several);
                    ShardId(first)
                }
            };
            let slot = places.slot(&key);
            places.rows[slot] = Row { key, place, copies: shards.len() as u32 };
            places.order.push(slot as u32);
        }
        places
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The shards of a key, as they were given.
    pub(super) fn get(&self, key: &str) -> Option<&[ShardId]> {
        let row = &self.rows[self.slot(key)];
        (!row.key.is_empty()).then(|| self.shards(row))
    }

    /// The keys and their shards, in the order in which they were given.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &[ShardId])> {
        self.order.iter().map(|&slot| {
            let row = &self.rows[slot as usize];
            (&row.key, self.shards(row))
        })
    }

    fn shards<'a>(&'a self, row: &'a Row) -> &'a [ShardId] {
        match row.copies {
            1 => std::slice::from_ref(&row.place),
            copies => &self.members[row.place.index()..][..copies as usize],
        }
    }

    /// Where the key is, or the empty slot at which a search for it ends.
    fn slot(&self, key: &str) -> usize {
        let mut slot = first_slot(key, self.rows.len());
        loop {
            let here = self.rows[slot].key.as_str();
            if here == key || here.is_empty() {
                return slot;
            }
            slot = if slot + 1 == self.rows.len() { 0 } else { slot + 1 };
        }
    }
}

/// The slot of a key's hash, out of `slots`.
fn first_slot(key: &str, slots: usize) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write(key.as_bytes());
    // The upper half of the product: hashes spread evenly over any number of slots (Lemire, 2019), without a division.
    ((u128::from(hasher.finish()) * slots as u128) >> 64) as usize
}

impl PartialEq for Places {
    fn eq(&self, other: &Places) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Serialize for Places {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn finds_what_a_plain_map_finds(
            pairs in proptest::collection::btree_map("[a-c]{1,4}", proptest::collection::btree_set(0u32..9, 1..7), 0..60),
            probes in proptest::collection::vec("[a-c]{0,4}", 0..60),
        ) {
            let plain: BTreeMap<String, Vec<ShardId>> =
                pairs.into_iter().map(|(key, shards)| (key, shards.into_iter().map(ShardId).collect())).collect();
            let given: Vec<(Key, ShardSet)> =
                plain.iter().map(|(key, shards)| (Key::new(key), shards.iter().copied().collect())).collect();
            let places = Places::new(given);
            prop_assert_eq!(places.len(), plain.len());
            for key in probes.iter().chain(plain.keys()) {
                prop_assert_eq!(places.get(key), plain.get(key).map(Vec::as_slice));
            }
            let listed: Vec<(&str, &[ShardId])> = places.iter().map(|(key, shards)| (key.as_str(), shards)).collect();
            let wanted: Vec<(&str, &[ShardId])> =
                plain.iter().map(|(key, shards)| (key.as_str(), shards.as_slice())).collect();
            prop_assert_eq!(listed, wanted);
        }
    }

    #[test]
    fn a_row_is_half_a_line_of_the_cache_and_searches_are_short() {
        assert_eq!(size_of::<Row>(), 32);
        let names =
            (0..20_000).map(|n| (Key::from(format!("tenant-{n}")), ShardSet::from_slice(&[ShardId(n)])));
        let places = Places::new(names.collect());
        let steps = |key: &str| {
            let (from, to, slots) = (first_slot(key, places.rows.len()), places.slot(key), places.rows.len());
            1 + (to + slots - from) % slots
        };
        let found: usize = places.iter().map(|(key, _)| steps(key)).sum();
        let absent: usize = (0..20_000).map(|n| steps(&format!("user-{n}"))).sum();
        // Knuth: 1.5 and 2.5 at half load, for hashes that are as good as random.
        assert!((found as f64) < 1.7 * 20_000.0, "{found}");
        assert!((absent as f64) < 3.0 * 20_000.0, "{absent}");
    }
}
