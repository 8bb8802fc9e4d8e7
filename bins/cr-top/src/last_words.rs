//! What is printed in the end: what the runs came down to, and what to know of that.

use cr_report::events::Gate;
use cr_report::format::rate;
use cr_report::summary::Summary;
use std::fmt::Write;

use crate::figures::count;
use crate::state::findings::Finding;
use crate::state::live::{Live, Phase};
use crate::state::log::Kind;

/// The texts of one stream for people: its runs, oldest first, and what a gate says of them.
pub fn texts(live: &Live) -> Vec<String> {
    let mut texts = Vec::new();
    for past in &live.earlier {
        texts.push(summary(&past.summary) + &warnings(&past.findings));
        texts.extend(past.gate.as_ref().map(verdict));
    }
    if let Some(own) = &live.summary {
        texts.push(summary(own) + &warnings(&live.findings) + &faults(live));
    }
    texts.extend(live.gate.as_ref().map(verdict));
    texts
}

/// The summaries of one stream, oldest first, a line of JSON each.
///
/// # Errors
/// A summary that JSON cannot hold.
pub fn json(live: &Live) -> serde_json::Result<Vec<String>> {
    let earlier = live.earlier.iter().map(|past| &past.summary);
    let line = |summary| Ok(serde_json::to_string(summary)? + "\n");
    earlier.chain(&live.summary).map(line).collect()
}

/// The summary in words. Runs of one stream differ in variant and rate, so where it has them they stand in its first line.
fn summary(summary: &Summary) -> String {
    let text = cr_report::text::summary(summary);
    let (short, mut name) =
        (format!("{}, seed {}", summary.policy, summary.seed), summary.policy.to_string());
    if let Some(variant) = &summary.variant {
        name.push_str(&format!(", {variant}"));
    }
    if let Some(qps) = summary.qps {
        name.push_str(&format!(", {} QPS", rate(qps)));
    }
    match text.strip_prefix(&short) {
        Some(rest) => format!("{name}, seed {}{rest}", summary.seed),
        None => text,
    }
}

/// The named warnings with their remedies.
fn warnings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { name, detail } in findings {
        // Writing to a string cannot fail.
        let _ = write!(text, "  warning     {name}: {detail}\n              {}\n", name.remedy());
    }
    text
}

/// What is wrong with the stream itself.
fn faults(live: &Live) -> String {
    let mut text = String::new();
    if live.phase == Phase::CutShort {
        text.push_str("incomplete: the stream ended without a summary\n");
    }
    if live.bad_lines > 0 {
        let last = live.log.last(Kind::BadLine).map_or("", |entry| entry.text.as_str());
        text.push_str(&format!("bad lines: {}, the last one {last}\n", count(live.bad_lines)));
    }
    text
}

/// What a gate says, as it says it itself.
fn verdict(gate: &Gate) -> String {
    let Gate { decision, baseline, candidate, reasons } = gate;
    let reasons: String = reasons.iter().map(|reason| format!("  - {reason}\n")).collect();
    format!("{}: {candidate} instead of {baseline}\n{reasons}", decision.to_uppercase())
}
