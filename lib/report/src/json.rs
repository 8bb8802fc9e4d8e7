//! JSON that a file in version control can be made of: keys sorted, fixed decimals, one newline at the end.
//!
//! What fits on a line stands on one line, so that a changed run changes few lines of a diff.

use serde::Serialize;
use serde_json::{Map, Number, Value};
use std::fmt::Write as _;

/// Decimals of every number that is not whole by its type: a microsecond, a millionth of a share.
pub const DECIMALS: usize = 6;

/// The width that lines are broken at.
const WIDTH: usize = 120;

/// Renders a value. The same value always gives the same bytes.
///
/// # Errors
/// Where the value cannot be represented in JSON, such as a map whose keys are no strings.
pub fn stable(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let value = serde_json::to_value(value)?;
    let mut text = String::new();
    write_value(&value, 0, 0, &mut text);
    text.push('\n');
    Ok(text)
}

/// Renders an object that has a long list under `name`, beside the fields of the object `rest`, as [`stable`] does. The items are
/// taken one by one: the tree of values of all together is many times as large as their text.
///
/// # Errors
/// As [`stable`].
pub fn stable_list<T: Serialize>(
    rest: Map<String, Value>,
    name: &str,
    items: impl Iterator<Item = T>,
) -> Result<String, serde_json::Error> {
    let mut items = items.map(serde_json::to_value);
    let first = items.next().transpose()?;
    let is_long = |item: &Value| !inline(item, WIDTH, &mut String::new());
    if !first.as_ref().is_some_and(is_long) {
        // The whole may fit on a line.
        let list = first.map(Ok).into_iter().chain(items).collect::<Result<Vec<_>, _>>()?;
        let mut whole = rest;
        whole.insert(name.into(), Value::from(list));
        return stable(&whole);
    }
    let mut text = String::from("{");
    let mut names: Vec<&str> = rest.keys().map(String::as_str).chain([name]).collect();
    names.sort_unstable();
    let mut items = first.map(Ok).into_iter().chain(items);
    for (index, field) in names.into_iter().enumerate() {
        let column = write_name(index, field, 2, &mut text);
        match rest.get(field) {
            Some(value) => write_value(value, 2, column, &mut text),
            None => {
                text.push('[');
                for (index, item) in items.by_ref().enumerate() {
                    new_line(index, 4, &mut text);
                    write_value(&item?, 4, 4, &mut text);
                }
                end(']', 2, &mut text);
            }
        }
    }
    end('}', 0, &mut text);
    text.push('\n');
    Ok(text)
}

/// Writes `value`, whose first line starts in column `column`, with further lines indented by `indent`.
fn write_value(value: &Value, indent: usize, column: usize, out: &mut String) {
    let mut line = String::new();
    if inline(value, WIDTH.saturating_sub(column), &mut line) {
        out.push_str(&line);
        return;
    }
    match value {
        Value::Array(items) if items.iter().all(is_scalar) => fill(items, indent, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                new_line(index, indent + 2, out);
                write_value(item, indent + 2, indent + 2, out);
            }
            end(']', indent, out);
        }
        Value::Object(map) => {
            out.push('{');
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            for (index, (key, item)) in entries.into_iter().enumerate() {
                let column = write_name(index, key, indent + 2, out);
                write_value(item, indent + 2, column, out);
            }
            end('}', indent, out);
        }
        scalar => write_scalar(scalar, out),
    }
}

/// Begins a field on a line of its own; says in which column its value starts.
fn write_name(index: usize, name: &str, indent: usize, out: &mut String) -> usize {
    new_line(index, indent, out);
    let start = out.len();
    write_text(name, out);
    out.push_str(": ");
    indent + (out.len() - start)
}

fn new_line(index: usize, indent: usize, out: &mut String) {
    out.push_str(if index == 0 { "\n" } else { ",\n" });
    out.extend(std::iter::repeat_n(' ', indent));
}

fn end(bracket: char, indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push(bracket);
}

/// Many scalars: as many on a line as fit.
fn fill(items: &[Value], indent: usize, out: &mut String) {
    out.push('[');
    let (mut column, mut text) = (WIDTH, String::new());
    for (index, item) in items.iter().enumerate() {
        text.clear();
        write_scalar(item, &mut text);
        if column + text.len() + 2 > WIDTH {
            new_line(index, indent + 2, out);
            column = indent + 2;
        } else {
            out.push_str(", ");
            column += 2;
        }
        column += text.len();
        out.push_str(&text);
    }
    end(']', indent, out);
}

