//! Reports of runs, on disk.

use anyhow::Context;
use cr_replay::Outcome;
use cr_report::files;
use cr_report::provenance::Provenance;
use cr_report::record::SuiteReport;
use cr_report::run::RunReport;
use cr_report::svg::FIGURES;
use cr_report::text;
use cr_report::write::{write_provenance, write_report};
use std::path::Path;
use std::time::SystemTime;

/// Makes the folder, so that one that cannot be written is told before any work.
pub(crate) fn prepare(dir: &Path) -> anyhow::Result<()> {
    cr_cli::output::make_folder(dir)?;
    // An input may lie there under the name of one of the report's files, and no other output is to.
    let figures = FIGURES.iter().map(|figure| figure.file);
    files::ALL.into_iter().chain(figures).try_for_each(|name| cr_cli::opened::plan(&dir.join(name)))
}

/// No output is written over the files of a report that is read, or over a result by itself.
pub(crate) fn reserve(path: &Path) {
    [path.to_path_buf(), path.join(files::RESULT), path.join(files::DETAIL)]
        .into_iter()
        .for_each(cr_cli::opened::reserve);
}

/// Whether a folder has the report of a suite that came to its end: half of another one does not take its place.
pub(crate) fn is_finished(dir: &Path) -> bool {
    cr_report::load_result(dir).is_ok_and(|result| result.complete())
}

/// The report of a single run.
pub(crate) fn one_run(dir: &Path, outcome: &Outcome, started: SystemTime) -> anyhow::Result<()> {
    let run = RunReport::of(&outcome.aggregator, outcome.stopped.is_none());
    let device = run.header.device.clone();
    let objective = run
        .header
        .slo
        .ttft_p99_s
        .map(|slo_s| format!("Objective: {}.", text::objective(&run.summary, slo_s)));
    let warnings = outcome.aggregator.warnings().iter();
    let warnings = warnings.map(|warning| format!("Warning, {}: {}.", warning.name, warning.detail));
    let suite = SuiteReport {
        suite: "run".into(),
        title: format!("One run under {}", run.header.policy),
        slo: run.header.slo,
        notes: objective.into_iter().chain(warnings).collect(),
        runs: vec![run],
        ..SuiteReport::default()
    };
    write(dir, &suite, &device, started)
}

/// Writes a suite's report and where it was made.
pub(crate) fn write(
    dir: &Path,
    suite: &SuiteReport,
    device: &str,
    started: SystemTime,
) -> anyhow::Result<()> {
    let mut provenance = Provenance::collect(cr_replay::GENERATOR, std::env::args(), device, started);
    let wall_s = started.elapsed().unwrap_or_default().as_secs_f64();
    provenance.wall_s.insert("total".into(), wall_s);
    let context = || format!("cannot write the report into {}", dir.display());
    write_report(dir, suite).with_context(context)?;
    write_provenance(dir, &provenance).with_context(context)?;
    Ok(())
}

/// The report's opening and its table, for the terminal: all of report.md up to its figures.
pub(crate) fn answer(dir: &Path) -> anyhow::Result<String> {
    let path = dir.join(files::REPORT);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let shown = text.split("\n## Figures").next().unwrap_or(&text);
    Ok(format!("{}\n\nThe report: {}\n", shown.trim_end(), path.display()))
}
