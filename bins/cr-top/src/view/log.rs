//! What happened besides requests, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::look::Look;
use super::text::{cut, wrap};
use crate::figures::count;
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::findings::Finding;
use crate::state::live::Live;
use crate::state::log::{Entry, Kind};

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, live: &Live, look: Look) {
    if area.height < 2 {
        return;
    }
    let passes = |entry: &&Entry| app.passes(&format!("{} {}", entry.kind.name(), entry.text));
    let entries: Vec<&Entry> = live.log.entries().rev().filter(passes).collect();
    let dropped = match live.log.dropped() {
        0 => String::new(),
        n => format!(", {} older dropped", count(n)),
    };
    let width = usize::from(area.width - 2);
    // What holds now stands above what happened.
    let mut lines = verdict(live, look, width);
    lines.extend(findings(live, look, width));
    let noun = if entries.len() == 1 { "entry" } else { "entries" };
    let heading = format!("{} {noun}, newest first{dropped}", count(entries.len() as u64));
    lines.push(Line::from(look.span(Role::Dim, heading)));
    let rows = usize::from(area.height);
    let first = app.places[View::Log as usize].fit(lines.len() + entries.len(), rows);
    let entries = entries.into_iter().map(|entry| line(entry, width, look));
    for (y, line) in (area.top()..area.bottom()).zip(lines.into_iter().chain(entries).skip(first)) {
        buffer.set_line(area.x + 1, y, &line, area.width - 2);
    }
}

/// What a gate says, and why.
fn verdict<'a>(live: &Live, look: Look, width: usize) -> Vec<Line<'a>> {
    let Some(gate) = &live.gate else { return Vec::new() };
    let head = format!("◆ {}: {} instead of {}", gate.decision, gate.candidate, gate.baseline);
    let reasons = gate.reasons.iter().flat_map(|reason| wrap(&format!("  {reason}"), width, "    "));
    let head = Line::from(look.span(Role::Accent, cut(&head, width)));
    std::iter::once(head).chain(reasons.map(|text| Line::from(Span::raw(text)))).collect()
}

/// The warnings that hold now, each with its remedy, on as many lines as they take.
fn findings<'a>(live: &Live, look: Look, width: usize) -> Vec<Line<'a>> {
    let lines = |finding: &Finding| {
        let name = format!("⚠ {}", finding.name);
        let detail = wrap(&format!("{name}: {}", finding.detail), width, "  ");
        let detail = detail.into_iter().map(|text| match text.strip_prefix(name.as_str()) {
            Some(rest) => Line::from(vec![look.span(Role::Warn, name.clone()), Span::raw(rest.to_string())]),
            None => Line::from(Span::raw(text)),
        });
        let remedy = wrap(&format!("  → {}", finding.name.remedy()), width, "    ");
        let remedy = remedy.into_iter().map(|text| Line::from(look.span(Role::Dim, text)));
        detail.chain(remedy).collect::<Vec<_>>()
    };
    live.findings.iter().flat_map(lines).collect()
}

fn line<'a>(entry: &Entry, width: usize, look: Look) -> Line<'a> {
    let (glyph, role) = match entry.kind {
        Kind::Fault | Kind::Fail | Kind::BadLine => ("✖", Role::Bad),
        Kind::Recovery => ("●", Role::Good),
        Kind::Warning => ("⚠", Role::Warn),
        Kind::Plan => ("◆", Role::Accent),
        Kind::Note => ("·", Role::Dim),
    };
    let times = if entry.times > 1 { format!(" (×{})", count(entry.times)) } else { String::new() };
    let text = cut(&format!("{}{times}", entry.text), width.saturating_sub(22));
    Line::from(vec![
        look.span(Role::Dim, format!("{:>9.2}  ", entry.t_s)),
        look.span(role, format!("{glyph} {:<8}", entry.kind.name())),
        Span::raw(" "),
        Span::raw(text),
    ])
}
