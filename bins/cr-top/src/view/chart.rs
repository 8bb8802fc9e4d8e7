//! Curves over time, drawn with braille dots: two by four a cell.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{Part, cut, fit};
use crate::figures;

/// What stands for several values that fall into one column of dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Their mean.
    Mean,
    /// The largest: a peak must not vanish.
    Max,
}

/// One curve: a value a slot of time, `None` where there is none.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The values in order.
    pub values: Vec<Option<f64>>,
    /// How it is drawn.
    pub style: Style,
    /// For several values in one column.
    pub pick: Pick,
    /// A glyph at its last point, where colour alone does not tell curves apart.
    pub tag: Option<&'static str>,
}

/// The scale from bottom to top.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// At the bottom.
    pub low: f64,
    /// At the top.
    pub high: f64,
    /// How labels are written.
    pub label: fn(f64) -> String,
}

impl Scale {
    /// From `low` to a round number at or above all values and `least_high`.
    pub fn above(low: f64, least_high: f64, curves: &[Curve], label: fn(f64) -> String) -> Scale {
        let values = curves.iter().flat_map(|curve| curve.values.iter().flatten()).copied();
        let high = values.filter(|value| value.is_finite()).fold(least_high, f64::max);
        Scale { low, high: figures::nice_ceiling(high), label }
    }
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    /// Above the plot, cut to its width.
    pub title: Vec<Part<'a>>,
    /// The curves; later ones are drawn over earlier ones.
    pub curves: Vec<Curve>,
    /// From bottom to top.
    pub scale: Scale,
    /// A horizontal line: where, and how.
    pub level: Option<(f64, Style)>,
    /// Vertical marks: share of the width (0 to 1), glyph, style.
    pub marks: Vec<(f64, &'static str, Style)>,
    /// The run time at both ends, in seconds.
    pub span_s: (f64, f64),
    /// For labels.
    pub dim: Style,
    /// What the vertical marks are, below the plot where there is room; may be empty.
    pub legend: &'static str,
}

impl Chart<'_> {
    /// Draws into `area`; what does not fit is left out.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.width < 12 || area.height < 3 {
            return;
        }
        let title = fit(self.title.clone(), " ", area.width.into());
        buffer.set_line(area.x, area.y, &title, area.width);
        let (high, low) = ((self.scale.label)(self.scale.high), (self.scale.label)(self.scale.low));
        let gutter = Span::raw(high.as_str()).width().max(Span::raw(low.as_str()).width()).min(9) as u16 + 1;
        let has_axis = area.height >= 5;
        let rows = area.height - 1 - u16::from(has_axis);
        let plot = Rect { x: area.x + gutter, y: area.y + 1, width: area.width - gutter, height: rows };
        for (text, y) in [(&high, plot.y), (&low, plot.bottom() - 1)] {
            let label = Span::styled(format!("{text:>width$}", width = usize::from(gutter) - 1), self.dim);
            buffer.set_span(area.x, y, &label, gutter - 1);
        }
        self.marks(plot, buffer);
        self.level(plot, buffer);
        for curve in &self.curves {
            let raster = Raster::of(curve, self.scale, plot);
            raster.draw(plot, curve.style, buffer);
            if let Some((tag, (x, y))) = curve.tag.zip(raster.end) {
                buffer[(plot.x + x, plot.y + y)].set_symbol(tag).set_style(curve.style);
            }
        }
        if has_axis {
            self.axis(plot, buffer);
        }
    }

    fn level(&self, plot: Rect, buffer: &mut Buffer) {
        let Some((value, style)) = self.level else { return };
        let share = (value - self.scale.low) / (self.scale.high - self.scale.low);
        if !(0.0..=1.0).contains(&share) {
            return;
        }
        let y = plot.y + ((1.0 - share) * f64::from(plot.height - 1)).round() as u16;
        for x in plot.left()..plot.right() {
            buffer[(x, y)].set_symbol("╌").set_style(style);
        }
    }

    fn marks(&self, plot: Rect, buffer: &mut Buffer) {
        for (share, glyph, style) in &self.marks {
            if !(0.0..=1.0).contains(share) {
                continue;
            }
            let x = plot.x + (share * f64::from(plot.width - 1)).round() as u16;
            for y in plot.top()..plot.bottom() {
                buffer[(x, y)].set_symbol(glyph).set_style(*style);
            }
        }
    }

    fn axis(&self, plot: Rect, buffer: &mut Buffer) {
        let (from, to) = (figures::clock(self.span_s.0), figures::clock(self.span_s.1));
        let width = usize::from(plot.width);
        let used = Span::raw(from.as_str()).width() + Span::raw(to.as_str()).width();
        let text = if used + 2 <= width {
            let room = width - used;
            let legend = if Span::raw(self.legend).width() + 4 <= room { self.legend } else { "" };
            format!("{from}{legend:^room$}{to}")
        } else {
            format!("{:>width$}", cut(&to, width))
        };
        buffer.set_line(plot.x, plot.bottom(), &Line::styled(text, self.dim), plot.width);
    }
}

