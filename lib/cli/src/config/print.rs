//! `--print-config`: every value with its source, as a file that `--config` reads.
//!
//! Defaults stand as comments: written out, those that go with another flag would ask for it.

use super::{Layers, Target, flags};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::fmt::Write;

/// The column of the comments.
const COMMENT_AT: usize = 40;

/// The settings of the command in question; what nobody set stands as a comment.
pub(super) fn toml(root: &Command, target: &Target<'_>, matches: &ArgMatches, layers: &Layers) -> String {
    let table = std::iter::once(root.get_name()).chain(target.path.iter().map(String::as_str));
    let table: Vec<&str> = table.collect();
    let mut text =
        format!("# What `{}` is set to, and from where.\n[{}]\n", table.join(" "), table.join("."));
    let mut heading = None;
    for arg in flags(target.command).filter(|arg| !arg.is_hide_set()) {
        if arg.get_help_heading() != heading {
            heading = arg.get_help_heading();
            let _ = write!(text, "\n# {}\n", heading.unwrap_or("Options"));
        }
        let name = arg.get_long().unwrap_or_default();
        let (origin, is_set) = origin(arg, matches, layers);
        let value = value(arg, matches).map_or(String::new(), |value| format!(" {value}"));
        let line = format!("{}{name} ={value}", if is_set { "" } else { "# " });
        let _ = writeln!(text, "{line:COMMENT_AT$}  # {origin}");
    }
    if !layers.unused.is_empty() {
        let _ = write!(text, "\n# Variables that set nothing here: {}\n", layers.unused.join(", "));
    }
    text
}

/// The value as TOML; `None` where there is none.
fn value(arg: &Arg, matches: &ArgMatches) -> Option<String> {
    let id = arg.get_id().as_str();
    match arg.get_action() {
        ArgAction::SetTrue => return Some(matches.get_flag(id).to_string()),
        ArgAction::Count => return Some(matches.get_count(id).to_string()),
        _ => {}
    }
    let items: Vec<String> = matches.get_raw(id)?.map(|item| literal(&item.to_string_lossy())).collect();
    let list = matches!(arg.get_action(), ArgAction::Append) || items.len() > 1;
    match items.as_slice() {
        // A flag whose value may be left out, and was.
        [] => Some("true".into()),
        [one] if !list => Some(one.clone()),
        _ => Some(format!("[{}]", items.join(", "))),
    }
}

/// Numbers bare where TOML writes them the same, anything else as a string.
fn literal(text: &str) -> String {
    let whole = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    let decimal = text.contains('.') && text.parse::<f64>().is_ok_and(|number| number.to_string() == text);
    if whole || decimal { text.into() } else { toml::Value::String(text.into()).to_string() }
}

/// Where the value came from, and whether somebody set it.
fn origin(arg: &Arg, matches: &ArgMatches, layers: &Layers) -> (String, bool) {
    let long = arg.get_long().unwrap_or_default();
    if let Some(setting) = layers.settings().iter().find(|setting| setting.flag == long) {
        return (setting.source.to_string(), true);
    }
    match matches.value_source(arg.get_id().as_str()) {
        Some(ValueSource::CommandLine) => (format!("--{long}"), true),
        Some(_) => ("default".into(), false),
        None if arg.is_required_set() => ("missing, and needed".into(), false),
        None => ("not set".into(), false),
    }
}
