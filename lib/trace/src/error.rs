//! Errors of the readers: what, where, why, and what to do.

use std::fmt;

/// A place in an input: a name (a path, or `<stdin>`) and a line, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// A path, or `<stdin>`.
    pub file: String,
    /// From 1; the header counts.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why a trace or a list of rates could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line that is not what the format asks for.
    #[error("{place}: {what}")]
    Line {
        /// Where.
        place: Place,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The input could not be read, or the output written.
    #[error("{file}: {source}")]
    Io {
        /// Which file.
        file: String,
        /// The system's word.
        #[source]
        source: std::io::Error,
    },
    /// The whole input is unusable (empty, or of another schema).
    #[error("{file}: {what}")]
    File {
        /// Which file.
        file: String,
        /// What is wrong and what would be right.
        what: String,
    },
}

impl TraceError {
    /// An error on one line.
    pub fn line(file: &str, line: u64, what: impl Into<String>) -> TraceError {
        TraceError::Line { place: Place { file: file.into(), line }, what: what.into() }
    }
}
