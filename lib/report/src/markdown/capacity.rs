//! Capacities: a row a policy, a column an objective.

use super::escape;
use crate::bounds::Hidden;
use crate::capacity::Capacity;
use crate::format::{plus_minus, rate};
use crate::record::Record;
use crate::stats::Difference;
use std::fmt::{Result, Write};

/// The table; nothing without a ladder or an objective.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    if record.file.capacity.is_empty() {
        return Ok(());
    }
    let objectives = record.file.objectives();
    let doubted = record.file.capacity.iter().any(Capacity::non_monotone);
    let (head, rule) = if doubted { (" note |", "---|") } else { ("", "") };
    let columns: String = objectives.iter().map(|objective| format!(" {} |", objective.text())).collect();
    writeln!(
        out,
        "### Capacity\n\nIn requests per second, mean over seeds.\n\n| policy |{columns}{} seeds |{head}",
        against_head(record)
    )?;
    let against = if record.baseline().is_some() { "---:|" } else { "" };
    writeln!(out, "|---|{}{against}---:|{rule}", "---:|".repeat(objectives.len()))?;
    for policy in record.policies() {
        let own: Vec<Option<&Capacity>> =
            objectives.iter().map(|&objective| record.capacity(policy, objective)).collect();
        let quoted: String =
            own.iter().map(|c| format!(" {} |", c.map(Capacity::quoted).unwrap_or_default())).collect();
        let seeds = own.iter().flatten().map(|c| c.seeds.len()).max().unwrap_or(0);
        write!(out, "| {} |{quoted}{} {seeds} |", escape(policy), against_cell(record, policy))?;
        match (doubted, own.iter().flatten().any(|c| c.non_monotone())) {
            (true, true) => writeln!(out, " not monotone: a rate above a failed one passes |")?,
            (true, false) => writeln!(out, " |")?,
            _ => writeln!(out)?,
        }
    }
    writeln!(out)
}

fn against_head(record: &Record) -> String {
    let name = |name: &str| format!(" first objective, against {} |", escape(name));
    record.baseline().map(name).unwrap_or_default()
}

/// The paired difference from the baseline under the first objective, a bound where either is censored.
fn against_cell(record: &Record, policy: &str) -> String {
    let (Some(baseline), Some(objective)) = (record.baseline(), record.objective()) else {
        return String::new();
    };
    let Some((own, other)) = record.capacity(policy, objective).zip(record.capacity(baseline, objective))
    else {
        return " |".into();
    };
    if policy == baseline {
        return " baseline |".into();
    }
    format!(" {} |", difference(own, other))
}

fn difference(own: &Capacity, other: &Capacity) -> String {
    let difference = Difference::of(&own.pairs(other));
    let text = plus_minus(difference.mean, difference.ci95, rate);
    let sign = if difference.mean > 0.0 { "+" } else { "" };
    match (Hidden::of(own, other).sign(), difference.ci95) {
        _ if difference.n == 0 => "unknown".into(),
        (None, _) => "unknown (censored)".into(),
        (Some(""), None) => format!("{sign}{text} (one seed)"),
        (Some(""), _) if difference.within_noise => format!("{sign}{text} (within noise)"),
        (Some(""), _) => format!("{sign}{text}"),
        // The interval is that of the counted values, and says nothing of the true ones.
        (Some(bound), _) => format!("{bound}{sign}{} (censored)", rate(difference.mean)),
    }
}
