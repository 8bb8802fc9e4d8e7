//! The regime map: candidate over baseline as two parameters move, a panel for every point of the others.

use super::palette::{ink, series};
use super::sheet::{self, Area, TEXT, WIDTH};
use crate::design::Axis;
use crate::format::ratio;
use crate::record::Record;
use crate::regimes::{Map, Spot, nearest, spots};
use crate::verdict::Outcome;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::collections::BTreeMap;

const ROW: i32 = 38;
const NAMES: i32 = 150;
const FOOT: i32 = 52;
const TITLE: i32 = 38;
/// Height of the bar that tells how far a spot is from a tie.
const BAR: i32 = 6;
const LINE: i32 = 22;

struct Panel<'a> {
    title: String,
    spots: Vec<&'a Spot>,
}

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let design = &record.file.design;
    let Some(map) = &design.map else { return Ok(None) };
    let axis = |name: &str| design.axes.iter().find(|axis| axis.name == name);
    let Some((x, y)) = axis(&map.x).zip(axis(&map.y)) else { return Ok(None) };
    let spots = spots(record);
    if spots.iter().all(|spot| spot.ratio.is_none()) {
        return Ok(None);
    }
    let panels = panels(&spots, map);
    let panel_height = TITLE + y.points.len() as i32 * ROW + FOOT;
    let height = panels.len() as i32 * panel_height + (2 + map.places.len() as i32) * LINE;
    let heading = format!(
        "{} / {}: where it wins, ties and loses",
        record.candidate().unwrap_or_default(),
        record.baseline().unwrap_or_default()
    );
    sheet::sheet(sheet::HEAD + height as u32, &heading, |body| {
        for (index, panel) in panels.iter().enumerate() {
            paint(body, index as i32 * panel_height, panel, (x, y), map, &spots)?;
        }
        legend(body, panels.len() as i32 * panel_height + 8, map)
    })
    .map(Some)
}

/// Spots by the points of the axes that are neither x nor y.
fn panels<'a>(spots: &'a [Spot], map: &Map) -> Vec<Panel<'a>> {
    let mut panels: Vec<(BTreeMap<String, String>, Panel<'a>)> = Vec::new();
    for spot in spots {
        let mut others = spot.at.clone();
        others.retain(|axis, _| *axis != map.x && *axis != map.y);
        match panels.iter_mut().find(|(known, _)| *known == others) {
            Some((_, panel)) => panel.spots.push(spot),
            None => {
                let title = others
                    .iter()
                    .map(|(axis, point)| format!("{axis} {point}"))
                    .collect::<Vec<_>>()
                    .join(", ");
                panels.push((others, Panel { title, spots: vec![spot] }));
            }
        }
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

fn paint(
    body: &Area<'_>,
    top: i32,
    panel: &Panel<'_>,
    (x, y): (&Axis, &Axis),
    map: &Map,
    all: &[Spot],
) -> Result<(), String> {
    sheet::label(body, &panel.title, (NAMES, top + 24), TEXT, HPos::Left)?;
    let name = sheet::two_lines(&y.name, TEXT, f64::from(NAMES - 18));
    sheet::labels(
        body,
        &name,
        (NAMES - 10, if name.len() > 1 { top + 8 } else { top + 24 }),
        TEXT,
        HPos::Right,
    )?;
    let (top, rows) = (top + TITLE, y.points.len() as i32);
    let width = (WIDTH as i32 - NAMES - 16) / x.points.len().max(1) as i32;
    for (row, point) in y.points.iter().rev().enumerate() {
        let middle = top + row as i32 * ROW + ROW / 2;
        let name = sheet::fit(point, TEXT, f64::from(NAMES - 18));
        sheet::label(body, &name, (NAMES - 10, middle), TEXT, HPos::Right)?;
    }
    for (column, point) in x.points.iter().enumerate() {
        let middle = NAMES + column as i32 * width + width / 2;
        let name = sheet::fit(point, TEXT, f64::from(width));
        sheet::label(body, &name, (middle, top + rows * ROW + 12), TEXT, HPos::Center)?;
    }
    let middle = NAMES + width * x.points.len() as i32 / 2;
    sheet::label(body, &x.name, (middle, top + rows * ROW + 32), TEXT, HPos::Center)?;
    for spot in &panel.spots {
        let column = x.points.iter().position(|point| spot.at.get(&map.x) == Some(point));
        let row = y.points.iter().rev().position(|point| spot.at.get(&map.y) == Some(point));
        let Some((column, row)) = column.zip(row) else { continue };
        let corner = (NAMES + column as i32 * width, top + row as i32 * ROW);
        paint_spot(body, corner, width, spot, &letters(map, all, spot))?;
    }
    Ok(())
}

fn paint_spot(
    body: &Area<'_>,
    (x, y): (i32, i32),
    width: i32,
    spot: &Spot,
    places: &str,
) -> Result<(), String> {
    // The further from a tie, the longer the bar; the text stands on the page's own colour, or nearly so.
    let strength = spot.ratio.map_or(0.0, |ratio| (ratio.max(1e-3).ln().abs() / 4f64.ln()).min(1.0));
    let (colour, sign) = match spot.outcome {
        Outcome::Win => (series(2), "+"),
        Outcome::Lose => (series(4), "−"),
        Outcome::Tie => (ink(), "="),
        Outcome::Open => (ink(), "?"),
    };
    sheet::block(body, (x + 1, y + 1), (x + width - 1, y + ROW - 1), colour.mix(0.12).filled())?;
    let length = (f64::from(width - 2) * strength).round() as i32;
    let bar = (y + ROW - 1 - BAR, y + ROW - 1);
    sheet::block(body, (x + 1, bar.0), (x + 1 + length, bar.1), colour.filled())?;
    let bound = if spot.bound { "~" } else { "" };
    let value = spot.ratio.map_or_else(|| "?".into(), |r| format!("{sign} {bound}{}", ratio(r)));
    let text = if places.is_empty() { value } else { format!("{value}  [{places}]") };
    let text = sheet::fit(&text, TEXT, f64::from(width - 4));
    sheet::label(body, &text, (x + width / 2, y + (ROW - BAR) / 2), TEXT, HPos::Center)
}

/// The letters of the published regimes that lie here.
fn letters(map: &Map, all: &[Spot], spot: &Spot) -> String {
    let here = |place| nearest(all, place).is_some_and(|nearest| nearest.label == spot.label);
    (b'A'..).zip(&map.places).filter(|(_, place)| here(place)).map(|(letter, _)| letter as char).collect()
}

fn legend(body: &Area<'_>, top: i32, map: &Map) -> Result<(), String> {
    let text = "+ win, = tie, − lose, ? no verdict; ~ a bound, for a capacity lies beyond the ladder";
    sheet::label(body, text, (16, top + 8), TEXT - 1.0, HPos::Left)?;
    for ((line, letter), place) in (1..).zip(b'A'..).zip(&map.places) {
        let text = format!("[{}] {}, published as {}", letter as char, place.name, place.published);
        sheet::label(body, &text, (16, top + 8 + line * LINE), TEXT - 1.0, HPos::Left)?;
    }
    Ok(())
}
