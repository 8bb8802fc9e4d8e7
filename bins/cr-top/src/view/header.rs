//! The two lines on top: what runs, and how far it is; and the line of tabs.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::bars::bar;
use super::look::Look;
use super::text::{Part, cut, fit, part};
use crate::figures::{clock, count, rate, seconds};
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::findings::Name;
use crate::state::live::{Live, Phase};
use crate::state::log::Kind;

/// Between the parts of the second line.
const GAP: &str = "  ";
/// The least and the most width of the progress bar.
const MIN_BAR: usize = 6;
const MAX_BAR: usize = 24;

/// Draws the two lines.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &App, live: &Live, look: Look) {
    if area.height < 2 {
        return;
    }
    let state = state(app, live, look);
    let state_width = state.width() as u16;
    let room = usize::from(area.width.saturating_sub(state_width + 3));
    buffer.set_line(area.x + 1, area.y, &fit(what(live, look, room), "  ", room), room as u16);
    buffer.set_line(area.right() - state_width - 1, area.y, &state, state_width);
    let room = usize::from(area.width.saturating_sub(2));
    buffer.set_line(area.x + 1, area.y + 1, &fit(how_far(app, live, look, room), GAP, room), room as u16);
}

/// Where the stream stands, or the replay of it.
fn state<'a>(app: &App, live: &Live, look: Look) -> Line<'a> {
    if let Some(replay) = app.replay {
        let (glyph, role) = if replay.playing { ("▶", Role::Good) } else { ("⏸", Role::Warn) };
        let place = format!(" replay {}× {} of {}", replay.speed, seconds(replay.t_s), seconds(replay.end_s));
        return Line::from(vec![look.span(role, glyph), look.span(role, place)]);
    }
    let (glyph, word, role) = Look::phase(live.phase, app.paused);
    Line::from(vec![look.span(role, glyph), Span::raw(" "), look.span(role, word)])
}

/// What runs, on what.
fn what<'a>(live: &'a Live, look: Look, room: usize) -> Vec<Part<'a>> {
    let Some(header) = &live.header else {
        return vec![part(
            1,
            [
                look.span(Role::Accent, "cr-top"),
                Span::raw("  "),
                Span::raw(cut(&live.name, room.saturating_sub(8))),
            ],
        )];
    };
    let shards = if header.shards == 1 { "1 shard".into() } else { format!("{} shards", header.shards) };
    let on = if header.engine == "sim" {
        [look.span(Role::Plain, cut(&header.model, 24)), look.span(Role::Dim, " simulated")]
    } else {
        [
            look.span(Role::Plain, cut(&header.model, 24)),
            look.span(Role::Dim, format!(" on {}", cut(&header.device, 16))),
        ]
    };
    let durations =
        if header.clock == "virtual" { format!(", {} steps", header.durations) } else { String::new() };
    let mut parts = vec![
        part(9, [look.span(Role::Accent, cut(&header.policy, room.min(24)))]),
        part(7, on),
        part(8, [Span::raw(shards)]),
        part(5, [look.span(Role::Dim, format!("seed {}", header.seed))]),
        part(4, [look.span(Role::Dim, format!("{} clock{durations}", cut(&header.clock, 10)))]),
        part(1, [look.span(Role::Dim, cut(&live.name, 40))]),
    ];
    if header.in_sample {
        parts.insert(3, part(6, [look.span(Role::Warn, "⚠ in-sample table")]));
    }
    // What runs of one stream differ in stands right behind the policy.
    if live.runs_before > 0 {
        parts.insert(1, part(6, [look.span(Role::Dim, format!("run {}", live.runs_before + 1))]));
    }
    if let Some(qps) = header.qps {
        parts.insert(1, part(7, [Span::raw(format!("{} QPS", cr_report::format::rate(qps)))]));
    }
    if let Some(variant) = &header.variant {
        parts.insert(1, part(8, [Span::raw(cut(variant, 24))]));
    }
    parts
}

/// How far it is, and how fast. What room is left over is the progress bar's.
fn how_far<'a>(app: &App, live: &Live, look: Look, room: usize) -> Vec<Part<'a>> {
    let mut parts = pace(app, live, look);
    if let Some(share) = live.progress() {
        let used = parts.iter().map(|part| part.width() + GAP.len()).sum::<usize>();
        let left = room.saturating_sub(used);
        if left >= MIN_BAR {
            parts.insert(
                1,
                part(1, bar(share, left.min(MAX_BAR), look.style(Role::Accent), look.style(Role::Dim))),
            );
        }
    }
    parts
}

