//! Latencies: TTFT, TPOT and queue time over time, and how they are spread.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use super::bars::bar;
use super::chart::{Chart, Curve, Pick};
use super::charts::{curve, newest, of_times};
use super::figures_panel;
use super::look::Look;
use super::text::part;
use crate::figures::{count, maybe_seconds, percent, seconds};
use crate::palette::Role;
use crate::state::dist::Dist;
use crate::state::live::Live;
use crate::state::series::{Percentiles, Slot, Timed};

/// The most bins of a histogram.
const MAX_BINS: usize = 24;

/// One of the three latencies.
struct Kind {
    name: &'static str,
    timed: fn(&Slot) -> &Timed,
    dist: fn(&Live) -> &Dist,
    has_slo: bool,
}

const KINDS: [Kind; 3] = [
    Kind { name: "TTFT", timed: |slot| &slot.ttft, dist: |live| &live.latencies.ttft, has_slo: true },
    Kind { name: "TPOT", timed: |slot| &slot.tpot, dist: |live| &live.latencies.tpot, has_slo: false },
    Kind { name: "queue", timed: |slot| &slot.queue, dist: |live| &live.latencies.queue, has_slo: false },
];

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    let figures = if area.height >= 14 { figures_panel::HEIGHT } else { 1 };
    let charts = if area.height >= 14 { (area.height - figures) / 2 } else { 0 };
    let rows = [Constraint::Length(figures), Constraint::Length(charts), Constraint::Fill(1)];
    let [top, middle, bottom] = Layout::vertical(rows).areas(area);
    figures_panel::draw(top, buffer, live, look);
    let shown = match area.width {
        0..70 => 1,
        70..110 => 2,
        _ => 3,
    };
    let columns = |area: Rect| {
        let inner = Rect { x: area.x + 1, width: area.width - 2, ..area };
        Layout::horizontal(vec![Constraint::Fill(1); shown]).spacing(2).split(inner)
    };
    // With two, the queue matters more than TPOT: it is what routing moves.
    let kinds = [&KINDS[0], &KINDS[if shown == 2 { 2 } else { 1 }], &KINDS[2]];
    for (kind, area) in kinds.into_iter().zip(columns(middle).iter()) {
        if charts > 0 {
            over_time(kind, live, look).draw(*area, buffer);
        }
    }
    for (kind, area) in kinds.into_iter().zip(columns(bottom).iter()) {
        histogram(kind, *area, buffer, live, look);
    }
}

fn slo_s(kind: &Kind, live: &Live) -> Option<f64> {
    live.header.as_ref().filter(|_| kind.has_slo)?.slo.ttft_p99_s
}

fn over_time<'a>(kind: &Kind, live: &Live, look: Look) -> Chart<'a> {
    let timed = kind.timed;
    let at =
        |value: fn(&Percentiles) -> f64| move |slot: &Slot| timed(slot).percentiles().as_ref().map(value);
    let p50 = curve(live, Pick::Mean, look.style(Role::Accent), at(|p| p.p50));
    let p90 = curve(live, Pick::Max, look.style(Role::Warn), at(|p| p.p90));
    let p99 = curve(live, Pick::Max, look.style(Role::Bad), at(|p| p.p99));
    let now = |curve: &Curve| maybe_seconds(newest(live, &curve.values));
    let title = vec![
        part(4, [look.span(Role::Accent, kind.name)]),
        part(3, [look.span(Role::Bad, "p99 "), Span::raw(now(&p99))]),
        part(1, [look.span(Role::Warn, "p90 "), Span::raw(now(&p90))]),
        part(2, [look.span(Role::Accent, "p50 "), Span::raw(now(&p50))]),
    ];
    of_times(live, look, title, vec![p90, p50, p99], slo_s(kind, live))
}

/// Bars over logarithmic bins; the bins of the percentiles and of the SLO are marked.
fn histogram(kind: &Kind, area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    if area.height < 3 {
        return;
    }
    let dist = (kind.dist)(live);
    let heading = vec![
        look.span(Role::Accent, kind.name),
        look.span(Role::Dim, format!(" of {} requests", count(dist.count()))),
    ];
    buffer.set_line(area.x, area.y, &Line::from(heading), area.width);
    let bins = dist.log_bins(usize::from(area.height - 1).min(MAX_BINS));
    let most = bins.iter().map(|bin| bin.1).max().unwrap_or(0).max(1);
    let mut marks: Vec<(f64, &str, Role)> =
        [(0.5, "◀ p50", Role::Accent), (0.9, "◀ p90", Role::Warn), (0.99, "◀ p99", Role::Bad)]
            .into_iter()
            .filter_map(|(q, name, role)| Some((dist.quantile(q)?, name, role)))
            .collect();
    if let Some(slo_s) = slo_s(kind, live) {
        marks.push((slo_s, "╌ SLO", Role::Warn));
    }
    // The first bin begins below zero, so that a percentile of zero is in it.
    let mut low = -1.0;
    for (row, (high, n)) in bins.iter().enumerate() {
        let here = |mark: &&(f64, &str, Role)| mark.0 > low && mark.0 <= *high;
        let room = usize::from(area.width).saturating_sub(10 + 7 + 7);
        let mut spans = vec![look.span(Role::Dim, format!("{:>9} ", seconds(*high)))];
        let [full, _] = bar(*n as f64 / most as f64, room, look.style(Role::Accent), look.style(Role::Dim));
        let blank = room - full.width();
        spans.extend([full, Span::raw(" ".repeat(blank))]);
        spans.push(Span::raw(format!("{:>7}", percent(*n as f64 / dist.count().max(1) as f64))));
        // Where several fall into one bin, the last is the gravest.
        if let Some((_, name, role)) = marks.iter().rev().find(here) {
            spans.push(look.span(*role, format!(" {name}")));
        }
        buffer.set_line(area.x, area.y + 1 + row as u16, &Line::from(spans), area.width);
        low = *high;
    }
}
