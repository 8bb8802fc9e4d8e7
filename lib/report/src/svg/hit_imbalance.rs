//! Served hit against imbalance, one point a policy.

use super::palette::series;
use super::sheet::{self, Area, Entry, Key, LEGEND, WIDTH, mesh, said};
use crate::record::Record;
use crate::stats::Estimate;
use plotters::prelude::*;

const HEIGHT: u32 = 400;

/// The imbalance that is shown. Time spent in steps is even as long as every shard has something to decode, requests are not.
const METRIC: &str = "imbalance_requests";

struct Point {
    name: String,
    imbalance: Estimate,
    hit: Estimate,
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let cells = record.cells_at(record.reference_rate());
    let points: Vec<Point> = cells
        .iter()
        .filter(|cell| cell.metric(METRIC).mean > 0.0)
        .map(|cell| Point {
            name: cell.policy.clone(),
            imbalance: cell.metric(METRIC),
            hit: cell.metric("served_hit"),
        })
        .collect();
    if points.is_empty() {
        return Ok(None);
    }
    let at = record
        .reference_rate()
        .map(|qps| format!(" at {} QPS", crate::format::rate(qps)))
        .unwrap_or_default();
    sheet::sheet(HEIGHT, &format!("Served hit against imbalance{at}"), |body| paint(body, &points)).map(Some)
}

fn paint(body: &Area<'_>, points: &[Point]) -> Result<(), String> {
    let (plot, side) = body.split_horizontally(WIDTH - LEGEND);
    // No imbalance lies below 1 and no share beyond 0 and 1, whatever an interval of few seeds says.
    let ends = |e: &Estimate, low: f64, high: f64| {
        let half = e.ci95.unwrap_or(0.0);
        [(e.mean - half).max(low), (e.mean + half).min(high)]
    };
    let wide = |point: &Point| ends(&point.imbalance, 1.0, f64::INFINITY);
    let tall = |point: &Point| ends(&point.hit, 0.0, 1.0);
    let (x0, x1) = sheet::padded(points.iter().flat_map(wide), 0.12);
    let (y0, y1) = sheet::padded(points.iter().flat_map(tall), 0.06);
    let mut chart = ChartBuilder::on(&plot)
        .margin_right(16)
        .margin_bottom(8)
        .margin_left(8)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(x0..x1, y0 * 100.0..y1 * 100.0)
        .map_err(said)?;
    mesh!(chart)
        .x_labels(8)
        .y_labels(7)
        .x_label_formatter(&|v| sheet::tick(*v))
        .y_label_formatter(&|v| sheet::tick(*v))
        .x_desc("requests of a shard, max / mean over shards")
        .y_desc("served hit, % of prompt tokens")
        .draw()
        .map_err(said)?;
    for (index, point) in points.iter().enumerate() {
        let style = series(index).stroke_width(2);
        let [low, high] = wide(point);
        let hit = point.hit.mean * 100.0;
        chart.draw_series([PathElement::new(vec![(low, hit), (high, hit)], style)]).map_err(said)?;
        let [low, high] = tall(point).map(|share| share * 100.0);
        let x = point.imbalance.mean;
        chart.draw_series([PathElement::new(vec![(x, low), (x, high)], style)]).map_err(said)?;
    }
    for (index, point) in points.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(point.imbalance.mean, point.hit.mean * 100.0));
        let (left, top) = plot.get_base_pixel();
        sheet::marker(&plot, (x - left, y - top), index)?;
    }
    let entries: Vec<Entry> =
        points.iter().enumerate().map(|(series, p)| Entry { series, text: p.name.clone() }).collect();
    sheet::legend(&side, &entries, Key::Marker)
}
