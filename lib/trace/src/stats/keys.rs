//! How unevenly requests spread over keys.

use super::fit::{self, Fit};
use super::median;
use crate::Key;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Requests by key, and how they follow each other.
#[derive(Clone, Debug, Default)]
pub struct KeyCounts {
    keys: FxHashMap<Key, KeyState>,
}

/// One key: its requests, and the running mean and squared deviations of their gaps (Welford's method).
#[derive(Clone, Copy, Debug, Default)]
struct KeyState {
    count: u64,
    last_s: f64,
    mean_gap: f64,
    squares: f64,
}

impl KeyState {
    fn observe(&mut self, t_s: f64) {
        if self.count > 0 {
            let gap = t_s - self.last_s;
            let off = gap - self.mean_gap;
            self.mean_gap += off / self.count as f64;
            self.squares += off * (gap - self.mean_gap);
        }
        self.count += 1;
        self.last_s = t_s;
    }

    /// The coefficient of variation of the gaps, where there are enough of them.
    fn cv(&self) -> Option<f64> {
        let gaps = self.count.saturating_sub(1);
        (gaps >= MIN_GAPS && self.mean_gap > 0.0).then(|| (self.squares / gaps as f64).sqrt() / self.mean_gap)
    }
}

/// Gaps that a key needs for its variation to mean anything.
const MIN_GAPS: u64 = 10;

/// How the requests of one key follow each other: 1 for Poisson arrivals, more for bursts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapReport {
    /// Keys with at least 10 gaps, which the rest is about.
    pub keys: u64,
    /// The mean over keys of the coefficient of variation of their gaps.
    pub cv_mean: f64,
    /// Its median over keys.
    pub cv_median: f64,
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
    /// Zipf's law fitted to the counts.
    pub zipf: Option<Fit>,
    /// The lognormal law fitted to the counts.
    pub lognormal: Option<Fit>,
    /// How the requests of one key follow each other; none where no key has enough of them.
    pub gaps: Option<GapReport>,
}

impl KeyCounts {
    /// Counts one request; calls are ordered by time.
    pub fn observe(&mut self, key: &Key, t_s: f64) {
        match self.keys.get_mut(key) {
            Some(state) => state.observe(t_s),
            None => {
                let mut state = KeyState::default();
                state.observe(t_s);
                self.keys.insert(key.clone(), state);
            }
        }
    }

    fn gaps(&self) -> Option<GapReport> {
        let mut cvs: Vec<f64> = self.keys.values().filter_map(KeyState::cv).collect();
        cvs.sort_unstable_by(f64::total_cmp);
        // The mean over sorted values is the same whatever the order of the map.
        let mean = cvs.iter().sum::<f64>() / cvs.len() as f64;
        Some(GapReport { keys: cvs.len() as u64, cv_mean: mean, cv_median: median(cvs)? })
    }

    /// Requests of each key, most popular first.
    pub fn descending(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.keys.values().map(|state| state.count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    /// What the counts say.
    pub fn report(&self) -> KeyReport {
        let counts = self.descending();
        let total = counts.iter().sum::<u64>().max(1) as f64;
        let top_key = self.keys.iter().max_by(|a, b| a.1.count.cmp(&b.1.count).then_with(|| b.0.cmp(a.0)));
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
            top_key_share: top_key.map_or(0.0, |(_, state)| state.count as f64 / total),
            top: top.to_vec(),
            zipf: fit::zipf(&counts),
            lognormal: fit::lognormal(&counts),
            gaps: self.gaps(),
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
            counts.observe(&key.into(), 0.0);
        }
        let report = counts.report();
        assert_eq!((report.count, report.singletons, report.top_key.as_deref()), (4, 2, Some("a")));
        assert_eq!(report.top_key_share, 2.0 / 6.0);
        assert_eq!(report.top[3], TopShare { keys: 0.5, requests: 4.0 / 6.0 });
        assert_eq!(report.top[0].requests, 2.0 / 6.0, "at least one key");
        assert_eq!(KeyCounts::default().report().count, 0);
    }

    #[test]
    fn gaps_vary_as_they_should() {
        let mut counts = KeyCounts::default();
        for step in 0..40u32 {
            counts.observe(&"even".into(), f64::from(step));
            // Gaps of 1 and 3 by turns: mean 2, deviation 1.
            counts.observe(&"uneven".into(), f64::from(step * 2 - step % 2));
            if step < 5 {
                counts.observe(&"rare".into(), f64::from(step));
            }
        }
        let gaps = counts.report().gaps.expect("two keys have enough");
        assert_eq!(gaps.keys, 2);
        // The median of two is their mean.
        assert!((gaps.cv_median - 0.25).abs() < 0.01 && (gaps.cv_mean - 0.25).abs() < 0.01, "{gaps:?}");
        assert_eq!(KeyCounts::default().report().gaps, None);
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
