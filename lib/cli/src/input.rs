//! Opening inputs: a path, or `-` for stdin.

use crate::exit::bad_input;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::sync::Mutex;

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
            #[cfg(unix)]
            remember_as(metadata_of(io::stdin()).as_ref());
            let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin()));
            return Ok(Input { reader, name: "<stdin>".into(), bytes: None });
        }
        let file = File::open(path).map_err(|e| bad_input(format!("cannot open {path}: {}", reason(&e))))?;
        let meta = file.metadata().map_err(|e| bad_input(format!("cannot open {path}: {}", reason(&e))))?;
        if meta.is_dir() {
            return Err(bad_input(format!("cannot open {path}: it is a folder, a file is wanted")));
        }
        remember(&file);
        let bytes = meta.is_file().then_some(meta.len());
        Ok(Input { reader: Box::new(BufReader::with_capacity(BUFFER_BYTES, file)), name: path.into(), bytes })
    }
}

/// The regular files that this process has opened, by device and inode: none of them may be written over.
static OPENED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Device and inode of a regular file; `None` for pipes and devices, and where the system has no such numbers.
#[cfg(unix)]
fn identity(meta: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    meta.is_file().then(|| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn identity(_meta: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Remembers an opened file.
pub(crate) fn remember(file: &File) {
    remember_as(file.metadata().ok().as_ref());
}

fn remember_as(meta: Option<&Metadata>) {
    if let (Some(known), Ok(mut opened)) = (meta.and_then(identity), OPENED.lock()) {
        opened.push(known);
    }
}

/// What the system says of an open stream, such as stdin: it may be a file.
#[cfg(unix)]
pub(crate) fn metadata_of(stream: impl std::os::fd::AsFd) -> Option<Metadata> {
    stream.as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata()).ok()
}

/// Remembers a file that will be read later, where there is one, so that no output is written over it before.
pub fn reserve(path: impl AsRef<Path>) {
    if let Ok(file) = File::open(path) {
        remember(&file);
    }
}

/// Remembers every file that a configuration names, beside it or where the program was started.
pub fn reserve_named(value: &serde_json::Value, folder: &Path) {
    match value {
        serde_json::Value::String(name) if !name.is_empty() => {
            reserve(folder.join(name));
            reserve(name);
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| reserve_named(item, folder)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| reserve_named(field, folder)),
        _ => {}
    }
}

/// Refuses a path to write to that this process has opened already: creating it would destroy what is read from it.
///
/// # Errors
/// Such a path, as an error of the user's input.
pub fn refuse_if_read(path: &str) -> anyhow::Result<()> {
    let Some(wanted) = std::fs::metadata(path).ok().as_ref().and_then(identity) else { return Ok(()) };
    match OPENED.lock() {
        Ok(opened) if opened.contains(&wanted) => {
            Err(bad_input(format!("{path} is also an input or another output; give the output another name")))
        }
        _ => Ok(()),
    }
}

/// Reads a whole small file (a configuration, a table) as text.
///
/// # Errors
/// As [`Input::open`]; also text that is no UTF-8.
pub fn read_to_string(path: &str) -> anyhow::Result<String> {
    let mut input = Input::open(path)?;
    let mut text = String::new();
    io::Read::read_to_string(&mut input.reader, &mut text)
        .map_err(|e| bad_input(format!("cannot read {}: {}", input.name, reason(&e))))?;
    Ok(text)
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
}
