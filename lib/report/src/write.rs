//! Writes a report's folder: `report.md`, `result.json`, `detail.json` and a file for every figure.

use crate::provenance::Provenance;
use crate::reader::ReadError;
use crate::record::{Record, RecordError, Stored, SuiteReport};
use crate::svg::{DrawError, FIGURES};
use crate::{files, html, markdown};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// What is stored cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A stream of events cannot be used.
    #[error(transparent)]
    Events(#[from] ReadError),
    /// A figure could not be drawn.
    #[error(transparent)]
    Draw(#[from] DrawError),
}

/// Writes the report of a suite into `dir`, which is made where it does not exist, and says which files it wrote.
///
/// Every file but `run.json` (see [`write_provenance`]) depends on `suite` alone: the same suite gives the same bytes. A file is
/// written beside its place and then renamed, so that an interrupted write leaves the old one.
///
/// # Errors
/// Where a file cannot be written. What was written before stays.
pub fn write_report(dir: &Path, suite: &SuiteReport) -> Result<Vec<PathBuf>, ReportError> {
    let stored = Stored::new(suite)?;
    fs::create_dir_all(dir).map_err(|source| ReportError::Io { path: dir.into(), source })?;
    let mut written =
        vec![put(dir, files::RESULT, &stored.result_json)?, put(dir, files::DETAIL, &stored.detail_json)?];
    written.extend(write_pages(dir, &stored.record)?);
    Ok(written)
}

/// Writes `result.json` and `detail.json`.
///
/// # Errors
/// Where a file cannot be written.
pub fn write_stored(dir: &Path, stored: &Stored) -> Result<Vec<PathBuf>, ReportError> {
    Ok(vec![put(dir, files::RESULT, &stored.result_json)?, put(dir, files::DETAIL, &stored.detail_json)?])
}

/// Writes what is drawn from a record: the figures and `report.md`. Figures that the record has no data for are removed.
///
/// # Errors
/// Where a file cannot be written.
pub fn write_pages(dir: &Path, record: &Record) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = Vec::new();
    let mut shown = Vec::new();
    for figure in FIGURES {
        match figure.draw(record)? {
            Some(svg) => {
                written.push(put(dir, figure.file, &svg)?);
                shown.push(figure);
            }
            None => remove(&dir.join(figure.file))?,
        }
    }
    written.push(put(dir, files::REPORT, &markdown::render(record, &shown))?);
    Ok(written)
}

/// Writes `report.html`: the whole report of a folder in one file that needs nothing else, from the files in it.
///
/// # Errors
/// Where the folder holds no report, or the file cannot be written.
pub fn write_html(dir: &Path) -> Result<PathBuf, ReportError> {
    let record = crate::load::load(dir)?.record;
    let mut figures = Vec::new();
    for figure in FIGURES {
        if let Some(svg) = figure.draw(&record)? {
            figures.push((figure, svg));
        }
    }
    put(dir, "report.html", &html::render(&record, &figures))
}

/// Writes `run.json`.
///
/// # Errors
/// Where the file cannot be written.
pub fn write_provenance(dir: &Path, provenance: &Provenance) -> Result<PathBuf, ReportError> {
    let text = crate::json::stable(provenance)
        .map_err(|e| RecordError::Content { file: files::RUN.into(), what: e.to_string() })?;
    put(dir, files::RUN, &text)
}

fn put(dir: &Path, name: &str, text: &str) -> Result<PathBuf, ReportError> {
    let path = dir.join(name);
    let draft = dir.join(format!(".{name}.part"));
    let done = fs::write(&draft, text).and_then(|()| fs::rename(&draft, &path));
    match done {
        Ok(()) => Ok(path),
        Err(source) => {
            // The first error is the one to tell.
            let _ = fs::remove_file(&draft);
            Err(ReportError::Io { path, source })
        }
    }
}

fn remove(path: &Path) -> Result<(), ReportError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(ReportError::Io { path: path.into(), source })
        }
        _ => Ok(()),
    }
}
