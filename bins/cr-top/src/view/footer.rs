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

/// Draws the line.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &App, live: &Live, look: Look) {
    let room = usize::from(area.width.saturating_sub(2));
    let line = if app.typing {
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
        Action::Sort => app.view == View::Fleet && !app.help && live.fleet.shards().len() > 1,
        Action::Filter => !app.help,
        _ => true,
    }
}

/// The last `width` characters.
fn tail(text: &str, width: usize) -> String {
    let skip = text.chars().count().saturating_sub(width);
    text.chars().skip(skip).collect()
}
