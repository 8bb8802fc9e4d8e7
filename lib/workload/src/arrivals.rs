//! When requests come.
//!
//! Arrivals are drawn on a clock that ticks once per expected arrival and then mapped to seconds by the rate. So another
//! rate stretches the same arrivals, and the process and the rate over time are independent choices.

use crate::WorkloadError;
use crate::error::within;
use crate::gamma::Gamma;
use crate::profile::{Profile, ProfileClock};
use cr_trace::{Stream, Time, stream};
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How arrivals follow each other at an even rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// Independent arrivals: exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
    /// Gamma gaps with the coefficient of variation `cv`: bursty above 1, regular below.
    Gamma,
    /// Weibull gaps with the coefficient of variation `cv`: a heavier tail than Gamma's at the same `cv`.
    Weibull,
    /// Moving blocks of the gaps of a file, scaled to the rate: keeps how gaps follow each other within a block.
    Bootstrap,
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
    /// Coefficient of variation of the gaps of `gamma` and `weibull`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
    /// The gaps of `bootstrap`, one a line in any unit; relative to the specification's folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gaps_file: Option<PathBuf>,
    /// How many gaps in a row `bootstrap` takes at a time; 100 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
}

const DEFAULT_BLOCK: u32 = 100;

impl Arrivals {
    /// Poisson arrivals.
    pub fn poisson(qps: f64) -> Arrivals {
        Arrivals { qps, process: Process::Poisson, cv: None, gaps_file: None, block: None }
    }

    /// Checks the fields.
    ///
    /// # Errors
    ///
    /// The first one that is out of range, missing, or does not belong to the process.
    pub fn check(&self) -> Result<(), WorkloadError> {
        within("arrivals.qps", self.qps, 1e-6..=1e9)?;
        let has_cv = matches!(self.process, Process::Gamma | Process::Weibull);
        match self.cv {
            Some(cv) if has_cv => within("arrivals.cv", cv, 0.05..=20.0)?,
            None if has_cv => {
                return Err(WorkloadError::field("arrivals.cv", "is missing; gamma and weibull need it"));
            }
            Some(_) => {
                return Err(WorkloadError::field(
                    "arrivals.cv",
                    "belongs to the processes gamma and weibull only",
                ));
            }
            None => {}
        }
        let bootstrap = self.process == Process::Bootstrap;
        if bootstrap != self.gaps_file.is_some() || (self.block.is_some() && !bootstrap) {
            return Err(WorkloadError::field(
                "arrivals.gaps_file",
                "goes with process = \"bootstrap\" and with no other; so does block",
            ));
        }
        if self.block == Some(0) {
            return Err(WorkloadError::field("arrivals.block", "0 gaps in a row; at least 1"));
        }
        Ok(())
    }

    /// Makes ready to draw; `folder` is where the files of the specification are.
    fn gaps(&self, folder: &Path) -> Result<Gaps, WorkloadError> {
        let cv = self.cv.unwrap_or(1.0);
        Ok(match self.process {
            Process::Poisson => Gaps::Poisson,
            Process::Constant => Gaps::Constant,
            Process::Gamma => Gaps::gamma(cv),
            Process::Weibull => Gaps::weibull(cv),
            Process::Bootstrap => {
                let path = folder.join(self.gaps_file.as_deref().unwrap_or(Path::new("")));
                let accept = |gap: f64| match gap {
                    _ if (0.0..=Time::MAX_S).contains(&gap) => Ok(()),
                    _ => Err(format!("{gap} is no gap; a finite number, not negative")),
                };
                let mut gaps = crate::numbers::read("arrivals.gaps_file", &path, accept)?;
                let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                if mean <= 0.0 {
                    return Err(WorkloadError::file("arrivals.gaps_file", &path, None, "all gaps are 0"));
                }
                gaps.iter_mut().for_each(|gap| *gap /= mean);
                let block = self.block.unwrap_or(DEFAULT_BLOCK).min(gaps.len() as u32) as usize;
                Gaps::Bootstrap { gaps: gaps.into(), block, at: 0, left: 0 }
            }
        })
    }
}

