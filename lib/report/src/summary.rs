//! What a run comes down to (`cacheroute.summary/1`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of a summary.
pub const SCHEMA: &str = "cacheroute.summary/1";

/// The measured part of a run. Definitions of every field: `docs/metrics.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// [`SCHEMA`].
    pub schema: String,
    /// The routing policy's name.
    pub policy: String,
    /// The seed of the run.
    pub seed: u64,
    /// The rate asked for, in requests per second, where a suite sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// The variant of the suite, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether the run came to its end.
    pub complete: bool,
    /// Whether the table was planned from the requests it was tested on.
    pub in_sample: bool,
    /// The measured window.
    pub window: Window,
    /// What became of the requests.
    pub requests: Requests,
    /// Σ cached / Σ prompt tokens of finished requests.
    pub served_hit: f64,
    /// The mean over requests of cached / prompt tokens.
    pub hit_request_mean: f64,
    /// Σ cached blocks / Σ ⌈prompt / block⌉.
    pub hit_block: f64,
    /// Cached tokens of a scope / all prompt tokens; the values add up to `served_hit`.
    pub hit_by_scope: BTreeMap<String, f64>,
    /// Max / mean over shards.
    pub imbalance: Imbalance,
    /// Time to first token, in seconds.
    pub ttft_s: Quantiles,
    /// Time per output token after the first, in seconds.
    pub tpot_s: Quantiles,
    /// Arrival to last token, in seconds.
    pub e2e_s: Quantiles,
    /// Arrival to first scheduling, in seconds.
    pub queue_s: Quantiles,
    /// Between tenants.
    pub fairness: Fairness,
    /// Too many failures, or a queue that still grew at the end: latencies mean nothing.
    pub saturated: bool,
    /// Work done in the window, over all shards.
    #[serde(default)]
    pub work: Work,
}

impl Summary {
    /// What runs of different seeds have in common: variant, policy and rate. Rates compare by their bits.
    pub fn cell(&self) -> (Option<&str>, &str, Option<u64>) {
        (self.variant.as_deref(), &self.policy, self.qps.map(f64::to_bits))
    }
}

/// The measured window of a run, in seconds of run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// End of the warm-up.
    pub from_s: f64,
    /// End of the run.
    pub to_s: f64,
}

/// What became of the measured requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests that arrived (or would have, where a predecessor failed).
    pub offered: u64,
    /// Requests that finished.
    pub completed: u64,
    /// Requests that failed, for whatever reason but the two below.
    pub failed: u64,
    /// Failed requests by their reason.
    #[serde(default)]
    pub failed_by_reason: BTreeMap<String, u64>,
    /// Requests never released because their predecessor failed.
    pub cancelled: u64,
    /// Requests sent again after a shard died, whatever became of them.
    pub rerouted: u64,
    /// Requests in flight when the run was stopped; neither completed nor failed.
    #[serde(default)]
    pub interrupted: u64,
    /// Offered requests per second, from the start of the window to the last arrival.
    pub offered_qps: f64,
    /// Completed requests per second of the window.
    pub achieved_qps: f64,
}

/// Max / mean over shards of totals in the window, weighted by uptime; 1 is perfect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imbalance {
    /// Of finished requests.
    pub requests: f64,
    /// Of computed prompt plus output tokens.
    pub tokens: f64,
    /// Of time spent in steps.
    pub busy: f64,
    /// The same within spans of ten seconds.
    #[serde(default)]
    pub windows: ImbalanceWindows,
}

/// Imbalance within consecutive spans of ten seconds. A last, shorter span is left out; so is one without any load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImbalanceWindows {
    /// Number of spans; 0 in a run that is too short, and then all values are 0.
    pub count: u64,
    /// Of finished requests.
    pub requests: WindowQuantiles,
    /// Of computed prompt plus output tokens.
    pub tokens: WindowQuantiles,
    /// Of time spent in steps.
    pub busy: WindowQuantiles,
}

/// Quantiles over spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowQuantiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

/// Work done in the window, over all shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Time spent in steps, summed over shards, in seconds.
    pub busy_s: f64,
    /// Prompt tokens of requests first scheduled.
    pub prompt_tokens: u64,
    /// Of those, found in the cache.
    pub cached_tokens: u64,
    /// Prompt tokens computed, recomputation not counted.
    pub computed_tokens: u64,
    /// Tokens decoded.
    pub output_tokens: u64,
    /// Tokens computed again after a preemption.
    pub recomputed_tokens: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
    /// Cached blocks given up for room.
    pub evicted_blocks: u64,
    /// Of those, blocks of admitted keys.
    pub evicted_admitted_blocks: u64,
}

/// A distribution, from an HDR histogram with three significant digits. All values are 0 where `count` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    /// Number of values.
    pub count: u64,
    /// Exact mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Exact maximum.
    pub max: f64,
}

/// Between tenants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index of the tenants' mean TTFT: 1 when all are equal, 1/n when one has it all.
    pub jain: f64,
    /// The tenant with the highest mean TTFT.
    pub worst_tenant: Option<String>,
    /// Its mean TTFT / the mean over tenants.
    pub worst_ratio: f64,
    /// The number of tenants with a finished request.
    #[serde(default)]
    pub tenants: u64,
    /// Jain's index of the tenants' mean slowdown, end to end / service.
    #[serde(default)]
    pub jain_slowdown: f64,
    /// The tenant with the highest mean slowdown.
    #[serde(default)]
    pub worst_slowdown_tenant: Option<String>,
    /// Its mean slowdown; 1 is a tenant that never waits.
    #[serde(default)]
    pub worst_slowdown: f64,
    /// The tenant with the highest p99 of TTFT, among those with at least 100 finished requests.
    #[serde(default)]
    pub worst_p99_tenant: Option<String>,
    /// That p99, in seconds, at most 6.25 % too high.
    #[serde(default)]
    pub worst_p99_s: Option<f64>,
    /// Requests whose key had a place of its own.
    #[serde(default)]
    pub admitted: ServedAs,
    /// The others.
    #[serde(default)]
    pub cold: ServedAs,
}

/// How one kind of finished requests was served. All 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServedAs {
    /// How many.
    pub requests: u64,
    /// Σ cached / Σ prompt tokens.
    pub served_hit: f64,
    /// Mean TTFT, in seconds.
    pub ttft_mean_s: f64,
    /// 99th percentile of TTFT, in seconds.
    pub ttft_p99_s: f64,
    /// Mean slowdown, end to end / service.
    pub slowdown: f64,
}
