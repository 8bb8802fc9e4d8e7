//! One run as a report takes it: its summary, and beside it what only figures and pooling need.

use crate::aggregate::{Aggregator, Distribution, ShardTotals, Timeline};
use crate::events::Header;
use crate::summary::{Summary, Work};
use serde::{Deserialize, Serialize};

/// The schema of the file beside `result.json`.
pub const DETAIL_SCHEMA: &str = "cacheroute.detail/1";

/// One run of a suite.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// What was run, on what.
    pub header: Header,
    /// What it came down to.
    pub summary: Summary,
    /// Each shard's totals in the measured window.
    pub shards: Vec<ShardTotals>,
    /// TTFT of the measured requests, in seconds.
    pub ttft_s: SparseDistribution,
    /// Hits and TTFT over time, and when plans and shards changed.
    pub timeline: Timeline,
}

impl RunReport {
    /// What an aggregator has seen; `complete` says whether the run came to its end.
    pub fn of(aggregator: &Aggregator, complete: bool) -> RunReport {
        RunReport {
            header: aggregator.header().clone(),
            summary: aggregator.summary(complete),
            shards: aggregator.shard_totals(),
            ttft_s: SparseDistribution::from(&aggregator.ttft_s()),
            timeline: aggregator.timeline(),
        }
    }
}

/// `detail.json`: what a report needs beyond the summaries, so that it can be rebuilt without the events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// [`DETAIL_SCHEMA`].
    pub schema: String,
    /// In the order of the runs of `result.json`.
    pub runs: Vec<RunDetail>,
}

/// One run's part of [`Detail`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// What was run, on what.
    pub header: Header,
    /// One entry a shard, in order.
    pub shards: Vec<ShardDetail>,
    /// TTFT of the measured requests.
    pub ttft_s: SparseDistribution,
    /// Hits and TTFT over time.
    #[serde(default)]
    pub timeline: Timeline,
}

/// One shard's totals in the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardDetail {
    /// Measured requests that it finished.
    pub requests: u64,
    /// Seconds that it was up.
    pub up_s: f64,
    /// Its work.
    #[serde(flatten)]
    pub work: Work,
}

/// A [`Distribution`] as a list of the buckets that hold values: some kilobytes instead of a quarter of a megabyte.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SparseDistribution {
    /// Exact sum, in seconds.
    pub sum: f64,
    /// Exact smallest value, in seconds.
    pub min: f64,
    /// Exact largest value, in seconds.
    pub max: f64,
    /// Lower edge of a bucket in nanoseconds, number of values in it, and so on in turns, ascending.
    pub buckets: Vec<u64>,
}

impl From<&Distribution> for SparseDistribution {
    fn from(d: &Distribution) -> Self {
        let buckets = d.buckets().flat_map(|(edge, count)| [edge, count]).collect();
        SparseDistribution { sum: d.sum(), min: d.min(), max: d.max(), buckets }
    }
}

impl SparseDistribution {
    /// Adds all its values to a distribution.
    pub fn add_to(&self, distribution: &mut Distribution) {
        let (pairs, _) = self.buckets.as_chunks::<2>();
        let buckets = pairs.iter().map(|&[edge, count]| (edge, count));
        distribution.merge_parts(buckets, self.sum, self.min, self.max);
    }
}

impl From<&RunReport> for RunDetail {
    fn from(run: &RunReport) -> Self {
        let shard = |t: &ShardTotals| ShardDetail { requests: t.requests, up_s: t.up_s, work: t.work };
        RunDetail {
            header: run.header.clone(),
            shards: run.shards.iter().map(shard).collect(),
            ttft_s: run.ttft_s.clone(),
            timeline: run.timeline.clone(),
        }
    }
}

impl RunDetail {
    /// Joined with the summary of the same run.
    pub fn with(self, summary: Summary) -> RunReport {
        let totals = |s: &ShardDetail| ShardTotals { requests: s.requests, up_s: s.up_s, work: s.work };
        RunReport {
            header: self.header,
            summary,
            shards: self.shards.iter().map(totals).collect(),
            ttft_s: self.ttft_s,
            timeline: self.timeline,
        }
    }
}
