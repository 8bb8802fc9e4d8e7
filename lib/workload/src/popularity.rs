//! How often each key is asked for.
//!
//! The weights of a population are drawn (lognormal), follow from rank (Zipf) or are given (rates), and are sorted from
//! the most popular down. In this order: shares above `max_share` are clipped, keys beyond `top_k` dropped, whales
//! injected; the shares then sum to 1. Key `k0` is the most popular one, unless rates give names.

use crate::WorkloadError;
use crate::drift::Drift;
use crate::error::within;
use cr_trace::stats::gini;
use cr_trace::{Key, stream};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// At most so many keys: 12 bytes or more are held for each.
pub const MAX_KEYS: u64 = 100_000_000;

/// The law of a population.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// The key of rank r (from 1) has weight r^−alpha.
    Zipf,
    /// Weights are exp(sigma · N(0, 1)).
    Lognormal,
    /// Weights are given by name, in `rates` or in `rates_file`.
    Rates,
}

/// Keys injected on top of a population: each makes the same share of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whales {
    /// How many of the most popular keys become whales.
    pub count: u64,
    /// The share of the requests that they make together; the other keys keep their proportions in the rest.
    pub share: f64,
}

/// A population of keys and their shares of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popularity {
    /// The law.
    pub model: Law,
    /// How many keys; `rates` counts its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<u64>,
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
    /// Only the requests of so many of the most popular keys are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u64>,
    /// The population's own seed; the run's where absent. With it, seeds vary the traffic over one population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// A file of the rates of `rates`: CSV with columns `key` and `rate`; relative to the specification's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates_file: Option<PathBuf>,
    /// The rates of `rates`, by key, in any unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<BTreeMap<String, f64>>,
    /// Injected whales.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whales: Option<Whales>,
    /// How shares move over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
}

/// A population drawn: its keys' shares, and their names where they are not `k0`, `k1`, …
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// Most popular first; they sum to 1.
    pub shares: Vec<f64>,
    /// As many as shares, or none.
    pub names: Vec<Key>,
}

impl Popularity {
    fn of(model: Law, keys: u64) -> Popularity {
        Popularity {
            model,
            keys: Some(keys),
            alpha: None,
            sigma: None,
            gini: None,
            max_share: None,
            top_k: None,
            seed: None,
            rates_file: None,
            rates: None,
            whales: None,
            drift: None,
        }
    }

    /// Zipf's law: the key of rank r has weight r^−alpha.
    pub fn zipf(keys: u64, alpha: f64) -> Popularity {
        Popularity { alpha: Some(alpha), ..Popularity::of(Law::Zipf, keys) }
    }

    /// Lognormal weights.
    pub fn lognormal(keys: u64, sigma: f64) -> Popularity {
        Popularity { sigma: Some(sigma), ..Popularity::of(Law::Lognormal, keys) }
    }

    /// A law fitted to a Gini coefficient.
    pub fn fitted(model: Law, keys: u64, gini: f64) -> Popularity {
        Popularity { gini: Some(gini), ..Popularity::of(model, keys) }
    }

    /// Checks the fields by themselves.
    ///
    /// # Errors
    ///
    /// The first field that is out of range or does not belong to the law.
    pub fn check(&self) -> Result<(), WorkloadError> {
        self.check_law()?;
        if let (Some(share), Some(keys)) = (self.max_share, self.keys)
            && !(share * keys as f64 >= 1.0 && share <= 1.0)
        {
            let least = 1.0 / keys as f64;
            return Err(WorkloadError::field(
                "popularity.max_share",
                format!("is {share}; {keys} keys need at least {least} to make up all requests"),
            ));
        }
        if self.top_k == Some(0) {
            return Err(WorkloadError::field("popularity.top_k", "0 keys; at least 1"));
        }
        if let Some(whales) = &self.whales {
            within("popularity.whales.share", whales.share, 0.0..=1.0)?;
            if whales.count == 0 {
                return Err(WorkloadError::field("popularity.whales.count", "0 whales; at least 1"));
            }
        }
        self.drift.as_ref().map_or(Ok(()), Drift::check)
    }

