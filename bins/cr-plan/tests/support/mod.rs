//! What the tests of the program share.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs the program with this on stdin.
pub(crate) fn cr_plan(args: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cr-plan"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // A program that refuses its flags closes stdin before reading it.
    let _ = child.stdin.take().expect("is piped").write_all(stdin.as_bytes());
    child.wait_with_output().expect("ends")
}

/// A folder that is gone when it is dropped.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().expect("is made"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and gives its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.path(name), content).expect("is written");
        self.path(name).display().to_string()
    }
}
