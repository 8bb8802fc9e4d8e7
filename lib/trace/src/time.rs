//! Virtual time, in whole picoseconds.
//!
//! Integer time makes a run independent of the order in which durations are added up, so that a simulator that
//! skips uneventful steps in closed form ends at exactly the instant of one that takes them one by one.
//! Picoseconds, because published cost models have terms below a nanosecond (0.744 ns a token pair).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant of run time, or a duration, in picoseconds. Spans about 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// The start of the run; a duration of nothing.
    pub const ZERO: Time = Time(0);
    /// Later than every event.
    pub const MAX: Time = Time(u64::MAX);
    /// The longest time a file may name, in seconds (about 173 days): beyond it picoseconds would overflow.
    pub const MAX_S: f64 = 15_000_000.0;

    /// From seconds, rounded to the picosecond. Negative and NaN become zero; values past [`Time::MAX_S`] saturate there.
    pub fn from_s(seconds: f64) -> Time {
        Time((seconds.clamp(0.0, Self::MAX_S) * 1e12).round() as u64)
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// In milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`, zero where `earlier` is later.
    pub fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        self.since(other)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.as_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_trip_to_the_picosecond() {
        for s in [0.0, 0.0132, 1.5, 3_599.999_999, 1e6] {
            assert!((Time::from_s(s).as_s() - s).abs() <= 1e-12 * s.max(1.0));
        }
        assert_eq!(Time::from_s(0.010_8), Time(10_800_000_000));
    }

    #[test]
    fn nonsense_does_not_wrap_around() {
        assert_eq!(Time::from_s(-1.0), Time::ZERO);
        assert_eq!(Time::from_s(f64::NAN), Time::ZERO);
        assert_eq!(Time::from_s(f64::INFINITY), Time::from_s(Time::MAX_S));
        assert_eq!(Time::MAX + Time(1), Time::MAX);
        assert_eq!(Time(1) - Time(2), Time::ZERO);
    }
}
