//! ASCII mode: after a frame is drawn, every glyph beyond ASCII is replaced by one that looks most like it.
//!
//! Done once on the finished frame, so that no view has to know of it and none can forget it.

use ratatui::buffer::Buffer;

/// Replaces every glyph that is not ASCII.
pub fn fold(buffer: &mut Buffer) {
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let cell = &mut buffer[(x, y)];
            if cell.symbol().is_ascii() {
                continue;
            }
            let mut plain = [0u8; 4];
            let glyph = cell.symbol().chars().next().map_or(' ', substitute);
            cell.set_symbol(glyph.encode_utf8(&mut plain));
        }
    }
}

/// The ASCII character that looks most like `glyph`.
fn substitute(glyph: char) -> char {
    match glyph {
        '─' | '━' | '╌' | '┄' | '–' | '—' | '−' => '-',
        '│' | '┃' | '▏' | '▕' | '╎' | '┆' => '|',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' | '╭' | '╮' | '╯' | '╰' => {
            '+'
        }
        '█' | '▉' | '▊' | '▋' | '▌' | '▐' | '▇' | '▆' | '▅' => '#',
        '▓' => '%',
        '▒' | '▄' | '▃' => '=',
        '░' | '▂' | '▁' | '▍' | '▎' | '·' | '…' => '.',
        '●' | '◆' | '■' | '•' => '*',
        '○' | '◇' => 'o',
        '✖' | '✗' | '×' => 'x',
        '✓' => 'v',
        '▲' | '↑' => '^',
        '▼' | '↓' => 'v',
        '▶' | '→' | '›' => '>',
        '◀' | '←' | '‹' => '<',
        '⏸' => '=',
        '⚠' => '!',
        'µ' | 'μ' => 'u',
        '≥' => '>',
        '≤' => '<',
        'Σ' => 'S',
        'Δ' => 'd',
        'ø' => '~',
        '±' => '~',
        '\u{2800}'..='\u{28ff}' => braille(glyph as u32 - 0x2800),
        _ => '?',
    }
}

/// A braille cell by where its dots are: low, middle, high, or all over.
fn braille(dots: u32) -> char {
    let (high, low) = (dots & 0b0000_1001 != 0, dots & 0b1100_0000 != 0);
    let middle = dots & 0b0011_0110 != 0;
    match (high, middle, low) {
        (false, false, false) => ' ',
        (true, false, false) => '\'',
        (false, false, true) => '.',
        (false, true, false) => '-',
        (true, _, true) => '|',
        (true, true, false) => '"',
        (false, true, true) => ',',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_ascii_is_left() {
        let text = "▏██░▕ ● ✖ 1.24× –…⣿⠁⡀⠒ µs é 漢";
        let mut buffer = Buffer::with_lines([text]);
        fold(&mut buffer);
        let folded: String = buffer.content().iter().map(|cell| cell.symbol()).collect();
        assert!(folded.is_ascii());
        assert!(folded.starts_with("|##.| * x 1.24x -.|'.- us ? ?"), "{folded}");
    }
}
