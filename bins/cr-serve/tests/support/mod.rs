//! The four programs in a shell.
// Each test uses what it needs of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the programs are built; those of other packages must be there too.
pub(crate) fn programs() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_cr-serve")).parent().expect("has a folder").to_path_buf();
    for name in ["cr-gen", "cr-plan", "cr-top"] {
        assert!(
            folder.join(name).is_file(),
            "{name} is not built; test the whole workspace, or `just build` first"
        );
    }
    folder
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("exists")
}

/// Bash with the programs on the path, in a folder of its own, unmoved by this machine's `CR_*`.
pub(crate) fn bash(folder: &Path, script: &str) -> Output {
    let path = format!("{}:{}", programs().display(), std::env::var("PATH").expect("is set"));
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CR_")) {
        command.env_remove(name);
    }
    command.args(["-c", script]).current_dir(folder).env("PATH", path).output().expect("bash exists")
}

/// Whether a tool is on the path.
pub(crate) fn has(tool: &str) -> bool {
    let found = Command::new("bash").args(["-c", &format!("command -v {tool}")]).output();
    found.expect("bash exists").status.success()
}
