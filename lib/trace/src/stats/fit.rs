//! Which law the popularity of keys follows.
//!
//! Both laws are judged by one curve: the share of the requests that the top x keys make. The gap is the largest distance
//! between the observed curve and the fitted one (the Kolmogorov–Smirnov distance over ranks).

use super::keys::gini;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erf_inv;

/// A fitted law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The law's parameter: Zipf's exponent, or the lognormal sigma.
    pub parameter: f64,
    /// The largest distance between the observed and the fitted share of the top keys, from 0 to 1.
    pub gap: f64,
}

impl Fit {
    /// Rounded to six decimals, which no machine's logarithm disagrees about.
    fn new(parameter: f64, gap: f64) -> Fit {
        let round = |value: f64| (value * 1e6).round() / 1e6;
        Fit { parameter: round(parameter), gap: round(gap) }
    }
}

/// Ranks at which the curves are compared, spread evenly in the logarithm.
const PROBES: usize = 400;

/// Ranks to probe among n, ascending and distinct, the first and the last included.
fn probes(n: usize) -> Vec<usize> {
    let mut ranks: Vec<usize> = (0..=PROBES)
        .map(|i| libm::exp(libm::log(n as f64) * i as f64 / PROBES as f64).round() as usize)
        .map(|rank| rank.clamp(1, n))
        .collect();
    ranks.dedup();
    ranks
}

/// The cumulative counts of the leading keys, by number of keys.
fn cumulative(descending: &[u64]) -> Vec<f64> {
    let mut sum = 0.0;
    std::iter::once(0.0)
        .chain(descending.iter().map(|&count| {
            sum += count as f64;
            sum
        }))
        .collect()
}

/// Σ r^−alpha for r from 1 to n: a thousand terms, and Euler–Maclaurin for the rest.
fn harmonic(n: usize, alpha: f64) -> f64 {
    let head = n.min(1000);
    let sum: f64 = (1..=head).map(|rank| libm::pow(rank as f64, -alpha)).sum();
    if n <= head {
        return sum;
    }
    let (a, b) = (head as f64, n as f64);
    let integral = if (alpha - 1.0).abs() < 1e-9 {
        libm::log(b / a)
    } else {
        (libm::pow(b, 1.0 - alpha) - libm::pow(a, 1.0 - alpha)) / (1.0 - alpha)
    };
    let ends = (libm::pow(b, -alpha) - libm::pow(a, -alpha)) / 2.0;
    let slopes = alpha * (libm::pow(a, -alpha - 1.0) - libm::pow(b, -alpha - 1.0)) / 12.0;
    sum + integral + ends + slopes
}

/// Zipf's exponent by maximum likelihood over the ranks of the counts, in descending order; `None` for fewer than 2 keys.
pub(super) fn zipf(descending: &[u64]) -> Option<Fit> {
    let n = descending.len();
    if n < 2 {
        return None;
    }
    let total: f64 = descending.iter().map(|&count| count as f64).sum();
    let log_ranks: f64 = descending
        .iter()
        .enumerate()
        .map(|(i, &count)| count as f64 * libm::log((i + 1) as f64))
        .sum::<f64>()
        / total;
    // The negative log-likelihood a request, alpha · mean ln rank + ln H(alpha), is convex: golden-section search.
    let cost = |alpha: f64| alpha * log_ranks + libm::log(harmonic(n, alpha));
    let ratio = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (0.0f64, 10.0f64);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (cost(left), cost(right));
    while high - low > 1e-6 {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = cost(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = cost(right);
        }
    }
    let alpha = (low + high) / 2.0;
    let observed = cumulative(descending);
    let all = harmonic(n, alpha);
    let gap = probes(n)
        .into_iter()
        .map(|rank| (observed[rank] / total - harmonic(rank, alpha) / all).abs())
        .fold(0.0, f64::max);
    Some(Fit::new(alpha, gap))
}

/// The lognormal sigma that has the counts' Gini coefficient, G = erf(sigma / 2); `None` for fewer than 2 keys.
///
/// Keys with few requests scatter around their rates, which adds to the skew: sigma is too large where most keys have a
/// handful of requests.
pub(super) fn lognormal(descending: &[u64]) -> Option<Fit> {
    let n = descending.len();
    if n < 2 {
        return None;
    }
    let ascending: Vec<f64> = descending.iter().rev().map(|&count| count as f64).collect();
    let total: f64 = ascending.iter().sum();
    let sigma = 2.0 * erf_inv(gini(&ascending).clamp(0.0, 1.0 - 1e-12));
    let normal = Normal::standard();
    let observed = cumulative(descending);
    let gap = probes(n)
        .into_iter()
        .map(|rank| {
            // The Lorenz curve from the top: the share of the top p is 1 − Φ(Φ⁻¹(1 − p) − sigma).
            let rest = 1.0 - rank as f64 / n as f64;
            let share = if rest <= 0.0 { 1.0 } else { 1.0 - normal.cdf(normal.inverse_cdf(rest) - sigma) };
            (observed[rank] / total - share).abs()
        })
        .fold(0.0, f64::max);
    Some(Fit::new(sigma, gap))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmonic_sums_are_exact_enough() {
        for alpha in [0.0, 0.5, 1.0, 1.7] {
            let plain: f64 = (1..=50_000).map(|rank| f64::from(rank).powf(-alpha)).sum();
            assert!((harmonic(50_000, alpha) / plain - 1.0).abs() < 1e-9, "{alpha}");
        }
    }

    #[test]
    fn zipf_counts_are_recognised() {
        let counts: Vec<u64> =
            (1..=2000).map(|rank| (1e6 / f64::from(rank).powf(0.9)).round() as u64).collect();
        let (zipf, lognormal) = (zipf(&counts).expect("fits"), lognormal(&counts).expect("fits"));
        assert!((zipf.parameter - 0.9).abs() < 0.005 && zipf.gap < 0.002, "{zipf:?}");
        assert!(lognormal.gap > 10.0 * zipf.gap, "{lognormal:?}");
    }

    #[test]
    fn lognormal_counts_are_recognised() {
        let normal = Normal::standard();
        let counts: Vec<u64> = (0..5000)
            .map(|i| {
                (100.0 * (1.5 * normal.inverse_cdf(1.0 - (f64::from(i) + 0.5) / 5000.0)).exp()).round() as u64
            })
            .collect();
        let (zipf, lognormal) = (zipf(&counts).expect("fits"), lognormal(&counts).expect("fits"));
        assert!((lognormal.parameter - 1.5).abs() < 0.02 && lognormal.gap < 0.02, "{lognormal:?}");
        assert!(zipf.gap > 3.0 * lognormal.gap, "{zipf:?}");
    }

    #[test]
    fn few_keys_fit_nothing_and_equal_ones_are_flat() {
        assert_eq!((zipf(&[5]), lognormal(&[])), (None, None));
        let flat = zipf(&[7; 100]).expect("fits");
        assert!(flat.parameter < 1e-5 && flat.gap < 1e-4, "{flat:?}");
        assert!(lognormal(&[7; 100]).expect("fits").parameter < 1e-6);
    }
}
