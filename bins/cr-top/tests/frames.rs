//! Whole frames, as people see them.

mod support;

use cr_report::events::{Event, Gate};
use cr_routing::table::{RoutingTable, TableMeta};
use cr_top::export;
use cr_top::palette::{Level, Palette};
use cr_top::state::app::{App, Replay, View};
use cr_top::state::{Live, Run};
use cr_top::system::Usage;
use cr_top::view::{self, Look, Scene};
use cr_trace::ShardId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use support::Sample;

const SIZES: [(u16, u16); 5] = [(40, 10), (80, 24), (120, 40), (160, 50), (200, 60)];

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
    compared(app, &[live], size, look)
}

fn compared(app: &mut App, runs: &[&Live], size: (u16, u16), look: Look) -> String {
    export::text(&drawn(app, runs, size, look))
}

fn drawn(app: &mut App, runs: &[&Live], size: (u16, u16), look: Look) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a test backend");
    let usage = Usage {
        cpu: 0.42,
        cores: 8,
        memory_used: 9_100_000_000,
        memory_total: 24_000_000_000,
        gpus: Vec::new(),
    };
    let scene = Scene { runs, system: Some(&usage), look };
    terminal.draw(|frame| view::draw(frame.area(), frame.buffer_mut(), app, &scene)).expect("drawn");
    terminal.backend().buffer().clone()
}

/// A table that names most of the sample's keys, two of them at rates that are far off.
fn table() -> RoutingTable {
    let meta = TableMeta {
        shards: 4,
        qcap: 5.0,
        expected_load: vec![5.0; 4],
        imbalance: 1.0,
        ..TableMeta::default()
    };
    let places = (0..30u32).map(|key| (format!("k{key}").into(), [ShardId(key % 4)].into_iter().collect()));
    let rates = (0..30u32)
        .map(|key| (format!("k{key}").into(), if key == 1 { 0.2 } else { 7.0 / f64::from(key + 1) }));
    let table = RoutingTable::new(meta, places.collect()).expect("a valid table");
    table.with_rates(rates.collect()).expect("valid rates")
}

