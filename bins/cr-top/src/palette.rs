//! Colours by their role, at the level that the terminal shows.
//!
//! No background is assumed and none is set: the colours of the upper levels have a contrast of at least 3.8 to 1 against
//! both black and white (a test computes it). Their hues are those of Okabe and Ito (2008), which people with any common colour
//! blindness tell apart. Colour is never alone: a glyph or a number stands beside it.

use ratatui::style::{Color, Modifier, Style};

/// How many colours the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// None: bold, underline and reverse only.
    None,
    /// The eight of ANSI.
    Ansi8,
    /// Those and their bright forms.
    Ansi16,
    /// The 256 of xterm.
    Indexed,
    /// 24 bits.
    True,
}

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Text.
    Plain,
    /// Labels, axes, units.
    Dim,
    /// Headings, the current tab.
    Accent,
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Broken.
    Bad,
    /// The second curve of a chart.
    Second,
    /// The third.
    Third,
    /// The fourth.
    Fourth,
    /// Under the cursor.
    Selected,
}

/// Styles by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// How many colours are shown.
    pub level: Level,
}

impl Palette {
    /// The style of a role.
    pub fn style(self, role: Role) -> Style {
        let base = Style::new();
        let with = |color: Option<Color>| color.map_or(base, |color| base.fg(color));
        let color = self.color(role);
        match role {
            Role::Selected => base.add_modifier(Modifier::REVERSED),
            Role::Accent | Role::Bad => with(color).add_modifier(Modifier::BOLD),
            Role::Dim if self.level < Level::Ansi16 => base.add_modifier(Modifier::DIM),
            _ => with(color),
        }
    }

    /// The foreground of a role; `None` for the terminal's own.
    pub fn color(self, role: Role) -> Option<Color> {
        let at = match role {
            Role::Plain | Role::Selected => return None,
            Role::Dim => 0,
            Role::Accent => 1,
            Role::Good => 2,
            Role::Warn => 3,
            Role::Bad => 4,
            Role::Second => 5,
            Role::Third => 6,
            Role::Fourth => 7,
        };
        // Green, yellow and cyan of the small palettes vanish on white, blue on black: the terminal's own colour serves instead.
        match self.level {
            Level::None => None,
            Level::Ansi8 => {
                let (red, magenta) = (Some(Color::Red), Some(Color::Magenta));
                [None, magenta, None, magenta, red, red, magenta, None][at]
            }
            Level::Ansi16 => {
                let (red, blue, grey) =
                    (Some(Color::LightRed), Some(Color::LightBlue), Some(Color::DarkGray));
                [grey, blue, None, Some(Color::Magenta), red, Some(Color::Magenta), red, grey][at]
            }
            Level::Indexed => Some(Color::Indexed([243, 31, 29, 100, 130, 132, 29, 100][at])),
            Level::True => {
                let [_, r, g, b] = TRUE[at].to_be_bytes();
                Some(Color::Rgb(r, g, b))
            }
        }
    }
}

/// Okabe and Ito's hues, brought to a relative luminance of 0.18.
const TRUE: [u32; 8] =
    [0x76_76_76, 0x00_7b_c1, 0x00_86_62, 0x9d_6c_00, 0xc2_56_00, 0xbc_4e_8b, 0x00_86_62, 0x9d_6c_00];

/// What the environment says about colours.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// `NO_COLOR`, where it is set and not empty.
    pub no_color: bool,
    /// `COLORTERM`.
    pub colorterm: String,
    /// `TERM`.
    pub term: String,
}

impl Env {
    /// Reads the process environment.
    pub fn read() -> Env {
        let get = |name: &str| std::env::var(name).unwrap_or_default();
        Env { no_color: !get("NO_COLOR").is_empty(), colorterm: get("COLORTERM"), term: get("TERM") }
    }

    /// The level that the terminal most likely shows.
    pub fn level(&self) -> Level {
        if self.no_color || self.term == "dumb" || self.term.ends_with("-mono") || self.term.ends_with("-m") {
            return Level::None;
        }
        self.level_if_coloured()
    }

    /// The same where colour is asked for, whatever `NO_COLOR` says.
    pub fn level_if_coloured(&self) -> Level {
        if matches!(self.colorterm.as_str(), "truecolor" | "24bit") || self.term.ends_with("-direct") {
            return Level::True;
        }
        match self.term.as_str() {
            term if term.contains("256color") => Level::Indexed,
            term if term.contains("kitty") || term.contains("alacritty") || term.contains("ghostty") => {
                Level::Indexed
            }
            term if term.contains("16color") || term.starts_with("rxvt") || term.starts_with("xterm") => {
                Level::Ansi16
            }
            _ => Level::Ansi8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [Role; 8] =
        [Role::Dim, Role::Accent, Role::Good, Role::Warn, Role::Bad, Role::Second, Role::Third, Role::Fourth];

    /// xterm's default values.
    fn rgb(color: Color) -> [u8; 3] {
        match color {
            Color::Rgb(r, g, b) => [r, g, b],
            Color::Red => [205, 0, 0],
            Color::Magenta => [205, 0, 205],
            Color::LightRed => [255, 0, 0],
            Color::LightBlue => [92, 92, 255],
            Color::DarkGray => [127, 127, 127],
            Color::Indexed(n @ 16..=231) => {
                let n = n - 16;
                [n / 36, n / 6 % 6, n % 6].map(|c| if c == 0 { 0 } else { 55 + 40 * c })
            }
            Color::Indexed(n @ 232..) => [8 + 10 * (n - 232); 3],
            other => panic!("{other:?} has no place in the palette"),
        }
    }

    /// Relative luminance (WCAG 2.1).
    fn luminance(color: Color) -> f64 {
        let [r, g, b] = rgb(color).map(|c| {
            let c = f64::from(c) / 255.0;
            if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn every_colour_is_readable_on_black_and_on_white() {
        for (level, least) in
            [(Level::Ansi8, 3.5), (Level::Ansi16, 3.5), (Level::Indexed, 3.8), (Level::True, 4.4)]
        {
            for role in ROLES {
                let Some(color) = (Palette { level }).color(role) else { continue };
                let own = luminance(color);
                let (on_black, on_white) = ((own + 0.05) / 0.05, 1.05 / (own + 0.05));
                assert!(
                    on_black >= least && on_white >= least,
                    "{level:?} {role:?}: {on_black:.2} {on_white:.2}"
                );
            }
        }
    }

    #[test]
    fn no_level_sets_a_background() {
        for level in [Level::None, Level::Ansi8, Level::Ansi16, Level::Indexed, Level::True] {
            for role in ROLES.into_iter().chain([Role::Plain, Role::Selected]) {
                assert_eq!((Palette { level }).style(role).bg, None);
            }
        }
    }

    #[test]
    fn the_environment_decides_the_level() {
        let env = |no_color, colorterm: &str, term: &str| Env {
            no_color,
            colorterm: colorterm.into(),
            term: term.into(),
        };
        assert_eq!(env(true, "truecolor", "xterm-256color").level(), Level::None);
        assert_eq!(env(false, "truecolor", "xterm-256color").level(), Level::True);
        assert_eq!(env(false, "", "tmux-256color").level(), Level::Indexed);
        assert_eq!(env(false, "", "xterm").level(), Level::Ansi16);
        assert_eq!(env(false, "", "linux").level(), Level::Ansi8);
        assert_eq!(env(false, "", "dumb").level(), Level::None);
        assert_eq!(env(false, "", "").level(), Level::Ansi8);
    }
}
