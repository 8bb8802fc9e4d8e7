//! The help: the table of keys, and what the glyphs mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::text::cut;
use crate::keys::{BINDINGS, Group};
use crate::palette::Role;
use crate::state::app::App;

/// What needs a word besides the keys.
const LEGEND: [(&str, &str); 7] = [
    ("served hit", "cached / prompt tokens of finished requests"),
    ("max/mean", "load of the busiest shard / the mean, charts over 10 s; 1 is perfect"),
    ("LOAD/MEAN", "a shard's computed + output tokens per second up / the fleet's"),
    ("KV", "blocks in use; ▓ are protected from eviction"),
    ("charts", "whole run; ╎ a new table, ┆ the end of the warm-up, ╌ the SLO"),
    ("QPS ▼", "less is achieved than offered"),
    ("so far", "measured part only: the warm-up and the planning part do not count"),
];

/// Draws the help.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, look: Look) {
    let lines = lines(look, usize::from(area.width.saturating_sub(2)));
    let first = app.help_place.fit(lines.len(), area.height.into());
    for (row, line) in lines.iter().skip(first).take(area.height.into()).enumerate() {
        buffer.set_line(area.x + 1, area.y + row as u16, line, area.width.saturating_sub(2));
    }
}

fn lines<'a>(look: Look, width: usize) -> Vec<Line<'a>> {
    let row = |left: &str, right: &str| {
        let right = cut(right, width.saturating_sub(14));
        Line::from(vec![Span::raw(format!("  {left:<11} ")), look.span(Role::Dim, right)])
    };
    let mut lines = Vec::new();
    for group in Group::ALL {
        lines.push(Line::from(look.span(Role::Accent, group.name())));
        let bindings = BINDINGS.iter().filter(|binding| binding.group == group);
        lines.extend(bindings.map(|binding| row(binding.keys, binding.what)));
    }
    lines.push(Line::from(look.span(Role::Accent, "On screen")));
    lines.extend(LEGEND.map(|(left, right)| row(left, right)));
    lines
}
