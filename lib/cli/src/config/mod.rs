//! Flags, over `CR_*` variables, over a `--config` file, over defaults, for any program.
//!
//! A program's own `Args` know nothing of this: values that the command line does not give are written into the
//! arguments as flags before they are parsed, so every value passes the same checks whatever it came from.
//!
//! Scopes, from the general to the specific (the specific one wins): a key at the top of the file reaches every command
//! that has the flag, `[run]` that subcommand, `[cr-serve]` that program, `[cr-serve.run]` that subcommand of it. The
//! variables of `--shards` are, in the same order, `CR_SHARDS`, `CR_RUN_SHARDS`, `CR_SERVE_SHARDS` and `CR_SERVE_RUN_SHARDS`.

mod file;
mod layers;
mod print;
mod target;
#[cfg(test)]
mod tests;
mod value;

use crate::exit::{Exit, bad_input, code};
use crate::output::Output;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser};
use layers::Layers;
use std::ffi::OsString;
use std::io::Write;
use target::Target;

/// The programs that share one file; each reads its own table and leaves the others' alone.
const PROGRAMS: [&str; 4] = ["cr-gen", "cr-plan", "cr-serve", "cr-top"];
/// Flags that are about the layers, or end the program: no file and no variable sets them.
const APART: [&str; 4] = ["config", "print-config", "help", "version"];

/// Reads the command line with what variables and the file add to it.
///
/// As [`clap::Parser::parse`], this ends the process for `--help`, for `--print-config` (0) and for anything wrong (2).
pub fn parse<C: Parser>() -> C {
    let environment: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with("CR_"))
        .collect();
    let result = match resolve::<C>(std::env::args_os().collect(), &environment) {
        Ok(Resolved::Run(args)) => return *args,
        Ok(Resolved::Print(text)) => print_out(&text).map(|()| Exit::Done),
        Err(Failure::Usage(error)) => error.exit(),
        Err(Failure::Input(error)) => Err(error),
    };
    std::process::exit(code(C::command().get_name(), result).into())
}

fn print_out(text: &str) -> anyhow::Result<()> {
    let mut out = Output::create(None)?;
    out.write_all(text.as_bytes())?;
    out.finish()
}

/// What the layers come to.
enum Resolved<C> {
    /// The arguments.
    Run(Box<C>),
    /// The text of `--print-config`.
    Print(String),
}

/// Why there are no arguments.
#[derive(Debug)]
enum Failure {
    /// clap's word: wrong usage, but also `--help`.
    Usage(clap::Error),
    /// The file or a variable is wrong.
    Input(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Input(error)
    }
}

fn resolve<C: CommandFactory + FromArgMatches>(
    typed: Vec<OsString>,
    environment: &[(String, String)],
) -> Result<Resolved<C>, Failure> {
    // A first look, forgiving: what is missing may stand in the file.
    let matches = C::command().ignore_errors(true).try_get_matches_from(&typed).map_err(Failure::Usage)?;
    let mut root = C::command();
    root.build();
    let target = Target::of(&root, &matches, &typed);
    let given = target.matches(&matches);
    let file = config_file(given, environment);
    let layers = Layers::gather(&root, &target, given, environment, file.as_deref())?;
    let mut full = typed;
    let at = target.insert_at.min(full.len());
    full.splice(at..at, layers.tokens().map(OsString::from));

    let print = given.try_get_one::<bool>("print_config").ok().flatten().copied().unwrap_or(false);
    let parsed = match C::command().try_get_matches_from(&full) {
        Ok(parsed) => parsed,
        // The file that is printed may be what the missing value is to be written into.
        Err(error) if print && error.kind() == ErrorKind::MissingRequiredArgument => {
            C::command().ignore_errors(true).try_get_matches_from(&full).map_err(Failure::Usage)?
        }
        Err(error) => return Err(Failure::Usage(with_origin(error, &layers))),
    };
    if print {
        return Ok(Resolved::Print(print::toml(&root, &target, target.matches(&parsed), &layers)));
    }
    C::from_arg_matches(&parsed).map(|args| Resolved::Run(Box::new(args))).map_err(Failure::Usage)
}

/// The file to read: the flag's, else the one that `CR_CONFIG` names.
fn config_file(given: &ArgMatches, environment: &[(String, String)]) -> Option<String> {
    let flag = given.try_get_one::<String>("config").ok().flatten();
    flag.cloned().or_else(|| {
        let variable = environment.iter().find(|(name, _)| name == "CR_CONFIG");
        variable.map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    })
}

/// clap speaks of flags only: an error about one that nobody typed says where it stands.
fn with_origin(mut error: clap::Error, layers: &Layers) -> clap::Error {
    let text = error.to_string();
    let notes: Vec<_> = layers
        .settings()
        .iter()
        .filter(|setting| text.contains(&format!("--{}", setting.flag)))
        .map(|setting| format!("--{} is set by {}", setting.flag, setting.source).into())
        .collect();
    if !notes.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(notes));
    }
    error
}

/// The flags of a command that the layers can set.
fn flags(command: &Command) -> impl Iterator<Item = &clap::Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_positional() && arg.get_long().is_some_and(|long| !APART.contains(&long)))
}

/// The flag of a command by its long name.
fn flag<'a>(command: &'a Command, long: &str) -> Option<&'a clap::Arg> {
    flags(command).find(|arg| arg.get_long() == Some(long))
}

/// Reads the file's text and name, for the layers.
fn open(path: &str) -> anyhow::Result<String> {
    crate::input::read_to_string(path).map_err(|error| bad_input(error.to_string()))
}