/// The numbers of the second line.
fn pace<'a>(app: &App, live: &Live, look: Look) -> Vec<Part<'a>> {
    let done = live.done_requests();
    let expected = live.header.as_ref().and_then(|header| header.requests_expected);
    let mut parts = vec![part(8, look.pair("t", seconds(live.t_s)))];
    match expected {
        Some(expected) => parts.push(part(7, [Span::raw(format!("{}/{}", count(done), count(expected)))])),
        None => parts.push(part(7, look.pair("requests", count(done)))),
    }
    // How long it takes to read what is over, or to play it again, says nothing of the run.
    let at_work = app.replay.is_none() && live.phase == Phase::Running;
    if let Some(left) = live.eta_s().filter(|_| at_work) {
        parts.push(part(5, look.pair("ETA", clock(left))));
    }
    if let Some(summary) = &live.summary {
        let requests = &summary.requests;
        let short = live.findings.iter().any(|finding| finding.name == Name::UnderDelivery);
        let achieved = look.span(if short { Role::Warn } else { Role::Plain }, rate(requests.achieved_qps));
        let unit = look.span(Role::Dim, if short { " QPS ▼" } else { " QPS" });
        parts.push(part(4, look.pair("offered", rate(requests.offered_qps))));
        parts.push(part(6, [look.span(Role::Dim, "achieved"), Span::raw(" "), achieved, unit]));
    }
    if live.failed > 0 {
        parts.push(part(9, [look.span(Role::Bad, format!("✖ {} failed", count(live.failed)))]));
    }
    if at_work && live.wall_s > 0.0 {
        parts.push(part(2, look.pair("wall", seconds(live.wall_s))));
    }
    parts
}

/// Draws the tabs, and to their right what needs a look.
pub fn tabs(area: Rect, buffer: &mut Buffer, app: &App, live: &Live, look: Look) {
    let mut spans = Vec::new();
    for (at, view) in View::of_runs(app.runs).iter().enumerate() {
        let text = format!(" {} {} ", at + 1, view.name());
        let style = look.style(Role::Accent).add_modifier(Modifier::REVERSED);
        spans.push(if *view == app.view { Span::styled(text, style) } else { look.span(Role::Dim, text) });
    }
    let line = Line::from(spans);
    buffer.set_line(area.x, area.y, &line, area.width);
    let left = usize::from(area.width).saturating_sub(line.width() + 3);
    let views = View::of_runs(app.runs);
    let log_key = views.iter().position(|view| *view == View::Log).map_or(0, |at| at + 1);
    if let Some((role, text)) = notice(live, left, log_key)
        && left >= 12
    {
        let text = cut(&text, left);
        let width = Span::raw(text.as_str()).width() as u16;
        buffer.set_span(area.right() - width - 1, area.y, &look.span(role, text), width);
    }
}

/// The one thing most worth a look, in `width` columns. A warning that has no room ends in the key of the view that
/// tells it in full.
fn notice(live: &Live, width: usize, log_key: usize) -> Option<(Role, String)> {
    if live.bad_lines > 0 {
        let last = live.log.last(Kind::BadLine).map_or(String::new(), |entry| format!(": {}", entry.text));
        let lines = if live.bad_lines == 1 { "line" } else { "lines" };
        return Some((Role::Bad, format!("✖ {} bad {lines}{last}", count(live.bad_lines))));
    }
    if live.phase == Phase::CutShort {
        return Some((Role::Bad, "✖ the stream ended without a summary".into()));
    }
    if let Some(gate) = &live.gate {
        let full = format!("◆ gate: {}, {} instead of {}", gate.decision, gate.candidate, gate.baseline);
        return Some((Role::Accent, shortened(&full, &full, width, log_key)));
    }
    if let Some(first) = live.findings.first() {
        let role = if first.name == Name::ShardSaturated { Role::Bad } else { Role::Warn };
        let (more, number) = match live.findings.len() {
            1 => (String::new(), "1 warning".into()),
            n => (format!("(1 of {n}) "), format!("{n} warnings")),
        };
        let names = [format!("⚠ {more}{}", first.name), format!("⚠ {}", first.name)];
        let full = format!("{}: {}", names[0], first.detail);
        // A name that is cut says less than a number.
        let fits = |text: &str| Span::raw(text).width() + 4 <= width;
        let brief = [(&names[0], &full), (&names[1], &names[1])].into_iter().find(|(name, _)| fits(name));
        return Some((role, shortened(&full, brief.map_or(&number, |(_, text)| text), width, log_key)));
    }
    live.log.last(Kind::Warning).map(|entry| (Role::Warn, format!("⚠ {}", entry.text)))
}

/// The text where it fits; else the brief one, as much of it as fits, and the key of the view that tells it in full.
fn shortened(full: &str, brief: &str, width: usize, log_key: usize) -> String {
    if Span::raw(full).width() <= width {
        return full.into();
    }
    format!("{} → {log_key}", cut(brief, width.saturating_sub(4)))
}