#[test]
fn every_view_at_every_size() {
    let running = live(Sample { ends: false, ..Sample::default() });
    for view in View::of_runs(1).iter().copied() {
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
    assert!(frame(&mut app, &ended, (40, 10), look(false)).contains("newest event"));
}

#[test]
fn glyphs_are_explained_without_scrolling() {
    let ended = live(Sample::default());
    let mut app = App { help: true, ..App::default() };
    let text = frame(&mut app, &ended, (80, 24), look(false));
    for glyph in ["   ◆ ○ ", "   ! ▲ ▼ ", " ▓ ", " ╎ ", " ┆ ", " ╌ "] {
        assert!(text.contains(glyph), "{glyph:?} is not in\n{text}");
    }
    assert!(!text.contains('…'), "{text}");
}

/// The sample as the second run of a stream that a gate ends.
fn gated() -> Live {
    let gate = Gate {
        decision: "enable".into(),
        baseline: "flat".into(),
        candidate: "cacheroute".into(),
        reasons: vec!["near the knee (102 QPS) the p99 of TTFT is 96 ms lower, which is better".into()],
    };
    let mut run = Run::new("gate.ndjson");
    for _ in 0..2 {
        for mut event in Sample::default().events() {
            if let Event::Header(header) = &mut event {
                (header.qps, header.variant) = (Some(56.5), Some("long".into()));
            }
            run.observe(&event);
        }
    }
    run.observe(&Event::Gate(gate));
    run.refresh();
    run.live
}

#[test]
fn a_gate_s_stream_says_which_run_is_shown_and_what_the_gate_says() {
    let gated = gated();
    let mut app = App { view: View::Log, ..App::default() };
    insta::assert_snapshot!("gate-log-80x24", frame(&mut app, &gated, (80, 24), look(false)));
    // What has no room is scrolled to.
    let mut app = App { view: View::Log, ..App::default() };
    assert!(!frame(&mut app, &gated, (40, 10), look(false)).contains("quote p90"));
    app.apply(cr_top::keys::Action::Line(9));
    let text = frame(&mut app, &gated, (40, 10), look(false));
    assert!(text.contains("quote p90"), "{text}");
    let mut app = App::default();
    let text = frame(&mut app, &gated, (120, 36), look(false));
    assert!(
        text.starts_with(" cacheroute  long  56.5 QPS  run 2  llama-8m on cpu  4 shards  seed 7"),
        "{text}"
    );
    assert!(text.contains("◆ gate: enable, cacheroute instead of flat"), "{text}");
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
    for view in View::of_runs(1).iter().copied() {
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
    // The columns before the id are blank, so that a row starts with it.
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

#[test]
fn two_hundred_shards_have_a_strip() {
    let live = live(Sample { shards: 200, requests: 4000, qps: 400.0, ..Sample::default() });
    insta::assert_snapshot!("strip-80x24", frame(&mut App::default(), &live, (80, 24), look(false)));
    insta::assert_snapshot!("strip-200x60", frame(&mut App::default(), &live, (200, 60), look(false)));
}

#[test]
fn keys_against_their_plan() {
    let mut run = Run::new("run.ndjson").with_tables(std::sync::Arc::new(vec![table()]));
    Sample::default().events().iter().for_each(|event| run.observe(event));
    run.refresh();
    let mut app = App { view: View::Keys, ..App::default() };
    app.apply(cr_top::keys::Action::Sort);
    insta::assert_snapshot!("keys-planned-120x40", frame(&mut app, &run.live, (120, 40), look(false)));
}

#[test]
fn runs_side_by_side() {
    let first = live(Sample { qps: 24.0, ..Sample::default() });
    let mut second = live(Sample { seed: 8, ..Sample::default() });
    if let Some(header) = &mut second.header {
        header.policy = "flat".into();
    }
    for size in SIZES {
        let text = compared(&mut App::new(2), &[&first, &second], size, look(false));
        insta::assert_snapshot!(format!("compare-{}x{}", size.0, size.1), text);
    }
    let four = [&first, &second, &first, &second];
    insta::assert_snapshot!("compare-four-120x40", compared(&mut App::new(4), &four, (120, 40), look(false)));
    let mut app = App::new(2);
    app.apply(cr_top::keys::Action::Show(View::Fleet));
    app.apply(cr_top::keys::Action::NextRun);
    assert!(compared(&mut app, &[&first, &second], (80, 24), look(false)).starts_with(" flat "));
}

#[test]
fn a_replay_says_where_it_stands() {
    let ended = live(Sample::default());
    let replay = Replay { playing: true, speed: 4.0, t_s: 12.0, end_s: 31.5 };
    let mut app = App { replay: Some(replay), ..App::default() };
    let text = frame(&mut app, &ended, (80, 24), look(false));
    assert!(text.lines().next().is_some_and(|line| line.ends_with("▶ replay 4× 12.0 s of 31.5 s")), "{text}");
}

#[test]
fn monochrome_sets_no_colour_and_colours_set_no_background() {
    let ended = live(Sample::default());
    for view in View::ALL {
        let mut app = App { view, runs: 2, ..App::default() };
        let mono = drawn(&mut app, &[&ended, &ended], (120, 40), look(false));
        assert!(mono.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        let colour = Look { palette: Palette { level: Level::True }, ascii: false };
        let colour = drawn(&mut app, &[&ended, &ended], (120, 40), colour);
        assert!(colour.content().iter().all(|cell| cell.bg == Color::Reset));
        assert!(colour.content().iter().any(|cell| cell.fg != Color::Reset));
        // Colour adds nothing that cannot be read without it.
        assert_eq!(export::text(&mono), export::text(&colour));
    }
}

#[test]
fn exported_pictures_are_well_formed_and_their_texts_do_not_overlap() {
    let ended = live(Sample::default());
    for view in View::ALL {
        let mut app = App { view, runs: 2, ..App::default() };
        let colour = Look { palette: Palette { level: Level::True }, ascii: false };
        let buffer = drawn(&mut app, &[&ended, &ended], (100, 30), colour);
        let svg = export::svg(&buffer, "cr-top <&>");
        let document = roxmltree::Document::parse(&svg).expect("well-formed");
        let number = |node: &roxmltree::Node, name: &str| -> f64 {
            node.attribute(name).expect("is there").parse().expect("is a number")
        };
        let mut places: Vec<(f64, f64, f64)> = document
            .descendants()
            .filter(|node| node.has_tag_name("text"))
            .map(|node| (number(&node, "y"), number(&node, "x"), number(&node, "textLength")))
            .collect();
        assert!(places.len() > 20, "{view:?}");
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        for pair in places.windows(2) {
            assert!(pair[0].0 < pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1 + 0.2, "{view:?}: {pair:?}");
        }
        let words: String = document.descendants().filter_map(|node| node.text()).collect();
        assert!(words.contains("cacheroute") && words.contains("cr-top <&>"));
    }
}
