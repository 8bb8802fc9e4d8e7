//! A comparison as Markdown: for a comment on a pull request.

use super::table::{HEAD, is_words};
use super::{Change, Comparison};
use crate::markdown::escape;
use std::fmt::Write;

impl Comparison {
    /// The verdict, what only one side has, and a table of every figure. What got worse is set in bold.
    pub fn markdown(&self) -> String {
        let mut out = format!("**{}**\n", capitalised(&escape(&self.verdict())));
        // Writing to a string cannot fail.
        for (names, what) in self.unmatched() {
            let _ = writeln!(out, "\n{}: {}", capitalised(what), escape(&names.join(", ")));
        }
        if self.rows.is_empty() {
            return out;
        }
        let rules: Vec<&str> =
            (0..HEAD.len()).map(|column| if is_words(column) { "---" } else { "---:" }).collect();
        let _ = writeln!(out, "\n| {} |\n|{}|", HEAD.join(" | "), rules.join("|"));
        for row in &self.rows {
            let mut cells = row.columns().map(|cell| escape(&cell));
            if row.change == Change::Worse {
                cells
                    .iter_mut()
                    .filter(|cell| !cell.is_empty())
                    .for_each(|cell| *cell = format!("**{cell}**"));
            }
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        out
    }
}

/// With a capital letter in front.
fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
