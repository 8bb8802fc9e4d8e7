//! The help: the table of keys, and what the glyphs mean.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::text::wrap;
use crate::keys::{BINDINGS, Group};
use crate::palette::Role;
use crate::state::app::App;

/// Columns before a text.
const INDENT: usize = 14;
/// What needs a word besides the keys.
const LEGEND: [(&str, &str); 9] = [
    ("served hit", "cached / prompt tokens of finished requests"),
    ("max/mean", "the busiest shard / the mean, in charts over 10 s; 1 is perfect"),
    ("LOAD/MEAN", "a shard's computed + output tokens per second up / the fleet's"),
    ("KV", "blocks in use; ▓ are protected from eviction"),
    ("◆ ○", "Keys: a key that the routing table names, one that it does not"),
    ("! ▲ ▼", "Keys: a shard that the table does not name; a rate 1.5 times off"),
    ("charts", "whole run; ╎ a new table, ┆ the end of the warm-up, ╌ the SLO"),
    ("QPS ▼", "less is achieved than offered"),
    ("so far", "the measured part, without warm-up and planning part"),
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
        let wrapped = wrap(right, width.saturating_sub(INDENT), "").into_iter().enumerate();
        let line = |(at, text): (usize, String)| {
            let left = if at == 0 { left } else { "" };
            Line::from(vec![Span::raw(format!("  {left:<11} ")), look.span(Role::Dim, text)])
        };
        wrapped.map(line).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for group in Group::ALL {
        lines.push(Line::from(look.span(Role::Accent, group.name())));
        let bindings = BINDINGS.iter().filter(|binding| binding.group == group);
        lines.extend(bindings.flat_map(|binding| row(binding.keys, binding.what)));
        // What glyphs mean is looked for more often than what the arrow keys do.
        if group == Group::General {
            lines.push(Line::from(look.span(Role::Accent, "On screen")));
            lines.extend(LEGEND.iter().flat_map(|(left, right)| row(left, right)));
        }
    }
    lines
}
