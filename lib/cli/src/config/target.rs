//! Which subcommand is meant, and where its flags may be inserted.

use clap::{ArgMatches, Command};
use std::ffi::OsString;

/// The command that the arguments are for.
pub(super) struct Target<'a> {
    /// The names from the program's first subcommand down; empty for the program itself.
    pub(super) path: Vec<String>,
    /// The deepest command, built.
    pub(super) command: &'a Command,
    /// The index among the arguments right after the last name of the path.
    pub(super) insert_at: usize,
}

impl<'a> Target<'a> {
    /// Follows the subcommands that `matches` found in `typed`.
    pub(super) fn of(root: &'a Command, matches: &ArgMatches, typed: &[OsString]) -> Target<'a> {
        let (mut command, mut level, mut at) = (root, matches, 1);
        let mut path = Vec::new();
        while let Some((name, below)) = level.subcommand() {
            let Some(next) = command.find_subcommand(name) else { break };
            at = after(name, command, next, typed, at);
            path.push(name.to_string());
            (command, level) = (next, below);
        }
        Target { path, command, insert_at: at }
    }

    /// The matches of the deepest command.
    pub(super) fn matches<'m>(&self, matches: &'m ArgMatches) -> &'m ArgMatches {
        self.path.iter().fold(matches, |level, name| level.subcommand_matches(name).unwrap_or(level))
    }
}

/// The index after the token that names a subcommand; values of the flags before it are stepped over.
fn after(name: &str, command: &Command, next: &Command, typed: &[OsString], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = typed.get(at) {
        at += 1;
        let Some(token) = token.to_str() else { continue };
        if token == name || next.get_all_aliases().any(|alias| alias == token) {
            return at;
        }
        let flag = command.get_arguments().find(|arg| {
            let short = arg.get_short().map(|short| format!("-{short}"));
            let long = arg.get_long().map(|long| format!("--{long}"));
            [short, long].iter().flatten().any(|name| name == token)
        });
        if flag.is_some_and(|arg| arg.get_action().takes_values()) {
            at += 1;
        }
    }
    at
}
