//! What is wrong with a TOML file, as one sentence and a line.
//!
//! A parser's own message spans lines and draws an arrow; errors here are one line each: `file:line: what`.

use std::ops::Range;

/// The line, from 1, and the sentence of an error that a TOML parser gave with this span and message. An unknown field or value
/// is told with the nearest name that is known.
pub fn explain(text: &str, span: Option<Range<usize>>, message: &str) -> (usize, String) {
    let start = span.map_or(0, |span| span.start).min(text.len());
    let line = 1 + text.as_bytes()[..start].iter().filter(|&&byte| byte == b'\n').count();
    let line = line_of_unknown(text, line, message).unwrap_or(line);
    (line, near_miss(message))
}

/// The line of an unknown field, where the error only knows the table that holds it and begins at `line`.
fn line_of_unknown(text: &str, line: usize, message: &str) -> Option<usize> {
    let name = message.strip_prefix("unknown field `")?.split('`').next()?;
    let is_field = |text: &str| {
        text.trim_start().strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    text.lines().enumerate().skip(line - 1).find(|(_, text)| is_field(text)).map(|(index, _)| index + 1)
}

/// Turns "unknown field `x`, expected one of `a`, `b`" into a sentence that names the nearest.
pub fn near_miss(message: &str) -> String {
    let one_line =
        || message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(", ");
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (kind, Some((&typed, names))) = (message.split(" `").next().unwrap_or(message), quoted.split_first())
    else {
        return one_line();
    };
    if !matches!(kind, "unknown field" | "unknown variant") || names.is_empty() {
        return one_line();
    }
    let nearest = names
        .iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(typed, name), *name))
        .filter(|(likeness, _)| *likeness > 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let what = if kind == "unknown field" { "unknown field" } else { "unknown value" };
    match nearest {
        Some((_, name)) => format!("{what} {typed:?}; did you mean {name:?}? (one of {})", names.join(", ")),
        None => format!("{what} {typed:?}; one of {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_and_its_line() {
        let text = "a = 1\n[t]\nbsae = 2\n";
        let message = "unknown field `bsae`, expected one of `base`, `step`";
        // The span is that of the table.
        let (line, what) = explain(text, Some(6..9), message);
        assert_eq!(
            (line, what.as_str()),
            (3, "unknown field \"bsae\"; did you mean \"base\"? (one of base, step)")
        );
        let (line, what) = explain(text, Some(8..9), "invalid table header\nexpected `.`, `]`");
        assert_eq!((line, what.as_str()), (2, "invalid table header, expected `.`, `]`"));
        assert_eq!(explain("", Some(9..10), "missing field `x`"), (1, "missing field `x`".into()));
        assert_eq!(
            explain("x", None, "unknown variant `q`, expected `a` or `b`").1,
            "unknown value \"q\"; one of a, b"
        );
    }
}
