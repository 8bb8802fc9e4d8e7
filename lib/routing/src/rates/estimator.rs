//! Live rates: exponentially decayed counts.
//!
//! One clock counts records. With `d = 0.5^(1 / half_life)`, a record of an owner makes `n ← n·d^(clock − last) + 1`,
//! `last ← clock`, and then the clock ticks; the owner's value is `n·d^(clock − last)`, so right after its own record it
//! reads `d`, not 1. Values are decayed counts, not rates: [`RateEstimator::rates`] scales their shares to a total.
//! Source: the routing module of VeloxQuant-MLX, whose values are this crate's test vectors.

use super::KeyRates;
use cr_trace::Key;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Decayed counts of many owners.
///
/// Memory grows with the owners, up to `max_owners`; there a new owner evicts the one of the lowest value, the one
/// inserted first among equals, in O(log n). Values too small for a float are still told apart.
#[derive(Clone, Debug)]
pub struct RateEstimator {
    half_life: f64,
    decay: f64,
    clock: u64,
    /// Σ of the values of all records, evicted owners included, at clock − 1.
    total: f64,
    inserted: u64,
    owners: FxHashMap<Key, Count>,
    limit: Option<Limit>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    n: f64,
    last: u64,
    /// The how-manieth owner this was: reports and ties are in this order.
    order: u64,
}

/// Owners by value. Values decay all alike, so their order only changes where an owner is recorded.
#[derive(Clone, Debug)]
struct Limit {
    max_owners: NonZeroUsize,
    by_score: BTreeMap<(Score, u64), Key>,
}

