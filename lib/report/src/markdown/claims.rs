//! The claim-to-evidence map, and published values beside ours.

use super::escape;
use crate::published::deviation_text;
use crate::record::Record;
use std::fmt::{Result, Write};

/// A row a claim; nothing without claims.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let (claims, evidence) = (&record.file.design.claims, &record.file.evidence);
    if claims.is_empty() {
        return Ok(());
    }
    let holding = evidence.iter().filter(|evidence| evidence.holds == Some(true)).count();
    writeln!(out, "## Claims and evidence\n\n{holding} of {} claims hold.\n", claims.len())?;
    writeln!(out, "| claim | | evidence, means over seeds | seeds | caveat |\n|---|---|---|---:|---|")?;
    for (claim, evidence) in claims.iter().zip(evidence) {
        writeln!(
            out,
            "| {} | **{}** | {} | {} | {} |",
            escape(&claim.text),
            evidence.word(),
            escape(&evidence.said.join("; ")),
            evidence.seeds,
            escape(claim.caveat.as_deref().unwrap_or_default()),
        )?;
    }
    writeln!(out)
}

/// A row a published value; nothing without any.
pub(super) fn write_published(out: &mut String, record: &Record) -> Result {
    let (published, beside) = (&record.file.design.published, &record.file.beside);
    if published.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Beside the published values\n")?;
    writeln!(out, "| policy | figure | published | ours | deviation |\n|---|---|---:|---:|---:|")?;
    for (published, beside) in published.iter().zip(beside) {
        let ours = if beside.ours.is_empty() { "not measured" } else { &beside.ours };
        writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            escape(&published.policy),
            escape(&published.what()),
            published.text(),
            ours,
            deviation_text(published, beside),
        )?;
    }
    writeln!(
        out,
        "\nDeviations are of our mean from the published one; of a served hit in percentage points.\n"
    )
}
