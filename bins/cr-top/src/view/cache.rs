//! Caches: what is found there, whose it is, and what is given up for room.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::bars::bar;
use super::chart::{Chart, Curve, Pick, Scale};
use super::charts::{chart, curve, newest};
use super::look::Look;
use super::text::part;
use crate::figures::{count, maybe_percent, percent};
use crate::palette::Role;
use crate::state::live::Live;
use crate::state::scope::Group;
use crate::state::series::{Hits, Slot};

const GROUP_ROLES: [Role; 5] = [Role::Accent, Role::Good, Role::Second, Role::Warn, Role::Dim];

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    let lines = table(live, look, usize::from(area.width.saturating_sub(2)));
    let charts = area.height.saturating_sub(lines.len() as u16 + 1);
    let charts = if charts < 6 { 0 } else { charts };
    let [top, bottom] = Layout::vertical([Constraint::Length(charts), Constraint::Fill(1)]).areas(area);
    if charts > 0 {
        let all = match area.width {
            0..66 => vec![by_admission(live, look)],
            66..100 => vec![by_admission(live, look), by_group(live, look)],
            _ => vec![by_admission(live, look), by_group(live, look), evictions(live, look)],
        };
        let inner = Rect { x: top.x + 1, width: top.width - 2, ..top };
        let columns = Layout::horizontal(vec![Constraint::Fill(1); all.len()]).spacing(2).split(inner);
        for (chart, column) in all.iter().zip(columns.iter()) {
            chart.draw(*column, buffer);
        }
    }
    for (row, line) in lines.iter().take(bottom.height.into()).enumerate() {
        buffer.set_line(bottom.x + 1, bottom.y + row as u16, line, bottom.width - 2);
    }
}

fn share_scale() -> Scale {
    Scale { low: 0.0, high: 1.0, label: |share| format!("{:.0} %", share * 100.0) }
}

fn last(live: &Live, curve: &Curve) -> String {
    maybe_percent(newest(live, &curve.values))
}

fn by_admission<'a>(live: &Live, look: Look) -> Chart<'a> {
    let all = curve(live, Pick::Mean, look.style(Role::Good), |slot| slot.hits.ratio());
    let admitted = curve(live, Pick::Mean, look.style(Role::Accent), |slot| slot.admitted.ratio());
    let cold = curve(live, Pick::Mean, look.style(Role::Second), |slot| slot.cold.ratio());
    let title = vec![
        part(4, [look.span(Role::Good, "hit "), Span::raw(last(live, &all))]),
        part(3, [look.span(Role::Accent, "admitted "), Span::raw(last(live, &admitted))]),
        part(2, [look.span(Role::Second, "cold "), Span::raw(last(live, &cold))]),
    ];
    chart(live, look, title, vec![cold, admitted, all], share_scale())
}

/// What each group of content adds to the served hit, one on top of the other.
fn by_group<'a>(live: &Live, look: Look) -> Chart<'a> {
    let mut title = vec![part(9, [look.span(Role::Dim, "hit from")])];
    let mut curves = Vec::new();
    for (at, group) in Group::ALL.into_iter().enumerate() {
        if live.series.slots().iter().all(|slot| slot.by_group[at] == 0) {
            continue;
        }
        let up_to = move |slot: &Slot| {
            let cached: u64 = slot.by_group[..=at].iter().sum();
            Hits { prompt: slot.hits.prompt, cached }.ratio()
        };
        title.push(part(8 - at as u8, [look.span(GROUP_ROLES[at], group.name())]));
        curves.push(curve(live, Pick::Mean, look.style(GROUP_ROLES[at]), up_to));
    }
    title.push(part(1, [look.span(Role::Dim, "(stacked)")]));
    chart(live, look, title, curves, share_scale())
}

fn evictions<'a>(live: &Live, look: Look) -> Chart<'a> {
    let width_s = live.series.width_s();
    let per_s = |slot: &Slot| Some(slot.evicted_admitted as f64 / width_s);
    let curves = vec![curve(live, Pick::Max, look.style(Role::Bad), per_s)];
    let scale = Scale::above(0.0, 1.0, &curves, |n| format!("{n:.0}"));
    let title = vec![
        part(2, [look.span(Role::Bad, "admitted blocks evicted")]),
        part(1, [look.span(Role::Dim, "per second")]),
    ];
    chart(live, look, title, curves, scale)
}

/// The sums over the whole run.
fn table<'a>(live: &Live, look: Look, width: usize) -> Vec<Line<'a>> {
    let slots = live.series.slots();
    let sum = |of: fn(&Slot) -> Hits| {
        slots.iter().map(of).fold(Hits::default(), |sum, hits| Hits {
            prompt: sum.prompt + hits.prompt,
            cached: sum.cached + hits.cached,
        })
    };
    let all = sum(|slot| slot.hits);
    let room = width.saturating_sub(42).min(40);
    let row = |name: &str, role: Role, share: f64, note: String| {
        let mut spans =
            vec![look.span(role, format!("{name:<12}")), Span::raw(format!("{:>7} ", percent(share)))];
        if room >= 6 {
            spans.extend(bar(share, room, look.style(role), look.style(Role::Dim)));
        }
        spans.push(look.span(Role::Dim, format!(" {note}")));
        Line::from(spans)
    };
    let mut lines = vec![Line::from(
        look.span(Role::Dim, "share of all prompt tokens found in a cache, warm-up included"),
    )];
    lines.push(row(
        "served hit",
        Role::Good,
        all.ratio().unwrap_or(0.0),
        format!("of {}", count(all.prompt)),
    ));
    for (at, group) in Group::ALL.into_iter().enumerate() {
        let cached: u64 = slots.iter().map(|slot| slot.by_group[at]).sum();
        if cached > 0 {
            let share = cached as f64 / all.prompt.max(1) as f64;
            lines.push(row(&format!(" {}", group.name()), GROUP_ROLES[at], share, String::new()));
        }
    }
    for (name, role, hits) in
        [("admitted", Role::Accent, sum(|slot| slot.admitted)), ("cold", Role::Second, sum(|slot| slot.cold))]
    {
        let of_all = hits.prompt as f64 / all.prompt.max(1) as f64;
        lines.push(row(name, role, hits.ratio().unwrap_or(0.0), format!("of {} of tokens", percent(of_all))));
    }
    lines.push(work(live, look));
    lines
}

/// Evictions and what is computed twice.
fn work<'a>(live: &Live, look: Look) -> Line<'a> {
    let total = |of: fn(&cr_report::events::ShardState) -> u64| {
        live.fleet.shards().iter().map(|shard| of(&shard.now)).fold(0u64, u64::saturating_add)
    };
    let admitted = total(|s| s.evicted_admitted_blocks);
    let role = if admitted > 0 { Role::Warn } else { Role::Plain };
    Line::from(vec![
        look.span(Role::Dim, "evicted "),
        Span::raw(count(total(|s| s.evicted_blocks))),
        look.span(Role::Dim, " blocks, admitted "),
        look.span(role, count(admitted)),
        look.span(Role::Dim, "  preempted "),
        Span::raw(count(total(|s| s.preemptions))),
        look.span(Role::Dim, "  recomputed "),
        Span::raw(count(total(|s| s.recomputed_tokens))),
        look.span(Role::Dim, " tokens"),
    ])
}
