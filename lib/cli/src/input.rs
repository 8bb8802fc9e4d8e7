//! Opening inputs: a path, or `-` for stdin.

use crate::exit::bad_input;
use crate::opened;
use crate::suggest::nearest;
use cr_trace::bounded::read_text;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;

const BUFFER_BYTES: usize = 256 * 1024;

/// An opened input and the name that errors call it by.
pub struct Input {
    /// Buffered reader.
    pub reader: Box<dyn BufRead + Send>,
    /// The path, or `<stdin>`.
    pub name: String,
    /// The size of a regular file, for progress bars.
    pub bytes: Option<u64>,
}

impl Input {
    /// Opens a path, or stdin for `-`.
    ///
    /// # Errors
    /// A missing or unreadable file or a folder, as an error of the user's input; also stdin where it is a terminal,
    /// since nobody pipes anything in.
    pub fn open(path: &str) -> anyhow::Result<Input> {
        if path == "-" {
            if io::stdin().is_terminal() {
                return Err(bad_input("nothing is piped in: give a FILE, or pipe one into stdin"));
            }
            opened::remember_stdin();
            let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin()));
            return Ok(Input { reader, name: "<stdin>".into(), bytes: None });
        }
        let file = File::open(path)
            .map_err(|e| bad_input(format!("cannot open {path}: {}", reason_for(Path::new(path), &e))))?;
        let meta = file.metadata().map_err(|e| bad_input(format!("cannot open {path}: {}", reason(&e))))?;
        if meta.is_dir() {
            return Err(bad_input(format!("cannot open {path}: it is a folder, a file is wanted")));
        }
        opened::remember(&file);
        let bytes = meta.is_file().then_some(meta.len());
        Ok(Input { reader: Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), name: path.into(), bytes })
    }
}

/// Reads a whole small file (a configuration, a table) as text.
///
/// # Errors
/// As [`Input::open`]; also text that is no UTF-8, or more than 64 MiB of it.
pub fn read_to_string(path: &str) -> anyhow::Result<String> {
    let Input { reader, name, .. } = Input::open(path)?;
    read_text(reader).map_err(|e| bad_input(format!("cannot read {name}: {}", reason(&e))))
}

/// Entries of a folder that are looked at for what may have been meant.
const MAX_NAMES: usize = 10_000;

/// The folder that a path lies in, as the system knows it.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Why a path cannot be opened; where there is none, with the file that may have been meant.
pub fn reason_for(path: &Path, error: &io::Error) -> String {
    let near = || {
        let entries = std::fs::read_dir(folder_of(path)).ok()?.take(MAX_NAMES);
        let names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        let name = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
        Some(format!("; did you mean {}?", path.with_file_name(name).display()))
    };
    let meant = if error.kind() == io::ErrorKind::NotFound { near() } else { None };
    reason(error) + &meant.unwrap_or_default()
}

/// The system's word without its error number.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_and_folders_say_so() {
        let missing = Input::open("/nonexistent/x.jsonl").err().expect("is missing").to_string();
        assert_eq!(missing, "cannot open /nonexistent/x.jsonl: no such file");
        let folder = Input::open("/").err().expect("is a folder").to_string();
        assert!(folder.contains("it is a folder"));
    }

    #[test]
    fn a_slip_is_told_with_what_was_meant() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("workload.jsonl"), "").expect("is written");
        let slip = Input::open(&path("worklaod.jsonl")).err().expect("is missing").to_string();
        let meant = path("workload.jsonl");
        assert_eq!(
            slip,
            format!("cannot open {}: no such file; did you mean {meant}?", path("worklaod.jsonl"))
        );
        let other = Input::open(&path("zebra")).err().expect("is missing").to_string();
        assert_eq!(other, format!("cannot open {}: no such file", path("zebra")));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_without_end_is_not_read_to_its_end() {
        let endless = read_to_string("/dev/zero").expect_err("never ends").to_string();
        assert_eq!(endless, "cannot read /dev/zero: it is larger than 64 MiB; is this the file you meant?");
    }
}
