//! The last line: the most useful keys, or the filter while it is typed.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::text::{cut, fit, part};
use crate::keys::{Action, BINDINGS};
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::live::Live;
use crate::system::Usage;

/// Draws the line.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &App, live: &Live, look: Look) {
    let room = usize::from(area.width.saturating_sub(2));
    let line = if let Some(message) = &app.message {
        Line::from(look.span(Role::Accent, cut(message, room)))
    } else if app.typing {
        let shown: String = tail(&app.filter, room.saturating_sub(10));
        Line::from(vec![
            look.span(Role::Accent, "filter "),
            Span::raw(shown),
            Span::styled(" ", look.style(Role::Selected)),
        ])
    } else {
        keys(app, live, look, room)
    };
    buffer.set_line(area.x + 1, area.y, &line, room as u16);
}

fn keys<'a>(app: &App, live: &Live, look: Look, room: usize) -> Line<'a> {
    let mut parts = Vec::new();
    if !app.filter.is_empty() {
        parts.push(part(250, [look.span(Role::Warn, format!("filter {:?}", cut(&app.filter, 16)))]));
    }
    let place = if app.help { app.help_place } else { app.places[app.view as usize] };
    if let Some(range) = place.range() {
        parts.push(part(240, [look.span(Role::Accent, range)]));
    }
    let shown =
        BINDINGS.iter().filter(|binding| !binding.short.is_empty() && applies(binding.action, app, live));
    for (at, binding) in shown.enumerate() {
        let short = if binding.action == Action::Pause && app.paused { "resume" } else { binding.short };
        let key = Span::styled(binding.keys, look.style(Role::Plain).add_modifier(Modifier::BOLD));
        parts.push(part(200 - at as u8, [key, Span::raw(" "), look.span(Role::Dim, short)]));
    }
    fit(parts, "  ", room)
}

/// Whether a key does anything just now.
fn applies(action: Action, app: &App, live: &Live) -> bool {
    match action {
        Action::Sort => app.view.sort_columns() > 0 && !app.help && live.fleet.shards().len() > 1,
        Action::Filter => matches!(app.view, View::Fleet | View::Keys | View::Log) && !app.help,
        Action::NextRun => app.runs > 1 && app.view != View::Compare,
        _ => true,
    }
}

/// The line on the machine that this runs on.
pub fn machine(area: Rect, buffer: &mut Buffer, usage: &Usage, look: Look) {
    let room = area.width.saturating_sub(2);
    let gb = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let mut parts = vec![
        part(9, [look.span(Role::Dim, "this machine")]),
        part(8, look.pair("CPU", format!("{:.0} % of {}", usage.cpu * 100.0, usage.cores))),
        part(7, look.pair("memory", format!("{} of {}", gb(usage.memory_used), gb(usage.memory_total)))),
    ];
    for gpu in &usage.gpus {
        parts.push(part(
            6,
            look.pair(
                "GPU",
                format!("{:.0} %, {} of {}", gpu.busy * 100.0, gb(gpu.memory_used), gb(gpu.memory_total)),
            ),
        ));
    }
    buffer.set_line(area.x + 1, area.y, &fit(parts, "  ", room.into()), room);
}

/// The last `width` characters.
fn tail(text: &str, width: usize) -> String {
    let skip = text.chars().count().saturating_sub(width);
    text.chars().skip(skip).collect()
}
