//! Served hit and p99 TTFT over time, with plan changes.

use super::palette::ink;
use super::sheet::{self, Area, Entry, Key, LEGEND, TEXT, WIDTH, mesh, said};
use crate::aggregate::{Mark, MarkKind, Timeline};
use crate::format::axis_seconds;
use crate::record::Record;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const HEIGHT: u32 = 480;

/// Marks drawn at most: more would fill the sheet.
const MAX_DRAWN: usize = 60;

/// One policy: (middle of a bin, value) for bins in which a request finished.
struct Line {
    name: String,
    hit: Vec<(f64, f64)>,
    p99_s: Vec<(f64, f64)>,
}

/// What both panels share.
struct Frame<'a> {
    end_s: f64,
    marks: &'a [Mark],
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let cells = record.cells_at(record.reference_rate());
    let lines: Vec<Line> = cells
        .iter()
        .map(|cell| {
            let saturated = if cell.saturated() { " (saturated)" } else { "" };
            let runs: Vec<&Timeline> = record.runs_of(cell).map(|run| &run.timeline).collect();
            let (hit, p99_s) = means(&runs);
            Line { name: format!("{}{saturated}", cell.policy), hit, p99_s }
        })
        .collect();
    if lines.iter().all(|line| line.hit.len() < 2) {
        return Ok(None);
    }
    let first =
        |cell: &&crate::result::Aggregate| record.runs_of(cell).next().map(|run| run.timeline.marks.clone());
    let mut marks: Vec<Mark> = cells.iter().filter_map(first).flatten().collect();
    marks.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    marks.dedup();
    marks.truncate(MAX_DRAWN);
    let end_s = lines.iter().filter_map(|line| line.hit.last()).map(|(t_s, _)| *t_s).fold(0.0, f64::max);
    let frame = Frame { end_s: end_s * 1.02, marks: &marks };
    let at = record
        .reference_rate()
        .map(|qps| format!(" at {} QPS", crate::format::rate(qps)))
        .unwrap_or_default();
    sheet::sheet(HEIGHT, &format!("Served hit and p99 TTFT over time{at}"), |body| {
        paint(body, &lines, &frame)
    })
    .map(Some)
}

type Points = Vec<(f64, f64)>;

/// A run's last bins with less than one in so many of the requests that half its bins have are left out: a few stragglers say nothing of
/// all.
const FEWEST_OF: u64 = 4;

/// The run without the stragglers at its end.
fn without_stragglers(mut run: Timeline) -> Timeline {
    let mut filled: Vec<u64> = run.requests.iter().copied().filter(|&n| n > 0).collect();
    filled.sort_unstable();
    let usual = filled.get(filled.len() / 2).copied().unwrap_or(0);
    let last = run.requests.iter().rposition(|&n| n * FEWEST_OF >= usual);
    run.requests.truncate(last.map_or(0, |last| last + 1));
    run
}

/// Means over runs, bin by bin, over the runs in which requests finished there.
fn means(runs: &[&Timeline]) -> (Points, Points) {
    let width_s = runs.iter().map(|run| run.width_s).fold(0.0, f64::max);
    let runs: Vec<Timeline> = runs.iter().map(|run| without_stragglers(run.widened(width_s))).collect();
    let bins = runs.iter().map(|run| run.requests.len()).max().unwrap_or(0);
    let mut points = (Vec::new(), Vec::new());
    for bin in 0..bins {
        let filled: Vec<&Timeline> =
            runs.iter().filter(|run| run.requests.get(bin).is_some_and(|&n| n > 0)).collect();
        if filled.is_empty() {
            continue;
        }
        let mean = |of: fn(&Timeline) -> &Vec<f64>| {
            filled.iter().filter_map(|run| of(run).get(bin)).sum::<f64>() / filled.len() as f64
        };
        let middle_s = (bin as f64 + 0.5) * width_s;
        points.0.push((middle_s, mean(|run| &run.served_hit) * 100.0));
        points.1.push((middle_s, mean(|run| &run.ttft_p99_s)));
    }
    points
}

