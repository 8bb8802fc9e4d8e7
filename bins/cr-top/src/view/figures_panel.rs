//! The key figures of the measured part, so far or final: the words of the summary.

use cr_report::summary::{Quantiles, Summary};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::look::Look;
use super::text::{Part, fit, part};
use crate::figures::{count, percent, seconds};
use crate::palette::Role;
use crate::state::live::{Live, Phase};

/// Lines that the panel has at its full height.
pub const HEIGHT: u16 = 3;

/// Draws as many lines as `area` has, at most [`HEIGHT`].
pub fn draw(area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    let Some(summary) = &live.summary else { return };
    let slo_s = live.header.as_ref().and_then(|header| header.slo.ttft_p99_s);
    let lines = if area.height < HEIGHT {
        vec![short(summary, slo_s, look)]
    } else {
        vec![first(summary, live.phase, look), second(summary, slo_s, look), third(summary, look)]
    };
    let room = area.width.saturating_sub(2);
    for (y, parts) in (area.top()..area.bottom()).zip(lines) {
        buffer.set_line(area.x + 1, y, &fit(parts, "  ", room.into()), room);
    }
}

/// One line for small terminals.
fn short<'a>(summary: &Summary, slo_s: Option<f64>, look: Look) -> Vec<Part<'a>> {
    vec![
        part(9, look.pair("hit", percent(hit(summary, summary.served_hit)))),
        part(8, look.pair("imb", ratio(summary.imbalance.tokens))),
        p99(&summary.ttft_s, slo_s, look, 7),
        part(6, look.pair("p50", time(&summary.ttft_s, summary.ttft_s.p50))),
    ]
}

fn first<'a>(summary: &Summary, phase: Phase, look: Look) -> Vec<Part<'a>> {
    let word = match phase {
        Phase::Ended if summary.complete => "final",
        Phase::Ended | Phase::CutShort => "partial",
        _ => "so far",
    };
    let imbalance = &summary.imbalance;
    vec![
        part(
            9,
            [
                look.span(Role::Dim, format!("{:<11}", "served hit")),
                strong(look, percent(hit(summary, summary.served_hit))),
            ],
        ),
        part(3, look.pair("by request", percent(hit(summary, summary.hit_request_mean)))),
        part(2, look.pair("by block", percent(hit(summary, summary.hit_block)))),
        part(8, [look.span(Role::Dim, "│ max/mean requests "), strong(look, ratio(imbalance.requests))]),
        part(7, [look.span(Role::Dim, "tokens "), strong(look, ratio(imbalance.tokens))]),
        part(6, look.pair("busy", ratio(imbalance.busy))),
        part(4, [look.span(Role::Accent, format!("({word})"))]),
    ]
}

fn second<'a>(summary: &Summary, slo_s: Option<f64>, look: Look) -> Vec<Part<'a>> {
    let ttft = &summary.ttft_s;
    let mut parts = vec![
        part(
            9,
            [
                look.span(Role::Dim, format!("{:<11}", "TTFT")),
                look.span(Role::Dim, "p50 "),
                strong(look, time(ttft, ttft.p50)),
            ],
        ),
        part(6, look.pair("p90", time(ttft, ttft.p90))),
        p99(ttft, slo_s, look, 8),
        part(4, look.pair("max", time(ttft, ttft.max))),
        part(7, look.pair("n", count(ttft.count))),
    ];
    if let Some(slo_s) = slo_s {
        parts.push(part(5, look.pair("SLO p99 ≤", seconds(slo_s))));
    }
    if summary.saturated {
        parts.push(part(9, [look.span(Role::Bad, "✖ saturated")]));
    }
    parts
}

fn third<'a>(summary: &Summary, look: Look) -> Vec<Part<'a>> {
    let requests = &summary.requests;
    vec![
        part(
            9,
            [
                look.span(Role::Dim, format!("{:<11}", "TPOT")),
                look.span(Role::Dim, "p50 "),
                Span::raw(time(&summary.tpot_s, summary.tpot_s.p50)),
            ],
        ),
        part(8, look.pair("p99", time(&summary.tpot_s, summary.tpot_s.p99))),
        part(
            7,
            [look.span(Role::Dim, "│ queue p50 "), Span::raw(time(&summary.queue_s, summary.queue_s.p50))],
        ),
        part(7, look.pair("p99", time(&summary.queue_s, summary.queue_s.p99))),
        part(5, look.pair("│ Jain", jain(summary))),
        part(3, look.pair("cancelled", count(requests.cancelled))),
        part(2, look.pair("rerouted", count(requests.rerouted))),
    ]
}

/// The 99th percentile, held against the SLO where there is one.
fn p99<'a>(ttft: &Quantiles, slo_s: Option<f64>, look: Look, rank: u8) -> Part<'a> {
    let value = time(ttft, ttft.p99);
    let value = match slo_s {
        Some(slo_s) if ttft.count > 0 && ttft.p99 > slo_s => look.span(Role::Bad, format!("{value} ✖")),
        Some(_) if ttft.count > 0 => look.span(Role::Good, format!("{value} ✓")),
        _ => strong(look, value),
    };
    part(rank, [look.span(Role::Dim, "p99 "), value])
}

fn strong<'a>(look: Look, text: String) -> Span<'a> {
    Span::styled(text, look.style(Role::Plain).add_modifier(ratatui::style::Modifier::BOLD))
}

/// A time of a distribution; a dash where nothing was counted.
fn time(of: &Quantiles, value_s: f64) -> String {
    if of.count > 0 { seconds(value_s) } else { "–".into() }
}

/// A share of hits; not a number before any request is measured.
fn hit(summary: &Summary, share: f64) -> f64 {
    if summary.ttft_s.count > 0 { share } else { f64::NAN }
}

fn jain(summary: &Summary) -> String {
    let jain = summary.fairness.jain;
    if jain > 0.0 { format!("{jain:.3}") } else { "–".into() }
}

/// A max/mean ratio; a dash before there is any load.
fn ratio(value: f64) -> String {
    if value > 0.0 { format!("{value:.2}") } else { "–".into() }
}
