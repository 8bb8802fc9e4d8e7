//! Whole frames, as people see them.

mod support;

use cr_top::palette::{Level, Palette};
use cr_top::state::app::{App, View};
use cr_top::state::{Live, Run};
use cr_top::view::{self, Look};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use support::Sample;

const SIZES: [(u16, u16); 4] = [(40, 10), (80, 24), (120, 40), (160, 50)];

fn look(ascii: bool) -> Look {
    Look { palette: Palette { level: Level::None }, ascii }
}

fn live(sample: Sample) -> Live {
    let mut run = Run::new("run.ndjson");
    sample.events().iter().for_each(|event| run.observe(event));
    run.refresh();
    run.live.wall_s = 12.3;
    run.live
}

fn frame(app: &mut App, live: &Live, size: (u16, u16), look: Look) -> String {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a test backend");
    terminal.draw(|frame| view::draw(frame, app, live, look)).expect("drawn");
    let rows = terminal.backend().buffer().content().chunks(size.0.into());
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_string() + "\n")
        .collect()
}

#[test]
fn every_view_at_every_size() {
    let running = live(Sample { ends: false, ..Sample::default() });
    for view in View::ALL {
        for size in SIZES {
            let mut app = App { view, ..App::default() };
            let name = format!("{}-{}x{}", view.name().to_lowercase(), size.0, size.1);
            insta::assert_snapshot!(name, frame(&mut app, &running, size, look(false)));
        }
    }
}

#[test]
fn the_end_is_marked_and_final() {
    let ended = live(Sample::default());
    insta::assert_snapshot!("ended-80x24", frame(&mut App::default(), &ended, (80, 24), look(false)));
}

#[test]
fn help_lists_every_key_and_scrolls() {
    let ended = live(Sample::default());
    let mut app = App { help: true, ..App::default() };
    insta::assert_snapshot!("help-80x50", frame(&mut app, &ended, (80, 50), look(false)));
    let mut app = App { help: true, ..App::default() };
    let small = frame(&mut app, &ended, (40, 10), look(false));
    assert!(small.contains("General") && !small.contains("On screen"));
    app.apply(cr_top::keys::Action::Last);
    assert!(frame(&mut app, &ended, (40, 10), look(false)).contains("so far"));
}

#[test]
fn too_small_says_what_it_needs() {
    let ended = live(Sample::default());
    let text = frame(&mut App::default(), &ended, (30, 8), look(false));
    assert_eq!(text.trim(), "need 40×10, have 30×8");
    for size in [(1, 1), (3, 2), (39, 10), (40, 9), (200, 3)] {
        frame(&mut App::default(), &ended, size, look(false));
    }
}

#[test]
fn ascii_mode_draws_ascii_only() {
    let ended = live(Sample::default());
    for view in View::ALL {
        for size in SIZES {
            let text = frame(&mut App { view, ..App::default() }, &ended, size, look(true));
            assert!(text.is_ascii(), "{text}");
        }
    }
    insta::assert_snapshot!("ascii-80x24", frame(&mut App::default(), &ended, (80, 24), look(true)));
}

#[test]
fn nothing_yet() {
    let waiting = Live::new("run.ndjson");
    let text = frame(&mut App::default(), &waiting, (80, 24), look(false));
    assert!(text.contains("waiting for events from run.ndjson"), "{text}");
}

#[test]
fn many_shards_scroll_sort_and_filter() {
    let live = live(Sample { shards: 30, requests: 900, ..Sample::default() });
    let mut app = App::default();
    let shown = |app: &mut App| frame(app, &live, (80, 24), look(false));
    assert!(!shown(&mut app).contains("\n    29 "));
    app.apply(cr_top::keys::Action::Last);
    assert!(shown(&mut app).contains("\n    29 "), "{}", shown(&mut app));
    app.filter = "down".into();
    let text = shown(&mut app);
    assert!(text.contains("filter \"down\""), "{text}");
    assert!(!text.contains("\n    29 "), "{text}");
}