/// Appends `value` on one line; stops and says false where it is longer than `room`.
fn inline(value: &Value, room: usize, out: &mut String) -> bool {
    match value {
        // No item is shorter than a digit, a comma and a space.
        Value::Array(items) if 3 * items.len() > room => return false,
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                if !inline(item, room, out) {
                    return false;
                }
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push('{');
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_str());
            for (index, (key, item)) in entries.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write_text(key, out);
                out.push_str(": ");
                if !inline(item, room, out) {
                    return false;
                }
            }
            out.push('}');
        }
        scalar => write_scalar(scalar, out),
    }
    out.len() <= room
}

fn is_scalar(value: &Value) -> bool {
    !value.is_array() && !value.is_object()
}

fn write_scalar(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => write_text(text, out),
        Value::Array(_) | Value::Object(_) => {}
    }
}

fn write_number(number: &Number, out: &mut String) {
    match number.as_f64() {
        Some(value) if number.is_f64() => write_decimals(value, out),
        // A string takes whatever is written to it.
        _ => write!(out, "{number}").unwrap_or_default(),
    }
}

/// One with that many decimals.
const ONE: u64 = 10u64.pow(DECIMALS as u32);

/// Writes a number with [`DECIMALS`] decimals, as the standard formatter does, which takes its time to be exact where this need not be.
fn write_decimals(value: f64, out: &mut String) {
    let scaled = value.abs() * ONE as f64;
    let whole = scaled as u64;
    let rest = scaled - whole as f64;
    // Below 2^40 the product is off by less than 2^-13, so what is farther than that from a half rounds as the exact one does.
    if scaled < (1u64 << 40) as f64 && (rest - 0.5).abs() > 1e-3 {
        let units = whole + u64::from(rest > 0.5);
        // Minus nothing is nothing.
        out.push_str(if value < 0.0 && units > 0 { "-" } else { "" });
        return write!(out, "{}.{:0DECIMALS$}", units / ONE, units % ONE).unwrap_or_default();
    }
    let text = format!("{value:.DECIMALS$}");
    let zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    out.push_str(if zero { text.trim_start_matches('-') } else { &text });
}

fn write_text(text: &str, out: &mut String) {
    out.push_str(&Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_numbers_fixed_and_short_things_inline() {
        let value = json!({"b": 1, "a": [0.5, -0.0000001, 2], "n": null, "t": "q\"\n"});
        let text = stable(&value).expect("plain JSON");
        assert_eq!(text, "{\"a\": [0.500000, 0.000000, 2], \"b\": 1, \"n\": null, \"t\": \"q\\\"\\n\"}\n");
    }

    #[test]
    fn long_things_are_broken() {
        let long: Vec<u64> = (0..60).collect();
        let text = stable(&json!({"z": {"deep": long}, "a": [{"x": "y".repeat(70)}, {"x": "y".repeat(70)}]}))
            .expect("JSON");
        let y = "y".repeat(70);
        let row: Vec<String> = (0..=30).map(|n| n.to_string()).collect();
        let rest: Vec<String> = (31..60).map(|n| n.to_string()).collect();
        let want = format!(
            "{{\n  \"a\": [\n    {{\"x\": \"{y}\"}},\n    {{\"x\": \"{y}\"}}\n  ],\n  \"z\": {{\n    \"deep\": [\n      {},\n      {}\n    ]\n  }}\n}}\n",
            row.join(", "),
            rest.join(", ")
        );
        assert_eq!(text, want);
    }

    proptest! {
        #[test]
        fn decimals_are_those_of_the_formatter(value in prop_oneof![
            any::<f64>(), -2e6f64..2e6, -1e-4f64..1e-4, (-4_000_000i64..4_000_000).prop_map(|n| n as f64 / 2e6),
            (-64_000_000i64..64_000_000).prop_map(|n| n as f64 / (1 << 20) as f64),
        ]) {
            let (mut text, exact) = (String::new(), format!("{value:.DECIMALS$}"));
            write_decimals(value, &mut text);
            let is_nothing = exact.parse() == Ok(0.0);
            prop_assert_eq!(text, if is_nothing { "0.000000" } else { exact.as_str() });
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1000i64..1000).prop_map(|n| Value::from(n as f64 / 8.0)),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::hash_map(".{0,6}", inner, 0..8).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_back_as_it_was(value in tree()) {
            let text = stable(&value).expect("plain JSON");
            prop_assert_eq!(serde_json::from_str::<Value>(&text).expect("valid"), value);
        }

        #[test]
        fn a_list_taken_item_by_item_is_as_the_whole(
            items in prop::collection::vec(tree(), 0..6),
            rest in prop::collection::hash_map("[a-z]{1,6}", tree(), 0..4),
            name in "[a-z]{7,9}",
        ) {
            let rest = Map::from_iter(rest);
            let mut whole = rest.clone();
            whole.insert(name.clone(), Value::from(items.clone()));
            let text = stable_list(rest, &name, items.into_iter()).expect("plain JSON");
            prop_assert_eq!(text, stable(&whole).expect("plain JSON"));
        }
    }
}
