//! The three charts of the fleet view: served hit, imbalance, TTFT.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Modifier;
use ratatui::text::Span;

use super::chart::{Chart, Curve, Pick, Scale};
use super::look::Look;
use super::text::{Part, part};
use crate::figures::{maybe_percent, maybe_seconds, seconds, times};
use crate::palette::Role;
use crate::state::live::Live;
use crate::state::series::{Percentiles, Slot};

/// Draws the charts side by side; two or one where the width is short.
pub fn draw(area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    let mut charts: Vec<Chart> = match area.width {
        0..36 => vec![latency(live, look)],
        36..66 => vec![hit(live, look), latency(live, look)],
        _ => vec![hit(live, look), imbalance(live, look), latency(live, look)],
    };
    // Said once, where the eye begins.
    if let Some(first) = charts.first_mut().filter(|_| !live.plans.is_empty()) {
        first.legend = "╎ new table";
    }
    let columns = Layout::horizontal(vec![Constraint::Fill(1); charts.len()]).spacing(2).split(area);
    for (chart, column) in charts.iter().zip(columns.iter()) {
        chart.draw(*column, buffer);
    }
}

/// Marks at the installed tables and at the end of the warm-up.
pub fn marks(live: &Live, look: Look) -> Vec<(f64, &'static str, ratatui::style::Style)> {
    let (from, to) = (live.series.start_s(0), live.series.end_s());
    let place = |t_s: f64| (t_s - from) / (to - from).max(1e-9);
    let warmup = live.header.as_ref().map(|header| header.warmup_s).filter(|warmup_s| *warmup_s > from);
    let plans = live.plans.iter().map(|plan| plan.t_s).filter(|t_s| *t_s > from);
    let plans = plans.map(|t_s| (place(t_s), "╎", look.style(Role::Dim)));
    plans.chain(warmup.map(|t_s| (place(t_s), "┆", look.style(Role::Warn)))).collect()
}

/// The newest of these values, one a slot, that stands for more than a handful of requests.
pub fn newest(live: &Live, values: &[Option<f64>]) -> Option<f64> {
    let settled = live.series.settled().len().min(values.len());
    values[..settled].iter().rev().find_map(|value| *value)
}

/// A curve over the slots.
pub fn curve(
    live: &Live,
    pick: Pick,
    style: ratatui::style::Style,
    value: impl Fn(&Slot) -> Option<f64>,
) -> Curve {
    Curve { values: live.series.slots().iter().map(value).collect(), style, pick, tag: None }
}

/// A chart's frame around its curves.
pub fn chart<'a>(
    live: &Live,
    look: Look,
    title: Vec<Part<'a>>,
    curves: Vec<Curve>,
    scale: Scale,
) -> Chart<'a> {
    Chart {
        title,
        curves,
        scale,
        level: None,
        marks: marks(live, look),
        span_s: (live.series.start_s(0), live.series.end_s()),
        dim: look.style(Role::Dim),
        legend: "",
    }
}

fn title<'a>(look: Look, name: &'a str, value: String) -> Vec<Part<'a>> {
    let value = Span::styled(value, look.style(Role::Plain).add_modifier(Modifier::BOLD));
    vec![part(2, [look.span(Role::Accent, name)]), part(1, [value])]
}

fn hit<'a>(live: &Live, look: Look) -> Chart<'a> {
    let style = look.style(Role::Good);
    let hits = curve(live, Pick::Mean, style, |slot| slot.hits.ratio());
    let now = newest(live, &hits.values);
    let scale = Scale { low: 0.0, high: 1.0, label: |share| format!("{:.0} %", share * 100.0) };
    chart(live, look, title(look, "served hit", maybe_percent(now)), vec![hits], scale)
}

fn imbalance<'a>(live: &Live, look: Look) -> Chart<'a> {
    let values = live.series.imbalance(&live.fleet.up());
    let now = newest(live, &values);
    let curves = vec![Curve { values, style: look.style(Role::Second), pick: Pick::Max, tag: None }];
    let scale = Scale::above(1.0, 2.0, &curves, |ratio| format!("{ratio:.1}×"));
    let value = times(now);
    chart(live, look, title(look, "tokens max/mean", value), curves, scale)
}

/// TTFT over time: the median below, the 99th percentile above, the SLO across.
pub fn latency<'a>(live: &Live, look: Look) -> Chart<'a> {
    let at = |value: fn(&Percentiles) -> f64| move |slot: &Slot| slot.ttft.percentiles().as_ref().map(value);
    let p50 = curve(live, Pick::Mean, look.style(Role::Accent), at(|p| p.p50));
    let p99 = curve(live, Pick::Max, look.style(Role::Bad), at(|p| p.p99));
    let now = |curve: &Curve| maybe_seconds(newest(live, &curve.values));
    let title = vec![
        part(3, [look.span(Role::Accent, "TTFT")]),
        part(2, [look.span(Role::Bad, "p99 "), Span::raw(now(&p99))]),
        part(1, [look.span(Role::Accent, "p50 "), Span::raw(now(&p50))]),
    ];
    let slo_s = live.header.as_ref().and_then(|header| header.slo.ttft_p99_s);
    of_times(live, look, title, vec![p50, p99], slo_s)
}

/// A chart of times, with the line of the SLO where there is one.
pub fn of_times<'a>(
    live: &Live,
    look: Look,
    title: Vec<Part<'a>>,
    curves: Vec<Curve>,
    slo_s: Option<f64>,
) -> Chart<'a> {
    let scale = Scale::above(0.0, 0.0, &curves, seconds);
    // The SLO is in sight unless it would flatten the curves.
    let scale = match slo_s {
        Some(slo_s) if slo_s <= 4.0 * scale.high => Scale::above(0.0, slo_s, &curves, seconds),
        _ => scale,
    };
    let mut chart = chart(live, look, title, curves, scale);
    chart.level = slo_s.map(|slo_s| (slo_s, look.style(Role::Warn)));
    chart
}
