//! An ablation as a waterfall: what each step adds.

use super::palette::series;
use super::sheet::{self, Area, TEXT, WIDTH};
use crate::capacity::Capacity;
use crate::format::{percent, rate, ratio, seconds};
use crate::record::Record;
use crate::result::Aggregate;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const ROW: i32 = 44;
const NAMES: i32 = 190;
const TITLES: i32 = 24;

/// Colours of a value that stands by itself, one that got better and one that got worse.
const PLAIN: usize = 0;
const BETTER: usize = 2;
const WORSE: usize = 4;

/// One figure along the steps; `None` where it is not quoted.
struct Panel {
    title: String,
    values: Vec<Option<f64>>,
    /// What stands for a value that is only a bound; nothing is said of how far the next one is from it.
    bounds: Vec<Option<String>>,
    higher_is_better: bool,
    text: fn(f64) -> String,
    change: fn(f64) -> String,
}

/// A difference of shares.
fn points(share: f64) -> String {
    format!("{:.1} points", share * 100.0)
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let qps = record.reference_rate();
    let steps: Vec<&Aggregate> =
        record.file.ablation.iter().filter_map(|policy| record.cell(policy, qps)).collect();
    if steps.len() < 2 {
        return Ok(None);
    }
    let panels = panels(record, &steps);
    let height = sheet::HEAD + (TITLES + steps.len() as i32 * ROW + 6) as u32;
    let at = qps.map(|qps| format!(" at {} QPS", rate(qps))).unwrap_or_default();
    sheet::sheet(height, &format!("What each step adds{at}"), |body| paint(body, &steps, &panels)).map(Some)
}

fn panels(record: &Record, steps: &[&Aggregate]) -> Vec<Panel> {
    let metric = |name: &str| steps.iter().map(|cell| Some(cell.metric(name).mean)).collect();
    let mut panels = vec![
        Panel {
            title: "served hit".into(),
            values: metric("served_hit"),
            bounds: vec![None; steps.len()],
            higher_is_better: true,
            text: percent,
            change: points,
        },
        Panel {
            title: "imbalance, requests".into(),
            values: metric("imbalance_requests"),
            bounds: vec![None; steps.len()],
            higher_is_better: false,
            text: ratio,
            change: ratio,
        },
    ];
    let capacity =
        |cell: &&Aggregate| record.file.capacity.iter().find(|c| c.policy == cell.policy && c.mean_qps.n > 0);
    let capacities: Vec<Option<&Capacity>> = steps.iter().map(capacity).collect();
    panels.push(if capacities.iter().all(Option::is_some) {
        let quoted = |own: &Capacity| own.is_censored().then(|| own.quoted());
        Panel {
            title: "capacity, QPS".into(),
            values: capacities.iter().map(|own| own.map(|own| own.mean_qps.mean)).collect(),
            bounds: capacities.iter().map(|own| own.and_then(quoted)).collect(),
            higher_is_better: true,
            text: rate,
            change: rate,
        }
    } else {
        let quoted = |cell: &&Aggregate| (!cell.saturated()).then(|| cell.metric("ttft_p99_s").mean);
        let values = steps.iter().map(quoted).collect();
        Panel {
            title: "p99 TTFT".into(),
            values,
            bounds: vec![None; steps.len()],
            higher_is_better: false,
            text: seconds,
            change: seconds,
        }
    });
    panels
}

fn paint(body: &Area<'_>, steps: &[&Aggregate], panels: &[Panel]) -> Result<(), String> {
    let row = |index: usize| TITLES + index as i32 * ROW;
    for (index, cell) in steps.iter().enumerate() {
        let name = sheet::two_lines(&cell.policy, TEXT, f64::from(NAMES - 24));
        sheet::labels(body, &name, (12, row(index) + 12), TEXT, HPos::Left)?;
    }
    let width = (WIDTH as i32 - NAMES - 10) / panels.len() as i32;
    for (index, panel) in panels.iter().enumerate() {
        let left = NAMES + index as i32 * width;
        sheet::label(body, &panel.title, (left, 10), TEXT, HPos::Left)?;
        sheet::rule(body, (left, TITLES - 2), (left, row(steps.len())), 0.6)?;
        paint_panel(body, panel, left, f64::from(width - 26), &row)?;
    }
    Ok(())
}

fn paint_panel(
    body: &Area<'_>,
    panel: &Panel,
    left: i32,
    width: f64,
    row: &dyn Fn(usize) -> i32,
) -> Result<(), String> {
    let highest = panel.values.iter().flatten().copied().fold(1e-12, f64::max);
    let x = |value: f64| left + (value / highest * width).round() as i32;
    let mut before: Option<f64> = None;
    for (index, value) in panel.values.iter().enumerate() {
        let top = row(index);
        let Some(value) = *value else {
            sheet::label(body, "saturated", (left + 4, top + 30), TEXT - 1.0, HPos::Left)?;
            before = None;
            continue;
        };
        let is_bound = |index: usize| panel.bounds.get(index).is_some_and(Option::is_some);
        let shown = panel.bounds[index].clone().unwrap_or_else(|| (panel.text)(value));
        let (colour, text) = match before {
            None => (PLAIN, shown),
            Some(before) => {
                let better = (value > before) == panel.higher_is_better;
                let colour = if better { BETTER } else { WORSE };
                let sign = if value >= before { "+" } else { "-" };
                let change = format!("{shown} ({sign}{})", (panel.change)((value - before).abs()));
                (colour, if is_bound(index) || is_bound(index - 1) { shown } else { change })
            }
        };
        let (from, to) = (x(before.unwrap_or(0.0)), x(value));
        sheet::block(body, (from.min(to), top + 4), (from.max(to), top + 18), series(colour).filled())?;
        sheet::rule(body, (to, top + 2), (to, top + 20), 1.0)?;
        sheet::label(body, &text, (left + 4, top + 30), TEXT - 1.0, HPos::Left)?;
        before = Some(value);
    }
    Ok(())
}
