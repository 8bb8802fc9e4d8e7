//! What the user looks at: view, place in lists, order, filter, pause, replay.

use crate::keys::Action;

/// A page of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Key figures, charts, one row a shard.
    #[default]
    Fleet,
    /// Latencies over time and as histograms.
    Latency,
    /// What is found in the caches.
    Cache,
    /// The hottest keys.
    Keys,
    /// Routing tables and their effect.
    Plan,
    /// What happened besides requests.
    Log,
    /// Several runs side by side.
    Compare,
}

impl View {
    /// All views, in the order of their number keys.
    pub const ALL: [View; 7] =
        [View::Fleet, View::Latency, View::Cache, View::Keys, View::Plan, View::Log, View::Compare];

    /// The views there are for this number of runs.
    pub fn of_runs(runs: usize) -> &'static [View] {
        if runs > 1 { &View::ALL } else { &View::ALL[..6] }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            View::Fleet => "Fleet",
            View::Latency => "Latency",
            View::Cache => "Cache",
            View::Keys => "Keys",
            View::Plan => "Plan",
            View::Log => "Log",
            View::Compare => "Compare",
        }
    }

    /// The number of columns that its list can be sorted by.
    pub fn sort_columns(self) -> usize {
        match self {
            View::Fleet => FleetColumn::ALL.len(),
            View::Keys => KeyColumn::ALL.len(),
            _ => 0,
        }
    }
}

/// A column that shards are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FleetColumn {
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
    /// Evicted blocks.
    Evicted,
}

impl FleetColumn {
    /// All columns, in the order of the sort key.
    pub const ALL: [FleetColumn; 8] = [
        FleetColumn::Id,
        FleetColumn::Queue,
        FleetColumn::Running,
        FleetColumn::Kv,
        FleetColumn::Hit,
        FleetColumn::Load,
        FleetColumn::P99,
        FleetColumn::Evicted,
    ];
}

/// A column that keys are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyColumn {
    /// Requests.
    #[default]
    Requests,
    /// Actual over planned rate.
    Deviation,
    /// Served hit.
    Hit,
    /// 99th percentile of TTFT.
    P99,
    /// Number of shards used.
    Shards,
}

impl KeyColumn {
    /// All columns, in the order of the sort key.
    pub const ALL: [KeyColumn; 5] =
        [KeyColumn::Requests, KeyColumn::Deviation, KeyColumn::Hit, KeyColumn::P99, KeyColumn::Shards];
}

/// By what a list is sorted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sort {
    /// The number of the column.
    pub column: usize,
    /// Whether the order is turned around.
    pub reverse: bool,
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

    /// What is shown of the list, as `3–12 of 30`; nothing where all of it is.
    pub fn range(self) -> Option<String> {
        (self.len > self.rows && self.rows > 0).then(|| {
            let last = (self.offset + self.rows).min(self.len);
            format!("{}–{last} of {}", self.offset + 1, self.len)
        })
    }
}

/// How to move through a run that is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transport {
    /// Play or stop.
    Toggle,
    /// By seconds of run time.
    Seek(f64),
    /// Twice (or, if false, half) as fast.
    Faster(bool),
    /// To the second with the highest 99th percentile.
    Worst,
    /// To the start.
    Start,
    /// Back to the newest event.
    Follow,
}

/// Where a replay stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// Whether time passes.
    pub playing: bool,
    /// Run time per wall time.
    pub speed: f64,
    /// The run time shown, in seconds.
    pub t_s: f64,
    /// The end of what is known, in seconds.
    pub end_s: f64,
}

/// What the picture alone cannot do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// Write the view as SVG.
    ExportSvg,
    /// Write the view as text.
    ExportText,
    /// Write the summary as JSON.
    WriteSummary,
    /// Move through the run.
    Transport(Transport),
}

/// What came of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// Go on.
    Stay,
    /// Go on after this.
    Do(Effect),
    /// The user leaves; exit 0.
    Quit,
    /// The user interrupts; exit 130.
    Interrupt,
}

/// What the user looks at.
#[derive(Clone, Debug)]
pub struct App {
    /// The page.
    pub view: View,
    /// The number of runs.
    pub runs: usize,
    /// The run that the page shows.
    pub run: usize,
    /// Whether the help lies over it.
    pub help: bool,
    /// Whether the picture is frozen.
    pub paused: bool,
    /// Where a replay stands; none while the newest event is shown.
    pub replay: Option<Replay>,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// What list lines must contain.
    pub filter: String,
    /// The order of each view's list.
    pub sorts: [Sort; View::ALL.len()],
    /// The place in each view's list.
    pub places: [Place; View::ALL.len()],
    /// The place in the help.
    pub help_place: Place,
    /// What the last action came to, until the next one.
    pub message: Option<String>,
}

impl Default for App {
    fn default() -> App {
        App::new(1)
    }
}

impl App {
    /// For a number of runs, at least one: several are first compared.
    pub fn new(runs: usize) -> App {
        App {
            view: if runs > 1 { View::Compare } else { View::Fleet },
            runs: runs.max(1),
            run: 0,
            help: false,
            paused: false,
            replay: None,
            typing: false,
            filter: String::new(),
            sorts: Default::default(),
            places: Default::default(),
            help_place: Place::default(),
            message: None,
        }
    }

    /// Does what a key says.
    pub fn apply(&mut self, action: Action) -> Outcome {
        self.message = None;
        match action {
            Action::Quit => return Outcome::Quit,
            Action::Interrupt => return Outcome::Interrupt,
            Action::Help => self.help = !self.help,
            Action::Back if self.help => self.help = false,
            Action::Back => self.filter.clear(),
            Action::Pause if self.replay.is_some() => {
                return Outcome::Do(Effect::Transport(Transport::Toggle));
            }
            Action::Pause => self.paused = !self.paused,
            Action::Line(by) => self.place().move_by(by),
            Action::Page(by) => {
                let rows = self.place().rows.max(1) as isize;
                self.place().move_by(by.saturating_mul(rows));
            }
            Action::First => self.place().offset = 0,
            Action::Last => self.place().offset = usize::MAX,
            Action::Show(view) => self.show(view),
            Action::Cycle(by) => {
                let views = View::of_runs(self.runs);
                let next = (self.view as isize + by).rem_euclid(views.len() as isize);
                self.show(views[next as usize]);
            }
            Action::NextRun => self.run = (self.run + 1) % self.runs,
            Action::Sort => {
                let columns = self.view.sort_columns().max(1);
                let sort = self.sort();
                sort.column = (sort.column + 1) % columns;
            }
            Action::Reverse => {
                let sort = self.sort();
                sort.reverse = !sort.reverse;
            }
            Action::Filter => (self.typing, self.help) = (true, false),
            Action::Effect(effect) => return Outcome::Do(effect),
        }
        Outcome::Stay
    }

    fn show(&mut self, view: View) {
        if View::of_runs(self.runs).contains(&view) {
            (self.view, self.help) = (view, false);
        }
    }

    /// The order of the list that keys sort.
    fn sort(&mut self) -> &mut Sort {
        &mut self.sorts[self.view as usize]
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
