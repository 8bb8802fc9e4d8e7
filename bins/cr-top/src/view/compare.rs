//! Several runs side by side, on one time axis.

use cr_report::stats::Difference;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use super::chart::{Chart, Curve, Pick, Scale};
use super::look::Look;
use super::text::{Part, cut, fit, part};
use crate::figures::{percent, rate, seconds};
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::compare::{BLOCKS, Blocks, Metric, common_time};
use crate::state::live::Live;
use crate::state::series::Slot;

/// Points of a curve on the common axis.
const POINTS: usize = 240;
/// A glyph a run, so that colour is not alone.
const TAGS: [&str; 4] = ["1", "2", "3", "4"];
const ROLES: [Role; 4] = [Role::Accent, Role::Bad, Role::Good, Role::Second];
const NAME_WIDTH: u16 = 11;

/// Draws the view.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, runs: &[&Live], look: Look) {
    let runs = &runs[..runs.len().min(TAGS.len())];
    let wanted = Metric::ALL.len() as u16 * 2 + 2;
    let charts = area.height.saturating_sub(wanted.min(area.height * 3 / 5));
    let charts = if charts < 6 { 0 } else { charts };
    let [top, bottom] = Layout::vertical([Constraint::Length(charts), Constraint::Fill(1)]).areas(area);
    if charts > 0 {
        draw_charts(Rect { x: top.x + 1, width: top.width - 2, ..top }, buffer, runs, look);
    }
    table(Rect { x: bottom.x + 1, width: bottom.width - 2, ..bottom }, buffer, app, runs, look);
}

fn draw_charts(area: Rect, buffer: &mut Buffer, runs: &[&Live], look: Look) {
    let mut charts = vec![
        hit(runs, look),
        chart(runs, look, "TTFT p99", 0.0, seconds, |slot| slot.ttft.percentiles().map(|p| p.p99)),
    ];
    if area.width >= 100 {
        charts.insert(1, imbalance(runs, look));
    }
    let columns = Layout::horizontal(vec![Constraint::Fill(1); charts.len()]).spacing(2).split(area);
    for (chart, column) in charts.iter().zip(columns.iter()) {
        chart.draw(*column, buffer);
    }
}

/// From the first start to the last end.
fn axis(runs: &[&Live]) -> (f64, f64) {
    let from = runs.iter().map(|run| run.series.start_s(0)).fold(f64::INFINITY, f64::min);
    let to = runs.iter().map(|run| run.series.end_s()).fold(0.0, f64::max);
    (if from.is_finite() { from } else { 0.0 }, to)
}

/// A run's values, one a slot, on the common axis.
fn on_axis(run: &Live, values: &[Option<f64>], (from, to): (f64, f64)) -> Vec<Option<f64>> {
    let at = |point: usize| {
        let t_s = from + (to - from) * (point as f64 + 0.5) / POINTS as f64;
        let slot = (t_s - run.series.start_s(0)) / run.series.width_s();
        if slot < 0.0 { None } else { values.get(slot as usize).copied().flatten() }
    };
    (0..POINTS).map(at).collect()
}

fn assemble<'a>(
    runs: &[&Live],
    look: Look,
    name: &'a str,
    values: impl Fn(&Live) -> Vec<Option<f64>>,
) -> Chart<'a> {
    let span_s = axis(runs);
    let curve = |(at, run): (usize, &&Live)| Curve {
        values: on_axis(run, &values(run), span_s),
        style: look.style(ROLES[at]),
        pick: Pick::Max,
        tag: Some(TAGS[at]),
    };
    let mut title: Vec<Part<'a>> = vec![part(9, [look.span(Role::Accent, name)])];
    title.extend(runs.iter().enumerate().map(|(at, run)| {
        part(8 - at as u8, [look.span(ROLES[at], format!("{} {}", TAGS[at], cut(label(run), 14)))])
    }));
    Chart {
        title,
        curves: runs.iter().enumerate().map(curve).collect(),
        scale: Scale { low: 0.0, high: 1.0, label: percent },
        level: None,
        marks: Vec::new(),
        span_s,
        dim: look.style(Role::Dim),
        legend: "",
    }
}

fn chart<'a>(
    runs: &[&Live],
    look: Look,
    name: &'a str,
    low: f64,
    label: fn(f64) -> String,
    value: fn(&Slot) -> Option<f64>,
) -> Chart<'a> {
    let mut chart = assemble(runs, look, name, |run| run.series.slots().iter().map(value).collect());
    chart.scale = Scale::above(low, low, &chart.curves, label);
    chart
}

fn hit<'a>(runs: &[&Live], look: Look) -> Chart<'a> {
    let mut chart = chart(runs, look, "served hit", 0.0, seconds, |slot| slot.hits.ratio());
    chart.scale = Scale { low: 0.0, high: 1.0, label: |share| format!("{:.0} %", share * 100.0) };
    chart
}

