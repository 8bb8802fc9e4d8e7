//! Counts of the most frequent keys in bounded memory: the Space-Saving sketch.
//!
//! With room for m keys, a new key takes the place of the least counted one and inherits its count as possible error.
//! Every key that came more than n/m times among n is in the sketch, and no count is too high by more than n/m.
//! Source: Metwally, Agrawal, El Abbadi, *Efficient Computation of Frequent and Top-k Elements in Data Streams*, 2005.

use cr_trace::Key;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Counts of keys, exact without a limit.
#[derive(Clone, Debug, Default)]
pub struct HeavyHitters {
    max_keys: Option<NonZeroUsize>,
    counts: FxHashMap<Key, Counter>,
    /// Keys by (count, order of arrival); kept only where there is a limit.
    by_count: BTreeMap<(u64, u64), Key>,
    arrivals: u64,
    total: u64,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    count: u64,
    /// How much of it may belong to keys whose place it took.
    error: u64,
    order: u64,
}

impl HeavyHitters {
    /// Counts at most this many keys; all where there is no limit.
    pub fn new(max_keys: Option<NonZeroUsize>) -> HeavyHitters {
        HeavyHitters { max_keys, ..HeavyHitters::default() }
    }

    /// Counts one occurrence.
    pub fn record(&mut self, key: &Key) {
        self.total += 1;
        let counter = match self.counts.get(key) {
            Some(&counter) => {
                self.by_count.remove(&(counter.count, counter.order));
                Counter { count: counter.count + 1, ..counter }
            }
            None => {
                let error = self.make_room();
                self.arrivals += 1;
                Counter { count: error + 1, error, order: self.arrivals }
            }
        };
        if self.max_keys.is_some() {
            self.by_count.insert((counter.count, counter.order), key.clone());
        }
        self.counts.insert(key.clone(), counter);
    }

    /// Evicts the least counted key where the sketch is full, and returns its count.
    fn make_room(&mut self) -> u64 {
        match self.max_keys {
            Some(max_keys) if self.counts.len() >= max_keys.get() => match self.by_count.pop_first() {
                Some(((count, _), key)) => {
                    self.counts.remove(&key);
                    count
                }
                None => 0,
            },
            _ => 0,
        }
    }

    /// Everything counted, those of evicted keys included.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The bound on how much is missing from any count that [`HeavyHitters::counts`] gives: total / limit; 0 without a
    /// limit.
    pub fn error(&self) -> u64 {
        self.max_keys.map_or(0, |max_keys| self.total / max_keys.get() as u64)
    }

    /// The counts that are certain (at least this many occurrences), in order of arrival; keys without any left out.
    pub fn counts(&self) -> Vec<(Key, u64)> {
        let mut counts: Vec<_> =
            self.counts.iter().filter(|(_, counter)| counter.count > counter.error).collect();
        counts.sort_unstable_by_key(|(_, counter)| counter.order);
        counts.into_iter().map(|(key, counter)| (key.clone(), counter.count - counter.error)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn counts_are_within_the_published_bound(
            keys in proptest::collection::vec(0u8..20, 0..300),
            max_keys in 1usize..12,
        ) {
            let mut sketch = HeavyHitters::new(NonZeroUsize::new(max_keys));
            let mut exact = HeavyHitters::new(None);
            let mut naive: BTreeMap<Key, u64> = BTreeMap::new();
            for key in keys {
                let key = Key::from(format!("k{key}"));
                sketch.record(&key);
                exact.record(&key);
                *naive.entry(key).or_default() += 1;
            }
            prop_assert_eq!(exact.counts().into_iter().collect::<BTreeMap<_, _>>(), naive.clone());
            prop_assert_eq!(exact.error(), 0);
            let counts: BTreeMap<Key, u64> = sketch.counts().into_iter().collect();
            prop_assert!(counts.len() <= max_keys);
            let slack = sketch.total() as f64 / max_keys as f64;
            for (key, &count) in &naive {
                let found = counts.get(key).copied().unwrap_or(0);
                prop_assert!(found <= count, "never too high");
                prop_assert!((count - found) as f64 <= slack, "too low by n/m at most: {found} of {count}");
            }
        }
    }
}
