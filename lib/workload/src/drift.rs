//! Drawing keys whose shares may move over time.

use crate::WorkloadError;
use crate::error::within;
use crate::popularity::{Population, normalise};
use compact_str::format_compact;
use cr_trace::{Key, Stream, stream};
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// A lognormal random walk of every key's share: each interval multiplies it by exp(sigma · N(0, 1)), and the shares are
/// scaled to sum to 1 again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Standard deviation of the logarithm of a step.
    pub sigma: f64,
    /// Seconds between steps.
    pub interval_s: f64,
}

impl Drift {
    /// Checks the fields.
    ///
    /// # Errors
    ///
    /// The first one that is out of range.
    pub fn check(&self) -> Result<(), WorkloadError> {
        within("popularity.drift.sigma", self.sigma, 0.0..=5.0)?;
        within("popularity.drift.interval_s", self.interval_s, 0.001..=1e7)
    }
}

/// Draws keys by their shares in constant time (Walker's alias method); a drift costs a pass over the keys an interval.
#[derive(Clone, Debug)]
pub struct KeyPicker {
    alias: WeightedAliasIndex<f64>,
    names: Vec<Key>,
    rng: Stream,
    drift: Option<Walk>,
}

#[derive(Clone, Debug)]
struct Walk {
    drift: Drift,
    shares: Vec<f64>,
    rng: Stream,
    steps: u64,
}

impl KeyPicker {
    /// Draws from a population by the stream `keys` of the seed; `drift` moves it by the stream `drift`.
    ///
    /// # Errors
    ///
    /// Shares that cannot be drawn from.
    pub fn new(population: Population, drift: Option<&Drift>, seed: u64) -> Result<KeyPicker, WorkloadError> {
        let Population { shares, names } = population;
        let drift = drift.map(|drift| Walk {
            drift: drift.clone(),
            shares: shares.clone(),
            rng: stream(seed, "drift"),
            steps: 0,
        });
        Ok(KeyPicker { alias: alias(shares)?, names, rng: stream(seed, "keys"), drift })
    }

    /// The rank of the key of a request at `t_s`, from 0; calls are ordered by time.
    pub fn pick(&mut self, t_s: f64) -> usize {
        if let Some(walk) = &mut self.drift
            && walk.follow(t_s)
            && let Ok(moved) = alias(walk.shares.clone())
        {
            self.alias = moved;
        }
        self.alias.sample(&mut self.rng)
    }

    /// Whether shares move over time.
    pub fn drifts(&self) -> bool {
        self.drift.is_some()
    }

    /// The name of the key of a rank.
    pub fn name(&self, rank: usize) -> Key {
        self.names.get(rank).cloned().unwrap_or_else(|| format_compact!("k{rank}"))
    }
}

fn alias(shares: Vec<f64>) -> Result<WeightedAliasIndex<f64>, WorkloadError> {
    WeightedAliasIndex::new(shares).map_err(|error| {
        WorkloadError::field("popularity", format!("the shares cannot be drawn from: {error}"))
    })
}

impl Walk {
    /// Takes the steps due by `t_s`; whether there were any.
    fn follow(&mut self, t_s: f64) -> bool {
        let due = (t_s / self.drift.interval_s) as u64;
        if due <= self.steps {
            return false;
        }
        while self.steps < due {
            for share in &mut self.shares {
                let normal: f64 = StandardNormal.sample(&mut self.rng);
                // A floor keeps a share that wandered off drawable.
                *share = (*share * libm::exp(self.drift.sigma * normal)).max(1e-280);
            }
            normalise(&mut self.shares, 1.0);
            self.steps += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::popularity::Popularity;
    use crate::testing::{chi_square, ks_distance};
    use statrs::distribution::{ContinuousCDF, Normal};
    use std::path::Path;

    fn zipf(keys: u64) -> Population {
        Popularity::zipf(keys, 1.1).draw(0, Path::new("")).expect("is valid")
    }

    /// χ² with 49 degrees of freedom stays below 74.9 in 99 of 100 cases.
    #[test]
    fn keys_are_drawn_by_their_shares() {
        let mut picker = KeyPicker::new(zipf(50), None, 4).expect("is valid");
        let mut counts = vec![0; 50];
        (0..100_000).for_each(|_| counts[picker.pick(0.0)] += 1);
        let chi = chi_square(&counts, &zipf(50).shares);
        assert!(chi < 74.9, "{chi}");
    }

    /// After n steps the logarithms of the shares have moved by normal amounts of variance n·sigma².
    #[test]
    fn a_walk_spreads_as_it_should() {
        let before = zipf(10_000).shares;
        let drift = Drift { sigma: 0.3, interval_s: 60.0 };
        let mut walk = Walk { drift, shares: before.clone(), rng: stream(1, "drift"), steps: 0 };
        assert!(!walk.follow(59.9) && walk.follow(241.0) && !walk.follow(299.0));
        let moved: Vec<f64> = before.iter().zip(&walk.shares).map(|(a, b)| (b / a).ln()).collect();
        let mean = moved.iter().sum::<f64>() / 10_000.0;
        let normal = Normal::new(mean, 0.6).expect("valid");
        let distance = ks_distance(moved, |x| normal.cdf(x));
        assert!(distance < 1.63 / 100.0, "{distance}");
    }

    /// The keys drawn follow the shares as they are at the time.
    #[test]
    fn picks_follow_the_walk() {
        let drift = Drift { sigma: 1.0, interval_s: 10.0 };
        let mut picker = KeyPicker::new(zipf(50), Some(&drift), 4).expect("is valid");
        picker.pick(35.0);
        let shares = picker.drift.as_ref().expect("drifts").shares.clone();
        let mut counts = vec![0; 50];
        (0..100_000).for_each(|_| counts[picker.pick(39.0)] += 1);
        let chi = chi_square(&counts, &shares);
        assert!(chi < 74.9, "{chi}");
        let start = chi_square(&counts, &zipf(50).shares);
        assert!(start > 1000.0, "the walk has left its start: {start}");
    }
}