/// The dots of one curve.
struct Raster {
    columns: usize,
    /// The cell of the last point.
    end: Option<(u16, u16)>,
    cells: Vec<u8>,
}

/// The dot of (column, row) within a cell.
const DOTS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

impl Raster {
    fn of(curve: &Curve, scale: Scale, plot: Rect) -> Raster {
        let columns = usize::from(plot.width);
        let mut raster = Raster { columns, end: None, cells: vec![0; columns * usize::from(plot.height)] };
        let (width, height) = (columns * 2, usize::from(plot.height) * 4);
        let range = (scale.high - scale.low).max(f64::MIN_POSITIVE);
        let mut last: Option<(usize, usize)> = None;
        for (x, value) in resample(&curve.values, curve.pick, width) {
            let Some(value) = value.filter(|value| value.is_finite()) else {
                last = None;
                continue;
            };
            let share = ((value - scale.low) / range).clamp(0.0, 1.0);
            let y = ((1.0 - share) * (height - 1) as f64).round() as usize;
            raster.line(last.unwrap_or((x, y)), (x, y));
            last = Some((x, y));
            raster.end = Some(((x / 2) as u16, (y / 4) as u16));
        }
        raster
    }

    /// Sets the dots from one to another, in every column at least one.
    fn line(&mut self, from: (usize, usize), to: (usize, usize)) {
        let (dx, dy) = (to.0 as f64 - from.0 as f64, to.1 as f64 - from.1 as f64);
        let steps = dx.abs().max(dy.abs()).max(1.0) as usize;
        for step in 0..=steps {
            let share = step as f64 / steps as f64;
            let x = (from.0 as f64 + dx * share).round() as usize;
            let y = (from.1 as f64 + dy * share).round() as usize;
            if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
                *cell |= DOTS[x % 2][y % 4];
            }
        }
    }

    fn draw(&self, plot: Rect, style: Style, buffer: &mut Buffer) {
        let mut utf8 = [0; 4];
        for (at, dots) in self.cells.iter().enumerate().filter(|(_, dots)| **dots != 0) {
            let (x, y) = (plot.x + (at % self.columns) as u16, plot.y + (at / self.columns) as u16);
            if let Some(glyph) = char::from_u32(0x2800 + u32::from(*dots)) {
                buffer[(x, y)].set_symbol(glyph.encode_utf8(&mut utf8)).set_style(style);
            }
        }
    }
}

/// Spreads values over `width` columns: more values than columns are summed up per column, fewer are spaced out.
fn resample(values: &[Option<f64>], pick: Pick, width: usize) -> Vec<(usize, Option<f64>)> {
    let count = values.len();
    if count <= width {
        let place = |at: usize| if count < 2 { 0 } else { at * (width - 1) / (count - 1) };
        return values.iter().enumerate().map(|(at, value)| (place(at), *value)).collect();
    }
    let column = |x: usize| {
        let group = &values[x * count / width..((x + 1) * count / width).max(x * count / width + 1)];
        let known = group.iter().flatten().copied();
        match pick {
            Pick::Max => known.reduce(f64::max),
            Pick::Mean => {
                let (sum, n) = known.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
                (n > 0).then(|| sum / f64::from(n))
            }
        }
    };
    (0..width).map(|x| (x, column(x))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::text::part;
    use super::*;
    use insta::assert_snapshot;

    fn chart(values: Vec<Option<f64>>, width: u16, height: u16) -> String {
        let curves = vec![Curve { values, style: Style::new(), pick: Pick::Max, tag: None }];
        let chart = Chart {
            title: vec![part(1, [Span::raw("a title")])],
            scale: Scale::above(0.0, 0.0, &curves, figures::seconds),
            curves,
            level: None,
            marks: Vec::new(),
            span_s: (0.0, 60.0),
            dim: Style::new(),
            legend: "",
        };
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        chart.draw(area, &mut buffer);
        let rows = buffer.content().chunks(usize::from(width).max(1));
        rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_string() + "\n")
            .collect()
    }

    #[test]
    fn a_ramp_rises() {
        assert_snapshot!("ramp", chart((0..=40).map(|n| Some(f64::from(n) / 40.0)).collect(), 28, 6));
    }

    #[test]
    fn a_gap_is_left_open_and_a_peak_is_kept() {
        let mut values = vec![Some(0.1); 900];
        values[300..400].fill(None);
        values[700] = Some(0.4);
        assert_snapshot!("gap", chart(values, 40, 6));
    }

    #[test]
    fn odd_values_and_small_areas_do_no_harm() {
        for (width, height) in [(0, 0), (11, 9), (12, 2), (12, 3), (13, 5)] {
            chart(vec![Some(f64::NAN), Some(f64::INFINITY), None, Some(-3.0)], width, height);
        }
        chart(Vec::new(), 30, 8);
        chart(vec![Some(1.0)], 30, 8);
    }
}
