//! How many tokens something has.

use crate::WorkloadError;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

/// A longest length that no model reaches; it keeps sums of lengths within 32 bits.
pub const MAX_TOKENS: u32 = 100_000_000;

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
            Length::Constant(_) => Ok(()),
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

    /// Draws a length. A constant one draws nothing.
    pub fn draw(&self, rng: &mut impl Rng) -> u32 {
        match *self {
            Length::Constant(tokens) => tokens,
            Length::Drawn(Drawn::Lognormal { mean, sigma, min, max }) => {
                let normal: f64 = StandardNormal.sample(rng);
                let tokens = libm::exp(libm::log(mean) - sigma * sigma / 2.0 + sigma * normal).round();
                // The cast saturates, so a huge draw ends at the limit.
                (tokens as u32).clamp(min.unwrap_or(1).max(1), max.unwrap_or(MAX_TOKENS))
            }
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
        let length = Length::lognormal(6000, 0.8);
        let mut rng = stream(1, "lengths");
        let draws: Vec<f64> = (0..20_000).map(|_| f64::from(length.draw(&mut rng))).collect();
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
        let mut rng = stream(1, "lengths");
        let draws: Vec<u32> = (0..1000).map(|_| length.draw(&mut rng)).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&20), Some(&300)));
    }
}