    fn check_law(&self) -> Result<(), WorkloadError> {
        let error = |field, what: String| Err(WorkloadError::field(field, what));
        let parameters = [
            ("popularity.alpha", self.alpha.is_some(), self.model == Law::Zipf),
            ("popularity.sigma", self.sigma.is_some(), self.model == Law::Lognormal),
            ("popularity.gini", self.gini.is_some(), self.model != Law::Rates),
            ("popularity.max_share", self.max_share.is_some(), self.model != Law::Rates),
            ("popularity.keys", self.keys.is_some(), self.model != Law::Rates),
            ("popularity.rates", self.rates.is_some(), self.model == Law::Rates),
            ("popularity.rates_file", self.rates_file.is_some(), self.model == Law::Rates),
        ];
        if let Some((field, ..)) = parameters.iter().find(|(_, given, belongs)| *given && !belongs) {
            return error(*field, format!("does not belong to the model {:?}", self.model).to_lowercase());
        }
        let (field, parameter) = match self.model {
            Law::Rates if self.rates.is_some() == self.rates_file.is_some() => {
                return error("popularity.rates", "give either rates or rates_file".into());
            }
            Law::Rates => return Ok(()),
            Law::Zipf => ("popularity.alpha", self.alpha),
            Law::Lognormal => ("popularity.sigma", self.sigma),
        };
        match self.keys {
            None => return error("popularity.keys", "is missing".into()),
            Some(keys) if !(1..=MAX_KEYS).contains(&keys) => {
                return error("popularity.keys", format!("{keys} keys; between 1 and {MAX_KEYS}"));
            }
            Some(_) => {}
        }
        match (parameter, self.gini) {
            (Some(value), None) => within(field, value, 0.0..=20.0),
            (None, Some(gini)) if (0.0..1.0).contains(&gini) => Ok(()),
            (None, Some(gini)) => {
                error("popularity.gini", format!("is {gini}, it must be at least 0 and below 1"))
            }
            (Some(_), Some(_)) => {
                error("popularity.gini", format!("stands beside {field}; give one of the two"))
            }
            (None, None) => error(field, "is missing; give it, or popularity.gini".into()),
        }
    }

    /// Draws the population. `seed` is the run's, `folder` where the files of the specification are.
    ///
    /// # Errors
    ///
    /// As [`Popularity::check`]; a Gini coefficient that the law cannot reach; a file of rates that cannot be used.
    pub fn draw(&self, seed: u64, folder: &Path) -> Result<Population, WorkloadError> {
        self.check()?;
        let mut population = match self.model {
            Law::Rates => crate::rates::population(self.rates.as_ref(), self.rates_file.as_deref(), folder)?,
            Law::Zipf | Law::Lognormal => Population { shares: self.law_shares(seed)?, names: Vec::new() },
        };
        if let Some(top_k) = self.top_k {
            let kept = usize::try_from(top_k).unwrap_or(usize::MAX).min(population.shares.len());
            population.shares.truncate(kept);
            population.names.truncate(kept);
            normalise(&mut population.shares, 1.0);
        }
        if let Some(whales) = &self.whales {
            inject(&mut population.shares, whales)?;
        }
        Ok(population)
    }

    fn law_shares(&self, seed: u64) -> Result<Vec<f64>, WorkloadError> {
        let scores = self.scores(seed);
        let parameter = match (self.alpha.or(self.sigma), self.gini) {
            (Some(parameter), _) => parameter,
            (None, wanted) => self.fit(&scores, wanted.unwrap_or_default())?,
        };
        Ok(self.realise(&scores, parameter))
    }

    /// A weight is exp(parameter · score): for Zipf the score is −ln rank, for the lognormal law a normal draw.
    fn scores(&self, seed: u64) -> Vec<f64> {
        let keys = self.keys.unwrap_or_default();
        match self.model {
            Law::Zipf => (1..=keys).map(|rank| -libm::log(rank as f64)).collect(),
            Law::Lognormal | Law::Rates => {
                let mut rng = stream(self.seed.unwrap_or(seed), "popularity");
                let mut scores: Vec<f64> = (0..keys).map(|_| StandardNormal.sample(&mut rng)).collect();
                scores.sort_unstable_by(|a, b| b.total_cmp(a));
                scores
            }
        }
    }

    fn realise(&self, scores: &[f64], parameter: f64) -> Vec<f64> {
        // Relative to the top, so that nothing overflows.
        let top = scores.first().copied().unwrap_or_default();
        let mut shares: Vec<f64> = scores.iter().map(|score| libm::exp(parameter * (score - top))).collect();
        normalise(&mut shares, 1.0);
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

/// Scales shares so that they sum to `sum`.
pub(crate) fn normalise(shares: &mut [f64], sum: f64) {
    let scale = sum / shares.iter().sum::<f64>();
    shares.iter_mut().for_each(|share| *share *= scale);
}

/// Makes whales of the leading keys.
fn inject(shares: &mut [f64], whales: &Whales) -> Result<(), WorkloadError> {
    let count = usize::try_from(whales.count).unwrap_or(usize::MAX);
    if count >= shares.len() {
        return Err(WorkloadError::field(
            "popularity.whales.count",
            format!("{count} whales among {} keys leave no others", shares.len()),
        ));
    }
    shares[..count].fill(whales.share / count as f64);
    normalise(&mut shares[count..], 1.0 - whales.share);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ks_distance;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, Normal};

    fn shares(spec: &Popularity, seed: u64) -> Result<Vec<f64>, WorkloadError> {
        spec.draw(seed, Path::new("")).map(|population| population.shares)
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
            let spec = Popularity { max_share: Some(0.003), ..Popularity::lognormal(128_824, 1.648) };
            let shares = shares(&spec, seed).expect("is valid");
            let top: f64 = shares[..128_824 * 4 / 100].iter().sum();
            assert!((gini_of(&shares) - 0.756).abs() < 0.005, "{}", gini_of(&shares));
            assert!((top - 0.459).abs() < 0.008, "{top}");
            assert!(shares[0] <= 0.003);
        }
    }

