//! What all figures share: the sheet, its text, the legend and the axes' look.

use super::palette::{ink, series};
use crate::format::three;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of every figure, about that of a column on GitHub, in pixels.
pub(super) const WIDTH: u32 = 820;

/// Width of the legend's column.
pub(super) const LEGEND: u32 = 180;

/// Size of ordinary text, in pixels. (The drawing library takes a size 1.24 times that of the SVG it writes; see [`text_style`].)
pub(super) const TEXT: f64 = 13.0;

/// Sizes in use: axis labels, ordinary text, headings.
const SIZES: [f64; 3] = [TEXT - 1.0, TEXT, TEXT + 2.0];

/// The drawing library's size of text / the size in the SVG.
const LIBRARY_SIZE: f64 = 1.24;

/// Height of the heading's row.
pub(super) const HEAD: u32 = 34;

/// Part of a sheet.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The drawing library's errors in words.
pub(super) fn said<E: std::fmt::Display>(error: E) -> String {
    error.to_string()
}

/// Draws one figure of the given height.
pub(super) fn sheet(
    height: u32,
    heading: &str,
    paint: impl FnOnce(&Area<'_>) -> Result<(), String>,
) -> Result<String, String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        label(&root, heading, (12, 12), TEXT + 2.0, HPos::Left)?;
        let (_, body) = root.split_vertically(HEAD);
        paint(&body)?;
        root.present().map_err(said)?;
    }
    Ok(described(&text, heading))
}

/// Gives the picture a title that screen readers speak, and a font that every system has.
fn described(svg: &str, heading: &str) -> String {
    let at =
        svg.find("<svg").and_then(|start| svg[start..].find('>').map(|end| start + end + 1)).unwrap_or(0);
    let (head, rest) = svg.split_at(at);
    let heading = heading.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut text = format!("{head}\n<title>{heading}</title>{rest}");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    for size in SIZES {
        let written = size * LIBRARY_SIZE / LIBRARY_SIZE;
        text = text.replace(&format!("font-size=\"{written}\""), &format!("font-size=\"{size}\""));
    }
    text.replace(
        "font-family=\"sans-serif\"",
        "font-family=\"system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif\"",
    )
}

/// The style of text.
pub(super) fn text_style<'a>(size: f64) -> TextStyle<'a> {
    TextStyle {
        color: ink().to_backend_color(),
        ..TextStyle::from(("sans-serif", size * LIBRARY_SIZE).into_font())
    }
}

/// Writes text whose vertical middle is at `at`.
pub(super) fn label(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: f64,
    anchor: HPos,
) -> Result<(), String> {
    let style = text_style(size).pos(Pos::new(anchor, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).map_err(said)
}

/// The width that text takes at most, in pixels: sans-serif glyphs average under 0.6 of their size.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.6
}

/// Text shortened to a width, with an ellipsis.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    // Names of a family begin alike, so what is left out is their middle.
    let kept = ((width / (size * 0.6)) as usize).saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let after = text.chars().count().saturating_sub(tail);
    text.chars().take(head).chain(std::iter::once('…')).chain(text.chars().skip(after)).collect()
}

/// Text on one line, or on two where it does not fit: broken after the last mark or space of the first line, and shortened where two
/// lines do not do either.
pub(super) fn two_lines(text: &str, size: f64, width: f64) -> Vec<String> {
    if text_width(text, size) <= width {
        return vec![text.to_owned()];
    }
    let room = (width / (size * 0.6)) as usize;
    let breaks = text.char_indices().take(room).filter(|(_, c)| matches!(c, '+' | '-' | '_' | '/' | ' '));
    let Some((at, mark)) = breaks.last().filter(|(at, _)| *at > 0) else {
        return vec![fit(text, size, width)];
    };
    let (first, second) = text.split_at(at + mark.len_utf8());
    vec![first.trim_end().to_owned(), fit(second, size, width)]
}

