//! The distribution of a length.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Lengths in tokens, as a histogram of three significant digits and an exact sum.
#[derive(Clone, Debug)]
pub struct Lengths {
    histogram: Histogram<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

/// The distribution of a length in tokens. Percentiles are within 0.1 %; the rest is exact.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LengthReport {
    /// All tokens.
    pub sum: u64,
    /// Their mean.
    pub mean: f64,
    /// The shortest.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// 90 % are no longer.
    pub p90: u64,
    /// 99 % are no longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Default for Lengths {
    fn default() -> Lengths {
        let histogram = Histogram::new(3).expect("3 significant digits are allowed");
        Lengths { histogram, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Lengths {
    /// Takes in one length.
    pub fn observe(&mut self, tokens: u64) {
        // The histogram grows to hold what comes; only a length of 2^63 and more would be refused.
        if self.histogram.record(tokens).is_err() {
            self.histogram.saturating_record(tokens);
        }
        self.sum += u128::from(tokens);
        self.min = self.min.min(tokens);
        self.max = self.max.max(tokens);
    }

    /// What was taken in.
    pub fn report(&self) -> LengthReport {
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max);
        LengthReport {
            sum: u64::try_from(self.sum).unwrap_or(u64::MAX),
            mean: self.sum as f64 / self.histogram.len().max(1) as f64,
            min: self.min.min(self.max),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_lengths_are_exact() {
        let mut lengths = Lengths::default();
        (1..=100).for_each(|tokens| lengths.observe(tokens));
        let wanted = LengthReport { sum: 5050, mean: 50.5, min: 1, p50: 50, p90: 90, p99: 99, max: 100 };
        assert_eq!(lengths.report(), wanted);
        assert_eq!(Lengths::default().report().max, 0);
    }

    #[test]
    fn the_range_has_no_end() {
        let mut lengths = Lengths::default();
        [3, 126_195, u64::MAX].into_iter().for_each(|tokens| lengths.observe(tokens));
        let report = lengths.report();
        assert_eq!((report.min, report.p50 / 1000, report.max), (3, 126, u64::MAX));
    }
}
