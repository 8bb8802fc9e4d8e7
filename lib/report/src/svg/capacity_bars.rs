//! Capacity, a bar a policy, with censored ends.

use super::palette::{ink, series};
use super::sheet::{self, Area, TEXT, WIDTH, said};
use crate::capacity::{Capacity, Censored};
use crate::format::rate;
use crate::record::Record;
use crate::stats::Estimate;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const ROW: i32 = 36;
const NAMES: i32 = 170;
const VALUES: i32 = 170;
const FOOT: i32 = 46;

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let bars: Vec<(usize, &Capacity)> = record
        .file
        .capacity
        .iter()
        .filter(|capacity| capacity.mean_qps.n > 0 && Some(capacity.objective()) == record.objective())
        .map(|capacity| (record.place(&capacity.policy), capacity))
        .collect();
    let Some((_, first)) = bars.first() else {
        return Ok(None);
    };
    let heading = format!("Capacity at {}", first.objective().text());
    let height = sheet::HEAD + (bars.len() as i32 * ROW + FOOT) as u32;
    sheet::sheet(height, &heading, |body| paint(body, &bars)).map(Some)
}

fn paint(body: &Area<'_>, bars: &[(usize, &Capacity)]) -> Result<(), String> {
    let reach = |c: &Capacity| c.mean_qps.mean + c.mean_qps.ci95.unwrap_or(0.0);
    let top_of = |c: &Capacity| c.ladder_qps.last().copied().unwrap_or(0.0).max(reach(c));
    let highest = bars.iter().map(|(_, capacity)| top_of(capacity)).fold(1e-9, f64::max);
    let width = WIDTH as i32 - NAMES - VALUES;
    let x = |qps: f64| NAMES + (qps.clamp(0.0, highest) / highest * f64::from(width)).round() as i32;
    let bottom = bars.len() as i32 * ROW;
    for tick in sheet::round_ticks(highest, 6) {
        sheet::rule(body, (x(tick), 0), (x(tick), bottom), 0.25)?;
        sheet::label(body, &rate(tick), (x(tick), bottom + 12), TEXT - 1.0, HPos::Center)?;
    }
    sheet::label(body, "requests per second", (NAMES + width / 2, bottom + 32), TEXT, HPos::Center)?;
    for (row, (index, capacity)) in bars.iter().enumerate() {
        paint_bar(body, row as i32 * ROW + ROW / 2, *index, capacity, &x)?;
    }
    Ok(())
}

fn paint_bar(
    body: &Area<'_>,
    y: i32,
    index: usize,
    capacity: &Capacity,
    x: &dyn Fn(f64) -> i32,
) -> Result<(), String> {
    let name = sheet::fit(&capacity.policy, TEXT, f64::from(NAMES - 22));
    sheet::label(body, &name, (NAMES - 12, y), TEXT, HPos::Right)?;
    let Estimate { mean, ci95, .. } = capacity.mean_qps;
    let end = x(mean);
    let style = match capacity.censored {
        Censored::Below | Censored::Both => series(index).stroke_width(1),
        Censored::No | Censored::Above => series(index).filled(),
    };
    sheet::block(body, (NAMES, y - 11), (end, y + 3), style)?;
    if capacity.censored == Censored::Above {
        let arrow = vec![(end, y - 15), (end + 12, y - 4), (end, y + 7)];
        body.draw(&Polygon::new(arrow, series(index).filled())).map_err(said)?;
    }
    if let (Censored::No, Some(half)) = (capacity.censored, ci95) {
        let whisker = vec![(x(mean - half), y + 10), (x(mean + half), y + 10)];
        body.draw(&PathElement::new(whisker, ink().stroke_width(2))).map_err(said)?;
    }
    for seed in capacity.seeds.iter().filter_map(|seed| seed.qps) {
        body.draw(&Circle::new((x(seed), y + 10), 3, ink().filled())).map_err(said)?;
    }
    let doubt = if capacity.non_monotone() { " (not monotone)" } else { "" };
    let value = sheet::fit(&format!("{}{doubt}", capacity.quoted()), TEXT, f64::from(VALUES - 36));
    sheet::label(body, &value, (WIDTH as i32 - VALUES + 24, y), TEXT, HPos::Left)
}
