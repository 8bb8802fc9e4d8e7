//! How often each key is asked for.
//!
//! The weights of a population are drawn (lognormal) or follow from rank (Zipf), sorted from the most popular down, cut
//! and clipped, and sum to 1. Key `k0` is the most popular one.

use crate::WorkloadError;
use cr_trace::stats::gini;
use cr_trace::{Stream, stream};
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// At most so many keys: 10 bytes or more are held for each.
pub const MAX_KEYS: u64 = 100_000_000;

/// The law of a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The key of rank r (from 1) has weight r^−alpha.
    Zipf,
    /// Weights are exp(sigma · N(0, 1)).
    Lognormal,
}

/// A population of keys and their shares of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popularity {
    /// The law.
    pub model: Law,
    /// How many keys.
    pub keys: u64,
    /// The exponent of `zipf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// The standard deviation of the logarithm of `lognormal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
    /// Instead of `alpha` or `sigma`: the Gini coefficient that the population is to have, clipping included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gini: Option<f64>,
    /// No key makes more than this share of the requests; what is cut off goes to the others in proportion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_share: Option<f64>,
    /// The population's own seed; the run's where absent. With it, seeds vary the traffic over one population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl Popularity {
    /// Checks the fields by themselves.
    ///
    /// # Errors
    ///
    /// The first field that is out of range or does not belong to the law.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let error = |field, what: String| Err(WorkloadError::field(field, what));
        if !(1..=MAX_KEYS).contains(&self.keys) {
            return error("popularity.keys", format!("{} keys; between 1 and {MAX_KEYS}", self.keys));
        }
        let (field, parameter, max, stranger, other) = match self.model {
            Law::Zipf => ("popularity.alpha", self.alpha, 20.0, "popularity.sigma", self.sigma),
            Law::Lognormal => ("popularity.sigma", self.sigma, 20.0, "popularity.alpha", self.alpha),
        };
        if other.is_some() {
            return error(stranger, format!("does not belong to this model, which has {field}"));
        }
        match (parameter, self.gini) {
            (Some(value), None) if !(0.0..=max).contains(&value) => {
                return error(field, format!("is {value}, it must lie between 0 and {max}"));
            }
            (None, Some(gini)) if !(0.0..1.0).contains(&gini) => {
                return error("popularity.gini", format!("is {gini}, it must be at least 0 and below 1"));
            }
            (Some(_), Some(_)) => {
                return error("popularity.gini", format!("stands beside {field}; give one of the two"));
            }
            (None, None) => return error(field, "is missing; give it, or popularity.gini".into()),
            _ => {}
        }
        if let Some(share) = self.max_share
            && !(share * self.keys as f64 >= 1.0 && share <= 1.0)
        {
            return error(
                "popularity.max_share",
                format!(
                    "is {share}; {} keys need at least {} to make up all requests",
                    self.keys,
                    1.0 / self.keys as f64
                ),
            );
        }
        Ok(())
    }

    /// The shares of the keys, most popular first; they sum to 1. `seed` is the run's.
    ///
    /// # Errors
    ///
    /// As [`Popularity::check`], and a Gini coefficient that the law cannot reach.
    pub fn shares(&self, seed: u64) -> Result<Vec<f64>, WorkloadError> {
        self.check()?;
        let scores = self.scores(seed);
        if let Some(parameter) = self.alpha.or(self.sigma) {
            return Ok(self.realise(&scores, parameter));
        }
        let wanted = self.gini.unwrap_or_default();
        let parameter = self.fit(&scores, wanted)?;
        Ok(self.realise(&scores, parameter))
    }

    /// A weight is exp(parameter · score): for Zipf the score is −ln rank, for the lognormal law a normal draw.
    fn scores(&self, seed: u64) -> Vec<f64> {
        match self.model {
            Law::Zipf => (1..=self.keys).map(|rank| -libm::log(rank as f64)).collect(),
            Law::Lognormal => {
                let mut rng = stream(self.seed.unwrap_or(seed), "popularity");
                let mut scores: Vec<f64> = (0..self.keys).map(|_| StandardNormal.sample(&mut rng)).collect();
                scores.sort_unstable_by(|a, b| b.total_cmp(a));
                scores
            }
        }
    }

    fn realise(&self, scores: &[f64], parameter: f64) -> Vec<f64> {
        // Relative to the top, so that nothing overflows.
        let top = scores.first().copied().unwrap_or_default();
        let mut shares: Vec<f64> = scores.iter().map(|score| libm::exp(parameter * (score - top))).collect();
        let sum: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= sum);
        if let Some(max_share) = self.max_share {
            clip(&mut shares, max_share);
        }
        shares
    }

    /// The parameter with which the realised population has the wanted Gini coefficient, which grows with it.
    fn fit(&self, scores: &[f64], wanted: f64) -> Result<f64, WorkloadError> {
        let reached = |parameter| {
            let mut shares = self.realise(scores, parameter);
            shares.reverse();
            gini(&shares)
        };
        let (mut low, mut high) = (0.0, 20.0);
        let most = reached(high);
        if wanted > most {
            return Err(WorkloadError::field(
                "popularity.gini",
                format!("{wanted} cannot be reached with these keys and max_share; at most {most:.3}"),
            ));
        }
        while high - low > 1e-7 {
            let middle = (low + high) / 2.0;
            if reached(middle) < wanted { low = middle } else { high = middle }
        }
        Ok((low + high) / 2.0)
    }
}

