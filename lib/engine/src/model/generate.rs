//! Continuing a prompt with a model's own tokens.

use crate::EngineError;
use crate::model::runner::{Runner, best_runner};
use crate::model::{Model, Step};
use candle_core::DType;
use cr_trace::{Stream, stream};
use rand::Rng;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BLOCK_TOKENS: usize = 16;

/// Prompt tokens fed at once.
const CHUNK: usize = 512;

/// How a token is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f64,
    /// Only the most likely tokens that together reach this probability are drawn from; 1 for all.
    pub top_p: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Sampling {
    /// The most likely token, always.
    pub fn greedy() -> Sampling {
        Sampling { temperature: 0.0, top_p: 1.0, seed: 0 }
    }

    fn check(&self) -> Result<(), EngineError> {
        let bad = |what: String| Err(EngineError::Config(what));
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return bad(format!("temperature is {}, must be 0 or more", self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return bad(format!("top-p is {}, must be above 0 and at most 1", self.top_p));
        }
        Ok(())
    }
}

/// What was generated, and how long it took.
#[derive(Clone, Debug)]
pub struct Generation {
    /// The new tokens.
    pub tokens: Vec<u32>,
    /// From the start to the first token.
    pub prefill: Duration,
    /// From the first token to the last.
    pub decode: Duration,
}

impl Generation {
    /// Decoded tokens a second, the first one not counted; none where there is no second.
    pub fn decode_tokens_per_s(&self) -> Option<f64> {
        let steps = self.tokens.len().checked_sub(1).filter(|&steps| steps > 0)?;
        Some(steps as f64 / self.decode.as_secs_f64())
    }
}

/// Continues `prompt` by up to `max_tokens` tokens, handing each to `on_token`, which may stop it.
///
/// # Errors
/// An empty prompt, one that leaves no room in the context, a sampling out of range, or a device that refuses.
pub fn generate(
    model: &Arc<Model>,
    prompt: &[u32],
    max_tokens: usize,
    sampling: Sampling,
    mut on_token: impl FnMut(u32) -> ControlFlow<()>,
) -> Result<Generation, EngineError> {
    sampling.check()?;
    let context = model.config().context;
    if prompt.is_empty() || prompt.len() >= context {
        let n = prompt.len();
        return Err(EngineError::Config(format!("the prompt has {n} tokens, must be 1 to {}", context - 1)));
    }
    let longest = context.min(prompt.len() + max_tokens);
    let runner = best_runner(model, BLOCK_TOKENS)?;
    let table: Vec<u32> = (0..longest.div_ceil(BLOCK_TOKENS) as u32).collect();
    let mut pool = runner.alloc(table.len(), BLOCK_TOKENS)?;
    let mut sampler = Sampler { sampling, stream: stream(sampling.seed, "generate") };

    let begin = Instant::now();
    let mut fed = 0;
    let mut next = None;
    for chunk in prompt.chunks(CHUNK) {
        fed += chunk.len();
        let mut step = Step::default();
        step.push(chunk, fed, &table, fed == prompt.len());
        let logits = runner.step(&step, &mut pool)?;
        if fed == prompt.len() {
            next = Some(sampler.choose(&*runner, &logits)?);
        }
    }
    let prefill = begin.elapsed();
    let begin = Instant::now();
    let mut tokens = Vec::new();
    while let Some(token) = next.take() {
        if tokens.len() == max_tokens {
            break;
        }
        tokens.push(token);
        if on_token(token).is_break() || tokens.len() == max_tokens || fed == longest {
            break;
        }
        fed += 1;
        let mut step = Step::default();
        step.push(&[token], fed, &table, true);
        next = Some(sampler.choose(&*runner, &runner.step(&step, &mut pool)?)?);
    }
    Ok(Generation { tokens, prefill, decode: begin.elapsed() })
}

struct Sampler {
    sampling: Sampling,
    stream: Stream,
}

impl Sampler {
    fn choose(&mut self, runner: &dyn Runner, logits: &candle_core::Tensor) -> Result<u32, EngineError> {
        if self.sampling.temperature == 0.0 {
            let mut greedy = Vec::new();
            runner.argmax(logits, &mut greedy)?;
            return Ok(greedy.first().copied().unwrap_or(0));
        }
        let logits: Vec<f32> = logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        let uniform = (self.stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        Ok(draw(&logits, &self.sampling, uniform))
    }
}

/// Draws a token by a number in [0, 1): softmax at the temperature, cut to the smallest set of most likely tokens that
/// reaches `top_p` (Holtzman et al., 2020).
fn draw(logits: &[f32], sampling: &Sampling, uniform: f64) -> u32 {
    let max = logits.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
    let weight = |logit: f32| (f64::from(logit - max) / sampling.temperature).exp();
    let mut tokens: Vec<(f64, u32)> =
        logits.iter().enumerate().map(|(i, &logit)| (weight(logit), i as u32)).collect();
    tokens.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let total: f64 = tokens.iter().map(|(weight, _)| weight).sum();
    let mut kept = 0;
    let mut mass = 0.0;
    for (weight, _) in &tokens {
        kept += 1;
        mass += weight;
        if mass >= sampling.top_p * total {
            break;
        }
    }
    let mut left = uniform * mass;
    for &(weight, token) in &tokens[..kept] {
        if left < weight {
            return token;
        }
        left -= weight;
    }
    tokens[..kept].last().map_or(0, |&(_, token)| token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_temperature_and_top_p() {
        // Probabilities 0.1, 0.6, 0.3.
        let logits = [0.1f32.ln(), 0.6f32.ln(), 0.3f32.ln()];
        let share = |temperature: f64, top_p: f64, token: u32| {
            let sampling = Sampling { temperature, top_p, seed: 0 };
            (0..10_000).filter(|i| draw(&logits, &sampling, f64::from(*i) / 1e4) == token).count() as f64
                / 1e4
        };
        for (temperature, top_p, expect) in [
            (1.0, 1.0, [0.1, 0.6, 0.3]),
            (1.0, 0.9, [0.0, 2.0 / 3.0, 1.0 / 3.0]),
            (1.0, 0.5, [0.0, 1.0, 0.0]),
            (0.5, 1.0, [1.0 / 46.0, 36.0 / 46.0, 9.0 / 46.0]),
        ] {
            for (token, expect) in expect.into_iter().enumerate() {
                let share = share(temperature, top_p, token as u32);
                assert!((share - expect).abs() < 2e-4, "{temperature} {top_p} {token}: {share}");
            }
        }
    }

    #[test]
    fn samplings_out_of_range_are_refused() {
        for (temperature, top_p, expect) in [
            (-1.0, 1.0, "temperature is -1"),
            (f64::NAN, 1.0, "temperature is NaN"),
            (1.0, 0.0, "top-p is 0"),
        ] {
            let error = Sampling { temperature, top_p, seed: 0 }.check().expect_err("refused").to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
