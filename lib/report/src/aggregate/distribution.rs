//! A distribution of times or ratios in constant memory.

use crate::summary::Quantiles;
use hdrhistogram::Histogram;

/// Units of the histogram in one second (or in a ratio of 1).
const UNITS: f64 = 1e9;

/// The largest value kept apart from larger ones: the longest time a stream may name, in units.
const MAX_UNITS: u64 = 15_000_000_000_000_000;

/// An HDR histogram of three significant digits in steps of a nanosecond, with the exact sum, smallest and largest
/// value. It holds at most 0.4 MB, however many values it has seen. Quantiles are the upper edge of their bucket, at most
/// 0.1 % above the true value, and never outside the smallest and largest value.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: f64,
    min: f64,
    max: f64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// Empty.
    pub fn new() -> Self {
        // It grows up to the largest value.
        let histogram = Histogram::new(3).expect("1 to 5 significant digits are supported");
        Distribution { histogram, sum: 0.0, min: f64::INFINITY, max: 0.0 }
    }

    /// Counts one value, in seconds (or a ratio). Negative and NaN count as 0, values past 173 days as that.
    pub fn record(&mut self, value: f64) {
        let value = value.clamp(0.0, MAX_UNITS as f64 / UNITS);
        let value = if value.is_nan() { 0.0 } else { value };
        // The histogram grows to any value below MAX_UNITS.
        self.histogram.record(rounded(value * UNITS)).expect("the histogram resizes");
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The exact mean; 0 where there is no value.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { (self.sum / self.count() as f64).clamp(self.min, self.max) }
    }

    /// The exact sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// The exact smallest value; 0 where there is none.
    pub fn min(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.min }
    }

    /// The exact largest value; 0 where there is none.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// The smallest value that at least the share `q` of all values do not exceed; 0 where there is none.
    pub fn quantile(&self, q: f64) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        (self.histogram.value_at_quantile(q) as f64 / UNITS).clamp(self.min, self.max)
    }

    /// For each of `values`, which ascend, the share of all that do not exceed it; 0 where there is none.
    pub fn shares_at_most(&self, values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
        let (mut buckets, mut below) = (self.buckets().peekable(), 0);
        values.map(move |value| {
            let units = (value.clamp(0.0, MAX_UNITS as f64 / UNITS) * UNITS).round() as u64;
            while let Some((_, count)) = buckets.next_if(|&(edge, _)| edge <= units) {
                below += count;
            }
            below as f64 / self.count().max(1) as f64
        })
    }

    /// What a summary says of it.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.count(),
            mean: self.mean(),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            max: self.max(),
        }
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Distribution) {
        // An automatically resizing histogram takes every value of another one.
        self.histogram.add(&other.histogram).expect("the histogram resizes");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The buckets that hold values, as (lower edge in nanoseconds, count), ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.histogram.iter_recorded().map(|step| {
            (self.histogram.lowest_equivalent(step.value_iterated_to()), step.count_since_last_iteration())
        })
    }

    /// Adds what [`Self::buckets`], [`Self::sum`], [`Self::min`] and [`Self::max`] of another distribution gave. A smallest value that
    /// is not between 0 and the largest counts as 0.
    pub fn merge_parts(
        &mut self,
        buckets: impl IntoIterator<Item = (u64, u64)>,
        sum: f64,
        min: f64,
        max: f64,
    ) {
        let max = if max >= 0.0 { max } else { 0.0 };
        let min = if (0.0..=max).contains(&min) { min } else { 0.0 };
        let before = self.count();
        for (units, count) in buckets {
            self.histogram.record_n(units.min(MAX_UNITS), count).expect("the histogram resizes");
        }
        if self.count() > before {
            self.min = self.min.min(min);
        }
        self.max = self.max.max(max);
        self.sum += sum;
    }
}

/// The nearest whole number to one that is not negative, halves up, as `f64::round` gives it but without a call.
#[inline]
pub(super) fn rounded(value: f64) -> u64 {
    let whole = value as u64;
    whole + u64::from(value - whole as f64 >= 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_nothing_is_nothing() {
        assert_eq!(Distribution::new().quantiles(), Quantiles::default());
        assert_eq!(
            Distribution::new().shares_at_most([0.0, 1.0].into_iter()).collect::<Vec<_>>(),
            [0.0, 0.0]
        );
    }

    #[test]
    fn nonsense_is_bounded() {
        let mut d = Distribution::new();
        for value in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
            d.record(value);
        }
        assert_eq!(d.count(), 4);
        assert_eq!(d.max(), 15_000_000.0);
        assert_eq!(d.quantile(0.5), 0.0);
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_floats(value in prop_oneof![0.0f64..3.0, 0.0f64..2e16, (0u64..1000).prop_map(|n| n as f64 / 2.0)]) {
            prop_assert_eq!(rounded(value), value.round() as u64);
        }

        #[test]
        fn agrees_with_sorted_values(mut values in proptest::collection::vec(0.0f64..500.0, 1..300), q in 0.0f64..1.0) {
            let mut d = Distribution::new();
            values.iter().for_each(|&v| d.record(v));
            values.sort_by(f64::total_cmp);
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!((d.quantile(q) - exact).abs() <= exact * 1e-3 + 2e-9, "{} {}", d.quantile(q), exact);
            let s = d.quantiles();
            prop_assert!(s.p50 <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.max);
            prop_assert_eq!(s.max, values[values.len() - 1]);
        }

        #[test]
        fn survives_a_round_trip_and_merges(a in proptest::collection::vec(0.0f64..9.0, 0..80),
                                            b in proptest::collection::vec(0.0f64..9.0, 0..80)) {
            let (mut whole, mut left, mut right) = (Distribution::new(), Distribution::new(), Distribution::new());
            a.iter().for_each(|&v| { whole.record(v); left.record(v); });
            b.iter().for_each(|&v| { whole.record(v); right.record(v); });
            let merge_parts = |into: &mut Distribution| into.merge_parts(right.buckets(), right.sum(), right.min(), right.max());
            let mut again = Distribution::new();
            merge_parts(&mut again);
            prop_assert_eq!(again.quantiles(), right.quantiles());
            let mut by_parts = left.clone();
            merge_parts(&mut by_parts);
            left.merge(&right);
            prop_assert_eq!(by_parts.quantiles(), left.quantiles());
            prop_assert_eq!(by_parts.min(), left.min());
            let (l, w) = (left.quantiles(), whole.quantiles());
            prop_assert_eq!((l.count, l.p50, l.p90, l.p99, l.max), (w.count, w.p50, w.p90, w.p99, w.max));
            prop_assert!((l.mean - w.mean).abs() < 1e-9);
        }

        /// Counted one by one, by the buckets that values fall into.
        #[test]
        fn shares_are_counted(values in proptest::collection::vec(0.0f64..9.0, 0..80), mut at in proptest::collection::vec(-1.0f64..10.0, 1..9)) {
            let mut d = Distribution::new();
            values.iter().for_each(|&v| d.record(v));
            at.extend(values.first());
            at.sort_by(f64::total_cmp);
            let shares: Vec<f64> = d.shares_at_most(at.iter().copied()).collect();
            for (at, share) in at.iter().zip(shares) {
                let up_to = |units: u64| d.histogram.equivalent(units, (at.max(0.0) * UNITS).round() as u64);
                let counted = values.iter().map(|v| rounded(v * UNITS)).filter(|&v| v as f64 <= at.max(0.0) * UNITS || up_to(v));
                prop_assert_eq!(share, counted.count() as f64 / values.len().max(1) as f64);
            }
        }
    }
}
