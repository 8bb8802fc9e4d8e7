//! Columns that give way: the least important are left out where room is short, and bars share what is left over.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// Its least width in columns of text.
    pub width: u16,
    /// How much wider it may become.
    pub stretch: u16,
    /// The higher, the longer it stays.
    pub rank: u8,
    /// Numbers stand to the right.
    pub right: bool,
}

/// Which columns are shown, and where.
#[derive(Clone, Debug)]
pub struct Layout {
    /// (column, x, width).
    places: Vec<(usize, u16, u16)>,
}

/// Two spaces between columns, one where room is short.
fn gap(width: u16) -> u16 {
    if width < 60 { 1 } else { 2 }
}

impl Layout {
    /// Fits columns into `width`.
    pub fn new(columns: &[Column], width: u16) -> Layout {
        Layout::without(columns, width, |_| false)
    }

    /// The same, with some columns left out in any case.
    pub fn without(columns: &[Column], width: u16, left_out: impl Fn(usize) -> bool) -> Layout {
        let gap = gap(width);
        let mut shown: Vec<usize> = (0..columns.len()).filter(|at| !left_out(*at)).collect();
        let used = |shown: &[usize]| {
            shown.iter().map(|at| columns[*at].width + gap).sum::<u16>().saturating_sub(gap)
        };
        while used(&shown) > width && shown.len() > 1 {
            let least = shown.iter().enumerate().rev().min_by_key(|(_, at)| columns[**at].rank);
            if let Some(least) = least.map(|(place, _)| place) {
                shown.remove(least);
            }
        }
        let mut left = width.saturating_sub(used(&shown));
        let mut stretchy = shown.iter().filter(|at| columns[**at].stretch > 0).count() as u16;
        let mut x = 0;
        let mut places = Vec::with_capacity(shown.len());
        for at in shown {
            let column = columns[at];
            let mut wide = column.width;
            if column.stretch > 0 {
                let more = (left / stretchy).min(column.stretch);
                (left, stretchy) = (left - more, stretchy - 1);
                wide += more;
            }
            places.push((at, x, wide.min(width.saturating_sub(x))));
            x += wide + gap;
        }
        Layout { places }
    }

    /// The width of a column; `None` where it is left out.
    pub fn width(&self, column: usize) -> Option<u16> {
        self.places.iter().find(|(at, ..)| *at == column).map(|(.., width)| *width)
    }

    /// Draws a row: `cell` gives a column's text for its width.
    pub fn row<'a>(
        &self,
        columns: &[Column],
        area: Rect,
        buffer: &mut Buffer,
        mut cell: impl FnMut(usize, usize) -> Vec<Span<'a>>,
    ) {
        for (at, x, width) in &self.places {
            let line = Line::from(cell(*at, usize::from(*width)));
            let slack = if columns[*at].right { width.saturating_sub(line.width() as u16) } else { 0 };
            if area.height > 0 && x + slack < area.width {
                buffer.set_line(
                    area.x + x + slack,
                    area.y,
                    &line,
                    (width - slack).min(area.width - x - slack),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { title: "a", width: 5, stretch: 0, rank: 9, right: false },
        Column { title: "b", width: 10, stretch: 10, rank: 5, right: false },
        Column { title: "c", width: 6, stretch: 0, rank: 7, right: true },
    ];

    #[test]
    fn bars_grow_and_the_least_gives_way() {
        let widths = |width| (0..3).map(|at| Layout::new(&COLUMNS, width).width(at)).collect::<Vec<_>>();
        assert_eq!(widths(100), [Some(5), Some(20), Some(6)]);
        assert_eq!(widths(25), [Some(5), Some(12), Some(6)]);
        assert_eq!(widths(20), [Some(5), None, Some(6)]);
        assert_eq!(widths(3), [Some(3), None, None]);
        assert_eq!(widths(0), [Some(0), None, None]);
    }
}
