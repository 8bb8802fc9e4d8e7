//! Goodness of fit, for tests.

/// The Kolmogorov–Smirnov distance between draws and a distribution function.
/// At the 1 % level it stays below 1.63 / √n.
pub(crate) fn ks_distance(mut draws: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    draws
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let p = cdf(x);
            (p - i as f64 / n).abs().max((p - (i + 1) as f64 / n).abs())
        })
        .fold(0.0, f64::max)
}

/// Pearson's χ² of counts against expected shares.
pub(crate) fn chi_square(counts: &[u64], shares: &[f64]) -> f64 {
    let total: u64 = counts.iter().sum();
    counts
        .iter()
        .zip(shares)
        .map(|(&count, share)| {
            let expected = total as f64 * share;
            (count as f64 - expected).powi(2) / expected
        })
        .sum()
}
