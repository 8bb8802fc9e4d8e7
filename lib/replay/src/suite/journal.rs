//! What has been run already: every finished cell is written at once, so that a suite that was interrupted goes on where it was.
//!
//! One JSON object a line, appended. A line's key is a hash of all that its run depends on: the program's build, the variant, the cost
//! model, the model's file, files that the workload names, policy, rate and seed. A cell whose key is not found is run again, so a change of
//! the suite reruns what it concerns and nothing else.

use super::Cell;
use super::sweep::Ready;
use crate::{Engine, ReplayError, appended};
use cr_report::RunReport;
use cr_report::run::RunDetail;
use cr_report::summary::Summary;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::Hasher as _;
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use twox_hash::XxHash3_64;

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    summary: Summary,
    detail: RunDetail,
}

/// The finished cells of a suite, on disk.
pub struct Journal {
    path: PathBuf,
    /// Finished cells by key, as they were written.
    known: BTreeMap<String, String>,
    file: Mutex<File>,
    build: String,
}

impl Journal {
    /// Opens a journal, which is made where there is none. `build` names the program's build: cells of another are not used.
    /// With `restart`, what it holds is forgotten.
    ///
    /// # Errors
    /// A file that cannot be read or written.
    pub fn open(path: &Path, build: &str, restart: bool) -> io::Result<Journal> {
        // Whoever finishes removes the file: two at a time would take each other's runs away.
        let (whole, file) = appended::go_on(path, restart)?;
        let mut known = BTreeMap::new();
        // A line that is damaged is a cell that is not known.
        for line in appended::each_line(&whole).filter_map(|line| std::str::from_utf8(line).ok()) {
            if let Ok(read) = serde_json::from_str::<Line>(line) {
                known.insert(read.key, line.to_owned());
            }
        }
        Ok(Journal { path: path.into(), known, file: Mutex::new(file), build: build.into() })
    }

    /// The run of a finished cell.
    pub(super) fn get(&self, key: &str) -> Option<RunReport> {
        read(self.known.get(key)?).ok()
    }

    /// Writes a finished cell, and gives it back as the journal holds it: a suite that is resumed then gives the same bytes as one that
    /// is not.
    pub(super) fn put(&self, key: &str, run: &RunReport) -> Result<RunReport, ReplayError> {
        let line = Line { key: key.into(), summary: run.summary.clone(), detail: RunDetail::from(run) };
        let mut text = serde_json::to_string(&line).map_err(io::Error::from)?;
        text.push('\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes())?;
        Ok(read(&text).map_err(io::Error::from)?)
    }

    /// Removes the file: measured runs of a suite that is complete are not taken for new ones.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    /// What a cell's run depends on, in short.
    pub(super) fn key(&self, ready: &Ready, cell: &Cell) -> String {
        let mut setting = serde_json::to_value(&ready.suite).unwrap_or_default();
        if let Value::Object(fields) = &mut setting {
            for whole in ["name", "title", "notes", "policies", "baseline", "candidate", "ablation", "seeds"]
            {
                fields.remove(whole);
            }
            for whole in ["objectives", "load", "claims", "published", "sensitivity", "map"] {
                fields.remove(whole);
            }
        }
        let engine = match &ready.engine {
            Engine::Sim(cost) => format!("{cost:?}"),
            Engine::Model { device, times, .. } => {
                let (name, seed) = (ready.engine.name(), ready.suite.seeds.first());
                format!("{name} {device} {times:?} {seed:?}")
            }
        };
        let mut files = Vec::new();
        if let Some(model) = ready.suite.model() {
            // Neither a built-in name nor one of the hub is a file; both say what they are.
            files.extend(digest_of_file(&ready.suite.folder.join(model)).ok());
        }
        if let Some(workload) = setting.get("workload") {
            hash_files(workload, &ready.suite.folder, &mut files);
        }
        let all = json!({
            "build": self.build, "setting": setting, "variant": ready.label, "engine": engine, "files": files,
            "policy": cell.policy, "qps": cell.qps.to_bits(), "seed": cell.seed,
        });
        digest(all.to_string().as_bytes())
    }
}

/// A short name for a file, which is not held in memory.
///
/// # Errors
/// What reading it says.
pub fn digest_of_file(path: &Path) -> io::Result<String> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut hasher = XxHash3_64::new();
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(format!("{:016x}", hasher.finish()));
        }
        hasher.write(bytes);
        let read = bytes.len();
        file.consume(read);
    }
}

/// A short name for bytes.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", XxHash3_64::oneshot(bytes))
}

fn read(line: &str) -> Result<RunReport, serde_json::Error> {
    let line: Line = serde_json::from_str(line)?;
    Ok(line.detail.with(line.summary))
}

/// The contents of every file that a workload names.
fn hash_files(value: &Value, folder: &Path, out: &mut Vec<String>) {
    match value {
        Value::String(name) => {
            if let Ok(bytes) = std::fs::read(folder.join(name)) {
                out.push(digest(&bytes));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| hash_files(item, folder, out)),
        Value::Object(fields) => fields.values().for_each(|field| hash_files(field, folder, out)),
        _ => {}
    }
}
