//! A view as a file: SVG or text.
//!
//! The SVG draws block and braille glyphs as shapes, so that it looks the same in every font, and text on the grid of a terminal. It
//! sets no background and follows the reader's light or dark scheme.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

/// Size of a cell, in SVG units.
const CELL: (f64, f64) = (8.4, 17.0);
/// Room around the frame.
const MARGIN: f64 = 10.0;

/// A frame as text, without blanks at the ends of lines.
pub fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width).max(1);
    let row =
        |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>().trim_end().to_string() + "\n";
    buffer.content().chunks(width).map(row).collect()
}

/// A frame as SVG.
pub fn svg(buffer: &Buffer, title: &str) -> String {
    let (columns, rows) = (buffer.area.width, buffer.area.height);
    let width = f64::from(columns) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(rows) * CELL.1 + 2.0 * MARGIN;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" role=\"img\">\n<title>{}</title>\n{STYLE}",
        escape(title)
    );
    for y in 0..rows {
        line(buffer, y, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

const STYLE: &str = "<style>
text { font: 14px ui-monospace, 'Cascadia Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace; white-space: pre; }
.p { fill: #1f2328; }
@media (prefers-color-scheme: dark) { .p { fill: #e6edf3; } }
.b { font-weight: bold; }
.d { opacity: 0.65; }
</style>
";

/// How a cell is painted: the classes and the fill of its glyph.
fn paint(cell: &Cell) -> String {
    let mut class = String::new();
    let fill = match cell.fg {
        Color::Rgb(r, g, b) => format!(" fill=\"#{r:02x}{g:02x}{b:02x}\""),
        _ => {
            class.push('p');
            String::new()
        }
    };
    if cell.modifier.contains(Modifier::BOLD) {
        class.push_str(" b");
    }
    if cell.modifier.contains(Modifier::DIM) {
        class.push_str(" d");
    }
    if class.is_empty() { fill } else { format!(" class=\"{}\"{fill}", class.trim_start()) }
}

fn line(buffer: &Buffer, y: u16, out: &mut String) {
    let mut x = 0;
    while x < buffer.area.width {
        let cell = &buffer[(buffer.area.x + x, buffer.area.y + y)];
        let paint = paint(cell);
        let reversed = cell.modifier.contains(Modifier::REVERSED);
        let glyph = cell.symbol().chars().next().unwrap_or(' ');
        if !reversed && shape(glyph, (x, y), &paint, out) {
            x += 1;
            continue;
        }
        // A run of text in one style.
        let (start, mut text) = (x, String::new());
        while x < buffer.area.width {
            let cell = &buffer[(buffer.area.x + x, buffer.area.y + y)];
            let glyph = cell.symbol().chars().next().unwrap_or(' ');
            let same = self::paint(cell) == paint && cell.modifier.contains(Modifier::REVERSED) == reversed;
            if !same || (!reversed && is_shape(glyph)) {
                break;
            }
            text.push_str(cell.symbol());
            x += 1;
        }
        write_text(start, y, &text, &paint, reversed, out);
    }
}

fn write_text(x: u16, y: u16, text: &str, paint: &str, reversed: bool, out: &mut String) {
    if text.trim().is_empty() && !reversed {
        return;
    }
    let blank = text.chars().take_while(|c| *c == ' ').count();
    let (x, text) = if reversed { (x, text) } else { (x + blank as u16, text.trim()) };
    let columns = text.chars().count() as f64;
    let (left, top) = corner(x, y);
    if reversed {
        let _ = writeln!(
            out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" opacity=\"0.2\"{paint}/>",
            columns * CELL.0,
            CELL.1
        );
    }
    for (at, part) in phrases(text) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{:.1}\"{paint}>{}</text>",
            left + at as f64 * CELL.0,
            top + 13.0,
            part.chars().count() as f64 * CELL.0,
            escape(part)
        );
    }
}

/// The parts of a text between runs of blanks, each with its column: some renderers make one blank of several.
fn phrases(text: &str) -> Vec<(usize, &str)> {
    let mut column = 0;
    let mut parts = Vec::new();
    for piece in text.split("  ") {
        let word = piece.trim();
        if !word.is_empty() {
            let lead = piece.chars().take_while(|c| *c == ' ').count();
            parts.push((column + lead, word));
        }
        column += piece.chars().count() + 2;
    }
    parts
}

fn corner(x: u16, y: u16) -> (f64, f64) {
    (MARGIN + f64::from(x) * CELL.0, MARGIN + f64::from(y) * CELL.1)
}

/// Glyphs that are drawn as shapes: (left, top, width, height) as shares of the cell, and the opacity.
fn block(glyph: char) -> Option<(f64, f64, f64, f64, f64)> {
    let code = u32::from(glyph);
    Some(match glyph {
        '█' => (0.0, 0.0, 1.0, 1.0, 1.0),
        '▉'..='▏' => (0.0, 0.15, f64::from(8 - (code - 0x2588)) / 8.0, 0.7, 1.0),
        '▁'..='▇' => {
            let share = f64::from(code - 0x2580) / 8.0;
            (0.08, 1.0 - share, 0.84, share, 1.0)
        }
        '▐' => (0.5, 0.15, 0.5, 0.7, 1.0),
        '░' => (0.0, 0.15, 1.0, 0.7, 0.25),
        '▒' => (0.0, 0.15, 1.0, 0.7, 0.5),
        '▓' => (0.0, 0.15, 1.0, 0.7, 0.75),
        '│' => (0.45, 0.0, 0.1, 1.0, 1.0),
        '╎' | '┆' => (0.45, 0.2, 0.1, 0.5, 0.8),
        '╌' => (0.15, 0.47, 0.7, 0.06, 1.0),
        _ => return None,
    })
}

fn is_shape(glyph: char) -> bool {
    ('\u{2801}'..='\u{28ff}').contains(&glyph) || block(glyph).is_some()
}

/// Draws a glyph as a shape, where it is one.
fn shape(glyph: char, (x, y): (u16, u16), paint: &str, out: &mut String) -> bool {
    let (left, top) = corner(x, y);
    if let Some((dx, dy, width, height, opacity)) = block(glyph) {
        // Full blocks of a bar are as high as its other parts.
        let (dy, height) = if glyph == '█' { (0.15, 0.7) } else { (dy, height) };
        let faint = if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() };
        let _ = writeln!(
            out,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\"{faint}{paint}/>",
            left + dx * CELL.0,
            top + dy * CELL.1,
            width * CELL.0,
            height * CELL.1
        );
        return true;
    }
    if !('\u{2801}'..='\u{28ff}').contains(&glyph) {
        return false;
    }
    let dots = u32::from(glyph) - 0x2800;
    let _ = write!(out, "<path{paint} d=\"");
    for bit in (0..8).filter(|bit| dots & (1 << bit) != 0) {
        let (column, row) = match bit {
            6 => (0, 3),
            7 => (1, 3),
            bit => (bit / 3, bit % 3),
        };
        let (px, py) =
            (left + (f64::from(column) + 0.5) * CELL.0 / 2.0, top + (f64::from(row) + 0.5) * CELL.1 / 4.0);
        let _ = write!(out, "M{:.1} {:.1}h2.6v2.6h-2.6z", px - 1.3, py - 1.3);
    }
    out.push_str("\"/>\n");
    true
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
