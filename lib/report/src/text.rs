//! The summary of one run for people, in aligned columns of plain text.

use crate::aggregate::MAX_FAILED_SHARE;
use crate::format::{count, percent, ratio, seconds, three};
use crate::objective::Objective;
use crate::summary::{Quantiles, Summary};
use std::fmt::Write;

/// Renders a summary, with a newline at the end of every line. No colour, no more than 100 columns for ordinary names.
///
/// ```
/// # use cr_report::{aggregate::Aggregator, events::Header, text};
/// let summary = Aggregator::new(&Header { policy: "flat".into(), shards: 1, ..Header::default() }).summary(false);
/// assert!(text::summary(&summary).starts_with("flat, seed 0: stopped before its end, partial figures\n"));
/// ```
pub fn summary(summary: &Summary) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_summary(&mut out, summary);
    out
}

/// Whether a run keeps the p99 of TTFT within `slo_s` seconds, in words: it does not where it is saturated.
pub fn objective(s: &Summary, slo_s: f64) -> String {
    let bound = Objective::ttft(slo_s).text();
    if s.ttft_s.count == 0 {
        return format!("{bound}: cannot be judged, no request finished in the measured window");
    }
    match (s.saturated, s.ttft_s.p99 <= slo_s) {
        (true, _) => format!("{bound}: missed, the run is saturated"),
        (false, true) => format!("{bound}: met, it is {}", seconds(s.ttft_s.p99)),
        (false, false) => format!("{bound}: missed, it is {}", seconds(s.ttft_s.p99)),
    }
}

fn write_summary(out: &mut String, s: &Summary) -> std::fmt::Result {
    let ended = if s.complete { "complete" } else { "stopped before its end, partial figures" };
    writeln!(out, "{}, seed {}: {ended}", s.policy, s.seed)?;
    let r = &s.requests;
    write!(
        out,
        "  requests    {} offered, {} completed, {} failed",
        count(r.offered),
        count(r.completed),
        count(r.failed)
    )?;
    for (n, what) in [(r.cancelled, "cancelled"), (r.interrupted, "interrupted"), (r.rerouted, "rerouted")] {
        if n > 0 {
            write!(out, ", {} {what}", count(n))?;
        }
    }
    writeln!(out)?;
    if !r.failed_by_reason.is_empty() {
        let reasons: Vec<String> =
            r.failed_by_reason.iter().map(|(reason, n)| format!("{} {reason}", count(*n))).collect();
        writeln!(out, "  failures    {}", reasons.join(", "))?;
    }
    writeln!(out, "  rate        {} QPS offered, {} achieved", three(r.offered_qps), three(r.achieved_qps))?;
    writeln!(out, "  window      {} to {}", seconds(s.window.from_s), seconds(s.window.to_s))?;
    writeln!(
        out,
        "  served hit  {} of prompt tokens ({} mean per request, {} by blocks)",
        percent(s.served_hit),
        percent(s.hit_request_mean),
        percent(s.hit_block)
    )?;
    if !s.hit_by_scope.is_empty() {
        let scopes: Vec<String> =
            s.hit_by_scope.iter().map(|(scope, share)| format!("{scope} {}", percent(*share))).collect();
        writeln!(out, "  by scope    {}", scopes.join(", "))?;
    }
    let i = &s.imbalance;
    writeln!(
        out,
        "  imbalance   {} by requests, {} by tokens, {} by busy time (max / mean)",
        ratio(i.requests),
        ratio(i.tokens),
        ratio(i.busy)
    )?;
    if i.windows.count > 0 {
        let busy = i.windows.busy;
        writeln!(
            out,
            "  in 10 s     {} p50, {} p95 by busy time over {} spans",
            ratio(busy.p50),
            ratio(busy.p95),
            i.windows.count
        )?;
    }
    write_latencies(out, s)?;
    if let Some(worst) = &s.fairness.worst_tenant {
        let (jain, times) = (three(s.fairness.jain), ratio(s.fairness.worst_ratio));
        writeln!(out, "  fairness    Jain {jain}, worst tenant {worst} at {times} times the mean TTFT")?;
        write_fairness(out, s)?;
    }
    write_caveats(out, s)
}

/// Who waits for whom, where there is more than one tenant or more than one kind of key.
fn write_fairness(out: &mut String, s: &Summary) -> std::fmt::Result {
    let f = &s.fairness;
    if let (Some(tenant), true) = (&f.worst_slowdown_tenant, f.tenants > 1) {
        let (jain, times) = (three(f.jain_slowdown), ratio(f.worst_slowdown));
        writeln!(out, "  slowdown    Jain {jain}, worst tenant {tenant} takes {times} times its service")?;
    }
    if let (Some(tenant), Some(p99_s)) = (&f.worst_p99_tenant, f.worst_p99_s) {
        writeln!(out, "  worst p99   tenant {tenant}: TTFT {}", seconds(p99_s))?;
    }
    if f.admitted.requests > 0 && f.cold.requests > 0 {
        for (name, kind) in [("admitted", &f.admitted), ("cold keys", &f.cold)] {
            writeln!(
                out,
                "  {name:<10}  {} requests, hit {}, TTFT mean {} p99 {}, e2e {} times the service",
                count(kind.requests),
                percent(kind.served_hit),
                seconds(kind.ttft_mean_s),
                seconds(kind.ttft_p99_s),
                ratio(kind.slowdown)
            )?;
        }
    }
    Ok(())
}

/// What a reader must know before quoting the figures.
fn write_caveats(out: &mut String, s: &Summary) -> std::fmt::Result {
    if s.saturated {
        let why = match crate::result::failed_share(s) > MAX_FAILED_SHARE {
            true => "more than 5 % of the requests failed",
            false => "a queue still grew when the last request arrived",
        };
        writeln!(out, "  saturated   {why}: the latencies mean nothing")?;
    }
    if s.in_sample {
        writeln!(
            out,
            "  in sample   the table was planned from a trace; if from this one, it knew what would come"
        )?;
    }
    Ok(())
}

fn write_latencies(out: &mut String, s: &Summary) -> std::fmt::Result {
    let head = ["mean", "p50", "p90", "p99", "max", "count"].map(|name| format!("{name:>9}")).concat();
    writeln!(out, "  {:<6}{head}{}", "", if s.saturated { "  (saturated)" } else { "" })?;
    for (name, q) in [("TTFT", &s.ttft_s), ("TPOT", &s.tpot_s), ("e2e", &s.e2e_s), ("queue", &s.queue_s)] {
        writeln!(out, "  {name:<6}{}", columns(q))?;
    }
    Ok(())
}

fn columns(q: &Quantiles) -> String {
    if q.count == 0 {
        return format!("{:>54}", "no values");
    }
    let times = [q.mean, q.p50, q.p90, q.p99, q.max].map(|value| format!("{:>9}", seconds(value))).concat();
    format!("{times}{:>9}", count(q.count))
}
