//! A distribution of durations that can be merged, in bounded memory.

use hdrhistogram::Histogram;

/// Values are counted in steps of 10 µs.
const STEP_S: f64 = 1e-5;
/// Ten hours; what is longer is counted as this.
const MAX_STEPS: u64 = 3_600_000_000;

/// Durations in seconds, kept to two significant digits.
#[derive(Clone, Debug)]
pub struct Dist(Histogram<u32>);

impl Default for Dist {
    fn default() -> Dist {
        // Two digits is a constant that the histogram accepts; it refuses only more than five.
        Dist(Histogram::new(2).expect("two significant digits are supported"))
    }
}

impl Dist {
    /// Counts one duration in seconds; negative and NaN count as 0, what is beyond ten hours as ten hours.
    pub fn record(&mut self, seconds: f64) {
        let steps = (seconds / STEP_S).round().max(0.0) as u64;
        // An automatically resizing histogram refuses nothing below its counter's range.
        let _ = self.0.record(steps.min(MAX_STEPS));
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Dist) {
        let _ = self.0.add(&other.0);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The `q` quantile (0 to 1) in seconds; `None` where nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(q) as f64 * STEP_S)
    }

    /// Counts over logarithmic bins between the least and the largest value: each bin's upper end in seconds and its
    /// count. At most `bins` bins; empty where nothing was counted.
    pub fn log_bins(&self, bins: usize) -> Vec<(f64, u64)> {
        if self.0.is_empty() || bins == 0 {
            return Vec::new();
        }
        let low = (self.0.min().max(1)) as f64;
        let high = (self.0.max().max(1)) as f64 * 1.001;
        let ratio = (high / low).max(1.02).powf(1.0 / bins as f64);
        let mut out: Vec<(f64, u64)> =
            (1..=bins).map(|bin| (low * ratio.powi(bin as i32) * STEP_S, 0)).collect();
        for value in self.0.iter_recorded() {
            let at = (value.value_iterated_to().max(1) as f64 / low).ln() / ratio.ln();
            let at = (at.max(0.0) as usize).min(bins - 1);
            out[at].1 += u64::from(value.count_at_value());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_percent_or_so() {
        let mut dist = Dist::default();
        (1..=1000).for_each(|n| dist.record(f64::from(n) / 1000.0));
        for (q, want) in [(0.5, 0.5), (0.99, 0.99)] {
            let got = dist.quantile(q).expect("not empty");
            assert!((got - want).abs() < 0.01 * want, "{q}: {got}");
        }
        assert_eq!(Dist::default().quantile(0.5), None);
    }

    #[test]
    fn odd_values_are_counted_and_do_not_panic() {
        let mut dist = Dist::default();
        [f64::NAN, -1.0, f64::INFINITY, 0.0, 1e300].into_iter().for_each(|s| dist.record(s));
        assert_eq!(dist.count(), 5);
        assert_eq!(dist.log_bins(7).iter().map(|b| b.1).sum::<u64>(), 5);
    }

    #[test]
    fn bins_hold_every_value_once() {
        let mut dist = Dist::default();
        (0..500).for_each(|n| dist.record(f64::from(n * n) * 1e-4));
        let bins = dist.log_bins(20);
        assert_eq!(bins.iter().map(|b| b.1).sum::<u64>(), 500);
        assert!(bins.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
