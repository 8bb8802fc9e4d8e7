//! The tables of a sensitivity analysis: each parameter by itself, the verdict and the ranking at every value.

use super::escape;
use crate::format::ratio;
use crate::record::Record;
use crate::sensitivity::{Setting, of_record};
use std::fmt::{Result, Write};

/// Nothing for records that are no sensitivity analysis.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let Some(sensitivity) = of_record(record) else { return Ok(()) };
    let base = &sensitivity.base;
    let flips: Vec<String> = sensitivity
        .parameters
        .iter()
        .flat_map(|parameter| parameter.settings.iter().map(move |setting| (parameter, setting)))
        .filter(|(_, setting)| setting.change(base).starts_with("verdict"))
        .map(|(parameter, setting)| {
            format!("{} {} ({})", parameter.name, setting.point, setting.outcome.word())
        })
        .collect();
    writeln!(out, "## Sensitivity\n")?;
    match flips.as_slice() {
        [] => writeln!(out, "The verdict is {} at every value of every parameter.\n", base.outcome.word())?,
        flips => writeln!(
            out,
            "As the suite stands the verdict is {}; it is another at: {}.\n",
            base.outcome.word(),
            escape(&flips.join(", "))
        )?,
    }
    let (own, other) = (record.candidate().unwrap_or_default(), record.baseline().unwrap_or_default());
    writeln!(
        out,
        "| parameter | value | {} / {} | verdict | ranking, best first | against the suite as it stands |",
        escape(own),
        escape(other)
    )?;
    writeln!(out, "|---|---|---:|---|---|---|")?;
    write_row(out, "as the suite stands", base, base)?;
    for parameter in &sensitivity.parameters {
        for setting in &parameter.settings {
            write_row(out, &parameter.name, setting, base)?;
        }
    }
    writeln!(
        out,
        "\nThe ratio is of capacities under the first objective, or of the baseline's p99 TTFT to the candidate's where there is no ladder; *bound* where either lies beyond the ladder.\n"
    )
}

fn write_row(out: &mut String, name: &str, setting: &Setting, base: &Setting) -> Result {
    let point = if std::ptr::eq(setting, base) { "" } else { &setting.point };
    let value = match setting.ratio {
        Some((value, true)) => format!("{} (bound)", ratio(value)),
        Some((value, false)) => ratio(value),
        None => "unknown".into(),
    };
    let ranking: Vec<String> =
        setting.ranking.iter().map(|(policy, value)| format!("{} {value}", escape(policy))).collect();
    writeln!(
        out,
        "| {} | {} | {value} | {} | {} | {} |",
        escape(name),
        escape(point),
        setting.outcome.word(),
        ranking.join(", "),
        setting.change(base)
    )
}
