//! The first lines: what a reader takes away who reads no further.

use super::escape;
use crate::format::{percent, ratio, seconds};
use crate::record::Record;
use crate::result::Aggregate;
use crate::verdict::judge;
use std::fmt::{Result, Write};

/// Two sentences and the verdict.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let rate = record.reference_rate();
    let Some(cell) = record.candidate().and_then(|name| record.cell(name, rate)) else {
        return writeln!(out, "No policy was run, so there is no answer.\n");
    };
    let at = rate.map(|qps| format!(" at {qps} QPS")).unwrap_or_default();
    match record.baseline().and_then(|name| record.cell(name, rate)) {
        Some(baseline) if baseline.policy != cell.policy => {
            writeln!(out, "{}\n", compared(cell, baseline, &at))?;
            let verdict = judge(cell, baseline);
            writeln!(
                out,
                "**Verdict: {}.** {}.\n",
                verdict.outcome.word(),
                escape(&sentence(&verdict.reason))
            )
        }
        _ => writeln!(out, "{}\n", alone(cell, &at)),
    }
}

fn compared(cell: &Aggregate, baseline: &Aggregate, at: &str) -> String {
    let value = |cell: &Aggregate, name: &str| cell.metric(name).mean;
    let (policy, other) = (escape(&cell.policy), escape(&baseline.policy));
    format!(
        "With **{policy}**{at} the caches serve {} of the prompt tokens ({other}: {}), and the busiest shard does {} times the mean ({other}: {}). \
         The p99 of TTFT over all seeds is {} with {policy} and {} with {other}.",
        percent(value(cell, "served_hit")),
        percent(value(baseline, "served_hit")),
        ratio(value(cell, "imbalance_busy")),
        ratio(value(baseline, "imbalance_busy")),
        pooled(cell),
        pooled(baseline),
    )
}

fn alone(cell: &Aggregate, at: &str) -> String {
    format!(
        "With **{}**{at} the caches serve {} of the prompt tokens, and the busiest shard does {} times the mean. The p99 of TTFT over all \
         seeds is {}; no baseline was run, so there is no verdict.",
        escape(&cell.policy),
        percent(cell.metric("served_hit").mean),
        ratio(cell.metric("imbalance_busy").mean),
        pooled(cell)
    )
}

/// The pooled p99, or the word in its place.
fn pooled(cell: &Aggregate) -> String {
    match cell {
        _ if cell.saturated() => "not quoted (saturated)".into(),
        _ if cell.ttft_pooled_s.count == 0 => "unknown (nothing finished)".into(),
        _ => seconds(cell.ttft_pooled_s.p99),
    }
}

/// With a capital, unless it starts with a name.
fn sentence(text: &str) -> String {
    match text.strip_prefix("both ") {
        Some(rest) => format!("Both {rest}"),
        None => text.to_owned(),
    }
}

/// Said at the very top where the suite did not come to its end.
pub(super) fn write_partial(out: &mut String, record: &Record) -> Result {
    let runs = record.file.runs.len();
    let stopped = record.file.runs.iter().filter(|run| !run.complete).count();
    let what = match (runs, stopped) {
        (0, _) => "no run came to its end".into(),
        (runs, 0) => format!("{runs} runs ended, others are missing"),
        (runs, stopped) => format!("{stopped} of {runs} runs did not come to their end"),
    };
    writeln!(
        out,
        "> **Partial report.** The suite was stopped: {what}. Figures cover what was measured until then.\n"
    )
}