/// log₂ of the value at clock 0, extrapolated back: `log₂ n + last / half_life`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Score(f64);

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl RateEstimator {
    /// Counts that halve every `half_life` records, which must be finite and above 0; of at most `max_owners` owners.
    /// `None` for a half-life that is neither.
    pub fn new(half_life: f64, max_owners: Option<NonZeroUsize>) -> Option<RateEstimator> {
        if !(half_life.is_finite() && half_life > 0.0) {
            return None;
        }
        Some(RateEstimator {
            half_life,
            decay: libm::pow(0.5, 1.0 / half_life),
            clock: 0,
            total: 0.0,
            inserted: 0,
            owners: FxHashMap::default(),
            limit: max_owners.map(|max_owners| Limit { max_owners, by_score: BTreeMap::new() }),
        })
    }

    /// The factor by which every value shrinks a record.
    pub fn decay(&self) -> f64 {
        self.decay
    }

    /// The number of owners known.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Counts one request of this owner.
    pub fn record(&mut self, owner: &Key) {
        let now = match self.owners.get(owner) {
            Some(&before) => {
                self.unrank(&before);
                Count { n: self.value(&before) + 1.0, last: self.clock, order: before.order }
            }
            None => {
                self.make_room();
                self.inserted += 1;
                Count { n: 1.0, last: self.clock, order: self.inserted }
            }
        };
        let score = self.score(&now);
        if let Some(limit) = &mut self.limit {
            limit.by_score.insert((score, now.order), owner.clone());
        }
        self.owners.insert(owner.clone(), now);
        self.total = self.total * self.decay + 1.0;
        self.clock += 1;
    }

    /// The decayed count of an owner; 0 for one that is not known.
    pub fn count(&self, owner: &str) -> f64 {
        self.owners.get(owner).map_or(0.0, |count| self.value(count))
    }

    /// All decayed counts, in the order in which owners first came.
    pub fn counts(&self) -> Vec<(Key, f64)> {
        let mut counts: Vec<_> = self.owners.iter().collect();
        counts.sort_unstable_by_key(|(_, count)| count.order);
        counts.into_iter().map(|(key, count)| (key.clone(), self.value(count))).collect()
    }

    /// Rates in requests per second: each owner's share of all decayed counts × the observed total. What owners that were
    /// evicted had is the other rate.
    pub fn rates(&self, total_qps: f64) -> KeyRates {
        let counts = self.counts();
        let known: f64 = counts.iter().map(|(_, count)| count).sum();
        let all = known.max(self.total * self.decay);
        let scale = if all > 0.0 { total_qps / all } else { 0.0 };
        let mut rates: KeyRates = counts.into_iter().map(|(key, count)| (key, count * scale)).collect();
        if self.limit.is_some() {
            rates.other_rate = (all - known) * scale;
        }
        rates
    }

    fn value(&self, count: &Count) -> f64 {
        // libm's power is the same on every platform; the system's need not be.
        count.n * libm::pow(self.decay, (self.clock - count.last) as f64)
    }

    fn score(&self, count: &Count) -> Score {
        Score(libm::log2(count.n) + count.last as f64 / self.half_life)
    }

    fn unrank(&mut self, count: &Count) {
        let score = self.score(count);
        if let Some(limit) = &mut self.limit {
            limit.by_score.remove(&(score, count.order));
        }
    }

    /// Evicts the owner of the lowest value where the cap is reached.
    fn make_room(&mut self) {
        let Some(limit) = &self.limit else { return };
        if self.owners.len() < limit.max_owners.get() {
            return;
        }
        let Some((&(lowest, _), _)) = limit.by_score.first_key_value() else { return };
        // Scores are rounded: what lies within that rounding is compared by value, and then by age.
        let near = Score(lowest.0 + 1e-12 * (1.0 + lowest.0.abs()));
        let victim = limit
            .by_score
            .range(..=(near, u64::MAX))
            .map(|(&at, key)| (at, self.owners.get(key).map_or(0.0, |count| self.value(count))))
            .min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.1.cmp(&b.0.1)))
            .map(|(at, _)| at);
        if let (Some(at), Some(limit)) = (victim, &mut self.limit)
            && let Some(key) = limit.by_score.remove(&at)
        {
            self.owners.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule as one would write it first: a list, searched from end to end.
    struct Naive {
        decay: f64,
        clock: u64,
        max_owners: usize,
        owners: Vec<(Key, f64, u64)>,
    }

    impl Naive {
        fn value(&self, n: f64, last: u64) -> f64 {
            n * libm::pow(self.decay, (self.clock - last) as f64)
        }

        fn record(&mut self, owner: &Key) {
            let clock = self.clock;
            if let Some(at) = self.owners.iter().position(|(key, ..)| key == owner) {
                let value = self.value(self.owners[at].1, self.owners[at].2);
                self.owners[at] = (owner.clone(), value + 1.0, clock);
            } else {
                if self.owners.len() >= self.max_owners {
                    let values: Vec<f64> =
                        self.owners.iter().map(|&(_, n, last)| self.value(n, last)).collect();
                    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let at = values.iter().position(|&value| value == lowest).expect("has owners");
                    self.owners.remove(at);
                }
                self.owners.push((owner.clone(), 1.0, clock));
            }
            self.clock += 1;
        }
    }

    proptest! {
        #[test]
        fn capped_counts_are_the_naive_ones(
            records in proptest::collection::vec(0u8..12, 0..200),
            half_life in prop_oneof![Just(1e9), Just(20.0), Just(1.0)],
            max_owners in 1usize..8,
        ) {
            let mut fast = RateEstimator::new(half_life, NonZeroUsize::new(max_owners)).expect("is valid");
            let mut naive = Naive { decay: fast.decay(), clock: 0, max_owners, owners: Vec::new() };
            for owner in records {
                let owner = Key::from(format!("k{owner}"));
                fast.record(&owner);
                naive.record(&owner);
                let expect: Vec<_> =
                    naive.owners.iter().map(|(key, n, last)| (key.clone(), naive.value(*n, *last))).collect();
                prop_assert_eq!(fast.counts(), expect);
            }
        }
    }

    #[test]
    fn rates_share_out_the_total() {
        let mut estimator = RateEstimator::new(1e9, None).expect("is valid");
        for owner in ["a", "b", "a", "a"] {
            estimator.record(&Key::new(owner));
        }
        let rates = estimator.rates(8.0);
        assert_eq!(rates.keys(), ["a", "b"]);
        assert!((rates.rates()[0] - 6.0).abs() < 1e-6 && (rates.rates()[1] - 2.0).abs() < 1e-6);
        assert_eq!(estimator.count("c"), 0.0);
    }

    #[test]
    fn what_was_evicted_is_the_other_rate() {
        let mut estimator = RateEstimator::new(1e9, NonZeroUsize::new(2)).expect("is valid");
        for owner in ["a", "a", "b", "c", "d"] {
            estimator.record(&Key::new(owner));
        }
        let rates = estimator.rates(5.0);
        assert_eq!(rates.keys(), ["a", "d"]);
        assert!((rates.other_rate() - 2.0).abs() < 1e-6, "{}", rates.other_rate());
    }

    #[test]
    fn a_half_life_is_positive() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(RateEstimator::new(bad, None).is_none());
        }
        let empty = RateEstimator::new(1.0, None).expect("is valid");
        assert!(empty.is_empty() && empty.rates(1.0).is_empty());
    }
}
