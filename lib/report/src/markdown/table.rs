//! The results, a row a policy, a table a rate.

use super::{capacity, differences, escape};
use crate::format::{
    count, percent, percent_plus_minus, rate, ratio_plus_minus, seconds, seconds_plus_minus,
};
use crate::record::Record;
use crate::result::Aggregate;
use crate::stats::Estimate;
use crate::verdict::judge;
use std::fmt::{Result, Write};

pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let reference = record.reference_rate();
    if let Some(qps) = reference {
        writeln!(out, "### At {} QPS\n", rate(qps))?;
    }
    write_rate(out, record, reference)?;
    differences::write(out, record)?;
    capacity::write(out, record)?;
    let others: Vec<Option<f64>> = record.rates().into_iter().filter(|other| *other != reference).collect();
    if others.is_empty() {
        return Ok(());
    }
    writeln!(out, "<details><summary>All other rates</summary>\n")?;
    for qps in others {
        writeln!(out, "### At {} QPS\n", qps.map(rate).unwrap_or_default())?;
        write_rate(out, record, qps)?;
    }
    writeln!(out, "</details>\n")
}

/// Every rate's table, one after the other.
pub(super) fn write_rates(out: &mut String, record: &Record) -> Result {
    for qps in record.rates() {
        if let Some(qps) = qps {
            writeln!(out, "### At {} QPS\n", rate(qps))?;
        }
        write_rate(out, record, qps)?;
    }
    Ok(())
}

fn write_rate(out: &mut String, record: &Record, qps: Option<f64>) -> Result {
    let cells = record.cells_at(qps);
    let seeds = cells.iter().map(|cell| cell.seeds.len()).max().unwrap_or(0);
    let against = record.baseline();
    let mean = if seeds == 1 { "one seed".into() } else { format!("mean of {seeds} seeds") };
    write!(
        out,
        "| policy | served hit | imbalance, requests | imbalance, busy time | p99 TTFT, {mean} | p99 TTFT, pooled | requests | failed |"
    )?;
    writeln!(out, "{}", against.map(|name| format!(" against {} |", escape(name))).unwrap_or_default())?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|{}", if against.is_some() { "---|" } else { "" })?;
    for cell in cells {
        write_row(out, cell)?;
        if let Some(name) = against {
            let verdict = match record.cell(name, qps) {
                Some(baseline) if baseline.policy != cell.policy => judge(cell, baseline).outcome.word(),
                _ => "baseline",
            };
            write!(out, " {verdict} |")?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn write_row(out: &mut String, cell: &Aggregate) -> Result {
    let text = |name: &str, form: fn(f64, Option<f64>) -> String| {
        let Estimate { mean, ci95, .. } = cell.metric(name);
        form(mean, ci95)
    };
    let (p99, pooled) = match cell.saturated() {
        true => {
            (format!("saturated ({} of {} runs)", cell.saturated_runs, cell.seeds.len()), "saturated".into())
        }
        false if cell.ttft_pooled_s.count == 0 => ("none".into(), "none".into()),
        false => (text("ttft_p99_s", seconds_plus_minus), seconds(cell.ttft_pooled_s.p99)),
    };
    write!(
        out,
        "| {} | {} | {} | {} | {p99} | {pooled} | {} | {} ({}) |",
        escape(&cell.policy),
        text("served_hit", percent_plus_minus),
        text("imbalance_requests", ratio_plus_minus),
        text("imbalance_busy", ratio_plus_minus),
        count(cell.ttft_pooled_s.count),
        count(cell.failed),
        percent(cell.failed_share()),
    )
}
