//! A strip of all shards, a glyph each: for fleets that have more shards than rows.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::look::Look;
use crate::palette::Role;
use crate::state::live::Live;

const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// The rows that a strip of this many shards takes at this width, its heading included.
pub fn height(shards: usize, width: u16) -> u16 {
    shards.div_ceil(usize::from(width.max(1))) as u16 + 1
}

/// Draws the strip: the height of a glyph is the load, from none to twice the mean.
pub fn draw(area: Rect, buffer: &mut Buffer, live: &Live, ratios: &[Option<f64>], look: Look) {
    if area.height < 2 || area.width == 0 {
        return;
    }
    let down = live.fleet.shards().iter().filter(|shard| !shard.now.up).count();
    let heading = format!(
        "all {} shards: ▁ no load, ▄ mean, █ twice the mean, ✖ down ({down})",
        live.fleet.shards().len()
    );
    let heading = super::text::cut(&heading, area.width.into());
    buffer.set_span(area.x, area.y, &look.span(Role::Dim, heading), area.width);
    for (at, shard) in live.fleet.shards().iter().enumerate() {
        let (x, y) = (at % usize::from(area.width), at / usize::from(area.width) + 1);
        if y >= usize::from(area.height) {
            break;
        }
        let (glyph, role) = match ratios.get(at).copied().flatten() {
            _ if !shard.now.up => ("✖", Role::Bad),
            None => (LEVELS[0], Role::Dim),
            Some(ratio) => {
                let level = (ratio * 4.0 - 0.5).round().clamp(0.0, 7.0) as usize;
                let role = match ratio {
                    r if r > 1.5 => Role::Bad,
                    r if r > 1.2 => Role::Warn,
                    _ => Role::Accent,
                };
                (LEVELS[level], role)
            }
        };
        buffer[(area.x + x as u16, area.y + y as u16)].set_symbol(glyph).set_style(look.style(role));
    }
}
