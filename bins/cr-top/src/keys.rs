//! Every key, once: input looks actions up here, and the footer and the help are printed from here.

use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::state::app::{Effect, Transport, View};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// End, exit 0.
    Quit,
    /// End, exit 130.
    Interrupt,
    /// Show or hide the help.
    Help,
    /// Close what is open, clear the filter.
    Back,
    /// Freeze the picture, or let it go on.
    Pause,
    /// Move the list by lines.
    Line(isize),
    /// Move the list by pages.
    Page(isize),
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// Show a view.
    Show(View),
    /// Show the next view (or, if negative, the one before).
    Cycle(isize),
    /// Sort the list by the next column.
    Sort,
    /// Turn the order around.
    Reverse,
    /// Type a filter.
    Filter,
    /// Show the next run.
    NextRun,
    /// What the picture alone cannot do.
    Effect(Effect),
}

/// Where the help lists a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The program.
    General,
    /// Which view.
    Views,
    /// Lists.
    Lists,
    /// Moving through a file's run.
    Replay,
}

impl Group {
    /// All groups, in the order of the help.
    pub const ALL: [Group; 4] = [Group::General, Group::Views, Group::Lists, Group::Replay];

    /// Its heading.
    pub fn name(self) -> &'static str {
        match self {
            Group::General => "General",
            Group::Views => "Views",
            Group::Lists => "Lists",
            Group::Replay => "Replay (files)",
        }
    }
}

/// A key with its modifiers.
pub type Chord = (KeyCode, KeyModifiers);

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The keys, any of which will do.
    pub chords: &'static [Chord],
    /// The keys as they are printed.
    pub keys: &'static str,
    /// One word for the footer; empty where the footer leaves it out.
    pub short: &'static str,
    /// A sentence for the help.
    pub what: &'static str,
    /// Where the help lists it.
    pub group: Group,
    /// What it does.
    pub action: Action,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

const fn char(c: char) -> Chord {
    (KeyCode::Char(c), NONE)
}

macro_rules! bindings {
    ($($group:ident $keys:literal [$($chord:expr),+] $short:literal $what:literal => $action:expr;)+) => {
        &[$(Binding { chords: &[$($chord),+], keys: $keys, short: $short, what: $what, group: Group::$group, action: $action }),+]
    };
}

const fn seek(seconds: f64) -> Action {
    Action::Effect(Effect::Transport(Transport::Seek(seconds)))
}

const fn transport(transport: Transport) -> Action {
    Action::Effect(Effect::Transport(transport))
}

/// The table. The order is that of the footer: what is first is shown longest when room is short.
pub static BINDINGS: &[Binding] = bindings! {
    General "q" [char('q')] "quit" "Quit; the summary so far is printed" => Action::Quit;
    General "?" [char('?'), char('h'), (KeyCode::F(1), NONE)] "help" "Show or hide this help" => Action::Help;
    General "space" [char(' '), char('p')] "pause" "Freeze the picture, input is still read; in a replay stop and go on" => Action::Pause;
    Views "Tab" [(KeyCode::Tab, NONE)] "view" "Next view" => Action::Cycle(1);
    Views "n" [char('n')] "run" "Next run, where there are several" => Action::NextRun;
    Lists "s" [char('s')] "sort" "Sort by the next column" => Action::Sort;
    Lists "/" [char('/')] "filter" "Filter the list; Enter keeps, Esc clears" => Action::Filter;
    General "e" [char('e')] "export" "Write the view to an SVG file" => Action::Effect(Effect::ExportSvg);
    Replay "[ ]" [char('[')] "seek" "Back by 10 s of run time; ] is forward" => seek(-10.0);
    General "E" [char('E')] "" "Write the view to a text file" => Action::Effect(Effect::ExportText);
    General "w" [char('w')] "" "Write the summary to a JSON file" => Action::Effect(Effect::WriteSummary);
    General "Ctrl-C" [(KeyCode::Char('c'), CTRL)] "" "Quit, exit code 130" => Action::Interrupt;
    General "Esc" [(KeyCode::Esc, NONE)] "" "Close the help, clear the filter" => Action::Back;
    Views "Shift-Tab" [(KeyCode::BackTab, NONE)] "" "Previous view" => Action::Cycle(-1);
    Views "1" [char('1')] "" "Fleet: key figures, one row a shard" => Action::Show(View::Fleet);
    Views "2" [char('2')] "" "Latency: over time, and as histograms" => Action::Show(View::Latency);
    Views "3" [char('3')] "" "Cache: what is found there, what is evicted" => Action::Show(View::Cache);
    Views "4" [char('4')] "" "Keys: the hottest, planned against actual" => Action::Show(View::Keys);
    Views "5" [char('5')] "" "Plan: routing tables and their effect" => Action::Show(View::Plan);
    Views "6" [char('6')] "" "Log: warnings with remedies, faults, failures" => Action::Show(View::Log);
    Views "7" [char('7')] "" "Compare, where there are several runs" => Action::Show(View::Compare);
    Lists "r" [char('r')] "" "Reverse the order" => Action::Reverse;
    Lists "Up k" [(KeyCode::Up, NONE), char('k')] "" "One line up" => Action::Line(-1);
    Lists "Down j" [(KeyCode::Down, NONE), char('j')] "" "One line down" => Action::Line(1);
    Lists "PgUp" [(KeyCode::PageUp, NONE), (KeyCode::Char('b'), CTRL)] "" "One page up" => Action::Page(-1);
    Lists "PgDn" [(KeyCode::PageDown, NONE), (KeyCode::Char('f'), CTRL)] "" "One page down" => Action::Page(1);
    Lists "Home g" [(KeyCode::Home, NONE), char('g')] "" "First line" => Action::First;
    Lists "End G" [(KeyCode::End, NONE), char('G')] "" "Last line" => Action::Last;
    Replay "]" [char(']')] "" "Forward by 10 s" => seek(10.0);
    Replay "{ }" [char('{')] "" "Back by 60 s; } is forward" => seek(-60.0);
    Replay "}" [char('}')] "" "Forward by 60 s" => seek(60.0);
    Replay "+" [char('+'), char('=')] "" "Twice as fast" => transport(Transport::Faster(true));
    Replay "-" [char('-')] "" "Half as fast" => transport(Transport::Faster(false));
    Replay "x" [char('x')] "" "To the second with the worst p99" => transport(Transport::Worst);
    Replay "0" [char('0')] "" "To the start" => transport(Transport::Start);
    Replay "l" [char('l')] "" "Leave the replay: show the newest event" => transport(Transport::Follow);
};

/// What a key does; `None` where it does nothing.
pub fn action(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
    // Shift is part of a character already: `G`, `?`.
    let modifiers = if matches!(code, KeyCode::Char(_) | KeyCode::BackTab) {
        modifiers - KeyModifiers::SHIFT
    } else {
        modifiers
    };
    BINDINGS.iter().find(|binding| binding.chords.contains(&(code, modifiers))).map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let mut seen = Vec::new();
        for chord in BINDINGS.iter().flat_map(|binding| binding.chords) {
            assert!(!seen.contains(&chord), "{chord:?} twice");
            seen.push(chord);
        }
    }

    #[test]
    fn shift_is_part_of_a_character() {
        assert_eq!(action(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Action::Last));
        assert_eq!(action(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Action::Interrupt));
        assert_eq!(action(KeyCode::Char('c'), NONE), None);
    }
}
