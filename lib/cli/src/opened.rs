//! The regular files that this process has opened or will write by itself: no output is written over them.

use crate::exit::bad_input;
use crate::input::folder_of;
use same_file::Handle;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Handles rather than numbers: a number goes to another file once its own is deleted, but not while a handle keeps it.
static OPENED: Mutex<Vec<Handle>> = Mutex::new(Vec::new());

/// Files that this process will write by itself, which need not be there yet.
static PLANNED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Remembers an opened file.
pub(crate) fn remember(file: &File) {
    if let Ok(handle) = file.try_clone().and_then(Handle::from_file) {
        keep(handle);
    }
}

/// Remembers stdin, where it is a file.
pub(crate) fn remember_stdin() {
    if let Ok(handle) = Handle::stdin() {
        keep(handle);
    }
}

/// Remembers a file that will be read later, where there is one, so that no output is written over it before.
pub fn reserve(path: impl AsRef<Path>) {
    if let Some(handle) = regular(path.as_ref()) {
        keep(handle);
    }
}

/// Remembers a file that will be written later: no output takes its place meanwhile.
///
/// # Errors
/// One that this process has opened already, as an error of the user's input.
pub fn plan(path: &Path) -> anyhow::Result<()> {
    refuse_if_taken(&path.display().to_string())?;
    if let (Some(path), Ok(mut planned)) = (settled(path), PLANNED.lock()) {
        planned.push(path);
    }
    Ok(())
}

/// One name for a file that need not be there, in a folder that is.
fn settled(path: &Path) -> Option<PathBuf> {
    Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?))
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

/// Refuses a path to write to that this process has opened already, or will write by itself: creating it would destroy what is read
/// from it, or be in vain.
///
/// # Errors
/// Such a path, as an error of the user's input.
pub(crate) fn refuse_if_taken(path: &str) -> anyhow::Result<()> {
    let is_opened = || {
        let wanted = regular(Path::new(path))?;
        OPENED.lock().ok().filter(|opened| opened.contains(&wanted)).map(drop)
    };
    let is_planned = || {
        let wanted = settled(Path::new(path))?;
        PLANNED.lock().ok().filter(|planned| planned.contains(&wanted)).map(drop)
    };
    if is_opened().or_else(is_planned).is_some() {
        return Err(bad_input(format!(
            "{path} is also an input or another output; give the output another name"
        )));
    }
    Ok(())
}

/// A regular file, opened. Pipes and devices are let alone: to open one is to take part in it.
fn regular(path: &Path) -> Option<Handle> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Handle::from_path(path).ok()
}

fn keep(handle: Handle) {
    let is_regular = handle.as_file().metadata().is_ok_and(|about| about.is_file());
    if let (true, Ok(mut opened)) = (is_regular, OPENED.lock())
        && !opened.contains(&handle)
    {
        opened.push(handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_is_refused_under_every_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = |name: &str| folder.path().join(name).to_str().expect("is text").to_owned();
        std::fs::write(name("read"), "a").expect("is written");
        std::fs::write(name("other"), "b").expect("is written");
        std::fs::hard_link(name("read"), name("link")).expect("is linked");
        reserve(name("read"));
        assert!(refuse_if_taken(&name("read")).is_err());
        assert!(refuse_if_taken(&name("link")).is_err());
        assert!(refuse_if_taken(&name("other")).is_ok());
        assert!(refuse_if_taken(&name("missing")).is_ok());
    }

    #[test]
    fn what_will_be_written_is_refused_before_it_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        plan(&folder.path().join("later")).expect("is free");
        let name = |name: &str| folder.path().join(name).to_str().expect("is text").to_owned();
        assert!(refuse_if_taken(&name("later")).is_err());
        assert!(refuse_if_taken(&name("./later")).is_err());
        assert!(refuse_if_taken(&name("other")).is_ok());
    }

    #[test]
    fn a_deleted_file_does_not_stand_in_the_way_of_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("again").to_str().expect("is text").to_owned();
        for _ in 0..50 {
            std::fs::write(&path, "a").expect("is written");
            refuse_if_taken(&path).expect("is another file");
            reserve(&path);
            std::fs::remove_file(&path).expect("goes");
        }
    }
}
