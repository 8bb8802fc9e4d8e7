//! The rate over time, as a factor of the mean rate.
//!
//! Every shape is a sequence of straight pieces, so that the time at which the expected number of arrivals has grown by a
//! given amount follows in closed form.

use crate::WorkloadError;
use crate::error::within;
use cr_trace::{Stream, Time, stream};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// How the rate moves, as a factor of `arrivals.qps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shape", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Profile {
    /// From one factor to another in a straight line, then level.
    Ramp {
        /// Factor at the start.
        from: f64,
        /// Factor after `over_s`.
        to: f64,
        /// Seconds that the change takes.
        over_s: f64,
    },
    /// A day: 1 + amplitude · sin(2π t / period), in 96 straight pieces a period.
    Diurnal {
        /// Between 0 and 1.
        amplitude: f64,
        /// Seconds; 86,400 is a day.
        period_s: f64,
    },
    /// A burst of traffic, level otherwise.
    Spike {
        /// When it begins, in seconds.
        at_s: f64,
        /// How long it lasts, in seconds.
        for_s: f64,
        /// The factor while it lasts.
        factor: f64,
        /// It comes again so many seconds after it began; once where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        every_s: Option<f64>,
    },
    /// A lognormal random walk of the whole rate: level within an interval, then multiplied by exp(sigma · N(0, 1)). Popularity
    /// has a walk of its own (`popularity.drift`).
    Walk {
        /// Standard deviation of the logarithm of a step.
        sigma: f64,
        /// Seconds between steps: a control interval.
        interval_s: f64,
        /// The factor stays between 1 / limit and limit, from which it is reflected; 10 where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<f64>,
    },
}

/// How far a walk goes where nothing is said.
const WALK_LIMIT: f64 = 10.0;

const PIECES_PER_PERIOD: f64 = 96.0;

impl Profile {
    /// Checks the fields.
    ///
    /// # Errors
    ///
    /// The first one that is out of range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        const FACTORS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;
        match *self {
            Profile::Ramp { from, to, over_s } => {
                within("rate.from", from, FACTORS)?;
                within("rate.to", to, FACTORS)?;
                within("rate.over_s", over_s, 0.001..=1e7)
            }
            Profile::Diurnal { amplitude, period_s } => {
                within("rate.amplitude", amplitude, 0.0..=0.999)?;
                within("rate.period_s", period_s, 1.0..=1e7)
            }
            Profile::Spike { at_s, for_s, factor, every_s } => {
                within("rate.at_s", at_s, 0.0..=1e7)?;
                within("rate.for_s", for_s, 0.001..=1e7)?;
                within("rate.factor", factor, FACTORS)?;
                match every_s {
                    Some(every_s) if every_s <= for_s => {
                        Err(WorkloadError::field("rate.every_s", "must be longer than for_s"))
                    }
                    Some(every_s) => within("rate.every_s", every_s, 0.001..=1e7),
                    None => Ok(()),
                }
            }
            Profile::Walk { sigma, interval_s, limit } => {
                within("rate.sigma", sigma, 0.0..=5.0)?;
                within("rate.interval_s", interval_s, 0.001..=1e7)?;
                within("rate.limit", limit.unwrap_or(WALK_LIMIT), 1.0..=1000.0)
            }
        }
    }

    /// The straight piece that begins at `start`: its end, and its factors at both ends. Calls follow one another, from 0.
    fn piece(&self, start: f64, walk: &mut Walker) -> Piece {
        match *self {
            Profile::Ramp { from, to, over_s } if start < over_s => Piece { end: over_s, from, to },
            Profile::Ramp { to, .. } => Piece::level(f64::INFINITY, to),
            Profile::Diurnal { amplitude, period_s } => {
                let step = period_s / PIECES_PER_PERIOD;
                let index = (start / step).round();
                let factor = |index: f64| {
                    1.0 + amplitude * libm::sin(index / PIECES_PER_PERIOD * std::f64::consts::TAU)
                };
                Piece { end: (index + 1.0) * step, from: factor(index), to: factor(index + 1.0) }
            }
            Profile::Spike { at_s, for_s, factor, every_s } => {
                let begin = match every_s {
                    Some(every_s) if start >= at_s => {
                        // A start that rounding has left just short of a border belongs beyond it.
                        at_s + ((start - at_s) / every_s + 1e-9).floor() * every_s
                    }
                    _ => at_s,
                };
                if start < begin {
                    return Piece::level(begin, 1.0);
                }
                if start < begin + for_s * (1.0 - 1e-9) {
                    return Piece::level(begin + for_s, factor);
                }
                Piece::level(every_s.map_or(f64::INFINITY, |every_s| begin + every_s), 1.0)
            }
            Profile::Walk { sigma, interval_s, limit } => {
                let index = (start / interval_s).round();
                if index > 0.0 {
                    walk.step(sigma, limit.unwrap_or(WALK_LIMIT));
                }
                Piece::level((index + 1.0) * interval_s, libm::exp(walk.log_factor))
            }
        }
    }
}