    #[test]
    fn a_population_fitted_to_its_gini_has_it() {
        let by_gini = |model, keys, gini, max_share| {
            let spec = Popularity { max_share, ..Popularity::fitted(model, keys, gini) };
            shares(&spec, 3).map(|shares| (gini_of(&shares), shares[0]))
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
        let shares = shares(&Popularity::lognormal(20_000, 1.3), 9).expect("is valid");
        let logs: Vec<f64> = shares.iter().map(|share| share.ln()).collect();
        let mean = logs.iter().sum::<f64>() / 20_000.0;
        let normal = Normal::new(mean, 1.3).expect("valid");
        let distance = ks_distance(logs, |x| normal.cdf(x));
        assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
    }

    #[test]
    fn zipf_weights_follow_from_rank() {
        let shares = shares(&Popularity::zipf(50, 1.1), 0).expect("is valid");
        assert!((shares[0] / shares[9] - 10f64.powf(1.1)).abs() < 1e-9);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_population_of_its_own_seed_stays_when_the_run_s_changes() {
        let fixed = Popularity { seed: Some(5), ..Popularity::lognormal(100, 1.0) };
        assert_eq!(shares(&fixed, 1).expect("valid"), shares(&fixed, 2).expect("valid"));
        let free = Popularity::lognormal(100, 1.0);
        assert_ne!(shares(&free, 1).expect("valid"), shares(&free, 2).expect("valid"));
    }

    #[test]
    fn the_active_set_keeps_its_proportions() {
        let all = shares(&Popularity::zipf(1000, 1.0), 0).expect("is valid");
        let top = Popularity { top_k: Some(128), ..Popularity::zipf(1000, 1.0) };
        let top = shares(&top, 0).expect("is valid");
        assert!(top.len() == 128 && (top.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((top[0] / top[99] - all[0] / all[99]).abs() < 1e-9);
        let more = Popularity { top_k: Some(5000), ..Popularity::zipf(1000, 1.0) };
        assert_eq!(shares(&more, 0).expect("is valid").len(), 1000);
    }

    #[test]
    fn whales_make_their_share_and_leave_the_rest_in_proportion() {
        let plain = shares(&Popularity::zipf(100, 1.0), 0).expect("is valid");
        let with =
            |count, share| Popularity { whales: Some(Whales { count, share }), ..Popularity::zipf(100, 1.0) };
        let shares = shares(&with(3, 0.45), 0).expect("is valid");
        assert!((shares[..3].iter().sum::<f64>() - 0.45).abs() < 1e-12 && shares[0] == shares[2]);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((shares[10] / shares[50] - plain[10] / plain[50]).abs() < 1e-9);
        assert!(with(100, 0.5).draw(0, Path::new("")).is_err());
    }

    #[test]
    fn bad_fields_are_named() {
        let good = Popularity::lognormal(100, 1.0);
        let cases = [
            (
                Popularity { keys: Some(0), ..good.clone() },
                "popularity.keys: 0 keys; between 1 and 100000000",
            ),
            (Popularity { keys: None, ..good.clone() }, "popularity.keys: is missing"),
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
                "popularity.alpha: does not belong to the model lognormal",
            ),
            (
                Popularity { gini: Some(0.5), ..good.clone() },
                "popularity.gini: stands beside popularity.sigma; give one of the two",
            ),
            (
                Popularity { max_share: Some(0.001), ..good.clone() },
                "popularity.max_share: is 0.001; 100 keys need at least 0.01 to make up all requests",
            ),
            (Popularity { top_k: Some(0), ..good.clone() }, "popularity.top_k: 0 keys; at least 1"),
            (
                Popularity { whales: Some(Whales { count: 1, share: 1.5 }), ..good.clone() },
                "popularity.whales.share: is 1.5, it must lie between 0 and 1",
            ),
            (
                Popularity { rates: Some(BTreeMap::new()), ..good },
                "popularity.rates: does not belong to the model lognormal",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(spec.check().expect_err("is refused").to_string(), expected);
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
