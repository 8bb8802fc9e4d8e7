//! The load of each shard, a panel a policy.

use super::palette::{ink, series};
use super::sheet::{self, Area, TEXT, mesh, said};
use crate::record::Record;
use crate::run::RunReport;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const PANEL_HEIGHT: u32 = 190;
const COLUMNS: usize = 3;

/// Bars beyond this many are drawn as means of neighbours: they would be thinner than a pixel or two.
const MAX_BARS: usize = 60;

struct Panel {
    name: String,
    series: usize,
    loads: Vec<Load>,
}

/// A shard's requests and busy time, each divided by its mean over shards.
#[derive(Clone, Copy, Default)]
struct Load {
    requests: f64,
    busy: f64,
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let cells = record.cells_at(record.reference_rate());
    let panels: Vec<Panel> = cells
        .iter()
        .enumerate()
        .map(|(series, cell)| Panel {
            name: cell.policy.clone(),
            series,
            loads: mean_loads(&record.runs_of(cell).collect::<Vec<_>>()),
        })
        .filter(|panel| !panel.loads.is_empty())
        .collect();
    if panels.is_empty() {
        return Ok(None);
    }
    let rows = panels.len().div_ceil(COLUMNS) as u32;
    let at = record
        .reference_rate()
        .map(|qps| format!(" at {} QPS", crate::format::rate(qps)))
        .unwrap_or_default();
    let heading = format!("Requests of each shard / mean over shards{at} (lines: busy time)");
    sheet::sheet(sheet::HEAD + rows * PANEL_HEIGHT, &heading, |body| paint(body, &panels)).map(Some)
}

/// Loads of shards from the most requests down, averaged over runs by rank.
fn mean_loads(runs: &[&RunReport]) -> Vec<Load> {
    let mut sums: Vec<Load> = Vec::new();
    let mut counted = 0.0;
    for run in runs {
        let shards = run.shards.len().max(1) as f64;
        let requests = run.shards.iter().map(|shard| shard.requests as f64).sum::<f64>() / shards;
        let busy_s = run.shards.iter().map(|shard| shard.work.busy_s).sum::<f64>() / shards;
        if requests <= 0.0 {
            continue;
        }
        let mut loads: Vec<Load> = run
            .shards
            .iter()
            .map(|shard| Load {
                requests: shard.requests as f64 / requests,
                busy: if busy_s > 0.0 { shard.work.busy_s / busy_s } else { 0.0 },
            })
            .collect();
        loads.sort_by(|a, b| b.requests.total_cmp(&a.requests).then(b.busy.total_cmp(&a.busy)));
        sums.resize(sums.len().max(loads.len()), Load::default());
        for (sum, load) in sums.iter_mut().zip(&loads) {
            *sum = Load { requests: sum.requests + load.requests, busy: sum.busy + load.busy };
        }
        counted += 1.0;
    }
    let merged = sums.len().div_ceil(MAX_BARS).max(1);
    let mean =
        |part: &[Load], of: fn(&Load) -> f64| part.iter().map(of).sum::<f64>() / part.len() as f64 / counted;
    sums.chunks(merged)
        .map(|part| Load { requests: mean(part, |load| load.requests), busy: mean(part, |load| load.busy) })
        .collect()
}

fn paint(body: &Area<'_>, panels: &[Panel]) -> Result<(), String> {
    let columns = panels.len().min(COLUMNS);
    let loads = panels.iter().flat_map(|panel| &panel.loads);
    let highest = loads.fold(1.0, |high: f64, load| high.max(load.requests).max(load.busy));
    let areas = body.split_evenly((panels.len().div_ceil(columns), columns));
    areas.iter().zip(panels).try_for_each(|(area, panel)| paint_panel(area, panel, highest * 1.12))
}

fn paint_panel(area: &Area<'_>, panel: &Panel, top: f64) -> Result<(), String> {
    let width = f64::from(area.dim_in_pixel().0);
    let most = panel.loads.first().map_or(0.0, |load| load.requests);
    let text = format!("{}, up to {most:.2}", panel.name);
    sheet::label(area, &sheet::fit(&text, TEXT, width - 60.0), (48, 10), TEXT, HPos::Left)?;
    let bars = panel.loads.len() as f64;
    let mut chart = ChartBuilder::on(area)
        .margin_top(22)
        .margin_right(12)
        .margin_bottom(14)
        .y_label_area_size(46)
        .build_cartesian_2d(0.0..bars, 0.0..top)
        .map_err(said)?;
    mesh!(chart)
        .disable_x_mesh()
        .disable_x_axis()
        .y_labels(5)
        .y_label_formatter(&|v| sheet::tick(*v))
        .draw()
        .map_err(said)?;
    let fill = series(panel.series).filled();
    let bar = |(rank, load): (usize, &Load)| {
        let left = rank as f64;
        Rectangle::new([(left + 0.1, 0.0), (left + 0.9, load.requests)], fill)
    };
    chart.draw_series(panel.loads.iter().enumerate().map(bar)).map_err(said)?;
    let busy = |(rank, load): (usize, &Load)| {
        let left = rank as f64;
        PathElement::new(vec![(left, load.busy), (left + 1.0, load.busy)], ink().stroke_width(2))
    };
    chart.draw_series(panel.loads.iter().enumerate().map(busy)).map_err(said)?;
    let mean = DashedPathElement::new(vec![(0.0, 1.0), (bars, 1.0)], 4, 3, ink().stroke_width(1));
    chart.draw_series([mean]).map(|_| ()).map_err(said)
}