/// Lowers the leading shares to `max_share` and raises the others in proportion. `shares` descend and sum to 1.
fn clip(shares: &mut [f64], max_share: f64) {
    let mut clipped = 0;
    let mut rest: f64 = 1.0;
    // Clipping one raises the rest, which may push the next over the limit.
    while clipped < shares.len() {
        let scale = (1.0 - clipped as f64 * max_share) / rest;
        if shares[clipped] * scale <= max_share {
            shares[clipped..].iter_mut().for_each(|share| *share *= scale);
            break;
        }
        rest -= shares[clipped];
        clipped += 1;
    }
    shares[..clipped].fill(max_share);
}

/// Draws keys by their shares, in constant time (Walker's alias method).
#[derive(Clone, Debug)]
pub struct KeyPicker {
    alias: WeightedAliasIndex<f64>,
    rng: Stream,
}

impl KeyPicker {
    /// Draws from `shares` (not all zero) by the stream `keys` of the seed.
    ///
    /// # Errors
    ///
    /// Shares that cannot be drawn from.
    pub fn new(shares: Vec<f64>, seed: u64) -> Result<KeyPicker, WorkloadError> {
        let alias = WeightedAliasIndex::new(shares).map_err(|error| {
            WorkloadError::field("popularity", format!("the shares are unusable: {error}"))
        })?;
        Ok(KeyPicker { alias, rng: stream(seed, "keys") })
    }

