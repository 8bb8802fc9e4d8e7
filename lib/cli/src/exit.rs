//! Exit codes, and how errors become one.
//!
//! 0 done (a closed pipe included), 1 failed, 2 usage or input, 3 ran but a gate, SLO or comparison says no,
//! 130 interrupted with what was measured written out.

use std::process::ExitCode;
use std::{fmt, io};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done,
    /// It ran, and a gate, an SLO or a comparison says no.
    No,
    /// A signal stopped it; what was measured is written.
    Interrupted,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::No => 3,
            Exit::Interrupted => 130,
        }
    }
}

/// Marks an error as the user's to mend (exit 2): a wrong flag, a file that is missing or malformed.
#[derive(Debug)]
pub struct BadInput {
    message: String,
    source: Option<anyhow::Error>,
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadInput {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The message already spells out the chain; only a closed pipe further down still matters.
        self.source.as_ref().map(|error| error.as_ref() as _)
    }
}

/// An error of the user's input with this message.
pub fn bad_input(message: impl Into<String>) -> anyhow::Error {
    BadInput { message: message.into(), source: None }.into()
}

/// Turns a library's error into an error of the user's input.
pub trait InputContext<T> {
    /// Marks the error as the user's to mend (exit 2).
    ///
    /// # Errors
    /// Hands on the error it is called on.
    fn bad_input(self) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> InputContext<T> for Result<T, E> {
    fn bad_input(self) -> anyhow::Result<T> {
        self.map_err(|error| {
            let error = error.into();
            BadInput { message: one_line(&error), source: Some(error) }.into()
        })
    }
}

/// The chain of an error as one sentence; a cause that its parent's text already holds is not repeated.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether a closed pipe is anywhere in the chain.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        let json = cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
        io.or(json) == Some(io::ErrorKind::BrokenPipe)
    })
}

/// What to do about an error that has nothing to do with what was asked for, as a clause: a full disk.
fn remedy(error: &anyhow::Error) -> &'static str {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    let is_full = causes.any(|cause| full.contains(&cause.kind()));
    if is_full { "; make room, or write elsewhere" } else { "" }
}

/// Runs a program's body and turns its result into an exit code, printing one line for an error.
pub fn run(program: &str, body: impl FnOnce() -> anyhow::Result<Exit>) -> ExitCode {
    ExitCode::from(code(program, body()))
}

/// The exit code of a result; an error is printed as one line.
pub(crate) fn code(program: &str, result: anyhow::Result<Exit>) -> u8 {
    match result {
        Ok(exit) => exit.code(),
        Err(error) if is_broken_pipe(&error) => Exit::Done.code(),
        Err(error) => {
            crate::common::say(&format!("{program}: {}{}", one_line(&error), remedy(&error)));
            if error.downcast_ref::<BadInput>().is_some() { 2 } else { 1 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_found_anywhere_in_the_chain() {
        let pipe = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("writing");
        assert!(is_broken_pipe(&pipe));
        let wrapped = Err::<(), _>(pipe).bad_input().expect_err("stays an error");
        assert!(is_broken_pipe(&wrapped));
        assert!(!is_broken_pipe(&anyhow::anyhow!("no")));
    }

    #[test]
    fn a_full_disk_has_a_remedy() {
        let full = anyhow::Error::from(io::Error::from(io::ErrorKind::StorageFull)).context("cannot write x");
        assert_eq!(remedy(&full), "; make room, or write elsewhere");
        assert_eq!(remedy(&io::Error::from(io::ErrorKind::NotFound).into()), "");
    }

    #[test]
    fn the_chain_is_one_sentence() {
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound)).context("a.jsonl");
        assert_eq!(one_line(&error), "a.jsonl: entity not found");
        let marked = Err::<(), _>(error).bad_input().expect_err("stays an error");
        assert_eq!(one_line(&marked), "a.jsonl: entity not found");
    }
}