/// Where a random walk is, as the logarithm of the factor.
#[derive(Clone, Debug)]
struct Walker {
    rng: Stream,
    log_factor: f64,
}

impl Walker {
    fn step(&mut self, sigma: f64, limit: f64) {
        let normal: f64 = StandardNormal.sample(&mut self.rng);
        let bound = libm::log(limit);
        let moved = self.log_factor + sigma * normal;
        // A step of many bounds is cut at the far one; one reflection does for all others.
        self.log_factor = match moved {
            _ if moved > bound => (2.0 * bound - moved).max(-bound),
            _ if moved < -bound => (-2.0 * bound - moved).min(bound),
            _ => moved,
        };
    }
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: f64,
    from: f64,
    to: f64,
}

impl Piece {
    fn level(end: f64, factor: f64) -> Piece {
        Piece { end, from: factor, to: factor }
    }
}

/// Maps seconds at the mean rate to seconds under a profile, step by step.
#[derive(Clone, Debug)]
pub struct ProfileClock {
    profile: Option<Profile>,
    walk: Walker,
    now: f64,
    start: f64,
    piece: Piece,
}

impl ProfileClock {
    /// Starts at time 0; without a profile it keeps the mean rate. A random walk goes by the stream `rate` of the seed.
    pub fn new(profile: Option<&Profile>, seed: u64) -> ProfileClock {
        let mut walk = Walker { rng: stream(seed, "rate"), log_factor: 0.0 };
        let piece = profile.map_or(Piece::level(f64::INFINITY, 1.0), |profile| profile.piece(0.0, &mut walk));
        ProfileClock { profile: profile.cloned(), walk, now: 0.0, start: 0.0, piece }
    }

