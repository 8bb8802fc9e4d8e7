//! Whether requests are sent when the trace intends.

use cr_trace::Time;

/// Spans over which rates are compared.
const SPAN: Time = Time(10_000_000_000_000);

/// A span delivers its rate when it reaches this share of it.
const ENOUGH: f64 = 0.95;

/// Compares when requests should have been sent with when they were, span by span of intended time.
#[derive(Debug, Default)]
pub(super) struct Pace {
    begins: Time,
    requests: u64,
    /// When the last request of the span was really sent.
    last_sent: Time,
    last_intended: Time,
}

impl Pace {
    /// A request intended for `intended` is sent at `now`. The rates offered and achieved of the span before, where a new one
    /// begins and that one was not delivered.
    pub(super) fn sent(&mut self, intended: Time, now: Time) -> Option<(f64, f64)> {
        let late = if intended >= self.begins + SPAN {
            let late = self.rates();
            self.begins = Time(intended.0 / SPAN.0 * SPAN.0);
            self.requests = 0;
            late
        } else {
            None
        };
        self.requests += 1;
        (self.last_sent, self.last_intended) = (now, intended);
        late
    }

    /// The same of the span in progress.
    pub(super) fn rest(&self) -> Option<(f64, f64)> {
        self.rates()
    }

    fn rates(&self) -> Option<(f64, f64)> {
        let rate = |until: Time| self.requests as f64 / until.since(self.begins).as_s().max(1e-3);
        let (offered, achieved) = (rate(self.last_intended), rate(self.last_sent));
        (self.requests > 0 && achieved < ENOUGH * offered && self.last_sent.since(self.last_intended) > LATE)
            .then_some((offered, achieved))
    }
}

/// Less than this is no delay that a rate could tell.
const LATE: Time = Time(100_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_late_is_told() {
        let mut pace = Pace::default();
        let at = |ms: u64| Time(ms * 1_000_000_000);
        for n in 1..=100 {
            assert_eq!(pace.sent(at(n * 100 - 1), at(n * 100 + 5)), None, "a few milliseconds are nothing");
        }
        assert_eq!(pace.sent(at(10_050), at(10_051)), None);
        for n in 1..100 {
            // Twice as slow as intended.
            assert_eq!(pace.sent(at(10_050 + n * 99), at(10_050 + 2 * n * 99)), None);
        }
        let (offered, achieved) = pace.sent(at(20_001), at(29_900)).expect("was late");
        assert!((offered - 10.1).abs() < 0.2 && (achieved - 5.0).abs() < 0.2, "{offered} {achieved}");
        assert!(pace.rest().is_some(), "the last span has one request, ten seconds late");
    }
}
