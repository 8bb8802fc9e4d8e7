//! Bars of text.

use ratatui::style::Style;
use ratatui::text::Span;

const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A bar of `width` columns, `share` (0 to 1) of it full.
pub fn bar(share: f64, width: usize, full: Style, empty: Style) -> [Span<'static>; 2] {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    text.push_str(EIGHTHS[eighths % 8]);
    let used = eighths.div_ceil(8);
    [Span::styled(text, full), Span::styled("░".repeat(width - used.min(width)), empty)]
}

/// A bar that grows from the middle: to the right where `ratio` is above 1, to the left where it is below. A ratio of
/// 1 ± `span` fills its half; what is beyond ends in an arrow.
pub fn diverging(ratio: f64, span: f64, width: usize) -> String {
    let half = width.saturating_sub(1) / 2;
    let off = if ratio.is_finite() { (ratio - 1.0) / span.max(1e-9) } else { 0.0 };
    let halves = (off.abs().min(1.0) * half as f64 * 2.0).round() as usize;
    let (whole, rest) = (halves / 2, halves % 2);
    let blank = half - whole - rest;
    let beyond = off.abs() > 1.0 + 1e-9 && half > 0;
    if off < 0.0 {
        let bar = "█".repeat(whole - usize::from(beyond));
        let (arrow, half_cell) = (if beyond { "◀" } else { "" }, if rest == 1 { "▐" } else { "" });
        format!("{}{arrow}{half_cell}{bar}│{}", " ".repeat(blank), " ".repeat(half))
    } else {
        let bar = "█".repeat(whole - usize::from(beyond));
        let (arrow, half_cell) = (if beyond { "▶" } else { "" }, if rest == 1 { "▌" } else { "" });
        format!("{}│{bar}{half_cell}{arrow}{}", " ".repeat(half), " ".repeat(blank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(share: f64, width: usize) -> String {
        bar(share, width, Style::new(), Style::new()).iter().map(|span| span.content.to_string()).collect()
    }

    #[test]
    fn bars_have_their_width() {
        assert_eq!(text(0.5, 4), "██░░");
        assert_eq!(text(0.55, 4), "██▎░");
        for share in [f64::NAN, -1.0, 0.0, 0.01, 0.99, 1.0, 7.0] {
            assert_eq!(text(share, 9).chars().count(), 9, "{share}");
        }
    }

    #[test]
    fn diverging_bars_have_their_width_and_side() {
        assert_eq!(diverging(1.5, 1.0, 9), "    │██  ");
        assert_eq!(diverging(0.5, 1.0, 9), "  ██│    ");
        assert_eq!(diverging(3.0, 1.0, 9), "    │███▶");
        assert_eq!(diverging(1.0, 1.0, 9), "    │    ");
        for ratio in [f64::NAN, 0.0, 0.3, 1.01, 1.37, 99.0, f64::INFINITY] {
            for width in [1, 3, 8, 9, 20] {
                let width_odd = width - (width + 1) % 2;
                assert_eq!(diverging(ratio, 0.5, width).chars().count(), width_odd, "{ratio} {width}");
            }
        }
    }
}