/// The Weibull shape k whose coefficient of variation is `cv`: Γ(1 + 2/k) / Γ(1 + 1/k)² = 1 + cv². It falls as `cv` grows.
fn weibull_shape(cv: f64) -> f64 {
    let (mut low, mut high) = (0.1f64, 60.0f64);
    while high - low > 1e-12 * high {
        let shape = (low + high) / 2.0;
        // In logarithms: Γ overflows for small shapes.
        let ratio = libm::exp(libm::lgamma(1.0 + 2.0 / shape) - 2.0 * libm::lgamma(1.0 + 1.0 / shape));
        if ratio > 1.0 + cv * cv { low = shape } else { high = shape }
    }
    (low + high) / 2.0
}

/// Gaps of mean 1.
#[derive(Clone, Debug)]
pub(crate) enum Gaps {
    Poisson,
    Constant,
    Gamma(Gamma),
    Weibull { inverse_shape: f64, scale: f64 },
    Bootstrap { gaps: Arc<[f64]>, block: usize, at: usize, left: usize },
}

impl Gaps {
    /// Gamma gaps of a variation above 0: shape 1/cv² and scale cv² have mean 1 and variance cv².
    pub(crate) fn gamma(cv: f64) -> Gaps {
        Gaps::Gamma(Gamma::new(1.0 / (cv * cv), cv * cv))
    }

    /// Weibull gaps of a variation between 0.03 and 400.
    pub(crate) fn weibull(cv: f64) -> Gaps {
        let shape = weibull_shape(cv);
        Gaps::Weibull { inverse_shape: 1.0 / shape, scale: libm::exp(-libm::lgamma(1.0 + 1.0 / shape)) }
    }

    /// The next gap.
    pub(crate) fn draw(&mut self, rng: &mut Stream) -> f64 {
        match self {
            Gaps::Poisson => Exp1.sample(rng),
            Gaps::Constant => 1.0,
            Gaps::Gamma(gamma) => gamma.draw(rng),
            Gaps::Weibull { inverse_shape, scale } => {
                let exponential: f64 = Exp1.sample(rng);
                *scale * libm::pow(exponential, *inverse_shape)
            }
            Gaps::Bootstrap { gaps, block, at, left } => {
                if *left == 0 {
                    *at = rng.random_range(0..gaps.len());
                    *left = *block;
                }
                let gap = gaps[*at];
                // Blocks wrap around, so that every gap is as likely as the next.
                *at = (*at + 1) % gaps.len();
                *left -= 1;
                gap
            }
        }
    }
}

/// The clock of arrivals.
#[derive(Clone, Debug)]
pub struct ArrivalClock {
    gaps: Gaps,
    rng: Stream,
    seconds: ProfileClock,
    per_second: f64,
}

impl ArrivalClock {
    /// Starts at time 0, by the stream `arrivals` of the seed. Each arrival stands for `requests` requests.
    ///
    /// # Errors
    ///
    /// A file of gaps that cannot be used.
    pub fn new(
        arrivals: &Arrivals,
        profile: Option<&Profile>,
        requests: f64,
        seed: u64,
        folder: &Path,
    ) -> Result<ArrivalClock, WorkloadError> {
        Ok(ArrivalClock {
            gaps: arrivals.gaps(folder)?,
            rng: stream(seed, "arrivals"),
            seconds: ProfileClock::new(profile, seed),
            per_second: arrivals.qps / requests,
        })
    }

