//! How many tokens something has.

use crate::WorkloadError;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longest length that no model reaches; it keeps sums of lengths within 32 bits.
pub const MAX_TOKENS: u32 = cr_trace::request::MAX_TOKENS as u32;

/// A length in tokens: `tokens = 90`, or `tokens = { model = "lognormal", mean = 600, sigma = 1.66, max = 8192 }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Length {
    /// Always the same.
    Constant(u32),
    /// Drawn for each.
    Drawn(Drawn),
}

/// A drawn length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Drawn {
    /// exp(N(ln mean − σ²/2, σ)), rounded; the mean is of the unclipped distribution.
    Lognormal {
        /// Tokens on average.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// No shorter than this; 1 where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
        /// No longer than this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// One of the lengths of a file, each as likely as the next.
    Empirical {
        /// One length a line; relative to the specification's folder.
        file: PathBuf,
    },
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Length, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Length;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "a number of tokens, or a table such as { model = \"lognormal\", mean = 600, sigma = 1 }",
                )
            }

            fn visit_u64<E: serde::de::Error>(self, tokens: u64) -> Result<Length, E> {
                u32::try_from(tokens)
                    .map(Length::Constant)
                    .map_err(|_| E::custom(format!("{tokens} tokens are too many, at most {MAX_TOKENS}")))
            }

            fn visit_i64<E: serde::de::Error>(self, tokens: i64) -> Result<Length, E> {
                match u64::try_from(tokens) {
                    Ok(tokens) => self.visit_u64(tokens),
                    Err(_) => Err(E::custom(format!("{tokens} tokens are too few, at least 1"))),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Length, A::Error> {
                Drawn::deserialize(MapAccessDeserializer::new(map)).map(Length::Drawn)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Length {
    /// A lognormal length, or a constant one where `sigma` is 0.
    pub fn lognormal(mean: u32, sigma: f64) -> Length {
        if sigma == 0.0 {
            return Length::Constant(mean);
        }
        Length::Drawn(Drawn::Lognormal { mean: f64::from(mean), sigma, min: None, max: None })
    }

    /// Checks the parameters of the length that stands in `field`.
    ///
    /// # Errors
    ///
    /// A length of nothing, or a parameter that is out of range.
    pub fn check(&self, field: &'static str) -> Result<(), WorkloadError> {
        let error = |what: String| Err(WorkloadError::field(field, what));
        match *self {
            Length::Constant(0) => error("0 tokens; at least 1".into()),
            Length::Constant(tokens) if tokens > MAX_TOKENS => {
                error(format!("{tokens} tokens are too many, at most {MAX_TOKENS}"))
            }
            Length::Constant(_) | Length::Drawn(Drawn::Empirical { .. }) => Ok(()),
            Length::Drawn(Drawn::Lognormal { mean, sigma, min, max }) => {
                if !(1.0..=f64::from(MAX_TOKENS)).contains(&mean) {
                    return error(format!("mean is {mean}, it must lie between 1 and {MAX_TOKENS}"));
                }
                if !(0.0..=10.0).contains(&sigma) {
                    return error(format!("sigma is {sigma}, it must lie between 0 and 10"));
                }
                let (min, max) = (min.unwrap_or(1), max.unwrap_or(MAX_TOKENS));
                if min == 0 || min > max || max > MAX_TOKENS {
                    return error(format!(
                        "min {min} and max {max} must satisfy 1 ≤ min ≤ max ≤ {MAX_TOKENS}"
                    ));
                }
                Ok(())
            }
        }
    }

    /// Whether all draws are the same.
    pub fn is_constant(&self) -> bool {
        matches!(self, Length::Constant(_))
    }

    /// Makes ready to draw; `folder` is where the files of the specification are.
    ///
    /// # Errors
    ///
    /// As [`Length::check`], and a file of lengths that cannot be used.
    pub fn sampler(&self, field: &'static str, folder: &Path) -> Result<LengthSampler, WorkloadError> {
        self.check(field)?;
        Ok(match self {
            Length::Constant(tokens) => LengthSampler::Constant(*tokens),
            Length::Drawn(Drawn::Lognormal { mean, sigma, min, max }) => LengthSampler::Lognormal {
                mu: libm::log(*mean) - sigma * sigma / 2.0,
                sigma: *sigma,
                min: min.unwrap_or(1),
                max: max.unwrap_or(MAX_TOKENS),
            },
            Length::Drawn(Drawn::Empirical { file }) => {
                let accept = |tokens: f64| {
                    if tokens.fract() == 0.0 && (1.0..=f64::from(MAX_TOKENS)).contains(&tokens) {
                        return Ok(());
                    }
                    Err(format!("{tokens} is no length; a whole number between 1 and {MAX_TOKENS}"))
                };
                let lengths = crate::numbers::read(field, &folder.join(file), accept)?;
                LengthSampler::Empirical(lengths.into_iter().map(|tokens| tokens as u32).collect())
            }
        })
    }
}

/// A length, ready to draw.
#[derive(Clone, Debug)]
pub enum LengthSampler {
    /// Always the same; draws nothing.
    Constant(u32),
    /// exp(N(mu, sigma)), rounded and clipped.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// No shorter.
        min: u32,
        /// No longer.
        max: u32,
    },
    /// One of these.
    Empirical(Arc<[u32]>),
}

impl LengthSampler {
    /// Draws a length.
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        match self {
            LengthSampler::Constant(tokens) => *tokens,
            LengthSampler::Lognormal { mu, sigma, min, max } => {
                let normal: f64 = StandardNormal.sample(rng);
                // The cast saturates, so a huge draw ends at the limit.
                (libm::exp(mu + sigma * normal).round() as u32).clamp(*min, *max)
            }
            LengthSampler::Empirical(lengths) => lengths[rng.random_range(0..lengths.len())],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ks_distance;
    use cr_trace::stream;
    use statrs::distribution::{ContinuousCDF, LogNormal};

    #[derive(Debug, Deserialize, PartialEq)]
    struct Holder {
        tokens: Length,
    }

    #[test]
    fn a_number_or_a_table() {
        let parse = |text: &str| toml::from_str::<Holder>(text).map(|holder| holder.tokens);
        assert_eq!(parse("tokens = 90").expect("parses"), Length::Constant(90));
        assert_eq!(
            parse("tokens = { model = \"lognormal\", mean = 600, sigma = 1.66, max = 8192 }")
                .expect("parses"),
            Length::Drawn(Drawn::Lognormal { mean: 600.0, sigma: 1.66, min: None, max: Some(8192) })
        );
        for bad in
            ["tokens = -1", "tokens = 5e9", "tokens = \"x\"", "tokens = {}", "tokens = { model = \"x\" }"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let lognormal = |mean, sigma, min, max| Length::Drawn(Drawn::Lognormal { mean, sigma, min, max });
        for bad in [
            Length::Constant(0),
            Length::Constant(MAX_TOKENS + 1),
            lognormal(0.0, 1.0, None, None),
            lognormal(f64::NAN, 1.0, None, None),
            lognormal(9.0, -1.0, None, None),
            lognormal(9.0, f64::INFINITY, None, None),
            lognormal(9.0, 1.0, Some(0), None),
            lognormal(9.0, 1.0, Some(9), Some(8)),
        ] {
            assert!(bad.check("x").is_err(), "{bad:?}");
        }
        assert!(lognormal(9.0, 10.0, Some(1), Some(8)).check("x").is_ok());
    }

    /// Kolmogorov–Smirnov against the distribution asked for; rounding to whole tokens moves it by less than the bound.
    #[test]
    fn lognormal_lengths_fit() {
        let sampler = Length::lognormal(6000, 0.8).sampler("x", Path::new("")).expect("is valid");
        let mut rng = stream(1, "lengths");
        let draws: Vec<f64> = (0..20_000).map(|_| f64::from(sampler.draw(&mut rng))).collect();
        let wanted = LogNormal::new(6000f64.ln() - 0.32, 0.8).expect("valid");
        let distance = ks_distance(draws.clone(), |x| wanted.cdf(x));
        assert!(distance < 1.63 / 20_000f64.sqrt(), "{distance}");
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        assert!((mean / 6000.0 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn clipping_holds() {
        let length =
            Length::Drawn(Drawn::Lognormal { mean: 100.0, sigma: 3.0, min: Some(20), max: Some(300) });
        let sampler = length.sampler("x", Path::new("")).expect("is valid");
        let mut rng = stream(1, "lengths");
        let draws: Vec<u32> = (0..1000).map(|_| sampler.draw(&mut rng)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&20), Some(&300)));
    }

    #[test]
    fn lengths_of_a_file_are_resampled() {
        let folder = tempfile::tempdir().expect("is made");
        let sampler = |text: &str| {
            std::fs::write(folder.path().join("lengths.txt"), text).expect("writes");
            Length::Drawn(Drawn::Empirical { file: "lengths.txt".into() }).sampler("x", folder.path())
        };
        let three = sampler("# tokens\n10\n20\n\n20\n").expect("is valid");
        let mut rng = stream(1, "lengths");
        let draws: Vec<u32> = (0..3000).map(|_| three.draw(&mut rng)).collect();
        let twenties = draws.iter().filter(|&&tokens| tokens == 20).count();
        assert!(draws.iter().all(|tokens| [10, 20].contains(tokens)) && (1880..2120).contains(&twenties));
        for (text, end) in [
            ("", "lengths.txt: has no numbers; one a line is wanted"),
            ("5\nx\n", "lengths.txt:2: \"x\" is no number; the file has one a line"),
            ("5\n0\n", "lengths.txt:2: 0 is no length; a whole number between 1 and 100000000"),
        ] {
            let error = sampler(text).expect_err("is refused").to_string();
            assert!(error.starts_with("x: ") && error.ends_with(end), "{error}");
        }
    }
}
