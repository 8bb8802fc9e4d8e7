//! What is drawn. Views only read; the app is told how long its lists are.

pub mod bars;
pub mod cache;
pub mod chart;
pub mod charts;
pub mod compare;
pub mod figures_panel;
pub mod fleet;
pub mod footer;
pub mod header;
pub mod help;
pub mod keys;
pub mod latency;
pub mod log;
pub mod look;
pub mod plan;
pub mod strip;
pub mod table;
pub mod text;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use crate::ascii;
use crate::palette::Role;
use crate::state::app::{App, View};
use crate::state::live::{Live, Phase};
use crate::system::Usage;
pub use look::Look;

/// The least width that anything is drawn at.
pub const MIN_WIDTH: u16 = 40;
/// The least height.
pub const MIN_HEIGHT: u16 = 10;
/// From this height on there is a line of tabs.
const TABS_HEIGHT: u16 = 14;
/// From this height on there is a line on the machine.
const SYSTEM_HEIGHT: u16 = 30;

/// Everything that a frame shows.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The runs, at least one.
    pub runs: &'a [&'a Live],
    /// The machine that this runs on, where it is known.
    pub system: Option<&'a Usage>,
    /// Palette and glyphs.
    pub look: Look,
}

impl Scene<'_> {
    /// The run that single-run views show.
    fn run(&self, app: &App) -> &Live {
        self.runs[app.run.min(self.runs.len() - 1)]
    }
}

/// Draws a whole frame.
///
/// # Panics
/// Where the scene has no run.
pub fn draw(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene) {
    if area.width < MIN_WIDTH || area.height < MIN_HEIGHT {
        too_small(area, buffer);
    } else {
        page(area, buffer, app, scene);
    }
    if scene.look.ascii {
        ascii::fold(buffer);
    }
}

fn too_small(area: Rect, buffer: &mut Buffer) {
    let text = format!("need {MIN_WIDTH}×{MIN_HEIGHT}, have {}×{}", area.width, area.height);
    let line = Line::raw(text::cut(&text, area.width.into()));
    if area.height > 0 && area.width > 0 {
        let x = area.x + (area.width - line.width() as u16) / 2;
        buffer.set_line(x, area.y + area.height / 2, &line, area.width);
    }
}

fn page(area: Rect, buffer: &mut Buffer, app: &mut App, scene: &Scene) {
    let (live, look) = (scene.run(app), scene.look);
    let tabs = u16::from(area.height >= TABS_HEIGHT);
    let system = u16::from(area.height >= SYSTEM_HEIGHT && scene.system.is_some());
    let rows = [2, tabs].map(Constraint::Length);
    let rows = [rows[0], rows[1], Constraint::Fill(1), Constraint::Length(system), Constraint::Length(1)];
    let [head, tab_line, body, machine, foot] = Layout::vertical(rows).areas(area);
    header::draw(head, buffer, app, live, look);
    if tabs > 0 {
        header::tabs(tab_line, buffer, app, live, look);
    }
    if app.help {
        help::draw(body, buffer, app, look);
    } else if live.phase == Phase::Waiting && app.view != View::Compare {
        waiting(body, buffer, live, look);
    } else {
        match app.view {
            View::Fleet => fleet::draw(body, buffer, app, live, look),
            View::Latency => latency::draw(body, buffer, live, look),
            View::Cache => cache::draw(body, buffer, live, look),
            View::Keys => keys::draw(body, buffer, app, live, look),
            View::Plan => plan::draw(body, buffer, app, live, look),
            View::Log => log::draw(body, buffer, app, live, look),
            View::Compare => compare::draw(body, buffer, app, scene.runs, look),
        }
    }
    if let Some(usage) = scene.system
        && system > 0
    {
        footer::machine(machine, buffer, usage, look);
    }
    footer::draw(foot, buffer, app, live, look);
}

fn waiting(area: Rect, buffer: &mut Buffer, live: &Live, look: Look) {
    let text = live.note.clone().unwrap_or_else(|| format!("waiting for events from {}", live.name));
    let line = Line::from(look.span(Role::Dim, text::cut(&text, usize::from(area.width) - 2)));
    if area.height > 0 {
        buffer.set_line(area.x + 1, area.y + area.height / 2, &line, area.width);
    }
}
