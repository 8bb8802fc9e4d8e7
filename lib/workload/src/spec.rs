//! The specification of a workload, as Rust and as TOML.

use crate::arrivals::Arrivals;
use crate::error::within;
use crate::popularity::Popularity;
use crate::profile::{Profile, ProfileClock};
use crate::prompt::{self, Part, PartScope};
use crate::threads::Threads;
use crate::{Length, WorkloadError};
use cr_trace::{Time, config_text};
use serde::{Deserialize, Serialize};

/// Everything that determines a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What the workload shows, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
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
    /// How the rate moves over time; level where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Profile>,
    /// Requests come in threads; each by itself where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
    /// What a prompt is made of, in order.
    pub prompt: Vec<Part>,
}

impl Spec {
    /// Reads a specification from TOML; `file` is what errors call it.
    ///
    /// # Errors
    ///
    /// Text that is no specification, with its line and the nearest name for a field that is not known. Values are
    /// checked by [`Spec::check`].
    pub fn from_toml(text: &str, file: &str) -> Result<Spec, WorkloadError> {
        toml::from_str(text).map_err(|error| {
            let (line, what) = config_text::explain(text, error.span(), error.message());
            WorkloadError::Syntax { file: file.into(), line, what }
        })
    }

    /// The specification as TOML, which [`Spec::from_toml`] reads back.
    ///
    /// # Errors
    ///
    /// A number that TOML cannot write (a seed above 2^63 − 1).
    pub fn to_toml(&self) -> Result<String, WorkloadError> {
        toml::to_string(self)
            .map_err(|error| WorkloadError::field("spec", format!("cannot be written as TOML: {error}")))
    }

    /// Checks everything that can be checked without drawing or opening files.
    ///
    /// # Errors
    ///
    /// The first field that is out of range, missing, or at odds with another.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.requests.is_none() && self.duration_s.is_none() {
            return Err(WorkloadError::field("requests", "is missing; give requests or duration_s"));
        }
        if let Some(duration_s) = self.duration_s {
            within("duration_s", duration_s, 0.0..=Time::MAX_S)?;
        }
        self.arrivals.check()?;
        self.popularity.check()?;
        self.output_tokens.check("output_tokens")?;
        self.rate.as_ref().map_or(Ok(()), Profile::check)?;
        self.threads.as_ref().map_or(Ok(()), Threads::check)?;
        prompt::check(&self.prompt)?;
        if self.threads.is_none() && self.prompt.iter().any(|part| part.scope == PartScope::Thread) {
            return Err(WorkloadError::field(
                "prompt",
                "has a part of scope thread, but there is no [threads] table",
            ));
        }
        if self.nominal_duration_s() > Time::MAX_S {
            return Err(WorkloadError::field(
                "arrivals.qps",
                format!("so slow a rate makes the trace longer than {} seconds", Time::MAX_S),
            ));
        }
        Ok(())
    }

    /// How long the arrivals are expected to last, in seconds: the duration, or until the rate has brought the requests.
    pub fn nominal_duration_s(&self) -> f64 {
        let by_requests = self.requests.map_or(f64::INFINITY, |requests| {
            ProfileClock::new(self.rate.as_ref(), self.seed).advance(requests as f64 / self.arrivals.qps)
        });
        by_requests.min(self.duration_s.unwrap_or(f64::INFINITY))
    }
}
