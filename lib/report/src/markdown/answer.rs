//! The first lines: what a reader takes away who reads no further.

use super::escape;
use crate::format::{percent, rate, ratio, seconds};
use crate::record::Record;
use crate::result::Aggregate;
use crate::verdict::{judge, judge_capacity};
use std::fmt::{Result, Write};

/// Two sentences and the verdict.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let reference = record.reference_rate();
    let Some(cell) = record.candidate().and_then(|name| record.cell(name, reference)) else {
        return writeln!(out, "No policy was run, so there is no answer.\n");
    };
    let at = reference.map(|qps| format!(" at {} QPS", rate(qps))).unwrap_or_default();
    match record.baseline().and_then(|name| record.cell(name, reference)) {
        Some(baseline) if baseline.policy != cell.policy => {
            writeln!(out, "{}\n", compared(cell, baseline, &at))?;
            write_verdicts(out, record, cell, baseline)
        }
        _ => writeln!(out, "{}\n", alone(cell, &at)),
    }
}

/// By capacity where there is a ladder with an objective, and by the p99 at the reference rate.
fn write_verdicts(out: &mut String, record: &Record, cell: &Aggregate, baseline: &Aggregate) -> Result {
    let capacity = |policy: &str| record.capacity(policy, record.objective()?);
    let p99 = judge(cell, baseline);
    let Some((policy, other)) = capacity(&cell.policy).zip(capacity(&baseline.policy)) else {
        return writeln!(out, "**Verdict: {}.** {}.\n", p99.outcome.word(), escape(&sentence(&p99.reason)));
    };
    let verdict = judge_capacity(policy, other);
    writeln!(out, "**Verdict: {}.** {}.\n", verdict.outcome.word(), escape(&sentence(&verdict.reason)))?;
    let at = cell.qps.map(|qps| format!("At {} QPS", rate(qps))).unwrap_or_default();
    writeln!(out, "{at}: {}. {}.\n", p99.outcome.word(), escape(&sentence(&p99.reason)))
}

fn compared(cell: &Aggregate, baseline: &Aggregate, at: &str) -> String {
    let value = |cell: &Aggregate, name: &str| cell.metric(name).mean;
    let (policy, other) = (escape(&cell.policy), escape(&baseline.policy));
    format!(
        "With **{policy}**{at} the caches serve {} of the prompt tokens ({other}: {}), and the busiest shard serves {} times the mean number of requests ({other}: {}). \
         The p99 of TTFT{} is {} with {policy} and {} with {other}.",
        percent(value(cell, "served_hit")),
        percent(value(baseline, "served_hit")),
        ratio(value(cell, "imbalance_requests")),
        ratio(value(baseline, "imbalance_requests")),
        over_seeds(cell),
        pooled(cell),
        pooled(baseline),
    )
}

fn alone(cell: &Aggregate, at: &str) -> String {
    format!(
        "With **{}**{at} the caches serve {} of the prompt tokens, and the busiest shard serves {} times the mean number of requests. The p99 of TTFT{} is {}; it is held against no baseline, so there is no verdict.",
        escape(&cell.policy),
        percent(cell.metric("served_hit").mean),
        ratio(cell.metric("imbalance_requests").mean),
        over_seeds(cell),
        pooled(cell)
    )
}

fn over_seeds(cell: &Aggregate) -> &'static str {
    if cell.seeds.len() > 1 { " over all seeds" } else { "" }
}

/// The pooled p99, or the word in its place.
fn pooled(cell: &Aggregate) -> String {
    match cell {
        _ if cell.saturated() => "not quoted (saturated)".into(),
        _ if cell.ttft_pooled_s.count == 0 => "unknown (nothing finished)".into(),
        _ => seconds(cell.ttft_pooled_s.p99),
    }
}

/// With a capital, unless it starts with the name of a policy.
fn sentence(text: &str) -> String {
    for start in ["both ", "one ", "capacity "] {
        if text.starts_with(start) {
            return text[..1].to_uppercase() + &text[1..];
        }
    }
    text.to_owned()
}

/// Said at the very top where the suite did not come to its end.
pub(super) fn write_partial(out: &mut String, record: &Record) -> Result {
    let made = record.file.runs.len() as u64;
    let all = record.file.expected_runs.unwrap_or(made).max(made);
    let stopped = record.file.runs.iter().filter(|run| !run.complete).count();
    let what = match (made, stopped) {
        (0, _) => "no run came to its end".into(),
        (_, 0) => format!("{made} of {all} runs were made"),
        _ if made == all => format!("{stopped} of {all} runs did not come to their end"),
        _ => format!("{made} of {all} runs were made, and {stopped} did not come to their end"),
    };
    writeln!(
        out,
        "> **Partial report.** The suite is not over: {what}. Figures cover what was measured until then.\n"
    )
}
