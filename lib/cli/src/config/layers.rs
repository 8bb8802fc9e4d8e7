//! The layers under the flags, and which of their values count.

use super::value::Raw;
use super::{Target, file, flags, open};
use crate::exit::bad_input;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use std::collections::BTreeSet;
use std::fmt;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A variable of this name.
    Variable(String),
    /// This line of the file.
    File {
        /// The path.
        name: String,
        /// From 1.
        line: usize,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Variable(name) => f.write_str(name),
            Source::File { name, line } => write!(f, "{name}:{line}"),
        }
    }
}

/// A flag that a layer sets.
#[derive(Debug)]
pub(super) struct Setting {
    /// Its long name.
    pub(super) flag: String,
    pub(super) source: Source,
    tokens: Vec<String>,
}

/// What the layers under the flags set.
#[derive(Debug, Default)]
pub(super) struct Layers {
    settings: Vec<Setting>,
    /// `CR_*` variables that no flag of the command has.
    pub(super) unused: Vec<String>,
}

impl Layers {
    /// Gathers variables, then the file: a value counts where no layer above gives the flag or one that conflicts.
    ///
    /// # Errors
    /// A file that cannot be read or says something unknown; a value of the wrong kind, with its place.
    pub(super) fn gather(
        root: &Command,
        target: &Target<'_>,
        given: &ArgMatches,
        environment: &[(String, String)],
        path: Option<&str>,
    ) -> anyhow::Result<Layers> {
        let command = target.command;
        let mut taken: BTreeSet<&str> = flags(command)
            .chain(command.get_positionals())
            .filter(|arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine))
            .map(|arg| arg.get_id().as_str())
            .collect();
        let mut layers = Layers::default();
        let mut wanted = Vec::new();
        for arg in flags(command) {
            let variable = variables(root, target, arg)
                .into_iter()
                .rev()
                .find_map(|name| environment.iter().find(|(known, _)| *known == name));
            if let Some((name, text)) = variable {
                wanted.push((arg, Raw::from_variable(arg, text), Source::Variable(name.clone())));
            }
        }
        layers.add(command, &mut taken, wanted)?;
        layers.unused = unused(root, target, environment);

        let Some(name) = path else { return Ok(layers) };
        let text = open(name)?;
        let entries = file::entries(&text, name, root, &target.path)?;
        let wanted = flags(command).filter_map(|arg| {
            let entry = entries.iter().rfind(|entry| Some(entry.flag.as_str()) == arg.get_long())?;
            Some((arg, entry.value.clone(), Source::File { name: name.into(), line: entry.line }))
        });
        layers.add(command, &mut taken, wanted.collect())?;
        Ok(layers)
    }

    /// Adds one layer below those that `taken` stands for.
    fn add<'a>(
        &mut self,
        command: &'a Command,
        taken: &mut BTreeSet<&'a str>,
        wanted: Vec<(&'a Arg, Raw, Source)>,
    ) -> anyhow::Result<()> {
        let above = taken.clone();
        for (arg, value, source) in wanted {
            let id = arg.get_id().as_str();
            if above.contains(id) || above.iter().any(|other| conflict(command, id, other)) {
                continue;
            }
            let flag = arg.get_long().unwrap_or_default().to_string();
            let tokens = value.tokens(arg).map_err(|why| bad_input(format!("{source}: {flag}: {why}")))?;
            taken.insert(id);
            self.settings.push(Setting { flag, source, tokens });
        }
        Ok(())
    }

    /// The arguments to insert.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &String> {
        self.settings.iter().flat_map(|setting| &setting.tokens)
    }

    /// The flags that are set, and from where.
    pub(super) fn settings(&self) -> &[Setting] {
        &self.settings
    }
}

/// The variables of a flag, from the general to the specific.
fn variables(root: &Command, target: &Target<'_>, arg: &Arg) -> Vec<String> {
    let shout = |text: &str| text.replace('-', "_").to_uppercase();
    let flag = shout(arg.get_long().unwrap_or_default());
    let program = shout(root.get_name().trim_start_matches("cr-"));
    let path: Vec<String> = target.path.iter().map(|name| shout(name)).collect();
    let scopes = [vec![], path.clone(), vec![program.clone()], [vec![program], path].concat()];
    let mut names: Vec<String> = scopes
        .iter()
        .map(|scope| [&["CR".to_string()], scope.as_slice(), std::slice::from_ref(&flag)].concat().join("_"))
        .collect();
    names.dedup();
    names
}

/// The `CR_*` variables that set nothing here.
fn unused(root: &Command, target: &Target<'_>, environment: &[(String, String)]) -> Vec<String> {
    let known: BTreeSet<String> =
        flags(target.command).flat_map(|arg| variables(root, target, arg)).collect();
    let mut names: Vec<String> = environment.iter().map(|(name, _)| name.clone()).collect();
    names.retain(|name| !known.contains(name) && name != "CR_CONFIG");
    names.sort();
    names
}

/// Whether two flags exclude each other, by either's word or as alternatives of a group.
fn conflict(command: &Command, one: &str, other: &str) -> bool {
    let says = |from: &str, about: &str| {
        let arg = command.get_arguments().find(|arg| arg.get_id() == from);
        arg.is_some_and(|arg| command.get_arg_conflicts_with(arg).iter().any(|arg| arg.get_id() == about))
    };
    let alternatives = command.get_groups().any(|group| {
        let mut group = group.clone();
        let has = |id: &str| group.get_args().any(|arg| arg == id);
        has(one) && has(other) && !group.is_multiple()
    });
    says(one, other) || says(other, one) || alternatives
}
