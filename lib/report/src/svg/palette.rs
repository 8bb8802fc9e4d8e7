//! Colours that read on white and on near-black alike.

use plotters::style::RGBColor;

/// Red, green and blue, 0 to 255.
pub type Rgb = (u8, u8, u8);

/// Text and axes.
pub const INK: Rgb = (0x7a, 0x7a, 0x7a);

/// Series, told apart also with the common colour blindnesses; each has a marker and a dash of its own besides.
pub const SERIES: [Rgb; 8] = [
    (0x3a, 0x86, 0xc8),
    (0xd9, 0x6a, 0x1d),
    (0x2c, 0x96, 0x6d),
    (0xb0, 0x64, 0xc8),
    (0xc9, 0x4c, 0x58),
    (0x8a, 0x7a, 0x22),
    (0x1f, 0x93, 0xa5),
    (0x8f, 0x6b, 0x52),
];

/// The colour of the nth series.
pub(super) fn series(index: usize) -> RGBColor {
    let (r, g, b) = SERIES[index % SERIES.len()];
    RGBColor(r, g, b)
}

/// The colour of text.
pub(super) fn ink() -> RGBColor {
    RGBColor(INK.0, INK.1, INK.2)
}

/// The contrast of two colours as WCAG 2 defines it: 1 (none) to 21.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn luminance((r, g, b): Rgb) -> f64 {
    let linear = |channel: u8| {
        let c = f64::from(channel) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GitHub's pages, light and dark.
    const PAGES: [Rgb; 2] = [(0xff, 0xff, 0xff), (0x0d, 0x11, 0x17)];

    #[test]
    fn contrast_is_that_of_the_standard() {
        assert!((contrast((0, 0, 0), (255, 255, 255)) - 21.0).abs() < 1e-9);
        assert!((contrast((0x77, 0x77, 0x77), (255, 255, 255)) - 4.48).abs() < 0.01);
    }

    #[test]
    fn everything_reads_on_light_and_dark_pages() {
        for page in PAGES {
            assert!(contrast(INK, page) >= 4.2, "{page:?} {}", contrast(INK, page));
            for colour in SERIES {
                assert!(contrast(colour, page) >= 3.0, "{colour:?} on {page:?}: {}", contrast(colour, page));
            }
        }
    }
}
