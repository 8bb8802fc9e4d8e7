//! Values as a file or a variable gives them, and the flags that they stand for.

use clap::{Arg, ArgAction};
use toml::de::DeValue;

/// A value before its flag has had a say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Raw {
    /// `true` or `false`.
    Switch(bool),
    /// A number or a string.
    Text(String),
    /// Several.
    List(Vec<String>),
}

impl Raw {
    /// A value of TOML.
    ///
    /// # Errors
    /// A date, a table, or a list of anything but plain values, in words.
    pub(super) fn of(value: &DeValue<'_>) -> Result<Raw, String> {
        if let DeValue::Boolean(on) = value {
            return Ok(Raw::Switch(*on));
        }
        match value.as_array() {
            Some(items) => {
                items.iter().map(|item| plain(item.get_ref())).collect::<Result<_, _>>().map(Raw::List)
            }
            None => plain(value).map(Raw::Text),
        }
    }

    /// The text of a variable, as its flag reads it.
    pub(super) fn from_variable(arg: &Arg, text: &str) -> Raw {
        let several = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        match text {
            _ if arg.get_action().takes_values() && several => {
                Raw::List(text.split_whitespace().map(String::from).collect())
            }
            _ if arg.get_action().takes_values() => Raw::Text(text.into()),
            "1" | "true" | "yes" | "on" => Raw::Switch(true),
            "" | "0" | "false" | "no" | "off" => Raw::Switch(false),
            _ => Raw::Text(text.into()),
        }
    }

    /// The arguments that give this value to a flag; none for a switch that is off.
    ///
    /// # Errors
    /// A value of the wrong kind, in words.
    pub(super) fn tokens(&self, arg: &Arg) -> Result<Vec<String>, String> {
        let flag = format!("--{}", arg.get_long().unwrap_or_default());
        let range = arg.get_num_args().unwrap_or_default();
        match (arg.get_action(), self) {
            (ArgAction::SetTrue | ArgAction::Count, Raw::Switch(on)) => {
                Ok(if *on { vec![flag] } else { Vec::new() })
            }
            (ArgAction::Count, Raw::Text(text)) => match text.parse::<u8>() {
                Ok(times) => Ok(vec![flag; times.into()]),
                Err(_) => Err(format!("{text:?} is no number of times from 0 to 255")),
            },
            (ArgAction::SetTrue | ArgAction::Count, _) => Err("it is a switch; write true or false".into()),
            (_, Raw::Switch(true)) if range.min_values() == 0 => Ok(vec![flag]),
            (_, Raw::Switch(on)) => Ok(vec![format!("{flag}={on}")]),
            (_, Raw::Text(text)) => Ok(vec![format!("{flag}={text}")]),
            (_, Raw::List(items)) if range.max_values() > 1 => {
                Ok(std::iter::once(flag).chain(items.iter().cloned()).collect())
            }
            (ArgAction::Append, Raw::List(items)) => {
                Ok(items.iter().map(|item| format!("{flag}={item}")).collect())
            }
            (_, Raw::List(_)) => Err("it takes one value, not a list".into()),
        }
    }
}

fn plain(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().into()),
        DeValue::Integer(_) => Err("write the number in decimal".into()),
        DeValue::Float(number) => Ok(number.as_str().into()),
        DeValue::Boolean(on) => Ok(on.to_string()),
        other => Err(format!("a {} is no value of a flag", other.type_str())),
    }
}
