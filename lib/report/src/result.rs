//! `result.json` (`cacheroute.result/1`): every run's summary, and what the runs say together.

use crate::aggregate::Distribution;
use crate::capacity::Capacity;
use crate::claims::Evidence;
use crate::design::Design;
use crate::events::Slo;
use crate::objective::{self, Objective};
use crate::published::Beside;
use crate::run::RunReport;
use crate::stats::{Difference, Estimate};
use crate::summary::{Quantiles, Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema of `result.json`.
pub const SCHEMA: &str = "cacheroute.result/1";

/// `result.json`. Fields after `aggregates` carry what a report needs to be rebuilt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// [`SCHEMA`].
    pub schema: String,
    /// The suite's name.
    pub suite: String,
    /// One summary a run, in the order of the suite.
    pub runs: Vec<Summary>,
    /// One entry for every policy at every rate.
    pub aggregates: Vec<Aggregate>,
    /// The report's heading.
    #[serde(default)]
    pub title: String,
    /// The policy that others are held against.
    #[serde(default)]
    pub baseline: Option<String>,
    /// The policy that the report is about.
    #[serde(default)]
    pub candidate: Option<String>,
    /// Bounds that the runs are held against.
    #[serde(default)]
    pub slo: Slo,
    /// Commands that reproduce the result, in order.
    #[serde(default)]
    pub commands: Vec<String>,
    /// What a reader should know besides, a sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// How many runs the suite has, where that is known; with fewer the result is partial.
    #[serde(default)]
    pub expected_runs: Option<u64>,
    /// Policies that build on one another step by step, for the ablation's waterfall.
    #[serde(default)]
    pub ablation: Vec<String>,
    /// Each policy's capacity under each objective, where there is a ladder of rates.
    #[serde(default)]
    pub capacity: Vec<Capacity>,
    /// What became of each claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// Our values beside the published ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
    /// Objectives, the ladder, and the variants.
    #[serde(flatten)]
    pub design: Design,
}

impl ResultFile {
    /// Every objective, the one of `slo` first.
    pub fn objectives(&self) -> Vec<Objective> {
        objective::all(self.slo, &self.design.objectives)
    }

    /// Whether all runs were made and came to their end.
    pub fn complete(&self) -> bool {
        let made = self.runs.len() as u64;
        made > 0 && made >= self.expected_runs.unwrap_or(0) && self.runs.iter().all(|run| run.complete)
    }

    /// Whether a run is at a rung of the ladder, and not at a rate that a refinement added.
    pub fn on_ladder(&self, run: &Summary) -> bool {
        is_rung(run, &self.design.ladder_qps)
    }
}

/// The runs of one policy at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aggregate {
    /// The policy.
    pub policy: String,
    /// The variant of the suite, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The rate asked for, in requests per second, where a suite sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// The seeds, in the order of the runs.
    pub seeds: Vec<u64>,
    /// How many of the runs were saturated.
    pub saturated_runs: u64,
    /// How many of the runs did not come to their end.
    pub incomplete_runs: u64,
    /// Requests offered, over all runs.
    pub offered: u64,
    /// Requests completed, over all runs.
    pub completed: u64,
    /// Requests failed, over all runs.
    pub failed: u64,
    /// Means over seeds by metric (see [`METRICS`]).
    pub metrics: BTreeMap<String, Estimate>,
    /// TTFT of all runs' requests taken together, in seconds.
    pub ttft_pooled_s: Quantiles,
    /// The policy of `against_baseline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Paired differences, this policy − the baseline, at the same rate and seeds.
    #[serde(default)]
    pub against_baseline: BTreeMap<String, Difference>,
}

/// A figure of a summary that is averaged over seeds.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name in `result.json`.
    pub name: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// Its value in a summary.
    pub of: fn(&Summary) -> f64,
}

/// Share of failed requests among those that came to an end.
pub fn failed_share(summary: &Summary) -> f64 {
    share_of(summary.requests.failed, summary.requests.completed)
}

fn share_of(failed: u64, completed: u64) -> f64 {
    match completed + failed {
        0 => 0.0,
        ended => failed as f64 / ended as f64,
    }
}

const fn metric(name: &'static str, higher_is_better: bool, of: fn(&Summary) -> f64) -> Metric {
    Metric { name, higher_is_better, of }
}

/// Every metric that is averaged over seeds.
pub const METRICS: [Metric; 12] = [
    metric("served_hit", true, |s| s.served_hit),
    metric("hit_request_mean", true, |s| s.hit_request_mean),
    metric("hit_block", true, |s| s.hit_block),
    metric("imbalance_requests", false, |s| s.imbalance.requests),
    metric("imbalance_tokens", false, |s| s.imbalance.tokens),
    metric("imbalance_busy", false, |s| s.imbalance.busy),
    metric("ttft_mean_s", false, |s| s.ttft_s.mean),
    metric("ttft_p50_s", false, |s| s.ttft_s.p50),
    metric("ttft_p99_s", false, |s| s.ttft_s.p99),
    metric("achieved_qps", true, |s| s.requests.achieved_qps),
    metric("failed_share", false, failed_share),
    metric("jain", true, |s| s.fairness.jain),
];

impl Aggregate {
    /// A metric's mean over seeds; empty where the name is none of [`METRICS`].
    pub fn metric(&self, name: &str) -> Estimate {
        self.metrics.get(name).copied().unwrap_or_default()
    }

