//! A suite with parameters that vary: every variant's answer in a row, then each in detail.

use super::{capacity, escape, table};
use crate::format::{percent_plus_minus, rate, ratio_plus_minus, seconds_plus_minus};
use crate::record::Record;
use crate::result::Aggregate;
use crate::verdict;
use std::fmt::{Result, Write};

/// The tables over all variants.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let parts: Vec<(&str, Record)> =
        record.file.design.variants.iter().map(|v| (v.label.as_str(), record.of_variant(&v.label))).collect();
    let made: Vec<_> = parts.iter().filter(|(_, part)| !part.file.aggregates.is_empty()).collect();
    writeln!(
        out,
        "{} variants; each is a suite of its own, told in full below the figures, which show the first.\n",
        made.len()
    )?;
    writeln!(out, "## Variants\n")?;
    let policies = record.policies();
    let names: String = policies.iter().map(|policy| format!(" {} |", escape(policy))).collect();
    let rule = "---:|".repeat(policies.len());
    let last = match record.objective().filter(|_| !record.file.capacity.is_empty()) {
        Some(objective) => format!("Capacity, QPS, at {}", objective.text()),
        None => "p99 TTFT, mean over seeds, at the rate of comparison".into(),
    };
    let figures: [(&str, Shown); 3] =
        [(&last, main_figure), ("Served hit", served_hit), ("Imbalance by requests", imbalance)];
    for (index, (heading, shown)) in figures.into_iter().enumerate() {
        let (verdicts, verdict_rule) = if index == 0 { (" verdict |", "---|") } else { ("", "") };
        writeln!(out, "{heading}:\n\n| variant | rate, QPS |{names}{verdicts}")?;
        writeln!(out, "|---|---:|{rule}{verdict_rule}")?;
        for (label, part) in &made {
            let at = part.reference_rate();
            write!(out, "| {} | {} |", escape(label), at.map(rate).unwrap_or_default())?;
            for policy in &policies {
                write!(
                    out,
                    " {} |",
                    part.cell(policy, at).map(|cell| shown(part, cell)).unwrap_or_default()
                )?;
            }
            if index == 0 {
                write!(out, " {} |", verdict::of_record(part).map_or("no verdict", |v| v.outcome.word()))?;
            }
            writeln!(out)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

type Shown = fn(&Record, &Aggregate) -> String;

fn main_figure(part: &Record, cell: &Aggregate) -> String {
    let capacity = part.objective().and_then(|objective| part.capacity(&cell.policy, objective));
    let p99 = cell.metric("ttft_p99_s");
    match capacity {
        Some(capacity) => capacity.quoted(),
        None if cell.saturated() => "saturated".into(),
        None => seconds_plus_minus(p99.mean, p99.ci95),
    }
}

fn served_hit(_: &Record, cell: &Aggregate) -> String {
    let hit = cell.metric("served_hit");
    percent_plus_minus(hit.mean, hit.ci95)
}

fn imbalance(_: &Record, cell: &Aggregate) -> String {
    let imbalance = cell.metric("imbalance_requests");
    ratio_plus_minus(imbalance.mean, imbalance.ci95)
}

/// Every variant's own tables, folded away.
pub(super) fn write_details(out: &mut String, record: &Record) -> Result {
    if record.file.design.variants.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Every variant\n")?;
    for variant in &record.file.design.variants {
        let part = record.of_variant(&variant.label);
        if part.file.aggregates.is_empty() {
            continue;
        }
        writeln!(out, "<details><summary>{}</summary>\n", escape(&variant.label))?;
        table::write_rates(out, &part)?;
        capacity::write(out, &part)?;
        writeln!(out, "</details>\n")?;
    }
    Ok(())
}
