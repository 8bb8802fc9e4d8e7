//! Means over seeds, their confidence, and paired differences.

use cr_trace::stats::mean_ci95;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over seeds with the half width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of seeds.
    pub n: u64,
    /// Mean over seeds.
    pub mean: f64,
    /// Half width of the 95 % confidence interval; none for fewer than two seeds.
    pub ci95: Option<f64>,
}

/// A mean difference between two policies over the seeds that both ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Number of paired seeds.
    pub n: u64,
    /// Mean of (policy − baseline).
    pub mean: f64,
    /// Half width of the 95 % confidence interval of the paired differences; none for fewer than two pairs.
    pub ci95: Option<f64>,
    /// Whether the interval holds zero, or is unknown: then no difference was shown.
    pub within_noise: bool,
}

impl Estimate {
    /// The mean of `values` and t·s/√n, with the sample standard deviation s.
    pub fn of(values: &[f64]) -> Estimate {
        let n = values.len() as u64;
        if n == 0 {
            return Estimate::default();
        }
        let (mean, ci95) = mean_ci95(values);
        Estimate { n, mean, ci95 }
    }
}

impl Difference {
    /// Of `(policy, baseline)` values that share a seed.
    pub fn of(pairs: &[(f64, f64)]) -> Difference {
        let differences: Vec<f64> = pairs.iter().map(|(policy, baseline)| policy - baseline).collect();
        let Estimate { n, mean, ci95 } = Estimate::of(&differences);
        // Equal values differ by rounding alone.
        let within_noise = ci95.is_none_or(|half| mean.abs() <= half.max(1e-12));
        Difference { n, mean, ci95, within_noise }
    }

    /// The difference of two means over seeds that do not match, with Welch's interval; `n` is 0, for there are no pairs.
    pub fn unpaired(policy: &[f64], baseline: &[f64]) -> Difference {
        let (a, b) = (Estimate::of(policy), Estimate::of(baseline));
        let mean = a.mean - b.mean;
        let ci95 = welch95(policy, baseline);
        let within_noise = ci95.is_none_or(|half| mean.abs() <= half.max(1e-12));
        Difference { n: 0, mean, ci95, within_noise }
    }
}

/// Half the 95 % interval of the difference of two means: t·√(s₁²/n₁ + s₂²/n₂) with the degrees of freedom of Welch and Satterthwaite. None
/// where a side has fewer than two values.
fn welch95(a: &[f64], b: &[f64]) -> Option<f64> {
    let part = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (values.len() > 1).then_some((variance / n, n - 1.0))
    };
    let ((v1, f1), (v2, f2)) = (part(a)?, part(b)?);
    let sum = v1 + v2;
    if sum <= 0.0 {
        return Some(0.0);
    }
    let freedom = sum * sum / (v1 * v1 / f1 + v2 * v2 / f2);
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
    Some(t * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_trace::stats::t95;

    #[test]
    fn the_factors_are_those_of_the_tables() {
        for (n, want) in [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (31, 2.042)] {
            assert!((t95(n).expect("enough") - want).abs() < 5e-4, "{n}: {:?}", t95(n));
        }
        assert_eq!((t95(0), t95(1)), (None, None));
    }

    #[test]
    fn a_mean_and_its_interval() {
        let e = Estimate::of(&[1.0, 2.0, 3.0]);
        assert_eq!((e.n, e.mean), (3, 2.0));
        assert!((e.ci95.expect("three") - 4.303 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!(Estimate::of(&[4.0]), Estimate { n: 1, mean: 4.0, ci95: None });
        assert_eq!(Estimate::of(&[]), Estimate::default());
    }

    #[test]
    fn welch_is_that_of_the_textbook() {
        // Equal sizes and variances: the pooled test, with 2n - 2 = 4 degrees of freedom (t = 2.776).
        let d = Difference::unpaired(&[1.0, 2.0, 3.0], &[11.0, 12.0, 13.0]);
        assert!((d.ci95.expect("two sides") - 2.776 * (2.0f64 / 3.0).sqrt()).abs() < 1e-3);
        assert_eq!((d.mean, d.within_noise, d.n), (-10.0, false, 0));
        assert!(Difference::unpaired(&[1.0], &[2.0, 3.0]).within_noise);
        assert!(!Difference::unpaired(&[1.0, 1.0], &[2.0, 2.0]).within_noise);
    }

    #[test]
    fn pairing_removes_what_the_seeds_share() {
        // Seeds differ by tens, the policies by one: unpaired this drowns.
        let d = Difference::of(&[(11.0, 10.0), (31.1, 30.0), (20.9, 20.0)]);
        assert!(!d.within_noise && (d.mean - 1.0).abs() < 1e-9);
        assert!(Difference::of(&[(1.0, 2.0), (2.0, 1.0)]).within_noise);
        assert!(Difference::of(&[(1.0, 9.0)]).within_noise);
        assert!(Difference::of(&[(1.0, 1.0), (2.0, 2.0)]).within_noise);
        assert!(!Difference::of(&[(1.0, 2.0), (2.0, 3.0)]).within_noise);
    }
}
