//! Live rates: counts of the last seconds.
//!
//! The window slides in tenths of its length, each counted apart, so memory does not grow with the requests in it.

use super::KeyRates;
use super::heavy::HeavyHitters;
use cr_trace::Key;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::collections::VecDeque;
use std::num::NonZeroUsize;

/// Parts of a window.
const PARTS: f64 = 10.0;

/// Counts over a sliding window of time.
#[derive(Clone, Debug)]
pub struct WindowRates {
    part_s: f64,
    window_s: f64,
    max_keys: Option<NonZeroUsize>,
    /// The number of each part since time 0, and its counts; oldest first.
    parts: VecDeque<(u64, HeavyHitters)>,
    first_s: Option<f64>,
}

impl WindowRates {
    /// Counts over `window_s` seconds, at most `max_keys` keys in each tenth of it. `None` for a window that is not finite
    /// and above 0.
    pub fn new(window_s: f64, max_keys: Option<NonZeroUsize>) -> Option<WindowRates> {
        (window_s.is_finite() && window_s > 0.0).then(|| WindowRates {
            part_s: window_s / PARTS,
            window_s,
            max_keys,
            parts: VecDeque::new(),
            first_s: None,
        })
    }

    /// Counts one request at this time; times never go back.
    pub fn record(&mut self, key: &Key, t_s: f64) {
        self.first_s.get_or_insert(t_s);
        let part = (t_s / self.part_s) as u64;
        if self.parts.back().is_none_or(|(last, _)| *last < part) {
            self.forget_before(t_s);
            self.parts.push_back((part, HeavyHitters::new(self.max_keys)));
        }
        if let Some((_, counts)) = self.parts.back_mut() {
            counts.record(key);
        }
    }

    /// Drops the parts that began before the window.
    fn forget_before(&mut self, now_s: f64) {
        let from = ((now_s - self.window_s) / self.part_s - 1e-9).ceil().max(0.0) as u64;
        while self.parts.front().is_some_and(|(part, _)| *part < from) {
            self.parts.pop_front();
        }
    }

    /// The rates at this time, in requests per second, and by how much any of them may be too low for want of room. Keys
    /// come in order of appearance in the window; what they do not account for is the other rate. `None` where no time has
    /// passed since the first request.
    pub fn rates(&mut self, now_s: f64) -> Option<(KeyRates, f64)> {
        self.forget_before(now_s);
        let first_s = self.first_s?;
        let from_s = self.parts.front().map_or(now_s, |(part, _)| *part as f64 * self.part_s).max(first_s);
        // A window without requests still has its length.
        let span_s = if self.parts.is_empty() { self.window_s } else { now_s - from_s };
        if !(span_s > 0.0 && (1.0 / span_s).is_finite()) {
            return None;
        }
        let mut counts: IndexMap<Key, u64, FxBuildHasher> = IndexMap::default();
        let (mut total, mut error) = (0, 0);
        for (_, part) in &self.parts {
            total += part.total();
            error += part.error();
            for (key, count) in part.counts() {
                *counts.entry(key).or_default() += count;
            }
        }
        let known: u64 = counts.values().sum();
        let mut rates: KeyRates =
            counts.into_iter().map(|(key, count)| (key, count as f64 / span_s)).collect();
        rates.other_rate = (total - known) as f64 / span_s;
        Some((rates, error as f64 / span_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let mut window = WindowRates::new(10.0, None).expect("is valid");
        assert!(window.rates(5.0).is_none());
        for second in 0..40 {
            let t_s = f64::from(second);
            window.record(&Key::new(if second < 20 { "old" } else { "new" }), t_s);
            window.record(&Key::new("both"), t_s);
        }
        let (rates, error) = window.rates(40.0).expect("has a span");
        assert_eq!(rates.keys(), ["new", "both"]);
        assert_eq!((rates.rates(), error, rates.other_rate()), ([1.0, 1.0].as_slice(), 0.0, 0.0));
        assert_eq!(window.rates(1_000.0).expect("has a span").0.len(), 0);
        assert!(WindowRates::new(0.0, None).is_none() && WindowRates::new(f64::NAN, None).is_none());
    }

    #[test]
    fn a_short_history_is_not_stretched_to_the_window() {
        let mut window = WindowRates::new(100.0, None).expect("is valid");
        for n in 0..10 {
            window.record(&Key::new("a"), 1_000.0 + f64::from(n));
        }
        let (rates, _) = window.rates(1_010.0).expect("has a span");
        assert_eq!(rates.rates(), [1.0]);
    }

    #[test]
    fn what_does_not_fit_is_the_other_rate_and_the_error_is_told() {
        let mut window = WindowRates::new(10.0, NonZeroUsize::new(2)).expect("is valid");
        for n in 0..100 {
            window.record(&Key::new("hot"), f64::from(n) / 10.0);
            window.record(&Key::from(format!("cold{n}")), f64::from(n) / 10.0);
        }
        let (rates, error) = window.rates(10.0).expect("has a span");
        let hot = rates.keys().iter().position(|key| key == "hot").expect("is kept");
        assert!(
            rates.rates()[hot] <= 10.0 && rates.rates()[hot] >= 10.0 - error,
            "{:?} {error}",
            rates.rates()
        );
        let known: f64 = rates.rates().iter().sum();
        assert!((known + rates.other_rate() - 20.0).abs() < 1e-9);
    }
}
