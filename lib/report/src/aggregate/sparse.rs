//! A distribution of few values that costs little memory: what every bin of a timeline has.

/// Bits of a value that tell buckets of one octave apart, the leading one included: two significant digits.
const BITS: u32 = 8;

/// Units in one second.
const UNITS: f64 = 1e9;

/// The largest value kept apart from larger ones, as in [`super::Distribution`].
const MAX_UNITS: f64 = 1.5e16;

/// An HDR histogram of two significant digits in steps of a nanosecond that keeps only the buckets that hold values, with
/// the exact smallest and largest value. A quantile is the upper edge of its bucket, at most 1 % above the true value.
#[derive(Clone, Debug)]
pub(super) struct Sparse {
    /// Buckets and their counts, ascending.
    buckets: Vec<(u16, u32)>,
    count: u64,
    min: f64,
    max: f64,
}

/// The bucket of a value. The order of buckets is that of values.
fn bucket_of(units: u64) -> u16 {
    let shift = (64 - units.leading_zeros()).saturating_sub(BITS);
    ((shift << BITS) | (units >> shift) as u32) as u16
}

/// The largest value of a bucket.
fn upper_edge(bucket: u16) -> u64 {
    let (shift, leading) = (u32::from(bucket) >> BITS, u64::from(bucket) & ((1 << BITS) - 1));
    ((leading + 1) << shift) - 1
}

impl Sparse {
    /// Empty.
    pub(super) fn new() -> Sparse {
        Sparse { buckets: Vec::new(), count: 0, min: f64::INFINITY, max: 0.0 }
    }

    /// Counts one value, in seconds. Negative and NaN count as 0.
    pub(super) fn record(&mut self, value_s: f64) {
        let value_s = value_s.clamp(0.0, MAX_UNITS / UNITS);
        let value_s = if value_s.is_nan() { 0.0 } else { value_s };
        self.add(bucket_of(super::distribution::rounded(value_s * UNITS)), 1);
        (self.min, self.max) = (self.min.min(value_s), self.max.max(value_s));
    }

    fn add(&mut self, bucket: u16, n: u32) {
        match self.buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(at) => self.buckets[at].1 = self.buckets[at].1.saturating_add(n),
            Err(at) => self.buckets.insert(at, (bucket, n)),
        }
        self.count += u64::from(n);
    }

    /// Number of values.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value that at least the share `q` of all values do not exceed; 0 where there is none.
    pub(super) fn quantile(&self, q: f64) -> f64 {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        for &(bucket, n) in &self.buckets {
            below += u64::from(n);
            if below >= rank {
                return (upper_edge(bucket) as f64 / UNITS).clamp(self.min, self.max);
            }
        }
        0.0
    }

    /// Adds all values of another one.
    pub(super) fn merge(&mut self, other: &Sparse) {
        other.buckets.iter().for_each(|&(bucket, n)| self.add(bucket, n));
        (self.min, self.max) = (self.min.min(other.min), self.max.max(other.max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    proptest! {
        /// The same buckets and quantiles as a histogram that keeps all of them.
        #[test]
        fn it_is_a_histogram_of_two_digits(
            values in proptest::collection::vec(prop_oneof![0.0f64..1e-6, 0.0f64..20.0, 0.0f64..1e6], 1..200),
            others in proptest::collection::vec(0.0f64..9.0, 0..50),
            q in 0.001f64..1.0,
        ) {
            let (mut sparse, mut other) = (Sparse::new(), Sparse::new());
            let mut dense = Histogram::<u64>::new(2).expect("two digits are supported");
            values.iter().for_each(|&value| sparse.record(value));
            others.iter().for_each(|&value| other.record(value));
            sparse.merge(&other);
            let all = || values.iter().chain(&others).copied();
            all().for_each(|value| dense.record((value * UNITS).round() as u64).expect("it resizes"));
            let (min, max) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
            let expected = (dense.value_at_quantile(q) as f64 / UNITS).clamp(min, max);
            prop_assert_eq!((sparse.count(), sparse.quantile(q)), (dense.len(), expected));
        }
    }

    #[test]
    fn of_nothing_is_nothing_and_nonsense_is_bounded() {
        let mut sparse = Sparse::new();
        assert_eq!((sparse.count(), sparse.quantile(0.99)), (0, 0.0));
        [f64::NAN, -1.0, f64::INFINITY].into_iter().for_each(|value| sparse.record(value));
        assert_eq!((sparse.quantile(0.5), sparse.quantile(1.0)), (0.0, 15_000_000.0));
    }
}
