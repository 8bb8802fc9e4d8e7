//! The cost model and its TOML (`cacheroute.cost/1`).

use crate::StepWork;
use cr_trace::Time;
use serde::{Deserialize, Serialize};

/// Why a cost model could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// Neither a known name nor a file.
    #[error("there is no cost model {name:?} and no such file; built in are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The text is no TOML of this schema.
    #[error("{file}: {what}")]
    Toml {
        /// The file, with the line where one is to blame.
        file: String,
        /// The reason.
        what: String,
    },
    /// A coefficient that no step can have.
    #[error("{file}: {field} is {value}; a cost is a number of milliseconds from 0 to 1,000,000")]
    Coefficient {
        /// The file.
        file: String,
        /// The coefficient's name.
        field: &'static str,
        /// Its value, in milliseconds.
        value: f64,
    },
    /// A model in which a step may take no time would never advance the clock.
    #[error(
        "{file}: a step must take time: base_ms, or both prefill_token_ms and decode_seq_ms, must be above 0"
    )]
    Free {
        /// The file.
        file: String,
    },
}

/// Coefficients in milliseconds, as files write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepMs {
    base_ms: f64,
    prefill_token_ms: f64,
    prefill_ctx_ms: f64,
    prefill_pair_ms: f64,
    decode_seq_ms: f64,
    decode_ctx_ms: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostFile {
    schema: String,
    name: String,
    source: String,
    step: StepMs,
}

/// A linear cost model of one engine step. See the crate's page for the formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// A short name for reports.
    pub name: String,
    /// Where the coefficients come from.
    pub source: String,
    base_ps: u64,
    prefill_token_ps: u64,
    prefill_ctx_ps: u64,
    prefill_pair_ps: u64,
    decode_seq_ps: u64,
    decode_ctx_ps: u64,
}

const SCHEMA: &str = "cacheroute.cost/1";
const PS_PER_MS: f64 = 1e9;

impl CostModel {
    /// Parses the TOML of a cost model; `file` names it in errors.
    ///
    /// # Errors
    /// Text that is no TOML of this schema, unknown keys, coefficients below 0 or not finite, or a model whose steps
    /// may take no time.
    pub fn from_toml(text: &str, file: &str) -> Result<CostModel, CostError> {
        let parsed: CostFile = toml::from_str(text).map_err(|error| {
            let (line, what) = cr_trace::config_text::explain(text, error.span(), error.message());
            CostError::Toml { file: format!("{file}:{line}"), what }
        })?;
        if parsed.schema != SCHEMA {
            let what = format!("the schema is {:?}, a cost model has {SCHEMA:?}", parsed.schema);
            return Err(CostError::Toml { file: file.into(), what });
        }
        Self::checked(file, parsed)
    }

    /// A model from its coefficients in milliseconds: base, then per prefill token, context token and pair, then per
    /// decoding sequence and context token of those.
    ///
    /// # Errors
    /// As [`CostModel::from_toml`].
    pub fn from_ms(name: &str, source: &str, ms: [f64; 6]) -> Result<CostModel, CostError> {
        let [base_ms, prefill_token_ms, prefill_ctx_ms, prefill_pair_ms, decode_seq_ms, decode_ctx_ms] = ms;
        let step = StepMs {
            base_ms,
            prefill_token_ms,
            prefill_ctx_ms,
            prefill_pair_ms,
            decode_seq_ms,
            decode_ctx_ms,
        };
        Self::checked(
            name,
            CostFile { schema: SCHEMA.into(), name: name.into(), source: source.into(), step },
        )
    }

    fn checked(file: &str, parsed: CostFile) -> Result<CostModel, CostError> {
        let step = parsed.step;
        let model = CostModel {
            base_ps: coefficient(file, "base_ms", step.base_ms)?,
            prefill_token_ps: coefficient(file, "prefill_token_ms", step.prefill_token_ms)?,
            prefill_ctx_ps: coefficient(file, "prefill_ctx_ms", step.prefill_ctx_ms)?,
            prefill_pair_ps: coefficient(file, "prefill_pair_ms", step.prefill_pair_ms)?,
            decode_seq_ps: coefficient(file, "decode_seq_ms", step.decode_seq_ms)?,
            decode_ctx_ps: coefficient(file, "decode_ctx_ms", step.decode_ctx_ms)?,
            name: parsed.name,
            source: parsed.source,
        };
        if model.base_ps == 0 && (model.prefill_token_ps == 0 || model.decode_seq_ps == 0) {
            return Err(CostError::Free { file: file.into() });
        }
        Ok(model)
    }

    /// The TOML of this model.
    pub fn to_toml(&self) -> String {
        let ms = |ps: u64| ps as f64 / PS_PER_MS;
        let file = CostFile {
            schema: SCHEMA.into(),
            name: self.name.clone(),
            source: self.source.clone(),
            step: StepMs {
                base_ms: ms(self.base_ps),
                prefill_token_ms: ms(self.prefill_token_ps),
                prefill_ctx_ms: ms(self.prefill_ctx_ps),
                prefill_pair_ms: ms(self.prefill_pair_ps),
                decode_seq_ms: ms(self.decode_seq_ps),
                decode_ctx_ms: ms(self.decode_ctx_ps),
            },
        };
        toml::to_string(&file).unwrap_or_default()
    }

