//! What the figures do not say.

use super::escape;
use crate::capacity::{Capacity, Censored};
use crate::format::{count, rate};
use crate::record::Record;
use crate::result::Aggregate;
use std::collections::BTreeSet;
use std::fmt::{Result, Write};

/// Seeds below which an interval is called rough.
const FEW_SEEDS: usize = 5;

/// Names of a list that are written out.
const NAMED: usize = 12;

/// Requests of one run below which its p99 rests on fewer than ten.
const FEW_REQUESTS: u64 = 1_000;

pub(super) fn write(out: &mut String, record: &Record) -> Result {
    writeln!(out, "## Limits\n")?;
    for limit in limits(record) {
        writeln!(out, "- {limit}")?;
    }
    Ok(())
}

/// The saturated cells by name.
fn saturated_cells(cells: &[Aggregate]) -> Vec<String> {
    let name = |cell: &Aggregate| {
        let at = cell.qps.map(|qps| format!(" at {} QPS", rate(qps))).unwrap_or_default();
        format!("{}{at}", named(&cell.policy, cell.variant.as_deref()))
    };
    cells.iter().filter(|cell| cell.saturated()).map(name).collect()
}

/// Names in a row, the first dozen of them.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &rest
}

/// A policy, with its variant where there are several.
fn named(policy: &str, variant: Option<&str>) -> String {
    let variant = variant.map(|label| format!(" ({})", escape(label))).unwrap_or_default();
    format!("{}{variant}", escape(policy))
}

fn limits(record: &Record) -> Vec<String> {
    let cells = &record.file.aggregates;
    let mut limits = Vec::new();
    if let Some(seeds) = cells.iter().map(|cell| cell.seeds.len()).min().filter(|&seeds| seeds < FEW_SEEDS) {
        let seeds =
            if seeds == 1 { "One seed: there are no".into() } else { format!("{seeds} seeds: rough") };
        limits.push(format!("{seeds} confidence intervals, and small differences cannot be shown."));
    }
    let finished = || record.file.runs.iter().map(|run| run.ttft_s.count);
    let empty = finished().filter(|&n| n == 0).count();
    if empty > 0 {
        let all = finished().count();
        limits.push(format!("In {empty} of {all} runs no request finished within the measured window."));
    }
    if let Some(fewest) = finished().filter(|&n| n > 0).min().filter(|&fewest| fewest < FEW_REQUESTS) {
        let slowest = fewest.div_ceil(100);
        limits.push(format!(
            "A run of {} finished requests: the p99 of a single run rests on its slowest {slowest}; the pooled p99 is steadier.",
            count(fewest)
        ));
    }
    let saturated = saturated_cells(cells);
    if !saturated.is_empty() {
        limits.push(format!("Saturated, so without a latency: {}.", listed(saturated)));
    }
    let censored = record.file.capacity.iter().filter(|capacity| capacity.censored != Censored::No);
    let name = |c: &Capacity| named(&c.policy, c.variant.as_deref());
    let bound = |c: &Capacity| format!("{} {} ({})", name(c), c.quoted(), c.objective().text());
    let censored: Vec<String> = censored.map(bound).collect();
    if !censored.is_empty() {
        limits.push(format!("Capacity beyond the ladder, so only a bound: {}.", listed(censored)));
    }
    let doubtful: Vec<String> = record.file.capacity.iter().filter(|c| c.non_monotone()).map(name).collect();
    if !doubtful.is_empty() {
        limits.push(format!(
            "A rate above a failed one passes in some seed, so doubt the capacity of: {}.",
            listed(doubtful)
        ));
    }
    let reasons: BTreeSet<&str> = record
        .file
        .runs
        .iter()
        .flat_map(|run| run.requests.failed_by_reason.keys().map(String::as_str))
        .collect();
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons.into_iter().map(|reason| reason.replace('_', " ")).collect();
        limits
            .push(format!("Requests failed ({}); latencies are of those that finished.", reasons.join(", ")));
    }
    if record.file.runs.iter().any(|run| run.in_sample) {
        limits.push(
            "In sample: a table was planned from a trace, or from requests that were still to come. If from the requests it is \
             tested on, it knew what no router could, which flatters it."
                .into(),
        );
    }
    if record.runs.iter().any(|run| run.header.durations == "measured") {
        limits.push(
            "Step times were measured on one machine (`run.json`); other machines give other latencies."
                .into(),
        );
    } else if !record.runs.is_empty() {
        limits.push("Step times come from a cost model: latencies are as good as the model.".into());
    }
    limits.extend(record.file.notes.iter().map(|note| escape(note)));
    limits
}