    /// The rank of the next request's key, from 0.
    pub fn pick(&mut self) -> usize {
        self.alias.sample(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chi_square, ks_distance};
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    fn lognormal(keys: u64, sigma: f64) -> Popularity {
        Popularity {
            model: Law::Lognormal,
            keys,
            alpha: None,
            sigma: Some(sigma),
            gini: None,
            max_share: None,
            seed: None,
        }
    }

    fn zipf(keys: u64, alpha: f64) -> Popularity {
        Popularity { model: Law::Zipf, alpha: Some(alpha), sigma: None, ..lognormal(keys, 0.0) }
    }

    fn gini_of(shares: &[f64]) -> f64 {
        let mut ascending = shares.to_vec();
        ascending.reverse();
        gini(&ascending)
    }

    /// The published population: Gini 0.756, top 4 % of the keys make 45.9 % of the requests, no key above 0.3 %.
    #[test]
    fn the_primary_population_has_its_published_statistics() {
        for seed in 1..=5 {
            let shares = Popularity { max_share: Some(0.003), ..lognormal(128_824, 1.648) }
                .shares(seed)
                .expect("is valid");
            let top: f64 = shares[..128_824 * 4 / 100].iter().sum();
            assert!((gini_of(&shares) - 0.756).abs() < 0.005, "{}", gini_of(&shares));
            assert!((top - 0.459).abs() < 0.008, "{top}");
            assert!(shares[0] <= 0.003);
        }
    }

    #[test]
    fn a_population_fitted_to_its_gini_has_it() {
        let by_gini = |model, keys, gini, max_share| {
            let spec = Popularity { model, sigma: None, gini: Some(gini), max_share, ..lognormal(keys, 0.0) };
            spec.shares(3).map(|shares| (gini_of(&shares), shares[0]))
        };
        for (model, max_share) in [(Law::Zipf, None), (Law::Lognormal, None), (Law::Lognormal, Some(0.003))] {
            let (gini, top) = by_gini(model, 20_000, 0.756, max_share).expect("is valid");
            assert!((gini - 0.756).abs() < 1e-5 && top <= max_share.unwrap_or(1.0), "{gini} {top}");
        }
        let error = by_gini(Law::Zipf, 2, 0.9, None).expect_err("two keys cannot").to_string();
        assert_eq!(
            error,
            "popularity.gini: 0.9 cannot be reached with these keys and max_share; at most 0.500"
        );
    }

    #[test]
    fn lognormal_weights_fit() {
        let shares = lognormal(20_000, 1.3).shares(9).expect("is valid");
        let logs: Vec<f64> = shares.iter().map(|share| share.ln()).collect();
        let mean = logs.iter().sum::<f64>() / 20_000.0;
        let normal = Normal::new(mean, 1.3).expect("valid");
        let distance = ks_distance(logs, |x| normal.cdf(x));
        assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
    }

    /// χ² with 49 degrees of freedom stays below 74.9 in 99 of 100 cases.
    #[test]
    fn keys_are_drawn_by_their_shares() {
        let shares = zipf(50, 1.1).shares(0).expect("is valid");
        assert!((shares[0] / shares[9] - 10f64.powf(1.1)).abs() < 1e-9);
        let mut picker = KeyPicker::new(shares.clone(), 4).expect("is valid");
        let mut counts = vec![0; 50];
        (0..100_000).for_each(|_| counts[picker.pick()] += 1);
        let chi = chi_square(&counts, &shares);
        assert!(chi < 74.9, "{chi}");
    }

    #[test]
    fn a_population_of_its_own_seed_stays_when_the_run_s_changes() {
        let fixed = Popularity { seed: Some(5), ..lognormal(100, 1.0) };
        assert_eq!(fixed.shares(1).expect("valid"), fixed.shares(2).expect("valid"));
        let free = lognormal(100, 1.0);
        assert_ne!(free.shares(1).expect("valid"), free.shares(2).expect("valid"));
    }

    #[test]
    fn bad_fields_are_named() {
        let good = lognormal(100, 1.0);
        let cases = [
            (Popularity { keys: 0, ..good.clone() }, "popularity.keys: 0 keys; between 1 and 100000000"),
            (
                Popularity { sigma: Some(f64::NAN), ..good.clone() },
                "popularity.sigma: is NaN, it must lie between 0 and 20",
            ),
            (
                Popularity { sigma: None, ..good.clone() },
                "popularity.sigma: is missing; give it, or popularity.gini",
            ),
            (
                Popularity { alpha: Some(1.0), ..good.clone() },
                "popularity.alpha: does not belong to this model, which has popularity.sigma",
            ),
            (
                Popularity { gini: Some(0.5), ..good.clone() },
                "popularity.gini: stands beside popularity.sigma; give one of the two",
            ),
            (
                Popularity { max_share: Some(0.001), ..good },
                "popularity.max_share: is 0.001; 100 keys need at least 0.01 to make up all requests",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(spec.shares(0).expect_err("is refused").to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn clipping_keeps_sum_order_and_limit(
            mut weights in proptest::collection::vec(0.001f64..100.0, 1..50), slack in 1.0f64..10.0,
        ) {
            weights.sort_by(|a, b| b.total_cmp(a));
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
            let limit = (slack / weights.len() as f64).min(1.0);
            let before = weights.clone();
            clip(&mut weights, limit);
            prop_assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!(weights.is_sorted_by(|a, b| *a >= *b - 1e-12));
            prop_assert!(weights.iter().all(|&w| w <= limit + 1e-12));
            prop_assert!(before[0] > limit || before.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
