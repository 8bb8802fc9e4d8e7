//! A tornado: how far each parameter, moved by itself, moves the candidate against the baseline.

use super::palette::series;
use super::sheet::{self, Area, TEXT, WIDTH};
use crate::format::ratio;
use crate::record::Record;
use crate::sensitivity::{Parameter, Sensitivity, of_record};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

const ROW: i32 = 44;
const NAMES: i32 = 170;
const RIGHT: i32 = 120;
const FOOT: i32 = 46;

pub(super) fn draw(record: &Record) -> Result<Option<String>, String> {
    let Some(sensitivity) = of_record(record) else { return Ok(None) };
    let mut rows: Vec<(&Parameter, (f64, f64))> = sensitivity
        .parameters
        .iter()
        .filter_map(|parameter| Some((parameter, parameter.reach(&sensitivity.base)?)))
        .collect();
    let Some((base, _)) = sensitivity.base.ratio.filter(|_| !rows.is_empty()) else { return Ok(None) };
    // The widest on top: what the result hangs on most.
    rows.sort_by(|(_, a), (_, b)| (b.1 - b.0).total_cmp(&(a.1 - a.0)));
    let height = sheet::HEAD + (rows.len() as i32 * ROW + FOOT) as u32;
    let heading = format!(
        "{} / {}: what it hangs on",
        record.candidate().unwrap_or_default(),
        record.baseline().unwrap_or_default()
    );
    sheet::sheet(height, &heading, |body| paint(body, &sensitivity, &rows, base)).map(Some)
}

fn paint(
    body: &Area<'_>,
    sensitivity: &Sensitivity,
    rows: &[(&Parameter, (f64, f64))],
    base: f64,
) -> Result<(), String> {
    let highest = rows.iter().map(|(_, (_, high))| *high).fold(1.0f64.max(base), f64::max) * 1.05;
    let width = f64::from(WIDTH as i32 - NAMES - RIGHT);
    let x = |value: f64| NAMES + (value.clamp(0.0, highest) / highest * width).round() as i32;
    let bottom = rows.len() as i32 * ROW;
    for tick in sheet::round_ticks(highest, 6) {
        sheet::rule(body, (x(tick), 0), (x(tick), bottom), 0.25)?;
        sheet::label(body, &sheet::tick(tick), (x(tick), bottom + 12), TEXT - 1.0, HPos::Center)?;
    }
    let middle = NAMES + width as i32 / 2;
    sheet::label(
        body,
        "ratio; a dashed line at 1, a full one as the suite stands",
        (middle, bottom + 32),
        TEXT,
        HPos::Center,
    )?;
    for (row, (parameter, reach)) in rows.iter().enumerate() {
        paint_row(body, row as i32 * ROW, sensitivity, parameter, *reach, &x)?;
    }
    sheet::dashed(body, (x(1.0), 0), (x(1.0), bottom))?;
    sheet::rule(body, (x(base), 0), (x(base), bottom), 1.0)
}

fn paint_row(
    body: &Area<'_>,
    top: i32,
    sensitivity: &Sensitivity,
    parameter: &Parameter,
    (low, high): (f64, f64),
    x: &dyn Fn(f64) -> i32,
) -> Result<(), String> {
    let bar = top + 14;
    let name = sheet::fit(&parameter.name, TEXT, f64::from(NAMES - 16));
    sheet::label(body, &name, (NAMES - 10, bar), TEXT, HPos::Right)?;
    let flips =
        parameter.settings.iter().any(|setting| setting.change(&sensitivity.base).starts_with("verdict"));
    let colour = series(if flips { 4 } else { 0 });
    sheet::block(body, (x(low), bar - 8), (x(high).max(x(low) + 1), bar + 8), colour.mix(0.6).filled())?;
    let reach = format!("{} to {}", ratio(low), ratio(high));
    let right = WIDTH as i32 - RIGHT + 14;
    sheet::label(body, &reach, (right, bar), TEXT, HPos::Left)?;
    if flips {
        sheet::label(body, "verdict flips", (right, bar + 16), TEXT - 1.0, HPos::Left)?;
    }
    // The values under their ratios; those that would run into each other are left out.
    let mut taken = i32::MIN;
    let mut settings: Vec<(i32, &str)> = parameter
        .settings
        .iter()
        .filter_map(|setting| Some((x(setting.ratio?.0), setting.point.as_str())))
        .collect();
    settings.sort_unstable();
    for (at, point) in settings {
        let half = (sheet::text_width(point, TEXT - 1.0) / 2.0) as i32;
        sheet::rule(body, (at, bar - 8), (at, bar + 12), 0.8)?;
        if at - half > taken {
            sheet::label(body, point, (at, bar + 20), TEXT - 1.0, HPos::Center)?;
            taken = at + half + 4;
        }
    }
    Ok(())
}
