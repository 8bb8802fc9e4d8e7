//! Paired differences against the baseline, and which of them are within noise.

use super::escape;
use crate::format::{plus_minus, ratio, seconds_plus_minus};
use crate::record::Record;
use crate::result::Aggregate;
use crate::stats::Difference;
use std::fmt::{Result, Write};

/// Writes a difference and the half width of its interval.
type Form = fn(f64, Option<f64>) -> String;

/// What is compared: the metric, its heading, and how a difference is written.
const SHOWN: [(&str, &str, Form); 5] = [
    ("served_hit", "served hit, points", points),
    ("imbalance_requests", "imbalance, requests", ratios),
    ("imbalance_busy", "imbalance, busy time", ratios),
    ("ttft_p50_s", "p50 TTFT", seconds_plus_minus),
    ("ttft_p99_s", "p99 TTFT", seconds_plus_minus),
];

fn points(share: f64, half: Option<f64>) -> String {
    plus_minus(share * 100.0, half.map(|half| half * 100.0), |value| format!("{value:.1}"))
}

fn ratios(value: f64, half: Option<f64>) -> String {
    plus_minus(value, half, ratio)
}

/// The table at the rate of comparison; nothing without a baseline or without another policy.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let Some(name) = record.baseline() else {
        return Ok(());
    };
    let reference = record.reference_rate();
    let Some(baseline) = record.cell(name, reference) else {
        return Ok(());
    };
    let cells: Vec<&Aggregate> =
        record.cells_at(reference).into_iter().filter(|cell| !cell.against_baseline.is_empty()).collect();
    if cells.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "Differences from {}, paired by seed, with their 95 % confidence intervals:\n",
        escape(name)
    )?;
    writeln!(out, "| policy |{}", SHOWN.map(|(_, heading, _)| format!(" {heading} |")).concat())?;
    writeln!(out, "|---|{}", "---:|".repeat(SHOWN.len()))?;
    for cell in cells {
        write!(out, "| {} |", escape(&cell.policy))?;
        for (metric, _, form) in SHOWN {
            let latency = metric.starts_with("ttft");
            let text = match cell.against_baseline.get(metric) {
                _ if latency && (cell.saturated() || baseline.saturated()) => "saturated".into(),
                Some(difference) => worded(difference, form),
                None => String::new(),
            };
            write!(out, " {text} |")?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn worded(difference: &Difference, form: Form) -> String {
    let sign = if difference.mean > 0.0 { "+" } else { "" };
    let text = form(difference.mean, difference.ci95);
    match (difference.ci95, difference.within_noise) {
        (None, _) => format!("{sign}{text} (one seed)"),
        (_, true) => format!("{sign}{text} (within noise)"),
        _ => format!("{sign}{text}"),
    }
}
