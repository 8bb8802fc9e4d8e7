//! Reads a report's folder back, and rebuilds the report from it.

use crate::aggregate::Aggregator;
use crate::events::Event;
use crate::files;
use crate::reader::{EventReader, ReadError};
use crate::record::{Record, RecordError, Stored, SuiteReport, result_file};
use crate::result::ResultFile;
use crate::run::RunReport;
use crate::write::{ReportError, write_pages, write_stored};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Reads the runs of a stream, one after the other. A run counts as complete where it ends with a summary that says so.
///
/// # Errors
/// Where a line is no event, or the first is no header.
pub fn read_runs<R: BufRead>(mut reader: EventReader<R>) -> Result<Vec<RunReport>, ReadError> {
    let mut runs = Vec::new();
    let mut aggregator = Aggregator::new(&reader.header()?);
    let mut complete = false;
    while let Some(event) = reader.next_event()? {
        match &event {
            Event::Header(header) => {
                runs.push(RunReport::of(&aggregator, complete));
                (aggregator, complete) = (Aggregator::new(header), false);
            }
            Event::Summary(summary) => complete = summary.complete,
            event => aggregator.observe(event),
        }
    }
    runs.push(RunReport::of(&aggregator, complete));
    Ok(runs)
}

/// Reads `result.json`, given as itself or as its folder.
///
/// # Errors
/// Where there is none or it cannot be read, is no valid JSON or of another schema.
pub fn load_result(path: &Path) -> Result<ResultFile, ReportError> {
    let file = if path.is_dir() { path.join(files::RESULT) } else { path.to_owned() };
    let Some(text) = read(&file)? else { return Err(no_report(path, "no result.json")) };
    Ok(result_file(&file.display().to_string(), &text)?)
}

/// What a folder lacks that would make it a report.
fn no_report(dir: &Path, lacks: &str) -> ReportError {
    let what = format!("{lacks}; a report is made by a run or a sweep with --report");
    RecordError::Content { file: dir.display().to_string(), what }.into()
}

/// Reads a report's folder: `result.json` with `detail.json`, or with the events of its runs (`*.ndjson`, also in a folder `events`)
/// where `detail.json` is missing. With events alone, they are the runs.
///
/// # Errors
/// Where a file cannot be read or used, or a run of `result.json` has no events.
pub fn load(dir: &Path) -> Result<Stored, ReportError> {
    let (result, detail) = (read(&dir.join(files::RESULT))?, read(&dir.join(files::DETAIL))?);
    match (result, detail) {
        (Some(result), Some(detail)) => Ok(Stored::of(Record::from_json(&result, &detail)?, detail)?),
        (Some(result), None) => {
            let file = result_file(&dir.join(files::RESULT).display().to_string(), &result)?;
            let runs = in_order(dir, &file, runs_in(dir)?)?;
            Ok(Stored::new(&suite_of(file, runs))?)
        }
        (None, _) => {
            let runs = runs_in(dir)?;
            if runs.is_empty() {
                return Err(no_report(dir, "neither result.json nor *.ndjson"));
            }
            let name =
                dir.file_name().map_or_else(|| "report".into(), |name| name.to_string_lossy().into_owned());
            Ok(Stored::new(&SuiteReport { suite: name, runs, ..SuiteReport::default() })?)
        }
    }
}

/// Rebuilds a report in its own folder and says which files were written. From the same files it is the same to the byte.
///
/// # Errors
/// As for [`load`], and where a file cannot be written.
pub fn rebuild(dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let stored = load(dir)?;
    let mut written = write_stored(dir, &stored)?;
    written.extend(write_pages(dir, &stored.record)?);
    Ok(written)
}

fn read(path: &Path) -> Result<Option<String>, ReportError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReportError::Io { path: path.into(), source }),
    }
}

/// Every run whose events lie in the folder, by file name.
fn runs_in(dir: &Path) -> Result<Vec<RunReport>, ReportError> {
    let mut paths = Vec::new();
    for folder in [dir.to_owned(), dir.join("events")] {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(source) => return Err(ReportError::Io { path: folder, source }),
        };
        for entry in entries {
            let path = entry.map_err(|source| ReportError::Io { path: folder.clone(), source })?.path();
            if path.extension().is_some_and(|extension| extension == "ndjson") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut runs = Vec::new();
    for path in &paths {
        runs.extend(read_file(path)?);
    }
    Ok(runs)
}

fn read_file(path: &Path) -> Result<Vec<RunReport>, ReportError> {
    let file = fs::File::open(path).map_err(|source| ReportError::Io { path: path.into(), source })?;
    // A run that was killed leaves half a line: that is where its events end.
    let reader = EventReader::growing(BufReader::with_capacity(1 << 20, file), path.display().to_string());
    Ok(read_runs(reader)?)
}

/// The runs of `file` in its order, taken from what was read.
fn in_order(dir: &Path, file: &ResultFile, mut runs: Vec<RunReport>) -> Result<Vec<RunReport>, ReportError> {
    let mut ordered = Vec::with_capacity(file.runs.len());
    for summary in &file.runs {
        let same = |run: &RunReport| {
            let found = &run.summary;
            found.cell() == summary.cell() && found.seed == summary.seed
        };
        let Some(at) = runs.iter().position(same) else {
            let rate = summary.qps.map(|qps| format!(" at {qps} QPS")).unwrap_or_default();
            let what = format!(
                "no events of {}, seed {}{rate}: without detail.json every run of result.json needs its *.ndjson file",
                summary.policy, summary.seed
            );
            return Err(RecordError::Content { file: dir.display().to_string(), what }.into());
        };
        // What result.json says of a run stands; the events add what it lacks.
        ordered.push(RunReport { summary: summary.clone(), ..runs.swap_remove(at) });
    }
    Ok(ordered)
}

fn suite_of(file: ResultFile, runs: Vec<RunReport>) -> SuiteReport {
    SuiteReport {
        suite: file.suite,
        title: file.title,
        baseline: file.baseline,
        candidate: file.candidate,
        slo: file.slo,
        commands: file.commands,
        notes: file.notes,
        ablation: file.ablation,
        expected_runs: file.expected_runs,
        design: file.design,
        runs,
    }
}
