//! p99 TTFT against the rate, a line a policy, with the objective.

use super::palette::{ink, series};
use super::sheet::{self, Area, Entry, Key, LEGEND, TEXT, WIDTH, mesh, said};
use crate::format::{axis_seconds, rate, seconds};
use crate::record::Record;
use crate::stats::Estimate;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const HEIGHT: u32 = 400;

struct Ladder {
    name: String,
    /// Rates at which the policy is not saturated, below the first at which it is.
    points: Vec<(f64, Estimate)>,
    saturated_from: Option<f64>,
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let rates: Vec<f64> = record.rates().into_iter().flatten().filter(|qps| *qps > 0.0).collect();
    if rates.len() < 2 {
        return Ok(None);
    }
    let ladders: Vec<Ladder> =
        record.policies().into_iter().map(|policy| ladder(record, policy, &rates)).collect();
    if ladders.iter().all(|ladder| ladder.points.is_empty()) {
        return Ok(None);
    }
    let slo_s = record.file.slo.ttft_p99_s.filter(|bound_s| *bound_s > 0.0);
    sheet::sheet(HEIGHT, "p99 TTFT against the rate", |body| paint(body, &ladders, &rates, slo_s)).map(Some)
}

fn ladder(record: &Record, policy: &str, rates: &[f64]) -> Ladder {
    let cells = || rates.iter().filter_map(|&qps| Some((qps, record.cell(policy, Some(qps))?)));
    let points = cells()
        .take_while(|(_, cell)| !cell.saturated())
        .filter(|(_, cell)| cell.ttft_pooled_s.count > 0)
        .map(|(qps, cell)| (qps, cell.metric("ttft_p99_s")))
        .filter(|(_, p99)| p99.mean > 0.0)
        .collect();
    let saturated_from = cells().find(|(_, cell)| cell.saturated()).map(|(qps, _)| qps);
    Ladder { name: policy.to_owned(), points, saturated_from }
}

fn paint(body: &Area<'_>, ladders: &[Ladder], rates: &[f64], slo_s: Option<f64>) -> Result<(), String> {
    let (plot, side) = body.split_horizontally(WIDTH - LEGEND);
    let all = || ladders.iter().flat_map(|ladder| &ladder.points).map(|(_, p99)| p99);
    let highest = all().map(|p99| p99.mean + p99.ci95.unwrap_or(0.0)).chain(slo_s).fold(0.0, f64::max) * 1.6;
    let lowest = all().map(|p99| p99.mean).chain(slo_s).fold(f64::INFINITY, f64::min) / 1.4;
    let low = |p99: &Estimate| (p99.mean - p99.ci95.unwrap_or(0.0)).max(lowest);
    let (x0, x1) = ends(rates);
    let mut chart = ChartBuilder::on(&plot)
        .margin_right(22)
        .margin_bottom(8)
        .margin_left(8)
        .margin_top(8)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (x0..x1).log_scale().with_key_points(sheet::log_ticks(x0, x1, 9)),
            (lowest..highest).log_scale().with_key_points(sheet::log_ticks(lowest, highest, 7)),
        )
        .map_err(said)?;
    mesh!(chart)
        .x_label_formatter(&|v| rate(*v))
        .y_label_formatter(&|v| axis_seconds(*v))
        .x_desc("rate asked for, requests per second, logarithmic")
        .y_desc("p99 TTFT, logarithmic")
        .draw()
        .map_err(said)?;
    let (left, top) = plot.get_base_pixel();
    let pixel = |chart: &ChartContext<'_, _, Cartesian2d<_, _>>, at: (f64, f64)| {
        let (x, y) = chart.backend_coord(&at);
        (x - left, y - top)
    };
    if let Some(slo_s) = slo_s {
        sheet::dashed(&plot, pixel(&chart, (x0, slo_s)), pixel(&chart, (x1, slo_s)))?;
    }
    for (index, ladder) in ladders.iter().enumerate() {
        let mut path: Vec<(i32, i32)> =
            ladder.points.iter().map(|(qps, p99)| pixel(&chart, (*qps, p99.mean))).collect();
        let crossed = ladder.saturated_from.map(|qps| pixel(&chart, (qps, highest / 1.15)));
        path.extend(crossed);
        sheet::line(&plot, &path, index)?;
        for (qps, p99) in &ladder.points {
            let (low, high) = (low(p99), p99.mean + p99.ci95.unwrap_or(0.0));
            let whisker = vec![pixel(&chart, (*qps, low)), pixel(&chart, (*qps, high))];
            plot.draw(&PathElement::new(whisker, series(index).stroke_width(1))).map_err(said)?;
            sheet::marker(&plot, pixel(&chart, (*qps, p99.mean)), index)?;
        }
        if let Some(at) = crossed {
            sheet::cross(&plot, at, series(index).stroke_width(2))?;
        }
    }
    paint_legend(&side, ladders, slo_s)
}

/// The ladder with some room at both ends of a logarithmic axis.
fn ends(rates: &[f64]) -> (f64, f64) {
    let low = rates.iter().copied().filter(|qps| *qps > 0.0).fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    if low > high { (0.5, 2.0) } else { (low / 1.15, high * 1.15) }
}

fn paint_legend(side: &Area<'_>, ladders: &[Ladder], slo_s: Option<f64>) -> Result<(), String> {
    let entries: Vec<Entry> =
        ladders.iter().enumerate().map(|(series, l)| Entry { series, text: l.name.clone() }).collect();
    sheet::legend(side, &entries, Key::Both)?;
    let mut y = sheet::legend_row(ladders.len());
    if let Some(slo_s) = slo_s {
        sheet::dashed(side, (4, y), (30, y))?;
        sheet::label(side, &format!("objective {}", seconds(slo_s)), (38, y), TEXT, HPos::Left)?;
        y = sheet::legend_row(ladders.len() + 1);
    }
    if ladders.iter().any(|ladder| ladder.saturated_from.is_some()) {
        sheet::cross(side, (17, y), ink().stroke_width(2))?;
        sheet::label(side, "saturated", (38, y), TEXT, HPos::Left)?;
    }
    Ok(())
}
