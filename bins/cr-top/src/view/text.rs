//! Fitting text into a line.

use ratatui::text::{Line, Span};

/// A piece of a line that is left out as a whole where room is short.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// The higher, the longer it stays.
    pub rank: u8,
    /// Its text.
    pub spans: Vec<Span<'a>>,
}

/// A part of several spans.
pub fn part<'a>(rank: u8, spans: impl IntoIterator<Item = Span<'a>>) -> Part<'a> {
    Part { rank, spans: spans.into_iter().collect() }
}

impl Part<'_> {
    /// Its width in columns.
    pub fn width(&self) -> usize {
        self.spans.iter().map(Span::width).sum()
    }
}

/// Drops the parts of least rank (the last of them first) until what is left, with `gap` between parts, is at most
/// `width` columns wide.
pub fn fit<'a>(mut parts: Vec<Part<'a>>, gap: &'a str, width: usize) -> Line<'a> {
    parts.retain(|part| part.width() > 0);
    let gap_width = Span::raw(gap).width();
    loop {
        let gaps = gap_width * parts.len().saturating_sub(1);
        let used = parts.iter().map(Part::width).sum::<usize>() + gaps;
        if used <= width || parts.len() <= 1 {
            break;
        }
        let least = parts.iter().enumerate().rev().min_by_key(|(_, part)| part.rank).map(|(at, _)| at);
        if let Some(at) = least {
            parts.remove(at);
        }
    }
    let mut line = Line::default();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            line.push_span(Span::raw(gap));
        }
        line.spans.extend(part.spans);
    }
    line
}

/// At most `width` columns of a text, the end marked where something was cut.
pub fn cut(text: &str, width: usize) -> String {
    if Span::raw(text).width() <= width {
        return text.to_string();
    }
    let mut out = String::new();
    for c in text.chars() {
        out.push(c);
        if Span::raw(out.as_str()).width() + 1 > width {
            out.pop();
            break;
        }
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// A text on lines of at most `width` columns, broken between words; all but the first begin with `indent`. A word that
/// is wider than a line is cut.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let lead = text.len() - text.trim_start().len();
    let mut line = text[..lead].to_string();
    let mut has_word = false;
    for word in text.split_whitespace() {
        let longer = if has_word { format!("{line} {word}") } else { format!("{line}{word}") };
        if Span::raw(longer.as_str()).width() <= width || !has_word {
            line = longer;
        } else {
            lines.push(std::mem::replace(&mut line, format!("{indent}{word}")));
        }
        has_word = true;
    }
    lines.push(line);
    lines.iter().map(|line| cut(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_goes_first() {
        let parts = || {
            [(3, "aaaa"), (1, "bbbb"), (2, "cccc")].map(|(rank, text)| part(rank, [Span::raw(text)])).to_vec()
        };
        assert_eq!(fit(parts(), "  ", 16).to_string(), "aaaa  bbbb  cccc");
        assert_eq!(fit(parts(), "  ", 15).to_string(), "aaaa  cccc");
        assert_eq!(fit(parts(), "  ", 3).to_string(), "aaaa");
        assert_eq!(fit(Vec::new(), "  ", 3).to_string(), "");
    }

    #[test]
    fn wraps_between_words() {
        let lines = wrap("  → raise the slots, or plan anew", 16, "    ");
        assert_eq!(lines, ["  → raise the", "    slots, or", "    plan anew"]);
        assert_eq!(wrap("abcdefgh", 4, "  "), ["abc…"]);
        assert_eq!(wrap("", 4, "  "), [""]);
    }

    #[test]
    fn cuts_by_columns() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut("abc", 0), "");
    }
}