    /// The time at which as much traffic has passed as the mean rate brings in `seconds` more seconds; any time beyond
    /// [`Time::MAX_S`] where that lies there.
    pub fn advance(&mut self, seconds: f64) -> f64 {
        let mut left = seconds;
        loop {
            let Piece { end, from, to } = self.piece;
            if end.is_infinite() {
                self.now += left / from;
                return self.now;
            }
            let slope = (to - from) / (end - self.start);
            let factor = from + slope * (self.now - self.start);
            let rest = (factor + to) / 2.0 * (end - self.now);
            if left < rest {
                // ½·slope·x² + factor·x = left, in the form that stays exact for a small slope.
                let root = (factor * factor + 2.0 * slope * left).max(0.0).sqrt();
                self.now += 2.0 * left / (factor + root);
                return self.now;
            }
            left -= rest.max(0.0);
            (self.now, self.start) = (end, end);
            if end > Time::MAX_S {
                // Later than any trace: how much later, nobody asks.
                return end;
            }
            self.piece = match &self.profile {
                Some(profile) => profile.piece(end, &mut self.walk),
                None => Piece::level(f64::INFINITY, 1.0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shapes() -> impl Strategy<Value = Profile> {
        let factor = || 0.01f64..20.0;
        prop_oneof![
            (factor(), factor(), 0.1f64..500.0).prop_map(|(from, to, over_s)| Profile::Ramp {
                from,
                to,
                over_s
            }),
            (0.0f64..0.99, 1.0f64..500.0)
                .prop_map(|(amplitude, period_s)| Profile::Diurnal { amplitude, period_s }),
            (0.0f64..200.0, 0.1f64..50.0, factor(), proptest::option::of(60.0f64..200.0))
                .prop_map(|(at_s, for_s, factor, every_s)| Profile::Spike { at_s, for_s, factor, every_s }),
        ]
    }

    /// The factor at a time, by the definition of each shape.
    fn factor(profile: &Profile, t: f64) -> f64 {
        match *profile {
            Profile::Ramp { from, to, over_s } => from + (to - from) * (t / over_s).min(1.0),
            Profile::Diurnal { amplitude, period_s } => {
                1.0 + amplitude * (t / period_s * std::f64::consts::TAU).sin()
            }
            Profile::Spike { at_s, for_s, factor, every_s } => {
                let since = t - at_s;
                let since =
                    every_s.map_or(since, |every_s| if since >= 0.0 { since % every_s } else { since });
                if (0.0..for_s).contains(&since) { factor } else { 1.0 }
            }
            Profile::Walk { .. } => unreachable!("has a test of its own"),
        }
    }

    proptest! {
        /// What has passed by the time that the clock gives is what was asked for: the oracle adds up small steps.
        #[test]
        fn the_clock_inverts_the_integral(profile in shapes(), steps in proptest::collection::vec(0.01f64..60.0, 1..12)) {
            profile.check().expect("is valid");
            let mut clock = ProfileClock::new(Some(&profile), 7);
            let mut asked = 0.0;
            let mut now = 0.0;
            for step in steps {
                asked += step;
                let next = clock.advance(step);
                prop_assert!(next >= now);
                now = next;
            }
            let pieces = 200_000;
            let width = now / f64::from(pieces);
            let passed: f64 = (0..pieces).map(|i| factor(&profile, (f64::from(i) + 0.5) * width) * width).sum();
            prop_assert!((passed - asked).abs() < 0.004 * asked + 0.01, "{passed} of {asked}");
        }
    }

    #[test]
    fn a_spike_speeds_up_and_ends() {
        let spike = Profile::Spike { at_s: 10.0, for_s: 5.0, factor: 4.0, every_s: None };
        let mut clock = ProfileClock::new(Some(&spike), 7);
        let times: Vec<f64> = (0..5).map(|_| clock.advance(10.0)).collect();
        assert_eq!(times, [10.0, 12.5, 15.0, 25.0, 35.0]);
    }

    /// The factor of each interval, from how much passes in it.
    fn walked(profile: &Profile, seed: u64, intervals: usize) -> Vec<f64> {
        let mut clock = ProfileClock::new(Some(profile), seed);
        let mut passed = vec![0.0; intervals];
        loop {
            let at = (clock.advance(0.01) / 10.0) as usize;
            match passed.get_mut(at) {
                Some(passed) => *passed += 0.01 / 10.0,
                None => return passed,
            }
        }
    }

    #[test]
    fn a_walk_moves_the_whole_rate_each_interval() {
        let walk = Profile::Walk { sigma: 0.3, interval_s: 10.0, limit: None };
        let factors = walked(&walk, 7, 200);
        assert!((factors[0] - 1.0).abs() < 0.01, "{}", factors[0]);
        let steps: Vec<f64> = factors.windows(2).map(|pair| (pair[1] / pair[0]).ln()).collect();
        let normal = statrs::distribution::Normal::new(0.0, 0.3).expect("is valid");
        let distance =
            crate::testing::ks_distance(steps, |x| statrs::distribution::ContinuousCDF::cdf(&normal, x));
        assert!(distance < 1.63 / 199f64.sqrt(), "{distance}");
        assert_eq!(walked(&walk, 7, 20), factors[..20], "the same seed walks the same way");
        assert_ne!(walked(&walk, 8, 20), factors[..20]);
    }

    #[test]
    fn a_walk_turns_back_at_its_limit() {
        let walk = Profile::Walk { sigma: 1.0, interval_s: 10.0, limit: Some(2.0) };
        let factors = walked(&walk, 7, 100);
        assert!(factors.iter().all(|factor| (0.49..2.01).contains(factor)), "{factors:?}");
        assert!(factors.iter().any(|&factor| factor > 1.5) && factors.iter().any(|&factor| factor < 0.7));
    }

    #[test]
    fn fields_out_of_range_are_named() {
        let refused = |profile: Profile| profile.check().expect_err("is refused").to_string();
        assert!(refused(Profile::Ramp { from: 0.0, to: 1.0, over_s: 1.0 }).starts_with("rate.from: is 0"));
        assert!(
            refused(Profile::Diurnal { amplitude: 1.0, period_s: 9.0 }).starts_with("rate.amplitude: is 1")
        );
        let spike = Profile::Spike { at_s: 0.0, for_s: 5.0, factor: 2.0, every_s: Some(5.0) };
        assert_eq!(refused(spike), "rate.every_s: must be longer than for_s");
    }
}