fn paint(body: &Area<'_>, lines: &[Line], frame: &Frame<'_>) -> Result<(), String> {
    let (plots, side) = body.split_horizontally(WIDTH - LEGEND);
    let (upper, lower) = plots.split_vertically((HEIGHT - sheet::HEAD) / 2 - 16);
    paint_hit(&upper, lines, frame)?;
    paint_p99(&lower, lines, frame)?;
    let entries: Vec<Entry> =
        lines.iter().enumerate().map(|(series, l)| Entry { series, text: l.name.clone() }).collect();
    sheet::legend(&side, &entries, Key::Line)?;
    let mut row = lines.len();
    for (kind, text) in [(MarkKind::Plan, "new table"), (MarkKind::Fault, "shard down or up")] {
        if frame.marks.iter().any(|mark| mark.kind == kind) {
            let y = sheet::legend_row(row);
            match kind {
                MarkKind::Plan => sheet::dashed(&side, (17, y - 8), (17, y + 8))?,
                MarkKind::Fault => sheet::cross(&side, (17, y), ink().stroke_width(2))?,
            }
            sheet::label(&side, text, (38, y), TEXT, HPos::Left)?;
            row += 1;
        }
    }
    Ok(())
}

fn paint_hit(area: &Area<'_>, lines: &[Line], frame: &Frame<'_>) -> Result<(), String> {
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(22)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..frame.end_s, 0.0..100.0)
        .map_err(said)?;
    mesh!(chart)
        .disable_x_mesh()
        .disable_x_axis()
        .y_labels(5)
        .y_label_formatter(&|v| sheet::tick(*v))
        .y_desc("served hit, %")
        .draw()
        .map_err(said)?;
    let at = |x: f64, y: f64| chart.backend_coord(&(x, y));
    trace(area, lines.iter().map(|line| &line.hit), &at)?;
    paint_marks(area, frame, &at, (0.0, 100.0))
}

fn paint_p99(area: &Area<'_>, lines: &[Line], frame: &Frame<'_>) -> Result<(), String> {
    let values = || lines.iter().flat_map(|line| &line.p99_s).map(|(_, p99)| *p99).filter(|p99| *p99 > 0.0);
    let low = values().fold(f64::INFINITY, f64::min).clamp(1e-6, 1e7) / 1.3;
    let high = (values().fold(0.0, f64::max) * 1.3).max(low * 4.0);
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(22)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(
            0.0..frame.end_s,
            (low..high).log_scale().with_key_points(sheet::log_ticks(low, high, 5)),
        )
        .map_err(said)?;
    mesh!(chart)
        .disable_x_mesh()
        .x_labels(8)
        .x_label_formatter(&|v| sheet::tick(*v))
        .y_label_formatter(&|v| axis_seconds(*v))
        .x_desc("run time, s")
        .y_desc("p99 TTFT")
        .draw()
        .map_err(said)?;
    let at = |x: f64, y: f64| chart.backend_coord(&(x, y.max(low)));
    trace(area, lines.iter().map(|line| &line.p99_s), &at)?;
    paint_marks(area, frame, &at, (low, high))
}

fn trace<'a>(
    area: &Area<'_>,
    lines: impl Iterator<Item = &'a Points>,
    at: &dyn Fn(f64, f64) -> (i32, i32),
) -> Result<(), String> {
    let (left, top) = area.get_base_pixel();
    for (index, points) in lines.enumerate().filter(|(_, points)| points.len() > 1) {
        let path: Vec<(i32, i32)> = points
            .iter()
            .map(|&(x, y)| {
                let (x, y) = at(x, y);
                (x - left, y - top)
            })
            .collect();
        sheet::line(area, &path, index)?;
    }
    Ok(())
}

fn paint_marks(
    area: &Area<'_>,
    frame: &Frame<'_>,
    at: &dyn Fn(f64, f64) -> (i32, i32),
    (low, high): (f64, f64),
) -> Result<(), String> {
    let (left, top) = area.get_base_pixel();
    for mark in frame.marks.iter().filter(|mark| mark.t_s <= frame.end_s) {
        let (x, y0) = at(mark.t_s, low);
        let (_, y1) = at(mark.t_s, high);
        match mark.kind {
            MarkKind::Plan => sheet::dashed(area, (x - left, y0 - top), (x - left, y1 - top))?,
            MarkKind::Fault => sheet::cross(area, (x - left, y1 - top + 6), ink().stroke_width(2))?,
        }
    }
    Ok(())
}
