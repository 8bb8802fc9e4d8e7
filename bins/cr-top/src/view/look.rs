//! How things look: the palette with a glyph beside each colour.

use ratatui::style::Style;
use ratatui::text::Span;

use crate::palette::{Palette, Role};
use crate::state::live::Phase;

/// Palette and glyph set.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours.
    pub palette: Palette,
    /// Whether only ASCII may be drawn.
    pub ascii: bool,
}

impl Look {
    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.palette.style(role)
    }

    /// Text in a role.
    pub fn span<'a>(&self, role: Role, text: impl Into<std::borrow::Cow<'a, str>>) -> Span<'a> {
        Span::styled(text, self.style(role))
    }

    /// A label and its value.
    pub fn pair<'a>(&self, label: &'a str, value: impl Into<std::borrow::Cow<'a, str>>) -> [Span<'a>; 3] {
        [self.span(Role::Dim, label), Span::raw(" "), Span::raw(value)]
    }

    /// A phase as glyph, word and role.
    pub fn phase(phase: Phase, paused: bool) -> (&'static str, &'static str, Role) {
        match phase {
            _ if paused => ("⏸", "paused", Role::Warn),
            Phase::Waiting => ("○", "waiting", Role::Dim),
            Phase::Running => ("●", "running", Role::Good),
            Phase::Ended => ("■", "ended", Role::Accent),
            Phase::CutShort => ("✖", "cut short", Role::Bad),
        }
    }
}
