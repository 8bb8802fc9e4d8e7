//! The `--config` file: TOML, keyed by long flag names, with tables for programs and subcommands.

use super::value::Raw;
use super::{PROGRAMS, flag, flags};
use crate::exit::bad_input;
use crate::suggest::nearest;
use clap::Command;
use std::collections::BTreeSet;
use toml::de::DeTable;

/// One key of the file that reaches the command in question.
#[derive(Debug)]
pub(super) struct Entry {
    /// The long flag.
    pub(super) flag: String,
    pub(super) value: Raw,
    pub(super) line: usize,
}

/// The entries that reach the subcommand at `path` of `root`; of two for one flag the later is the more specific.
///
/// # Errors
/// Broken TOML and every key that no command of this program has, with the place and the nearest name.
pub(super) fn entries(text: &str, name: &str, root: &Command, path: &[String]) -> anyhow::Result<Vec<Entry>> {
    let document = DeTable::parse(text).map_err(|error| broken(text, name, &error))?;
    let mut reader = Reader { text, name, found: Vec::new() };
    reader.table(document.get_ref(), root, Some(path), true)?;
    let own = document.get_ref().iter().find(|(key, _)| key.get_ref() == root.get_name());
    if let Some((key, value)) = own {
        let Some(table) = value.get_ref().as_table() else {
            return Err(reader.wrong(key.span().start, &format!("{:?} must be a table", key.get_ref())));
        };
        reader.table(table, root, Some(path), false)?;
    }
    Ok(reader.found)
}

struct Reader<'a> {
    text: &'a str,
    name: &'a str,
    found: Vec<Entry>,
}

impl Reader<'_> {
    /// Reads one table; `path` is what is left of the way to the command in question, `None` beside it.
    fn table(
        &mut self,
        table: &DeTable<'_>,
        command: &Command,
        path: Option<&[String]>,
        top: bool,
    ) -> anyhow::Result<()> {
        let known = long_flags(command);
        let mut below = Vec::new();
        for (key, value) in table {
            let long = key.get_ref().as_ref();
            if top && PROGRAMS.contains(&long) {
                continue;
            }
            let line = self.line(key.span().start);
            if let (Some(sub), Some(inner)) = (command.find_subcommand(long), value.get_ref().as_table()) {
                below.push((sub, inner));
            } else if !known.contains(long) {
                return Err(self.unknown(line, long, command, &known, top));
            } else {
                let value = Raw::of(value.get_ref())
                    .map_err(|why| bad_input(format!("{}:{line}: {long}: {why}", self.name)))?;
                if path.is_some_and(|path| flag(descend(command, path), long).is_some()) {
                    self.found.push(Entry { flag: long.into(), value, line });
                }
            }
        }
        for (sub, inner) in below {
            let rest = path.and_then(|path| path.split_first());
            let rest = rest.filter(|(first, _)| *first == sub.get_name()).map(|(_, rest)| rest);
            self.table(inner, sub, rest, false)?;
        }
        Ok(())
    }

    fn line(&self, offset: usize) -> usize {
        self.text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
    }

    fn wrong(&self, offset: usize, what: &str) -> anyhow::Error {
        bad_input(format!("{}:{}: {what}", self.name, self.line(offset)))
    }

    fn unknown(
        &self,
        line: usize,
        key: &str,
        command: &Command,
        known: &BTreeSet<String>,
        top: bool,
    ) -> anyhow::Error {
        let tables = command.get_subcommands().map(Command::get_name);
        let programs = PROGRAMS.into_iter().filter(|_| top);
        let names = known.iter().map(String::as_str).chain(tables).chain(programs);
        let owner = command.get_bin_name().unwrap_or(command.get_name());
        let hint = match nearest(key, names) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("keys are the long flags of `{owner} --help`"),
        };
        bad_input(format!("{}:{line}: unknown key {key:?} for {owner}; {hint}", self.name))
    }
}

/// The command at the end of a path.
fn descend<'a>(command: &'a Command, path: &[String]) -> &'a Command {
    path.iter().fold(command, |command, name| command.find_subcommand(name).unwrap_or(command))
}

/// The long flags of a command and of all below it.
fn long_flags(command: &Command) -> BTreeSet<String> {
    let own = flags(command).filter_map(|arg| arg.get_long()).map(String::from);
    own.chain(command.get_subcommands().flat_map(long_flags)).collect()
}

fn broken(text: &str, name: &str, error: &toml::de::Error) -> anyhow::Error {
    let offset = error.span().map_or(0, |span| span.start);
    let line = text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
    bad_input(format!("{name}:{line}: {}", error.message()))
}