    /// How long a step of this work takes.
    #[inline]
    pub fn step(&self, work: &StepWork) -> Time {
        let terms = [
            (self.prefill_token_ps, work.prefill_tokens),
            (self.prefill_ctx_ps, work.prefill_ctx_tokens),
            (self.prefill_pair_ps, work.prefill_pairs),
            (self.decode_seq_ps, work.decode_seqs),
            (self.decode_ctx_ps, work.decode_ctx_tokens),
        ];
        sum(self.base_ps, terms)
    }

    /// How much longer the next step takes, where it goes on with what this one does: every decoding sequence has one token more, and
    /// the prompt, of which there is one at most, as many as this step computes.
    #[inline]
    pub fn growth(&self, work: &StepWork) -> Time {
        let chunk = work.prefill_tokens;
        let more = [
            (self.prefill_ctx_ps, chunk),
            (self.prefill_pair_ps, chunk.saturating_mul(chunk)),
            (self.decode_ctx_ps, work.decode_seqs),
        ];
        sum(0, more)
    }

    /// How long a prefill of `new` tokens over `ctx` tokens of context takes alone.
    #[inline]
    pub fn prefill(&self, new: u64, ctx: u64) -> Time {
        let terms = [
            (self.prefill_token_ps, new),
            (self.prefill_ctx_ps, ctx),
            (self.prefill_pair_ps, new.saturating_mul(ctx)),
        ];
        sum(self.base_ps, terms)
    }
}

/// Picoseconds each, times how many, and what is spent anyway.
#[inline]
fn sum<const N: usize>(base_ps: u64, terms: [(u64, u64); N]) -> Time {
    Time(
        terms
            .into_iter()
            .fold(base_ps, |sum, (each_ps, count)| sum.saturating_add(each_ps.saturating_mul(count))),
    )
}

fn coefficient(file: &str, field: &'static str, ms: f64) -> Result<u64, CostError> {
    if (0.0..=1e6).contains(&ms) {
        Ok((ms * PS_PER_MS).round() as u64)
    } else {
        Err(CostError::Coefficient { file: file.into(), field, value: ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKED: &str = r#"
        schema = "cacheroute.cost/1"
        name = "worked-example"
        source = "docs/metrics.md"
        [step]
        base_ms = 5.0
        prefill_token_ms = 0.1
        decode_seq_ms = 1.0
    "#;

    #[test]
    fn the_next_step_takes_as_much_longer_as_is_foretold() {
        let terms = "prefill_ctx_ms = 0.003\nprefill_pair_ms = 0.00002\ndecode_ctx_ms = 0.007\n";
        let cost = CostModel::from_toml(&format!("{WORKED}{terms}"), "x.toml").expect("parses");
        for (chunk, decoding) in [(0, 3), (16, 0), (46, 5)] {
            let step = |n: u64| {
                let mut work = StepWork::default();
                if chunk > 0 {
                    work.add_prefill(chunk, 100 + n * chunk);
                }
                (0..decoding).for_each(|sequence| work.add_decode(70 * sequence + n));
                work
            };
            assert_eq!(cost.growth(&step(0)), cost.step(&step(1)) - cost.step(&step(0)));
            assert_eq!(cost.growth(&step(4)), cost.growth(&step(0)));
        }
    }

    #[test]
    fn the_worked_example_costs_what_it_says() {
        let cost = CostModel::from_toml(WORKED, "x.toml").expect("parses");
        assert_eq!(cost.prefill(58, 0), Time::from_s(0.0108));
        let mut work = StepWork::default();
        work.add_prefill(10, 48);
        work.add_decode(58);
        assert_eq!(cost.step(&work), Time::from_s(0.007));
    }

    #[test]
    fn terms_below_a_nanosecond_count() {
        let text = WORKED.replace("decode_seq_ms = 1.0", "prefill_pair_ms = 7.44e-7\ndecode_seq_ms = 1.0");
        let cost = CostModel::from_toml(&text, "x.toml").expect("parses");
        assert_eq!(cost.prefill(1, 1).0 - cost.prefill(1, 0).0, 744);
    }

    #[test]
    fn toml_round_trips() {
        let cost = CostModel::from_toml(WORKED, "x.toml").expect("parses");
        assert_eq!(CostModel::from_toml(&cost.to_toml(), "y.toml").expect("parses"), cost);
    }

    #[test]
    fn bad_models_say_what_and_where() {
        for (from, to, expect) in [
            ("base_ms = 5.0", "base_ms = -1.0", "x.toml: base_ms is -1; a cost is"),
            ("base_ms = 5.0", "base_ms = nan", "x.toml: base_ms is NaN"),
            (
                "base_ms = 5.0",
                "bsae_ms = 5.0",
                "x.toml:6: unknown field \"bsae_ms\"; did you mean \"base_ms\"?",
            ),
            ("base_ms = 5.0", "base_ms = ", "x.toml:6: "),
            ("cost/1", "cost/9", "a cost model has \"cacheroute.cost/1\""),
            ("decode_seq_ms = 1.0", "decode_seq_ms = 0.0\nprefill_ctx_ms = 0.0", ""),
        ] {
            let result = CostModel::from_toml(&WORKED.replace(from, to), "x.toml");
            match result {
                Err(e) => assert!(e.to_string().contains(expect), "{e}"),
                Ok(_) => assert!(expect.is_empty(), "{to} was accepted"),
            }
        }
        let free = WORKED.replace("base_ms = 5.0", "base_ms = 0.0").replace("decode_seq_ms = 1.0", "");
        assert!(matches!(CostModel::from_toml(&free, "x.toml"), Err(CostError::Free { .. })));
    }
}
