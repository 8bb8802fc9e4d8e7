//! Describing a trace.

use crate::cli::{StatsArgs, StatsFormat};
use crate::{input, plot, stats_table};
use cr_cli::signals::Interrupt;
use cr_cli::{CommonArgs, Exit, InputContext, Output, Progress, bad_input};
use cr_trace::ahead::ReadAhead;
use cr_trace::stats::{CURVE_SAMPLES, Fleet, TraceStats};
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
    let fleet = match (args.shards, args.kv_tokens) {
        (Some(shards), Some(kv_tokens)) => Some(Fleet { shards, kv_tokens }),
        _ => None,
    };
    let mut stats = TraceStats::new(block_tokens)
        .with_fleet(fleet)
        .with_curve(block_tokens, args.curve.then_some(CURVE_SAMPLES));
    let interrupt = Interrupt::install()?;
    for (index, request) in ReadAhead::new(source.requests)?.enumerate() {
        stats.observe(&request.bad_input()?);
        if index % 1024 == 0 {
            progress.set(index as u64);
            if interrupt.is_set() {
                break;
            }
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
        StatsFormat::Table => stats_table::write(&mut output, &report)?,
    }
    output.finish()?;
    if let Some(path) = &args.plot {
        let svg = plot::draw(&report, &stats.key_counts())
            .map_err(|what| anyhow::anyhow!("cannot draw {path}: {what}"))?;
        let mut output = Output::create(Some(path))?;
        output.write_all(svg.as_bytes())?;
        output.finish()?;
    }
    if interrupt.is_set() {
        common
            .note(format!("interrupted: these are the statistics of the first {} requests", report.requests));
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}