    /// Whether any of the runs was saturated: then no latency of it is quoted.
    pub fn saturated(&self) -> bool {
        self.saturated_runs > 0
    }

    /// Share of failed requests among those that came to an end, over all runs.
    pub fn failed_share(&self) -> f64 {
        share_of(self.failed, self.completed)
    }
}

/// A place in a list of what was seen first, so that an order can follow it.
fn places<'a, T: PartialEq + ?Sized>(seen: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
    let mut places: Vec<&T> = Vec::new();
    for item in seen {
        // Runs of one kind stand together, so the last is the likely one.
        if places.last() != Some(&item) && !places.contains(&item) {
            places.push(item);
        }
    }
    places
}

/// The capacity of every policy of every variant under every objective, in the order in which they first appear; none without a ladder
/// of rates.
pub fn capacities(runs: &[Summary], objectives: &[Objective], ladder_qps: &[f64]) -> Vec<Capacity> {
    let mut of: BTreeMap<(usize, usize), Vec<&Summary>> = BTreeMap::new();
    let variants = places(runs.iter().map(|run| &run.variant));
    let policies = places(runs.iter().map(|run| &run.policy));
    let place = |run: &Summary| {
        let variant = variants.iter().position(|known| **known == run.variant);
        let policy = policies.iter().position(|known| **known == run.policy);
        variant.zip(policy)
    };
    for run in runs {
        if let Some(place) = place(run) {
            of.entry(place).or_default().push(run);
        }
    }
    let made = objectives.iter().flat_map(|&objective| {
        of.values().filter_map(move |runs| Capacity::of(&runs.first()?.policy, runs, objective, ladder_qps))
    });
    made.collect()
}

/// Whether a run is at a rung of the ladder; without a ladder, every run is.
fn is_rung(run: &Summary, ladder_qps: &[f64]) -> bool {
    ladder_qps.is_empty() || run.qps.is_none_or(|qps| ladder_qps.contains(&qps))
}

/// One aggregate for every policy at every rate of every variant: variants and policies in the order in which they first appear, rates
/// ascending. Rates that are no rung of `ladder_qps` have none, unless it is empty.
pub fn aggregates(runs: &[RunReport], baseline: Option<&str>, ladder_qps: &[f64]) -> Vec<Aggregate> {
    let on_ladder = |run: &&RunReport| is_rung(&run.summary, ladder_qps);
    let mut cells: BTreeMap<_, Vec<&RunReport>> = BTreeMap::new();
    for run in runs.iter().filter(on_ladder) {
        cells.entry(run.summary.cell()).or_default().push(run);
    }
    let variants = places(runs.iter().map(|run| &run.summary.variant));
    let policies = places(runs.iter().map(|run| &run.summary.policy));
    let mut made: Vec<Aggregate> = cells
        .iter()
        .map(|(&(variant, policy, qps), runs)| {
            let baseline = baseline.filter(|name| *name != policy);
            let against = baseline.and_then(|name| cells.get(&(variant, name, qps)));
            aggregate(runs, baseline, against.map_or(&[], Vec::as_slice))
        })
        .collect();
    made.sort_by(|a, b| {
        let place = |cell: &Aggregate| {
            let variant = variants.iter().position(|known| **known == cell.variant);
            (variant, policies.iter().position(|known| **known == cell.policy))
        };
        place(a).cmp(&place(b)).then(a.qps.unwrap_or(0.0).total_cmp(&b.qps.unwrap_or(0.0)))
    });
    made
}

fn aggregate(runs: &[&RunReport], baseline: Option<&str>, against: &[&RunReport]) -> Aggregate {
    let mut pooled = Distribution::new();
    runs.iter().for_each(|run| run.ttft_s.add_to(&mut pooled));
    let summaries = || runs.iter().map(|run| &run.summary);
    let pairs: Vec<(&Summary, &Summary)> = summaries()
        .filter_map(|summary| {
            let other = against.iter().find(|other| other.summary.seed == summary.seed)?;
            Some((summary, &other.summary))
        })
        .collect();
    let first = runs.first().map(|run| &run.summary);
    Aggregate {
        policy: first.map(|summary| summary.policy.clone()).unwrap_or_default(),
        variant: first.and_then(|summary| summary.variant.clone()),
        qps: first.and_then(|summary| summary.qps),
        seeds: summaries().map(|summary| summary.seed).collect(),
        saturated_runs: summaries().filter(|summary| summary.saturated).count() as u64,
        incomplete_runs: summaries().filter(|summary| !summary.complete).count() as u64,
        offered: summaries().map(|summary| summary.requests.offered).sum(),
        completed: summaries().map(|summary| summary.requests.completed).sum(),
        failed: summaries().map(|summary| summary.requests.failed).sum(),
        metrics: METRICS
            .iter()
            .map(|metric| {
                (metric.name.to_owned(), Estimate::of(&summaries().map(metric.of).collect::<Vec<_>>()))
            })
            .collect(),
        ttft_pooled_s: pooled.quantiles(),
        baseline: baseline.map(str::to_owned),
        against_baseline: differences(&pairs),
    }
}

fn differences(pairs: &[(&Summary, &Summary)]) -> BTreeMap<String, Difference> {
    if pairs.is_empty() {
        return BTreeMap::new();
    }
    METRICS
        .iter()
        .map(|metric| {
            let values: Vec<(f64, f64)> =
                pairs.iter().map(|(a, b)| ((metric.of)(a), (metric.of)(b))).collect();
            (metric.name.to_owned(), Difference::of(&values))
        })
        .collect()
}
