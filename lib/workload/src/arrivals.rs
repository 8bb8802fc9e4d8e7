//! When requests come.
//!
//! Arrivals are drawn on a clock that ticks once per expected request and then mapped to seconds by the rate. So another
//! rate stretches the same arrivals, and the process and the rate over time are independent choices.

use crate::WorkloadError;
use cr_trace::{Stream, Time, stream};
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

/// How arrivals follow each other at an even rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// Independent arrivals: exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

/// When requests come, and how many a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// Requests per second, on average.
    pub qps: f64,
    /// How they follow each other.
    #[serde(default)]
    pub process: Process,
}

impl Arrivals {
    /// Checks the fields.
    ///
    /// # Errors
    ///
    /// The first one that is out of range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if !(1e-6..=1e9).contains(&self.qps) {
            return Err(WorkloadError::field(
                "arrivals.qps",
                format!("is {}, it must lie between 0.000001 and 1000000000", self.qps),
            ));
        }
        Ok(())
    }
}

/// The clock of arrivals.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    arrivals: Arrivals,
    rng: Stream,
    /// Expected requests so far.
    ticks: f64,
}

impl ArrivalClock {
    /// Starts at time 0, by the stream `arrivals` of the seed.
    pub fn new(arrivals: &Arrivals, seed: u64) -> ArrivalClock {
        ArrivalClock { arrivals: arrivals.clone(), rng: stream(seed, "arrivals"), ticks: 0.0 }
    }

    /// The next arrival, in seconds, rounded to the microsecond; never before the last one.
    pub fn next_s(&mut self) -> f64 {
        self.ticks += match self.arrivals.process {
            Process::Poisson => Exp1.sample(&mut self.rng),
            Process::Constant => 1.0,
        };
        round_us(self.ticks / self.arrivals.qps)
    }
}

/// To the microsecond: as fine as any clock of a server, and short in a file.
pub fn round_us(seconds: f64) -> f64 {
    ((seconds * 1e6).round() / 1e6).min(Time::MAX_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ks_distance;

    fn clock(qps: f64, process: Process) -> ArrivalClock {
        ArrivalClock::new(&Arrivals { qps, process }, 7)
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let mut clock = clock(0.5, Process::Poisson);
        let mut last = 0.0;
        let gaps: Vec<f64> = (0..20_000)
            .map(|_| {
                let now = clock.next_s();
                now - std::mem::replace(&mut last, now)
            })
            .collect();
        let distance = ks_distance(gaps, |gap| 1.0 - (-gap * 0.5).exp());
        assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
    }

    #[test]
    fn another_rate_stretches_the_same_arrivals() {
        let (mut slow, mut fast) = (clock(1.0, Process::Poisson), clock(8.0, Process::Poisson));
        for _ in 0..1000 {
            assert!((slow.next_s() / 8.0 - fast.next_s()).abs() < 2e-6);
        }
    }

    #[test]
    fn constant_gaps_are_equal() {
        let mut clock = clock(4.0, Process::Constant);
        assert_eq!([clock.next_s(), clock.next_s(), clock.next_s()], [0.25, 0.5, 0.75]);
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        for qps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert!(Arrivals { qps, process: Process::Poisson }.check().is_err(), "{qps}");
        }
    }
}
