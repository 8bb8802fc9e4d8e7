//! Cumulative distributions of TTFT on a logarithmic axis.

use super::sheet::{self, Area, Entry, Key, LEGEND, WIDTH, mesh, said};
use crate::aggregate::Distribution;
use crate::format::axis_seconds;
use crate::record::Record;
use plotters::prelude::*;

const HEIGHT: u32 = 400;

/// Points of a curve, evenly spaced on the axis.
const POINTS: usize = 240;

struct Curve {
    name: String,
    ttft_s: Distribution,
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let rate = record.reference_rate();
    let curves: Vec<Curve> = record
        .cells_at(rate)
        .into_iter()
        .map(|cell| {
            let mut ttft_s = Distribution::new();
            record.runs_of(cell).for_each(|run| run.ttft_s.add_to(&mut ttft_s));
            let saturated = if cell.saturated() { " (saturated)" } else { "" };
            Curve { name: format!("{}{saturated}", cell.policy), ttft_s }
        })
        .collect();
    if curves.iter().all(|curve| curve.ttft_s.count() == 0) {
        return Ok(None);
    }
    let at = rate.map(|qps| format!(" at {} QPS", crate::format::rate(qps))).unwrap_or_default();
    sheet::sheet(HEIGHT, &format!("Time to first token{at}, share of requests"), |body| paint(body, &curves))
        .map(Some)
}

fn paint(body: &Area<'_>, curves: &[Curve]) -> Result<(), String> {
    let (plot, side) = body.split_horizontally(WIDTH - LEGEND);
    let filled = || curves.iter().map(|curve| &curve.ttft_s).filter(|d| d.count() > 0);
    let low = filled().map(Distribution::min).fold(f64::INFINITY, f64::min).max(1e-6) / 1.2;
    let high = (filled().map(Distribution::max).fold(0.0, f64::max) * 1.2).max(low * 10.0);
    let mut chart = ChartBuilder::on(&plot)
        .margin_right(22)
        .margin_bottom(8)
        .margin_left(8)
        .margin_top(8)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(
            (low..high).log_scale().with_key_points(sheet::log_ticks(low, high, 8)),
            0.0..100.0,
        )
        .map_err(said)?;
    mesh!(chart)
        .x_labels(7)
        .y_labels(6)
        .x_label_formatter(&|v| axis_seconds(*v))
        .y_label_formatter(&|v| sheet::tick(*v))
        .x_desc("TTFT, logarithmic")
        .y_desc("% of requests")
        .draw()
        .map_err(said)?;
    let (left, top) = plot.get_base_pixel();
    let step = (high / low).powf(1.0 / POINTS as f64);
    for (index, curve) in curves.iter().enumerate().filter(|(_, curve)| curve.ttft_s.count() > 0) {
        let times_s = || (0..=POINTS).map(|point| low * step.powi(point as i32));
        let shares = curve.ttft_s.shares_at_most(times_s());
        let place = |(x, share): (f64, f64)| {
            let (x, y) = chart.backend_coord(&(x.min(high), share * 100.0));
            (x - left, y - top)
        };
        let mut points: Vec<(i32, i32)> = times_s().zip(shares).map(place).collect();
        points.dedup();
        sheet::line(&plot, &points, index)?;
    }
    let entries: Vec<Entry> =
        curves.iter().enumerate().map(|(series, c)| Entry { series, text: c.name.clone() }).collect();
    sheet::legend(&side, &entries, Key::Line)
}