/// Writes lines one under the other, the first in the middle of `at`.
pub(super) fn labels(
    area: &Area<'_>,
    lines: &[String],
    (x, y): (i32, i32),
    size: f64,
    anchor: HPos,
) -> Result<(), String> {
    let down = size as i32 + 3;
    (0..).zip(lines).try_for_each(|(line, text)| label(area, text, (x, y + line * down), size, anchor))
}

/// An entry of a legend: the number of its series, and its text.
pub(super) struct Entry {
    pub(super) series: usize,
    pub(super) text: String,
}

/// What stands before an entry's text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Marker,
    Line,
    Both,
}

/// The middle of a legend's row.
pub(super) fn legend_row(row: usize) -> i32 {
    14 + row as i32 * 22
}

/// Draws a legend from the top of its column.
pub(super) fn legend(area: &Area<'_>, entries: &[Entry], key: Key) -> Result<(), String> {
    let width = f64::from(area.dim_in_pixel().0);
    for (row, entry) in entries.iter().enumerate() {
        let y = legend_row(row);
        match key {
            Key::Marker => marker(area, (18, y), entry.series)?,
            Key::Line => line(area, &[(4, y), (30, y)], entry.series)?,
            Key::Both => {
                line(area, &[(2, y), (34, y)], entry.series)?;
                marker(area, (18, y), entry.series)?;
            }
        }
        label(area, &fit(&entry.text, TEXT, width - 42.0), (38, y), TEXT, HPos::Left)?;
    }
    Ok(())
}

/// The marker of a series: colour and shape.
pub(super) fn marker(area: &Area<'_>, (x, y): (i32, i32), index: usize) -> Result<(), String> {
    let style = series(index).filled();
    let r = 6;
    let polygon = |points: Vec<(i32, i32)>| area.draw(&Polygon::new(points, style)).map_err(said);
    match index % 6 {
        0 => area.draw(&Circle::new((x, y), r, style)).map_err(said),
        1 => polygon(vec![(x - 5, y - 5), (x + 5, y - 5), (x + 5, y + 5), (x - 5, y + 5)]),
        2 => polygon(vec![(x, y - r), (x + r, y + 5), (x - r, y + 5)]),
        3 => polygon(vec![(x, y - 7), (x + 7, y), (x, y + 7), (x - 7, y)]),
        4 => polygon(vec![(x, y + r), (x + r, y - 5), (x - r, y - 5)]),
        _ => polygon(vec![
            (x - 2, y - 6),
            (x + 2, y - 6),
            (x + 2, y - 2),
            (x + 6, y - 2),
            (x + 6, y + 2),
            (x + 2, y + 2),
            (x + 2, y + 6),
            (x - 2, y + 6),
            (x - 2, y + 2),
            (x - 6, y + 2),
            (x - 6, y - 2),
            (x - 2, y - 2),
        ]),
    }
}

/// The line of a series through points: colour and dash.
pub(super) fn line(area: &Area<'_>, points: &[(i32, i32)], index: usize) -> Result<(), String> {
    let style = series(index).stroke_width(2);
    let path = points.iter().copied();
    match index % 6 {
        0 => area.draw(&PathElement::new(path.collect::<Vec<_>>(), style)).map_err(said),
        1 => area.draw(&DashedPathElement::new(path, 8, 4, style)).map_err(said),
        2 => area.draw(&DashedPathElement::new(path, 3, 3, style)).map_err(said),
        3 => area.draw(&DashedPathElement::new(path, 14, 4, style)).map_err(said),
        4 => area.draw(&DashedPathElement::new(path, 2, 6, style)).map_err(said),
        _ => area.draw(&DashedPathElement::new(path, 20, 8, style)).map_err(said),
    }
}

/// A thin line, such as an axis or a bound.
pub(super) fn rule(area: &Area<'_>, from: (i32, i32), to: (i32, i32), opacity: f64) -> Result<(), String> {
    area.draw(&PathElement::new(vec![from, to], ink().mix(opacity).stroke_width(1))).map_err(said)
}