fn imbalance<'a>(runs: &[&Live], look: Look) -> Chart<'a> {
    let mut chart = assemble(runs, look, "tokens max/mean", |run| run.series.imbalance(&run.fleet.up()));
    chart.scale = Scale::above(1.0, 2.0, &chart.curves, |ratio| format!("{ratio:.1}×"));
    chart
}

/// What to call a run: its policy, or its file before that is known.
fn label(run: &Live) -> &str {
    run.header.as_ref().map_or(run.name.as_str(), |header| header.policy.as_str())
}

fn table(area: Rect, buffer: &mut Buffer, app: &mut App, runs: &[&Live], look: Look) {
    if area.height < 3 || area.width <= NAME_WIDTH {
        return;
    }
    let width = (area.width - NAME_WIDTH) / runs.len() as u16;
    let column = |at: usize| area.x + NAME_WIDTH + width * at as u16;
    for (at, run) in runs.iter().enumerate() {
        let seed = run.header.as_ref().map_or(0, |header| header.seed);
        let (glyph, _, _) = Look::phase(run.phase, false);
        let parts = vec![
            part(
                9,
                [look.span(
                    ROLES[at],
                    format!("{} {}", TAGS[at], cut(label(run), usize::from(width).saturating_sub(4))),
                )],
            ),
            part(8, [look.span(Role::Dim, glyph)]),
            part(7, [look.span(Role::Dim, format!("seed {seed}"))]),
            part(6, [look.span(Role::Dim, cut(&run.name, 40))]),
        ];
        buffer.set_line(column(at), area.y, &fit(parts, " ", usize::from(width) - 1), width);
    }
    let time = common_time(runs);
    let blocks: Vec<Option<Blocks>> = runs.iter().map(|run| time.map(|time| Blocks::of(run, time))).collect();
    let foot = fit(about(time, look), " ", area.width.into());
    buffer.set_line(area.x, area.bottom() - 1, &foot, area.width);
    let rows = usize::from(area.height - 2) / 2;
    let first = app.places[View::Compare as usize].fit(Metric::ALL.len(), rows);
    for (row, metric) in Metric::ALL.into_iter().skip(first).take(rows).enumerate() {
        let y = area.y + 1 + 2 * row as u16;
        buffer.set_line(area.x, y, &Line::from(look.span(Role::Dim, metric.name())), NAME_WIDTH);
        for (at, run) in runs.iter().enumerate() {
            let Some(summary) = &run.summary else { continue };
            let value = metric.of(summary);
            buffer.set_line(column(at), y, &Line::raw(write(metric, value)), width - 1);
            let base = runs[0].summary.as_ref().map(|summary| metric.of(summary));
            if let (true, Some(base), Some(mine), Some(theirs)) = (at > 0, base, &blocks[0], &blocks[at]) {
                let line = difference(metric, value - base, mine.difference(theirs, metric), look);
                buffer.set_line(column(at), y + 1, &fit(line, " ", usize::from(width) - 1), width - 1);
            }
        }
    }
}

/// What the marks mean, and of what they are worked out.
fn about<'a>(time: Option<(f64, f64)>, look: Look) -> Vec<Part<'a>> {
    let Some((from_s, to_s)) = time else {
        return vec![part(1, [look.span(Role::Dim, "no time that all runs measured yet")])];
    };
    let blocks = format!("(95 % CI, {BLOCKS} paired blocks of {})", seconds((to_s - from_s) / BLOCKS as f64));
    vec![
        part(9, [look.span(Role::Dim, "● beyond the noise, · within it")]),
        part(8, [look.span(Role::Dim, blocks)]),
        part(7, [look.span(Role::Dim, "of one run each; for policies compare seeds")]),
    ]
}

fn write(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Hit => percent(value),
        Metric::Imbalance => format!("{value:.2}"),
        Metric::Achieved => format!("{} QPS", rate(value)),
        _ => seconds(value),
    }
}

/// The difference of the whole runs, and whether the blocks bear it out.
fn difference<'a>(metric: Metric, value: f64, noise: Difference, look: Look) -> Vec<Part<'a>> {
    let amount = |value: f64| match metric {
        Metric::Hit => format!("{:.1} pt", value * 100.0),
        Metric::Imbalance => format!("{value:.2}"),
        Metric::Achieved => format!("{value:.1}"),
        _ => seconds(value),
    };
    let sign = if value < 0.0 { "−" } else { "+" };
    let role = match (noise.within_noise, (value > 0.0) == metric.more_is_better()) {
        (true, _) => Role::Dim,
        (false, true) => Role::Good,
        (false, false) => Role::Bad,
    };
    let mark = if noise.within_noise { "·" } else { "●" };
    // The interval is about the blocks' own mean, which need not be the difference of the whole runs.
    let mean = format!("{}{}", if noise.mean < 0.0 { "−" } else { "+" }, amount(noise.mean.abs()));
    let ci = noise.ci95.map_or("no CI".into(), |half| format!("blocks {mean} ±{}", amount(half)));
    vec![
        part(9, [look.span(role, format!("{mark} {sign}{}", amount(value.abs())))]),
        part(1, [look.span(Role::Dim, ci)]),
    ]
}
