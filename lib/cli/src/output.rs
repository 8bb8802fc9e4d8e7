//! Opening outputs: a path, or stdout for `-` and for none.

use crate::exit::bad_input;
use std::fs::File;
use std::io::{self, BufWriter, Write};

const BUFFER_BYTES: usize = 256 * 1024;

/// An opened, buffered output. Call [`Output::finish`] at the end: a full disk is told there.
pub struct Output {
    writer: BufWriter<Box<dyn Write + Send>>,
    /// The path, or `<stdout>`.
    pub name: String,
}

impl Output {
    /// Creates the file at once (so that a path that cannot be written fails before any work), or takes stdout.
    ///
    /// # Errors
    /// A path that cannot be created, or that this process reads or writes already, as an error of the user's input.
    pub fn create(path: Option<&str>) -> anyhow::Result<Output> {
        let (raw, name): (Box<dyn Write + Send>, String) = match path {
            None | Some("-") => (Box::new(io::stdout()), "<stdout>".into()),
            Some(path) => {
                crate::input::refuse_if_read(path)?;
                let file = File::create(path)
                    .map_err(|e| bad_input(format!("cannot write {path}: {}", crate::input::reason(&e))))?;
                crate::input::remember(&file);
                (Box::new(file), path.into())
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
        Ok(self.flush()?)
    }

    /// The system's word with the output's name before it; its kind stays, so that a closed pipe is still known as one.
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.name))
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
