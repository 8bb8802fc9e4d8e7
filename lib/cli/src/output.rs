//! Opening outputs: a path, or stdout for `-` and for none.

use crate::exit::bad_input;
use crate::opened;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

const BUFFER_BYTES: usize = 256 * 1024;

/// An opened, buffered output. Call [`Output::finish`] at the end: a full disk is told there.
pub struct Output {
    writer: BufWriter<Raw>,
    /// The path, or `<stdout>`.
    pub name: String,
}

impl Output {
    /// Opens the file at once (so that a path that cannot be written fails before any work), or takes stdout. What the file held stays
    /// until something is written: a mistyped command destroys nothing.
    ///
    /// # Errors
    /// A path that cannot be created, or that this process reads or writes already, as an error of the user's input.
    pub fn create(path: Option<&str>) -> anyhow::Result<Output> {
        let (raw, name) = match path {
            None | Some("-") => (Raw::Stdout(io::stdout()), "<stdout>".into()),
            Some("") => return Err(bad_input("an output has no name; give a FILE, or - for stdout")),
            Some(path) => {
                opened::refuse_if_taken(path)?;
                let file = File::options().write(true).create(true).truncate(false).open(path);
                let file = file.map_err(|e| bad_input(format!("cannot write {path}: {}", why(path, &e))))?;
                opened::remember(&file);
                (Raw::File { file, emptied: false }, path.into())
            }
        };
        Ok(Output { writer: BufWriter::with_capacity(BUFFER_BYTES, raw), name })
    }

    /// Whether this is stdout.
    pub fn is_stdout(&self) -> bool {
        self.name == "<stdout>"
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// A failed write, with the output's name.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.flush()?;
        // An output of nothing is empty.
        let emptied = self.writer.get_mut().empty();
        Ok(emptied.map_err(|error| self.named(error))?)
    }

    /// The system's word with the output's name before it; its kind stays, so that a closed pipe is still known as one.
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.name))
    }
}

/// Makes the folder of an output where there is none.
///
/// # Errors
/// One that cannot be made, as an error of the user's input.
pub fn make_folder(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).map_err(|e| {
        let why = match e.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => "a file is in its place".into(),
            _ => crate::input::reason(&e),
        };
        bad_input(format!("cannot make the folder {}: {why}; name another one", path.display()))
    })
}

/// Why a file cannot be made: the system's word, or the folder that is missing.
fn why(path: &str, error: &io::Error) -> String {
    match Path::new(path).parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
            format!("there is no folder {}; make it first, or write elsewhere", folder.display())
        }
        _ => crate::input::reason(error),
    }
}

/// What is written to.
enum Raw {
    Stdout(io::Stdout),
    File {
        file: File,
        /// What the file held is gone.
        emptied: bool,
    },
}

impl Raw {
    /// Before the first byte: what the file held goes.
    fn empty(&mut self) -> io::Result<()> {
        match self {
            Raw::File { file, emptied } if !*emptied => {
                *emptied = true;
                // Pipes and devices have no length.
                if file.metadata()?.is_file() { file.set_len(0) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty()?;
        match self {
            Raw::Stdout(stdout) => stdout.write(bytes),
            Raw::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Raw::Stdout(stdout) => stdout.flush(),
            Raw::File { file, .. } => file.flush(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| self.named(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_whose_place_a_file_is_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a");
        std::fs::write(&file, "").expect("is written");
        for path in [file.clone(), file.join("b")] {
            let refused = make_folder(&path).expect_err("is a file").to_string();
            let name = path.display();
            assert_eq!(
                refused,
                format!("cannot make the folder {name}: a file is in its place; name another one")
            );
        }
        make_folder(&folder.path().join("c/d")).expect("is made");
    }

    #[test]
    fn what_a_file_held_stays_until_something_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "before").expect("is written");
            path.to_str().expect("is text").to_owned()
        };
        let files = ["kept", "written", "empty"].map(file);
        let held = |index: usize| std::fs::read_to_string(&files[index]).expect("is there");
        drop(Output::create(Some(&files[0])).expect("opens"));
        assert_eq!(held(0), "before");
        let mut output = Output::create(Some(&files[1])).expect("opens");
        output.write_all(b"a").expect("is taken");
        output.finish().expect("is written");
        assert_eq!(held(1), "a");
        Output::create(Some(&files[2])).and_then(Output::finish).expect("is written");
        assert_eq!(held(2), "");
    }
}
