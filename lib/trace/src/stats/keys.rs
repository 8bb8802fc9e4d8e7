//! How unevenly requests spread over keys.

use crate::Key;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Requests by key.
#[derive(Clone, Debug, Default)]
pub struct KeyCounts {
    counts: FxHashMap<Key, u64>,
}

/// The share of requests that the most popular keys make.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopShare {
    /// The share of the keys, most popular first; their number is rounded to the nearest, at least one.
    pub keys: f64,
    /// The share of the requests that they make.
    pub requests: f64,
}

/// How the requests spread over the keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyReport {
    /// Distinct keys.
    pub count: u64,
    /// Keys with a single request.
    pub singletons: u64,
    /// The Gini coefficient of requests per key: 0 where all keys have as many.
    pub gini: f64,
    /// The most popular key; the first by name among equals.
    pub top_key: Option<Key>,
    /// Its share of the requests.
    pub top_key_share: f64,
    /// The shares of the top 1, 4, 10 and 50 % of the keys.
    pub top: Vec<TopShare>,
}

impl KeyCounts {
    /// Counts one request.
    pub fn observe(&mut self, key: &Key) {
        match self.counts.get_mut(key) {
            Some(count) => *count += 1,
            None => {
                self.counts.insert(key.clone(), 1);
            }
        }
    }

    /// What the counts say.
    pub fn report(&self) -> KeyReport {
        let mut counts: Vec<u64> = self.counts.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let top_key = self.counts.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let top = [0.01, 0.04, 0.1, 0.5].map(|share| {
            let keys = ((counts.len() as f64 * share).round() as usize).max(1).min(counts.len());
            TopShare { keys: share, requests: counts[..keys].iter().sum::<u64>() as f64 / total }
        });
        let as_f64: Vec<f64> = counts.iter().rev().map(|&count| count as f64).collect();
        KeyReport {
            count: counts.len() as u64,
            singletons: counts.iter().filter(|&&count| count == 1).count() as u64,
            gini: gini(&as_f64),
            top_key: top_key.map(|(key, _)| key.clone()),
            top_key_share: top_key.map_or(0.0, |(_, &count)| count as f64 / total),
            top: top.to_vec(),
        }
    }
}

/// The Gini coefficient of values in ascending order: Σ (2i − n + 1)·x_i / (n·Σ x), i from 0. 0 for no or only zero values.
pub fn gini(ascending: &[f64]) -> f64 {
    let n = ascending.len() as f64;
    let sum: f64 = ascending.iter().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let weighted: f64 = ascending.iter().enumerate().map(|(i, x)| (2.0 * i as f64 - n + 1.0) * x).sum();
    weighted / (n * sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gini_of_known_cases() {
        assert_eq!(gini(&[]), 0.0);
        assert_eq!(gini(&[0.0, 0.0]), 0.0);
        assert_eq!(gini(&[3.0, 3.0, 3.0]), 0.0);
        assert_eq!(gini(&[0.0, 0.0, 0.0, 8.0]), 0.75);
        assert_eq!(gini(&[1.0, 3.0]), 0.25);
    }

    #[test]
    fn top_shares_and_the_top_key() {
        let mut counts = KeyCounts::default();
        for key in ["b", "a", "c", "a", "b", "d"] {
            counts.observe(&key.into());
        }
        let report = counts.report();
        assert_eq!((report.count, report.singletons, report.top_key.as_deref()), (4, 2, Some("a")));
        assert_eq!(report.top_key_share, 2.0 / 6.0);
        assert_eq!(report.top[3], TopShare { keys: 0.5, requests: 4.0 / 6.0 });
        assert_eq!(report.top[0].requests, 2.0 / 6.0, "at least one key");
        assert_eq!(KeyCounts::default().report().count, 0);
    }

    proptest! {
        /// The definition: half the relative mean absolute difference.
        #[test]
        fn gini_is_the_mean_difference(mut values in proptest::collection::vec(0u32..100, 1..40)) {
            values.sort_unstable();
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let differences: f64 = values.iter().flat_map(|a| values.iter().map(move |b| (a - b).abs())).sum();
            let sum: f64 = values.iter().sum();
            let wanted = if sum == 0.0 { 0.0 } else { differences / (2.0 * values.len() as f64 * sum) };
            prop_assert!((gini(&values) - wanted).abs() < 1e-9);
        }
    }
}
