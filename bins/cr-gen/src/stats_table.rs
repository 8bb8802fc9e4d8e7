//! The statistics of a trace as a table for people.

use cr_trace::stats::{LengthReport, StatsReport};
use std::io::{Result, Write};

/// Writes all that the report holds.
pub(crate) fn write(out: &mut impl Write, report: &StatsReport) -> Result<()> {
    writeln!(out, "requests        {}", grouped(report.requests))?;
    writeln!(out, "span            {:.1} s, {:.2} requests/s", report.span_s, report.qps)?;
    keys(out, report)?;
    writeln!(out, "tokens               mean      p50      p90      p99      max          sum")?;
    lengths(out, "input", &report.input_tokens)?;
    lengths(out, "output", &report.output_tokens)?;
    reuse(out, report)?;
    reappear(out, report)?;
    curve(out, report)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn keys(out: &mut impl Write, report: &StatsReport) -> Result<()> {
    let keys = &report.keys;
    writeln!(out, "keys            {}, {} with one request", grouped(keys.count), grouped(keys.singletons))?;
    writeln!(out, "  gini          {:.3}", keys.gini)?;
    if let Some(key) = &keys.top_key {
        writeln!(out, "  top key       {key}, {:.2} % of the requests", keys.top_key_share * 100.0)?;
    }
    for top in &keys.top {
        writeln!(out, "  top {:>3.0} %     {} of the requests", top.keys * 100.0, percent(top.requests))?;
    }
    for (name, symbol, fit) in [("zipf", "alpha", keys.zipf), ("lognormal", "sigma", keys.lognormal)] {
        if let Some(fit) = fit {
            let gap = fit.gap * 100.0;
            writeln!(
                out,
                "  {name:<13} {symbol} {:.3}, off by at most {gap:.1} % of the requests",
                fit.parameter
            )?;
        }
    }
    if let Some(gaps) = &keys.gaps {
        writeln!(
            out,
            "  gaps          cv {:.2} on average, median {:.2}, over {} keys with 10 gaps and more",
            gaps.cv_mean,
            gaps.cv_median,
            grouped(gaps.keys)
        )?;
    }
    Ok(())
}

fn lengths(out: &mut impl Write, name: &str, report: &LengthReport) -> Result<()> {
    let LengthReport { sum, mean, p50, p90, p99, max, .. } = report;
    writeln!(out, "  {name:<12} {mean:>10.1} {p50:>8} {p90:>8} {p99:>8} {max:>8} {:>12}", grouped(*sum))
}

fn reuse(out: &mut impl Write, report: &StatsReport) -> Result<()> {
    let reuse = &report.reuse;
    writeln!(out, "reuse with an unlimited cache, blocks of {} tokens", reuse.block_tokens)?;
    for (name, share, what) in [
        ("by blocks", reuse.by_blocks, "blocks seen before / blocks"),
        ("by tokens", reuse.by_tokens, "their tokens, clamped to the prompt / prompt tokens"),
        ("per request", reuse.request_mean, "mean of that ratio over requests"),
        ("engine", reuse.engine, "full blocks only, one token always computed, answers cached too"),
        ("exact", reuse.exact_tokens, "tokens seen before, ignoring block borders"),
        ("per key", reuse.by_tokens_per_key, "by tokens, had every key a cache of its own"),
    ] {
        writeln!(out, "  {name:<13} {:>7}  {what}", percent(share))?;
    }
    let within = percent(reuse.within_keys);
    writeln!(out, "  {:<13} {within:>7}  of the reuse by tokens is among requests of one key", "")?;
    writeln!(
        out,
        "  depth         {:.1} leading segments shared on average, at most {}; {} distinct in all",
        reuse.shared_segments_mean,
        reuse.shared_segments_max,
        grouped(reuse.tree_nodes)
    )?;
    if !reuse.complete {
        writeln!(
            out,
            "  reuse is at least this much: what comes back only after {} other segments counts as new",
            grouped(reuse.remembered_segments)
        )?;
    }
    Ok(())
}

fn reappear(out: &mut impl Write, report: &StatsReport) -> Result<()> {
    let Some(reappear) = &report.reappear else { return Ok(()) };
    let (shards, tokens) = (reappear.fleet.shards, grouped(reappear.fleet.kv_tokens));
    writeln!(out, "prefixes that come back in time, {shards} shards of {tokens} tokens")?;
    for (name, side) in [("spread", &reappear.spread), ("pinned", &reappear.pinned)] {
        let (requests, tokens) = (percent(side.requests), percent(side.tokens));
        writeln!(
            out,
            "  {name:<13} {requests:>7}  of the requests with anything to find; {tokens} of all tokens"
        )?;
    }
    Ok(())
}

fn curve(out: &mut impl Write, report: &StatsReport) -> Result<()> {
    let Some(curve) = &report.curve else { return Ok(()) };
    let how = if curve.sampled < 1.0 {
        format!("sampled 1 block in {:.0}", 1.0 / curve.sampled)
    } else {
        "exact".into()
    };
    writeln!(out, "reuse by blocks against the size of one cache ({how})")?;
    // Four points a doubling are for the plot; one is enough to read.
    let mut next = 0;
    for (index, point) in curve.points.iter().enumerate() {
        if point.cache_tokens >= next || index + 1 == curve.points.len() {
            writeln!(out, "  {:>13} tokens {:>7}", grouped(point.cache_tokens), percent(point.hit))?;
            next = point.cache_tokens.saturating_mul(2);
        }
    }
    Ok(())
}

/// Digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