/// A thin dashed line.
pub(super) fn dashed(area: &Area<'_>, from: (i32, i32), to: (i32, i32)) -> Result<(), String> {
    area.draw(&DashedPathElement::new([from, to], 5, 4, ink().stroke_width(1))).map_err(said)
}

/// A cross, for a value that is not quoted.
pub(super) fn cross(area: &Area<'_>, at: (i32, i32), style: ShapeStyle) -> Result<(), String> {
    area.draw(&Cross::new(at, 5, style)).map_err(said)
}

/// A filled box; empty ones are not drawn.
pub(super) fn block(
    area: &Area<'_>,
    from: (i32, i32),
    to: (i32, i32),
    style: ShapeStyle,
) -> Result<(), String> {
    if from.0 == to.0 || from.1 == to.1 {
        return Ok(());
    }
    area.draw(&Rectangle::new([from, to], style)).map_err(said)
}

/// Round values from 0 to `high`: steps of 1, 2 or 5 times a power of ten, at most `most` of them.
pub(super) fn round_ticks(high: f64, most: usize) -> Vec<f64> {
    if !(high > 0.0 && high.is_finite()) {
        return vec![0.0];
    }
    let rough = high / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    (0..=most).map(|n| n as f64 * step).take_while(|tick| *tick <= high * 1.000_001).collect()
}

/// A range that holds all values, with a margin of a twelfth, and at least `least` wide.
pub(super) fn padded(values: impl Iterator<Item = f64> + Clone, least: f64) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return (0.0, least);
    }
    let margin = ((high - low) / 12.0).max((least - (high - low)) / 2.0).max(least / 12.0);
    (low - margin, high + margin)
}

/// Labels of a linear axis without trailing noise.
pub(super) fn tick(value: f64) -> String {
    let text = if value.abs() >= 10.0 { format!("{value:.1}") } else { format!("{value:.2}") };
    match text.contains('.') {
        true if value.abs() < 1e4 => text.trim_end_matches('0').trim_end_matches('.').replace("-0", "0"),
        _ => three(value),
    }
}

/// Values 1, 2 and 5 times a power of ten between two positive ends, thinned to at most `most`.
pub(super) fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    for steps in [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]] {
        let ticks: Vec<f64> = (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)))
            .filter(|tick| (low..=high).contains(tick))
            .collect();
        if ticks.len() <= most {
            return ticks;
        }
    }
    let by = ((last - first) as usize).div_ceil(most).max(1);
    (first..=last)
        .step_by(by)
        .map(|power| 10f64.powi(power))
        .filter(|tick| (low..=high).contains(tick))
        .collect()
}

/// Sets the look of a chart's axes; a macro, for the chart's type names its coordinates.
macro_rules! mesh {
    ($chart:expr) => {
        $chart
            .configure_mesh()
            .axis_style($crate::svg::palette::ink().stroke_width(1))
            .bold_line_style($crate::svg::palette::ink().mix(0.25))
            .light_line_style(plotters::style::TRANSPARENT)
            .label_style($crate::svg::sheet::text_style($crate::svg::sheet::TEXT - 1.0))
            .axis_desc_style($crate::svg::sheet::text_style($crate::svg::sheet::TEXT))
    };
}
pub(super) use mesh;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_break_at_marks_and_are_shortened_last() {
        let lines = |text: &str| two_lines(text, 10.0, 90.0).join("|");
        assert_eq!(lines("affinity"), "affinity");
        assert_eq!(lines("affinity+replication"), "affinity+|replication");
        assert_eq!(lines("a plan of ten keys"), "a plan of ten|keys");
        assert_eq!(lines("affinity+replication+balance"), "affinity+|replica…balance");
        assert_eq!(lines("indivisibilities-of-names"), "indivis…f-names");
        assert_eq!(lines("+indivisibilities"), "+indivi…ilities");
        assert_eq!(lines("größe-der-flotte-und-mehr"), "größe-der-|flotte-und-mehr");
    }
}
