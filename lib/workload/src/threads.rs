//! Multi-turn threads: how many turns, and how long people think between them.

use crate::WorkloadError;
use crate::error::within;
use cr_trace::{Stream, stream};
use rand::RngExt;
use rand_distr::{Distribution, Exp1, StandardNormal};
use serde::{Deserialize, Serialize};

/// No thread has more turns.
pub const MAX_TURNS: u32 = 10_000;

/// When a later turn is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loop {
    /// At a fixed time: the think time after the turn before it was sent, whatever the server does.
    #[default]
    Open,
    /// When the turn before it has been answered and the think time has passed.
    Closed,
}

/// Requests come in threads of turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    /// Turns of a thread, on average.
    pub mean_turns: f64,
    /// The share of threads that have one turn only. Where absent, turns are geometric; where given, those of the other
    /// threads are geometric from 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_turn_share: Option<f64>,
    /// No thread has more turns; [`MAX_TURNS`] where absent. Cuts off the tail, so the mean falls short of `mean_turns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Seconds between turns, on average.
    pub think_s: f64,
    /// Standard deviation of the logarithm of a lognormal think time; exponential where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_sigma: Option<f64>,
    /// When a later turn is sent.
    #[serde(default, rename = "loop")]
    pub mode: Loop,
    /// The routing key is the thread's own, and what would be the key becomes the tenant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key_per_thread: bool,
}

impl Threads {
    /// Checks the fields.
    ///
    /// # Errors
    ///
    /// The first one that is out of range or at odds with another.
    pub fn check(&self) -> Result<(), WorkloadError> {
        within("threads.mean_turns", self.mean_turns, 1.0..=1000.0)?;
        within("threads.think_s", self.think_s, 0.0..=1e6)?;
        if let Some(sigma) = self.think_sigma {
            within("threads.think_sigma", sigma, 0.0..=5.0)?;
        }
        if let Some(single) = self.single_turn_share {
            within("threads.single_turn_share", single, 0.0..=0.9999)?;
            let least = single + 2.0 * (1.0 - single);
            if self.mean_turns < least {
                return Err(WorkloadError::field(
                    "threads.mean_turns",
                    format!("is {}; with single_turn_share {single} it is at least {least}", self.mean_turns),
                ));
            }
        }
        match self.max_turns {
            Some(turns) if !(1..=MAX_TURNS).contains(&turns) => Err(WorkloadError::field(
                "threads.max_turns",
                format!("is {turns}, it must lie between 1 and {MAX_TURNS}"),
            )),
            _ => Ok(()),
        }
    }

    /// (share of threads that end at one turn, least turns of the others, probability that a turn is followed by another).
    fn law(&self) -> (f64, u32, f64) {
        let (single, least) = match self.single_turn_share {
            Some(single) => (single, 2),
            None => (0.0, 1),
        };
        let mean_others = (self.mean_turns - single) / (1.0 - single);
        let further = (mean_others - f64::from(least)).max(0.0);
        (single, least, further / (1.0 + further))
    }

    /// Turns of a thread on average, `max_turns` taken into account.
    pub fn expected_turns(&self) -> f64 {
        let (single, least, follow) = self.law();
        let most = self.max_turns.unwrap_or(MAX_TURNS);
        if most < least {
            return f64::from(most);
        }
        // Σ over n ≥ 1 of P(turns ≥ n): `least` certain turns and a geometric tail cut off at `most`.
        let tail: f64 = if follow > 0.0 {
            follow * (1.0 - libm::pow(follow, f64::from(most - least))) / (1.0 - follow)
        } else {
            0.0
        };
        single + (1.0 - single) * (f64::from(least) + tail)
    }
}

/// Draws threads.
#[derive(Clone, Debug)]
pub(crate) struct ThreadDraws {
    threads: Threads,
    turns: Stream,
    think: Stream,
}

impl ThreadDraws {
    pub(crate) fn new(threads: &Threads, seed: u64) -> ThreadDraws {
        ThreadDraws { threads: threads.clone(), turns: stream(seed, "turns"), think: stream(seed, "think") }
    }

    /// The turns of the next thread.
    pub(crate) fn turns(&mut self) -> u32 {
        let (single, least, follow) = self.threads.law();
        let most = self.threads.max_turns.unwrap_or(MAX_TURNS);
        if single > 0.0 && self.turns.random_bool(single) {
            return 1;
        }
        if follow == 0.0 {
            return least.min(most);
        }
        // The number of successes before the first failure, by inversion: ⌊ln U / ln follow⌋.
        let exponential: f64 = Exp1.sample(&mut self.turns);
        let further = (exponential / -libm::log(follow)).floor().min(f64::from(MAX_TURNS)) as u32;
        (least + further).min(most)
    }

