//! What the user looks at: view, place in lists, order, filter, pause.

use crate::keys::Action;

/// A page of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Key figures, charts, one row a shard.
    #[default]
    Fleet,
    /// What happened besides requests.
    Log,
}

impl View {
    /// All views, in the order of their number keys.
    pub const ALL: [View; 2] = [View::Fleet, View::Log];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            View::Fleet => "Fleet",
            View::Log => "Log",
        }
    }
}

/// A column that shards are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// Shard id.
    #[default]
    Id,
    /// Waiting requests.
    Queue,
    /// Running requests.
    Running,
    /// KV use.
    Kv,
    /// Served hit.
    Hit,
    /// Work against the mean.
    Load,
    /// 99th percentile of TTFT.
    P99,
}

impl Column {
    /// All columns, in the order of the sort key.
    pub const ALL: [Column; 7] =
        [Column::Id, Column::Queue, Column::Running, Column::Kv, Column::Hit, Column::Load, Column::P99];
}

/// A place in a list that may grow and shrink.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    offset: usize,
    len: usize,
    rows: usize,
}

impl Place {
    /// Tells how long the list is and how many rows there are; returns the first line to show.
    pub fn fit(&mut self, len: usize, rows: usize) -> usize {
        (self.len, self.rows) = (len, rows);
        self.offset = self.offset.min(self.end());
        self.offset
    }

    /// The last possible first line.
    fn end(self) -> usize {
        self.len.saturating_sub(self.rows)
    }

    /// Moves by lines.
    fn move_by(&mut self, lines: isize) {
        self.offset = self.offset.saturating_add_signed(lines).min(self.end());
    }
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Go on.
    Stay,
    /// The user leaves; exit 0.
    Quit,
    /// The user interrupts; exit 130.
    Interrupt,
}

/// What the user looks at.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// The page.
    pub view: View,
    /// Whether the help lies over it.
    pub help: bool,
    /// Whether the picture is frozen.
    pub paused: bool,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// What list lines must contain.
    pub filter: String,
    /// The column that shards are sorted by.
    pub column: Column,
    /// Whether the order is turned around.
    pub reverse: bool,
    /// The place in each view's list.
    pub places: [Place; View::ALL.len()],
    /// The place in the help.
    pub help_place: Place,
}

impl App {
    /// Does what a key says.
    pub fn apply(&mut self, action: Action) -> Outcome {
        match action {
            Action::Quit => return Outcome::Quit,
            Action::Interrupt => return Outcome::Interrupt,
            Action::Help => self.help = !self.help,
            Action::Back if self.help => self.help = false,
            Action::Back => self.filter.clear(),
            Action::Pause => self.paused = !self.paused,
            Action::Line(by) => self.place().move_by(by),
            Action::Page(by) => {
                let rows = self.place().rows.max(1) as isize;
                self.place().move_by(by.saturating_mul(rows));
            }
            Action::First => self.place().offset = 0,
            Action::Last => self.place().offset = usize::MAX,
            Action::Show(view) => (self.view, self.help) = (view, false),
            Action::Cycle(by) => {
                let count = View::ALL.len() as isize;
                self.view = View::ALL[(self.view as isize + by).rem_euclid(count) as usize];
                self.help = false;
            }
            Action::Sort => {
                let next = (self.column as usize + 1) % Column::ALL.len();
                self.column = Column::ALL[next];
            }
            Action::Reverse => self.reverse = !self.reverse,
            Action::Filter => (self.typing, self.help) = (true, false),
        }
        Outcome::Stay
    }

    /// The place of the list that keys move.
    fn place(&mut self) -> &mut Place {
        if self.help { &mut self.help_place } else { &mut self.places[self.view as usize] }
    }

    /// Whether a line passes the filter, upper and lower case alike.
    pub fn passes(&self, line: &str) -> bool {
        self.filter.is_empty() || line.to_lowercase().contains(&self.filter.to_lowercase())
    }
}
