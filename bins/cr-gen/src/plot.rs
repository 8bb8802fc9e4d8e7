//! The statistics of a trace as a picture: mid-tones without a background, for light and dark pages alike.

use crate::stats_table::grouped;
use cr_trace::stats::StatsReport;
use plotters::coord::Shift;
use plotters::prelude::*;

const SIZE: (u32, u32) = (820, 340);
const INK: RGBColor = RGBColor(0x7a, 0x7a, 0x7a);
const OBSERVED: RGBColor = RGBColor(0x3a, 0x86, 0xc8);
const GRID: RGBAColor = RGBAColor(0x7a, 0x7a, 0x7a, 0.3);
/// Points of a line at most, spread evenly in the logarithm.
const POINTS: usize = 200;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Points = Vec<(f64, f64)>;

/// Draws the share of the requests that the top keys make, and reuse against the size of the cache where it was counted.
/// `counts` are the requests of each key, most popular first.
pub(crate) fn draw(report: &StatsReport, counts: &[u64]) -> Result<String, String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let panels = match &report.curve {
            Some(_) => root.split_evenly((1, 2)),
            None => vec![root.clone()],
        };
        let keys = format!(
            "Share of the requests: {} keys, Gini {:.2}",
            grouped(report.keys.count),
            report.keys.gini
        );
        panel(&panels[0], (&keys, "Most popular keys", "Requests"), &shares(counts))?;
        if let (Some(curve), Some(area)) = (&report.curve, panels.get(1)) {
            let points = curve.points.iter().map(|point| (point.cache_tokens as f64, point.hit)).collect();
            let how = match curve.sampled {
                sampled if sampled < 1.0 => format!("1 block in {:.0}", 1.0 / sampled),
                _ => "all blocks".into(),
            };
            let heading = format!("Reuse by size of one cache ({how})");
            panel(area, (&heading, "Cache, tokens", "Blocks found"), &points)?;
        }
        root.present().map_err(|error| error.to_string())?;
    }
    if !svg.ends_with('\n') {
        svg.push('\n');
    }
    Ok(svg)
}

/// The cumulative share of the leading keys.
fn shares(counts: &[u64]) -> Points {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let mut points = Points::new();
    let (mut sum, mut next) = (0, 1.0f64);
    let step = (counts.len() as f64).powf(1.0 / POINTS as f64).max(1.0);
    for (index, count) in counts.iter().enumerate() {
        sum += count;
        let rank = (index + 1) as f64;
        if rank >= next || index + 1 == counts.len() {
            points.push((rank, sum as f64 / total));
            next = (next * step).max(rank);
        }
    }
    points
}

/// One line over a logarithmic axis, with (heading, x, y) as labels.
fn panel(area: &Area<'_>, labels: (&str, &str, &str), points: &Points) -> Result<(), String> {
    let said = |error: DrawingAreaErrorKind<std::io::Error>| error.to_string();
    let (heading, x, y) = labels;
    let text = |size: u32| ("sans-serif", size).into_font().color(&INK);
    let first = points.first().map_or(1.0, |point| point.0).max(1.0);
    let last = points.last().map_or(10.0, |point| point.0).max(first * 10.0);
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(heading, text(15))
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((first..last).log_scale(), 0.0..1.0)
        .map_err(said)?;
    chart
        .configure_mesh()
        .axis_style(INK)
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .label_style(text(13))
        .axis_desc_style(text(13))
        .x_desc(x)
        .y_desc(y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| format!("{:.0} %", value * 100.0))
        .draw()
        .map_err(said)?;
    chart.draw_series(LineSeries::new(points.iter().copied(), OBSERVED.stroke_width(2))).map_err(said)?;
    Ok(())
}

/// 1200 as 1.2k.
fn short(value: f64) -> String {
    for (scale, unit) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value >= scale {
            return format!("{}{unit}", (value / scale * 10.0).round() / 10.0);
        }
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_cumulative_and_end_at_one() {
        assert_eq!(shares(&[3, 1]), [(1.0, 0.75), (2.0, 1.0)]);
        assert_eq!(shares(&[]), []);
        let many = shares(&vec![1; 100_000]);
        assert!(many.len() <= POINTS + 2, "{}", many.len());
        assert!(many.is_sorted() && many.last() == Some(&(100_000.0, 1.0)));
    }

    #[test]
    fn large_numbers_are_short() {
        assert_eq!([1.0, 999.0, 1200.0, 641_000.0, 2e9].map(short), ["1", "999", "1.2k", "641k", "2G"]);
    }
}