    /// The next think time, in seconds.
    pub(crate) fn think_s(&mut self) -> f64 {
        let unit: f64 = match self.threads.think_sigma {
            None => Exp1.sample(&mut self.think),
            Some(sigma) => {
                let normal: f64 = StandardNormal.sample(&mut self.think);
                libm::exp(sigma * normal - sigma * sigma / 2.0)
            }
        };
        crate::arrivals::round_us(self.threads.think_s * unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chi_square, ks_distance};
    use statrs::distribution::{ContinuousCDF, Exp, LogNormal};

    fn threads(mean_turns: f64, single_turn_share: Option<f64>) -> Threads {
        Threads {
            mean_turns,
            single_turn_share,
            max_turns: None,
            think_s: 20.0,
            think_sigma: None,
            mode: Loop::Open,
            key_per_thread: false,
        }
    }

    fn turns(threads: &Threads, count: usize) -> Vec<u32> {
        threads.check().expect("is valid");
        let mut draws = ThreadDraws::new(threads, 3);
        (0..count).map(|_| draws.turns()).collect()
    }

    #[test]
    fn turns_are_geometric() {
        let turns = turns(&threads(2.64, None), 50_000);
        let stop = 1.0 / 2.64;
        let mut shares: Vec<f64> = (0..8).map(|n| stop * (1.0f64 - stop).powi(n)).collect();
        shares.push(1.0 - shares.iter().sum::<f64>());
        let mut counts = vec![0; 9];
        turns.iter().for_each(|&n| counts[(n as usize - 1).min(8)] += 1);
        let chi = chi_square(&counts, &shares);
        assert!(chi < 20.1, "χ² with 8 degrees of freedom: {chi}");
    }

    /// The published traffic: 2.64 requests a thread, 80.8 % of the requests in threads of several turns.
    #[test]
    fn published_threads() {
        let published = threads(2.64, Some(0.507));
        let turns = turns(&published, 200_000);
        let total: u32 = turns.iter().sum();
        let single = turns.iter().filter(|&&n| n == 1).count() as f64;
        assert!((f64::from(total) / 200_000.0 - 2.64).abs() < 0.02);
        assert!((1.0 - single / f64::from(total) - 0.808).abs() < 0.003);
        assert!((published.expected_turns() - 2.64).abs() < 1e-9);
    }

    #[test]
    fn the_expected_turns_are_the_mean() {
        for (mean, single, max) in
            [(2.64, None, Some(4)), (6.0, Some(0.3), Some(5)), (1.0, None, None), (9.0, None, Some(1))]
        {
            let threads = Threads { max_turns: max, ..threads(mean, single) };
            let turns = turns(&threads, 100_000);
            let found = turns.iter().map(|&n| f64::from(n)).sum::<f64>() / 100_000.0;
            assert!((found - threads.expected_turns()).abs() < 0.02, "{threads:?}: {found}");
        }
    }

    #[test]
    fn think_times_fit() {
        for (sigma, cdf) in [
            (None, Box::new(|x| Exp::new(0.05).expect("valid").cdf(x)) as Box<dyn Fn(f64) -> f64>),
            (Some(1.0), Box::new(|x| LogNormal::new(20f64.ln() - 0.5, 1.0).expect("valid").cdf(x))),
        ] {
            let mut draws = ThreadDraws::new(&Threads { think_sigma: sigma, ..threads(2.0, None) }, 5);
            let times: Vec<f64> = (0..20_000).map(|_| draws.think_s()).collect();
            let distance = ks_distance(times, cdf);
            assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
        }
    }

    #[test]
    fn bad_fields_are_named() {
        let refused = |threads: Threads| threads.check().expect_err("is refused").to_string();
        assert_eq!(refused(threads(0.5, None)), "threads.mean_turns: is 0.5, it must lie between 1 and 1000");
        assert_eq!(
            refused(threads(1.2, Some(0.5))),
            "threads.mean_turns: is 1.2; with single_turn_share 0.5 it is at least 1.5"
        );
        let none = Threads { max_turns: Some(0), ..threads(2.0, None) };
        assert_eq!(refused(none), "threads.max_turns: is 0, it must lie between 1 and 10000");
    }
}
