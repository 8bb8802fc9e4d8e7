//! A comparison as lines of words: columns, the verdict, and the table for a terminal.

use super::{Change, Comparison, Row};
use crate::format::{percent, rate, ratio, seconds};
use std::fmt::Write;

/// The head of the columns; the last one holds the word of a change.
pub(super) const HEAD: [&str; 9] = ["policy", "QPS", "metric", "A", "B", "B - A", "95 % CI", "seeds", ""];

/// Whether column `column` holds words and not numbers.
pub(super) fn is_words(column: usize) -> bool {
    matches!(column, 0 | 2 | 8)
}

impl Comparison {
    /// A table of plain text, and the verdict in its last line.
    pub fn text(&self) -> String {
        let mut lines = vec![HEAD.map(String::from)];
        lines.extend(self.rows.iter().map(Row::columns));
        let mut out = aligned(&lines);
        // Writing to a string cannot fail.
        for (names, what) in self.unmatched() {
            let _ = writeln!(out, "{what}: {}", names.join(", "));
        }
        out + &self.verdict() + "\n"
    }

    /// The cells that only one side has, where there are any.
    pub(super) fn unmatched(&self) -> impl Iterator<Item = (&[String], &'static str)> {
        [(&self.missing[..], "B lacks"), (&self.added[..], "only B has")]
            .into_iter()
            .filter(|(names, _)| !names.is_empty())
    }

    /// What it comes down to, in one line.
    pub(super) fn verdict(&self) -> String {
        let tolerance = percent(self.tolerance);
        match (self.rows.is_empty(), self.worse(), self.missing.len()) {
            (true, ..) => "nothing to compare: the two have no policy at the same rate in common".into(),
            (_, 0, 0) => format!("no regression beyond {tolerance} and noise"),
            (_, worse, missing) => {
                format!("regressed: {worse} figures worse beyond {tolerance} and noise, {missing} missing")
            }
        }
    }
}

impl Row {
    pub(super) fn columns(&self) -> [String; HEAD.len()] {
        let form = form(self.metric);
        let word = match self.change {
            Change::Same => "",
            Change::Better => "better",
            Change::Worse => "WORSE",
            Change::Unquoted => "not compared (saturated)",
        };
        let quoted = self.change != Change::Unquoted;
        let value = |text: String| if quoted { text } else { "saturated".into() };
        let d = &self.difference;
        let sign = if d.mean > 0.0 { "+" } else { "" };
        [
            self.policy.clone(),
            self.qps.map(rate).unwrap_or_default(),
            self.metric.into(),
            value(form(self.a.mean)),
            value(form(self.b.mean)),
            value(format!("{sign}{}", form(d.mean))),
            d.ci95.filter(|_| quoted).map(|half| format!("± {}", form(half))).unwrap_or_default(),
            if d.n > 0 { format!("{} paired", d.n) } else { format!("{} and {}", self.a.n, self.b.n) },
            word.into(),
        ]
    }
}

fn form(metric: &str) -> fn(f64) -> String {
    match metric {
        "served_hit" | "failed_share" | "saturated" => percent,
        "ttft_p50_s" | "ttft_p99_s" => seconds,
        "achieved_qps" => rate,
        _ => ratio,
    }
}

/// Columns padded to their widest entry, words to the left, numbers to the right.
fn aligned(lines: &[[String; HEAD.len()]]) -> String {
    let widths: [usize; HEAD.len()] = std::array::from_fn(|column| {
        lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0)
    });
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let _ = match is_words(column) {
                true => write!(text, "{cell:<width$}  "),
                false => write!(text, "{cell:>width$}  "),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
