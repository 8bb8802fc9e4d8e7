//! `report.md`: the answer first, then the figures it rests on, how to read them, how to reproduce them, and their limits.

mod answer;
mod capacity;
mod claims;
mod differences;
mod limits;
mod regimes;
mod sensitivity;
mod table;
mod variants;

use crate::record::Record;
use crate::svg::Figure;
use std::fmt::{Result, Write};

/// Renders the report of a record; `figures` are those that stand beside it.
pub fn render(record: &Record, figures: &[Figure]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut out, record, figures);
    out
}

fn write_report(out: &mut String, record: &Record, figures: &[Figure]) -> Result {
    let file = &record.file;
    writeln!(out, "# {}\n", escape(if file.title.is_empty() { &file.suite } else { &file.title }))?;
    if !record.complete() {
        answer::write_partial(out, record)?;
    }
    if file.design.variants.is_empty() {
        answer::write(out, record)?;
        writeln!(out, "{}\n", what_was_run(record))?;
        writeln!(out, "## Results\n")?;
        table::write(out, record)?;
    } else {
        sensitivity::write(out, record)?;
        regimes::write(out, record)?;
        variants::write(out, record)?;
    }
    claims::write(out, record)?;
    claims::write_published(out, record)?;
    writeln!(out, "## Figures\n")?;
    for figure in figures {
        writeln!(
            out,
            "### {}\n\n![{}]({})\n\n{}\n",
            figure.heading, figure.heading, figure.file, figure.caption
        )?;
    }
    if figures.is_empty() {
        writeln!(out, "No request finished, so there is nothing to draw.\n")?;
    }
    variants::write_details(out, record)?;
    write_definitions(out, record)?;
    write_commands(out, record)?;
    limits::write(out, record)
}

/// Engine, fleet and clock, as one sentence; nothing that differs between runs of the suite.
fn what_was_run(record: &Record) -> String {
    let Some(header) = record.runs.first().map(|run| &run.header) else {
        return "Nothing was run.".into();
    };
    let engine = match header.engine.as_str() {
        "sim" => format!("simulated steps of the cost model `{}`", header.model),
        _ => format!("the model `{}` on {}", header.model, header.device),
    };
    let blocks = format!(
        "{} KV blocks of {} tokens each",
        crate::format::count(header.kv_blocks.into()),
        header.block_tokens
    );
    let shards = if header.shards == 1 { "1 shard".into() } else { format!("{} shards", header.shards) };
    format!(
        "Run on {shards} with {blocks}, {engine}, {} clock, {} durations.",
        header.clock, header.durations
    )
}

fn write_definitions(out: &mut String, record: &Record) -> Result {
    let warmup_s = record.runs.first().map_or(0.0, |run| run.header.warmup_s);
    let after = if warmup_s > 0.0 { format!(" after a warm-up of {warmup_s} s") } else { String::new() };
    writeln!(out, "## Definitions\n")?;
    writeln!(
        out,
        "- **Served hit**: cached prompt tokens / prompt tokens of the requests that finished{after}, counted in the engine's cache."
    )?;
    writeln!(
        out,
        "- **Imbalance**: max / mean over shards of finished requests or of time spent in steps, weighted by uptime; 1 is perfect."
    )?;
    writeln!(
        out,
        "- **TTFT**: from the intended arrival to the first token. Its p99 is taken over the requests that finished; failed ones stand beside it."
    )?;
    writeln!(out, "- **Pooled**: the percentile over the requests of all seeds taken together.")?;
    writeln!(
        out,
        "- **±**: half the 95 % confidence interval of the mean over seeds (Student's t). A difference is paired by seed; *within noise* means that its interval holds zero."
    )?;
    writeln!(
        out,
        "- **Saturated**: more than 5 % of the requests failed, or a queue still grew when the last request arrived. Its latencies are not quoted."
    )?;
    writeln!(out, "- **Verdict**: {}\n", if record.file.capacity.is_empty() { BY_P99 } else { BY_CAPACITY })?;
    writeln!(out, "All policies are reimplementations of their published rules under one harness.\n")
}

const BY_P99: &str = "by the p99 of TTFT against the baseline, a tie where the difference is within noise; a saturated policy loses to one that is not.";

const BY_CAPACITY: &str = "by the capacity under the first objective against the baseline, a tie where the difference is within noise; where the ends of the ladder hide what it hangs on, there is none. At a single rate it is by the p99 of TTFT, and a saturated policy loses to one that is not.";

fn write_commands(out: &mut String, record: &Record) -> Result {
    if record.file.commands.is_empty() {
        return Ok(());
    }
    writeln!(out, "## How to reproduce\n\n```sh")?;
    for command in &record.file.commands {
        writeln!(out, "{command}")?;
    }
    writeln!(out, "```\n")?;
    let measured = record.runs.iter().any(|run| run.header.durations == "measured");
    let same = match measured {
        true => {
            "Step times are measured, so latencies differ a little from run to run; hits and counts may follow them."
        }
        false => {
            "Step times come from the cost model: the same commands give the same bytes in every file but `run.json`."
        }
    };
    writeln!(out, "{same}\n")
}

/// Text that Markdown shall show as it is.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '|' | '<' | '>' | '[' | ']' | '#' => safe.extend(['\\', c]),
            '\n' | '\r' => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