    /// The next arrival, in seconds, rounded to the microsecond; never before the last one.
    pub fn next_s(&mut self) -> f64 {
        let gap = self.gaps.draw(&mut self.rng);
        round_us(self.seconds.advance(gap / self.per_second))
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
    use statrs::distribution::{ContinuousCDF, Exp, Gamma as GammaCdf, Weibull};

    fn gaps(arrivals: &Arrivals, count: usize) -> Vec<f64> {
        arrivals.check().expect("is valid");
        let mut clock = ArrivalClock::new(arrivals, None, 1.0, 7, Path::new("")).expect("is valid");
        let mut last = 0.0;
        let step = |_| {
            let now = clock.next_s();
            now - std::mem::replace(&mut last, now)
        };
        (0..count).map(step).collect()
    }

    fn with_cv(process: Process, cv: f64) -> Arrivals {
        Arrivals { process, cv: Some(cv), ..Arrivals::poisson(0.5) }
    }

    /// Kolmogorov–Smirnov at the 1 % level, on gaps of mean 1 before they are rounded to microseconds.
    #[test]
    fn gaps_fit_their_distribution() {
        let fits = |arrivals: &Arrivals, cdf: &dyn Fn(f64) -> f64| {
            let (mut gaps, mut rng) =
                (arrivals.gaps(Path::new("")).expect("is valid"), stream(7, "arrivals"));
            let distance = ks_distance((0..20_000).map(|_| gaps.draw(&mut rng)).collect(), cdf);
            assert!(distance < 1.63 / 20_000f64.sqrt(), "{arrivals:?}: {distance}");
        };
        let exponential = Exp::new(1.0).expect("valid");
        fits(&Arrivals::poisson(0.5), &|x| exponential.cdf(x));
        for cv in [0.5f64, 2.0] {
            let gamma = GammaCdf::new(1.0 / (cv * cv), 1.0 / (cv * cv)).expect("valid");
            fits(&with_cv(Process::Gamma, cv), &|x| gamma.cdf(x));
            let shape = weibull_shape(cv);
            let weibull = Weibull::new(shape, 1.0 / libm::tgamma(1.0 + 1.0 / shape)).expect("valid");
            fits(&with_cv(Process::Weibull, cv), &|x| weibull.cdf(x));
        }
    }

    #[test]
    fn gaps_have_the_mean_and_the_variation_asked_for() {
        for (process, cv) in
            [(Process::Gamma, 0.5), (Process::Gamma, 1.9), (Process::Weibull, 0.5), (Process::Weibull, 1.9)]
        {
            let gaps = gaps(&with_cv(process, cv), 200_000);
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean / 2.0 - 1.0).abs() < 0.02, "{process:?} {cv}: mean {mean}");
            assert!(
                (variance.sqrt() / mean / cv - 1.0).abs() < 0.04,
                "{process:?} {cv}: cv {}",
                variance.sqrt() / mean
            );
        }
    }

    #[test]
    fn weibull_shapes_of_known_variation() {
        assert!((weibull_shape(1.0) - 1.0).abs() < 1e-9, "exponential");
        assert!((weibull_shape(0.522_723) - 2.0).abs() < 1e-5, "Rayleigh");
        assert!((weibull_shape(5f64.sqrt()) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn another_rate_stretches_the_same_arrivals() {
        let (slow, fast) = (gaps(&Arrivals::poisson(1.0), 1000), gaps(&Arrivals::poisson(8.0), 1000));
        assert!(slow.iter().zip(&fast).all(|(a, b)| (a / 8.0 - b).abs() < 2e-6));
    }

    #[test]
    fn constant_gaps_are_equal() {
        let constant = Arrivals { process: Process::Constant, ..Arrivals::poisson(4.0) };
        assert_eq!(gaps(&constant, 3), [0.25, 0.25, 0.25]);
    }

    #[test]
    fn a_bootstrap_keeps_blocks_in_order() {
        let folder = tempfile::tempdir().expect("is made");
        let file = folder.path().join("gaps.txt");
        std::fs::write(&file, (1..=50).map(|gap| format!("{gap}\n")).collect::<String>()).expect("writes");
        let arrivals = Arrivals {
            process: Process::Bootstrap,
            gaps_file: Some(file),
            block: Some(10),
            ..Arrivals::poisson(1.0 / 25.5)
        };
        let gaps: Vec<i64> = gaps(&arrivals, 5000).iter().map(|gap| gap.round() as i64).collect();
        for block in gaps.chunks(10) {
            assert!(block.windows(2).all(|pair| pair[1] == pair[0] % 50 + 1), "{block:?}");
        }
        let mean = gaps.iter().sum::<i64>() as f64 / 5000.0;
        assert!((mean - 25.5).abs() < 1.5, "{mean}");
    }

    #[test]
    fn bad_fields_are_named() {
        for qps in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert!(Arrivals::poisson(qps).check().is_err(), "{qps}");
        }
        let cases = [
            (
                Arrivals { process: Process::Gamma, ..Arrivals::poisson(1.0) },
                "arrivals.cv: is missing; gamma and weibull need it",
            ),
            (with_cv(Process::Poisson, 2.0), "arrivals.cv: belongs to the processes gamma and weibull only"),
            (with_cv(Process::Gamma, 99.0), "arrivals.cv: is 99, it must lie between 0.05 and 20"),
            (
                Arrivals { process: Process::Bootstrap, ..Arrivals::poisson(1.0) },
                "arrivals.gaps_file: goes with process = \"bootstrap\" and with no other; so does block",
            ),
        ];
        for (arrivals, expected) in cases {
            assert_eq!(arrivals.check().expect_err("is refused").to_string(), expected);
        }
    }
}
