//! Service level objectives: a bound on the p99 of a latency.

use crate::aggregate::MAX_FAILED_SHARE;
use crate::events::Slo;
use crate::format::seconds;
use crate::result::failed_share;
use crate::summary::{Quantiles, Summary};
use serde::{Deserialize, Serialize};

/// A latency that an objective may bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Latency {
    /// Time to first token.
    #[default]
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// Arrival to last token.
    E2e,
}

impl Latency {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Latency::Ttft => "TTFT",
            Latency::Tpot => "TPOT",
            Latency::E2e => "e2e",
        }
    }

    fn of(self, summary: &Summary) -> &Quantiles {
        match self {
            Latency::Ttft => &summary.ttft_s,
            Latency::Tpot => &summary.tpot_s,
            Latency::E2e => &summary.e2e_s,
        }
    }
}

/// The p99 of a latency is at most so many seconds, and at most 5 % of the requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// What is bounded.
    pub metric: Latency,
    /// The bound on its 99th percentile, in seconds.
    pub p99_s: f64,
}

impl Objective {
    /// A bound on the p99 of TTFT.
    pub fn ttft(p99_s: f64) -> Objective {
        Objective { metric: Latency::Ttft, p99_s }
    }

    /// Whether a run meets it. A run in which nothing finished does not; a run of single tokens has no TPOT and meets any bound on it.
    pub fn met_by(&self, summary: &Summary) -> bool {
        let latency = self.metric.of(summary);
        let known = latency.count > 0 || (self.metric == Latency::Tpot && summary.ttft_s.count > 0);
        known && latency.p99 <= self.p99_s && failed_share(summary) <= MAX_FAILED_SHARE
    }

    /// As in `p99 TTFT within 3.50 s`.
    pub fn text(&self) -> String {
        format!("p99 {} within {}", self.metric.name(), seconds(self.p99_s))
    }
}

/// The bound of `slo` first, where it has one, then the others, none twice.
pub fn all(slo: Slo, others: &[Objective]) -> Vec<Objective> {
    let mut objectives: Vec<Objective> = Vec::new();
    for objective in slo.ttft_p99_s.map(Objective::ttft).iter().chain(others) {
        if !objectives.contains(objective) {
            objectives.push(*objective);
        }
    }
    objectives
}
