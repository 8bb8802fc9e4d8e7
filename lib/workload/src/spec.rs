//! The specification of a workload.

use crate::arrivals::Arrivals;
use crate::popularity::Popularity;
use crate::prompt::{self, Part};
use crate::{Length, WorkloadError};
use cr_trace::Time;
use serde::{Deserialize, Serialize};

/// Everything that determines a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The seed of all random streams.
    #[serde(default)]
    pub seed: u64,
    /// End after this many requests. One of `requests` and `duration_s` is needed; with both, the first reached ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// End before the first arrival at or after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Tokens to decode.
    pub output_tokens: Length,
    /// How often each key is asked for.
    pub popularity: Popularity,
    /// When requests come.
    pub arrivals: Arrivals,
    /// What a prompt is made of, in order.
    pub prompt: Vec<Part>,
}

impl Spec {
    /// Checks everything that can be checked without drawing.
    ///
    /// # Errors
    ///
    /// The first field that is out of range, missing, or at odds with another.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.requests.is_none() && self.duration_s.is_none() {
            return Err(WorkloadError::field("requests", "is missing; give requests or duration_s"));
        }
        if let Some(duration_s) = self.duration_s
            && !(0.0..=Time::MAX_S).contains(&duration_s)
        {
            return Err(WorkloadError::field(
                "duration_s",
                format!("is {duration_s}, it must lie between 0 and {}", Time::MAX_S),
            ));
        }
        self.arrivals.check()?;
        if self.nominal_duration_s() > Time::MAX_S {
            return Err(WorkloadError::field(
                "arrivals.qps",
                format!("so slow a rate makes the trace longer than {} seconds", Time::MAX_S),
            ));
        }
        self.popularity.check()?;
        self.output_tokens.check("output_tokens")?;
        prompt::check(&self.prompt)
    }

    /// How long the arrivals are expected to last, in seconds: the duration, or the requests at the given rate.
    pub fn nominal_duration_s(&self) -> f64 {
        let by_requests = self.requests.map_or(f64::INFINITY, |requests| requests as f64 / self.arrivals.qps);
        by_requests.min(self.duration_s.unwrap_or(f64::INFINITY))
    }
}
