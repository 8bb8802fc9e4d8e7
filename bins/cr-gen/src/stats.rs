//! Describing a trace.

use crate::cli::{StatsArgs, StatsFormat};
use crate::input;
use cr_cli::{CommonArgs, Exit, InputContext, Output, Progress, bad_input};
use cr_trace::stats::{LengthReport, StatsReport, TraceStats};
use std::io::Write;

/// The engine's block size, in which reuse of native traces is counted unless told otherwise.
const ENGINE_BLOCK_TOKENS: u32 = 16;

/// Reads a trace and prints what it is like.
pub(crate) fn run(args: &StatsArgs, common: &CommonArgs) -> anyhow::Result<Exit> {
    let source = input::open(&args.file, &args.input)?;
    let block_tokens = args.input.block_tokens.or(source.block_tokens).unwrap_or(ENGINE_BLOCK_TOKENS);
    let mut output = Output::create(Some(&args.output))?;
    let known = source.header.as_ref().and_then(|header| header.requests);
    let progress = Progress::new(common, "reading", "requests", known);
    let mut stats = TraceStats::new(block_tokens);
    for (index, request) in source.requests.enumerate() {
        stats.observe(&request.bad_input()?);
        if index % 1024 == 0 {
            progress.set(index as u64);
        }
    }
    progress.finish();
    input::tell_skipped(&source.tolerance, common);
    let report = stats.report();
    if report.requests == 0 {
        return Err(bad_input(format!("{}: the trace has no requests", args.file)));
    }
    match args.format {
        StatsFormat::Json => {
            serde_json::to_writer_pretty(&mut output, &report)?;
            writeln!(output)?;
        }
        StatsFormat::Table => table(&mut output, &report)?,
    }
    output.finish()?;
    Ok(Exit::Done)
}

fn table(out: &mut impl Write, report: &StatsReport) -> std::io::Result<()> {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    writeln!(out, "requests        {}", grouped(report.requests))?;
    writeln!(out, "span            {:.1} s, {:.2} requests/s", report.span_s, report.qps)?;
    let keys = &report.keys;
    writeln!(out, "keys            {}, {} with one request", grouped(keys.count), grouped(keys.singletons))?;
    writeln!(out, "  gini          {:.3}", keys.gini)?;
    if let Some(key) = &keys.top_key {
        writeln!(out, "  top key       {key}, {:.2} % of the requests", keys.top_key_share * 100.0)?;
    }
    for top in &keys.top {
        writeln!(out, "  top {:>3.0} %     {} of the requests", top.keys * 100.0, percent(top.requests))?;
    }
    writeln!(out, "tokens               mean      p50      p90      p99      max          sum")?;
    lengths(out, "input", &report.input_tokens)?;
    lengths(out, "output", &report.output_tokens)?;
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
    writeln!(
        out,
        "  {:<13} {:>7}  of the reuse by tokens is among requests of one key",
        "",
        percent(reuse.within_keys)
    )
}

fn lengths(out: &mut impl Write, name: &str, report: &LengthReport) -> std::io::Result<()> {
    let LengthReport { sum, mean, p50, p90, p99, max, .. } = report;
    writeln!(out, "  {name:<12} {mean:>10.1} {p50:>8} {p90:>8} {p99:>8} {max:>8} {:>12}", grouped(*sum))
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
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
