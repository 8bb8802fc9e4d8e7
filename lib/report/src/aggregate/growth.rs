//! Whether a queue still grows at the end of the arrivals, judged in constant memory.

/// Bins of the series. When it is full, neighbours are merged and bins become twice as wide.
const BINS: usize = 256;

/// Snapshots that the arrivals must span before growth is judged at all.
const MIN_SNAPSHOTS: u64 = 8;

/// Requests by which the longest queue must have grown from the second to the last quarter.
const MIN_GROWTH: f64 = 4.0;

/// The factor by which it must have grown.
const MIN_RATIO: f64 = 1.5;

/// Or the requests by which it must have grown, whatever it was,
const MIN_BACKLOG: f64 = 16.0;

/// and the share of the requests sent to a shard meanwhile: that of failures that counts as saturation.
const MIN_BACKLOG_SHARE: f64 = super::MAX_FAILED_SHARE;

/// The longest queue of any shard over time, in bins of equal width.
///
/// **The rule.** Let the span from the start of the window to the last arrival be cut into four quarters, and let q₂, q₃ and q₄
/// be the mean, over the snapshots of a quarter, of the longest queue of any shard. The queue still grows if
/// q₂ < q₃ < q₄ and either q₄ ≥ 1.5·q₂ and q₄ − q₂ ≥ 4 requests (under a steady overload the queue grows linearly from
/// nothing, and q₂ : q₃ : q₄ = 3 : 5 : 7), or q₄ − q₂ ≥ 16 requests and 5 % of what a shard is sent in that time (the window may
/// open on a backlog; a fleet whose queues take in a twentieth of the requests does not keep up). The first quarter is left out because every queue fills then. The longest queue counts, and not
/// the sum, because one overloaded shard among many idle ones sets the fleet's tail.
#[derive(Clone, Debug)]
pub(super) struct QueueSeries {
    from_s: f64,
    width_s: f64,
    bins: Vec<(f64, u64)>,
}

impl QueueSeries {
    /// Starts at `from_s`.
    pub(super) fn starting(from_s: f64) -> Self {
        QueueSeries { from_s, width_s: crate::events::SHARDS_EVERY_S, bins: Vec::with_capacity(BINS) }
    }

    /// Adds the longest queue at one snapshot.
    pub(super) fn record(&mut self, t_s: f64, longest: u64) {
        if t_s < self.from_s {
            return;
        }
        let mut bin = ((t_s - self.from_s) / self.width_s) as usize;
        while bin >= BINS {
            self.bins = self
                .bins
                .chunks(2)
                .map(|pair| pair.iter().fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1)))
                .collect();
            self.width_s *= 2.0;
            bin = ((t_s - self.from_s) / self.width_s) as usize;
        }
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, (0.0, 0));
        }
        self.bins[bin].0 += longest as f64;
        self.bins[bin].1 += 1;
    }

    /// The rule, for arrivals that end at `last_arrival_s`, `per_shard` of them for every shard.
    pub(super) fn still_grows(&self, last_arrival_s: f64, per_shard: f64) -> bool {
        let span_s = last_arrival_s - self.from_s;
        let mut quarters = [(0.0, 0u64); 4];
        for (index, &(sum, count)) in self.bins.iter().enumerate() {
            let middle_s = (index as f64 + 0.5) * self.width_s;
            if middle_s < span_s {
                let quarter = &mut quarters[((middle_s / span_s * 4.0) as usize).min(3)];
                *quarter = (quarter.0 + sum, quarter.1 + count);
            }
        }
        if quarters.iter().map(|q| q.1).sum::<u64>() < MIN_SNAPSHOTS || quarters.iter().any(|q| q.1 == 0) {
            return false;
        }
        let [_, q2, q3, q4] = quarters.map(|(sum, count)| sum / count as f64);
        let from_empty = q4 >= MIN_RATIO * q2 && q4 - q2 >= MIN_GROWTH;
        // The middles of the two quarters lie half the span apart.
        let on_backlog = q4 - q2 >= MIN_BACKLOG.max(MIN_BACKLOG_SHARE * per_shard / 2.0);
        q2 < q3 && q3 < q4 && (from_empty || on_backlog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grows(span_s: f64, queue: impl Fn(f64) -> u64) -> bool {
        let mut series = QueueSeries::starting(10.0);
        let mut t_s = 10.0;
        while t_s < 10.0 + span_s * 1.5 {
            series.record(t_s, queue((t_s - 10.0) / span_s));
            t_s += 0.25;
        }
        series.still_grows(10.0 + span_s, 1000.0)
    }

    #[test]
    fn a_backlog_that_the_window_opens_on_may_still_grow() {
        assert!(grows(100.0, |x| 100 + (100.0 * x) as u64));
        assert!(!grows(100.0, |x| 100 + (30.0 * x) as u64), "15 requests in half the time are noise");
    }

    #[test]
    fn a_queue_that_grows_until_the_last_arrival_is_seen_at_any_length() {
        for span_s in [10.0, 64.0, 100.0, 5_000.0, 100_000.0] {
            assert!(grows(span_s, |x| if x < 1.0 { (40.0 * x) as u64 } else { 0 }), "{span_s}");
        }
    }

    #[test]
    fn a_queue_that_fills_and_stays_is_not_growth() {
        for span_s in [10.0, 100.0, 5_000.0] {
            assert!(!grows(span_s, |x| (40.0 * x.min(0.2)) as u64), "{span_s}");
            assert!(!grows(span_s, |_| 0), "{span_s}");
            assert!(!grows(span_s, |x| if x < 0.7 { 30 } else { 2 }), "{span_s}");
        }
    }

    #[test]
    fn small_and_short_does_not_count() {
        assert!(!grows(100.0, |x| (3.0 * x) as u64));
        assert!(grows(3.0, |x| (400.0 * x) as u64));
        assert!(!grows(1.5, |x| (400.0 * x) as u64));
    }

    #[test]
    fn memory_is_bounded() {
        let mut series = QueueSeries::starting(0.0);
        for step in 0..200_000u64 {
            series.record(step as f64 * 0.25, step % 7);
        }
        series.record(1.5e7, 1);
        assert!(series.bins.len() <= BINS);
    }
}
