//! What a trace is like: how skewed its keys are, how long its prompts, how much of them could be reused.
//!
//! Memory grows with the number of distinct keys (about 90 bytes each) and not with that of requests. Of distinct segments some
//! two million are remembered, those used last (250 MB); the curve follows a sample of blocks. The report says where that
//! makes a figure an estimate or a lower bound.

mod curve;
mod fit;
mod keys;
mod lengths;
mod reappear;
mod reuse;
mod tree;

pub use curve::{CURVE_SAMPLES, CacheCurve, CurvePoint, CurveReport};
pub use fit::Fit;
pub use keys::{GapReport, KeyCounts, KeyReport, TopShare, gini};
pub use lengths::{LengthReport, Lengths};
pub use reappear::{Fleet, Reappear, ReappearReport, Reappearance};
pub use reuse::{Reuse, ReuseReport};
pub use tree::{PrefixMatch, PrefixTree};

use crate::Request;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The factor of the standard error in a 95 % interval over `n` values: Student's t with n − 1 degrees of freedom (12.706 for
/// two, 4.303 for three, 2.776 for five). None for fewer than two.
pub fn t95(n: u64) -> Option<f64> {
    let freedom = n.checked_sub(1).filter(|&freedom| freedom > 0)?;
    StudentsT::new(0.0, 1.0, freedom as f64).ok().map(|t| t.inverse_cdf(0.975))
}

/// The mean of values, and half its 95 % confidence interval, t·s/√n with the sample standard deviation s; none for fewer than two. The
/// mean of nothing is no number.
pub fn mean_ci95(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let half = t95(values.len() as u64).map(|t| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        t * (squares / (n - 1.0) / n).sqrt()
    });
    (mean, half)
}

/// The middle of the values, or the mean of the two in the middle; none where there is none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[values.len() / 2 - 1], upper) })
}

/// The schema of [`StatsReport`].
pub const STATS_SCHEMA: &str = "cacheroute.stats/1";

/// Gathers the statistics of a trace, request by request.
#[derive(Debug)]
pub struct TraceStats {
    requests: u64,
    first_s: f64,
    last_s: f64,
    keys: KeyCounts,
    input: Lengths,
    output: Lengths,
    reuse: Reuse,
    reappear: Option<Reappear>,
    curve: Option<CacheCurve>,
}

/// The statistics of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatsReport {
    /// Always [`STATS_SCHEMA`].
    pub schema: &'static str,
    /// Requests.
    pub requests: u64,
    /// Seconds from the first arrival to the last.
    pub span_s: f64,
    /// Requests per second of that span; 0 where it is empty.
    pub qps: f64,
    /// How the requests spread over the keys.
    pub keys: KeyReport,
    /// Prompt tokens.
    pub input_tokens: LengthReport,
    /// Decoded tokens.
    pub output_tokens: LengthReport,
    /// What a cache without limits would find.
    pub reuse: ReuseReport,
    /// Whether prefixes come back before a fleet evicts them, where one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reappear: Option<ReappearReport>,
    /// Reuse against the size of the cache, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curve: Option<CurveReport>,
}

impl TraceStats {
    /// Nothing seen yet; reuse is counted in blocks of `block_tokens` tokens (at least one).
    pub fn new(block_tokens: u32) -> TraceStats {
        TraceStats {
            requests: 0,
            first_s: 0.0,
            last_s: 0.0,
            keys: KeyCounts::default(),
            input: Lengths::default(),
            output: Lengths::default(),
            reuse: Reuse::new(block_tokens),
            reappear: None,
            curve: None,
        }
    }

    /// Also predicts what comes back before this fleet evicts it.
    pub fn with_fleet(mut self, fleet: Option<Fleet>) -> TraceStats {
        self.reappear = fleet.map(Reappear::new);
        self
    }

    /// Also counts reuse against the size of the cache, following at most so many distinct blocks.
    pub fn with_curve(mut self, block_tokens: u32, samples: Option<usize>) -> TraceStats {
        self.curve = samples.map(|samples| CacheCurve::new(block_tokens, samples));
        self
    }

    /// Takes in one request.
    pub fn observe(&mut self, request: &Request) {
        if self.requests == 0 {
            self.first_s = request.t_s;
        }
        self.requests += 1;
        self.last_s = request.t_s;
        self.keys.observe(&request.key, request.t_s);
        self.input.observe(request.prompt_tokens());
        self.output.observe(u64::from(request.output_tokens));
        let found = self.reuse.observe(request);
        if let Some(reappear) = &mut self.reappear {
            reappear.observe(request, found);
        }
        if let Some(curve) = &mut self.curve {
            curve.observe(request);
        }
    }

    /// Requests of each key, most popular first.
    pub fn key_counts(&self) -> Vec<u64> {
        self.keys.descending()
    }

    /// The statistics of what was taken in.
    pub fn report(&self) -> StatsReport {
        let span_s = self.last_s - self.first_s;
        StatsReport {
            schema: STATS_SCHEMA,
            requests: self.requests,
            span_s,
            qps: if span_s > 0.0 { self.requests as f64 / span_s } else { 0.0 },
            keys: self.keys.report(),
            input_tokens: self.input.report(),
            output_tokens: self.output.report(),
            reuse: self.reuse.report(),
            reappear: self.reappear.as_ref().map(Reappear::report),
            curve: self.curve.as_ref().map(CacheCurve::report),
        }
    }
}
