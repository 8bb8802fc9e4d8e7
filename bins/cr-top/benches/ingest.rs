//! How fast events are read and taken over, and how long a frame takes.
//!
//! `cargo bench -p cr-top`. Ingest is measured over the sample's lines without a screen; a frame at 200×60 over 200 shards.

#[path = "../tests/support/mod.rs"]
mod support;

use cr_report::reader::EventReader;
use cr_top::palette::{Level, Palette};
use cr_top::state::app::{App, View};
use cr_top::state::{Live, Run};
use cr_top::view::{self, Look, Scene};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use support::Sample;

fn main() {
    divan::main();
}

fn text(shards: u32) -> String {
    Sample { shards, requests: 20_000, qps: 400.0, ..Sample::default() }.ndjson()
}

/// Bytes to state on one thread: parse, check, aggregate, take over.
#[divan::bench(args = [4, 200], sample_count = 20)]
fn ingest(bencher: Bencher, shards: u32) {
    let text = text(shards);
    let events = text.lines().count();
    bencher.counter(ItemsCount::new(events)).counter(BytesCount::of_str(&text)).bench(|| {
        let mut run = Run::new("bench");
        for event in EventReader::growing(text.as_bytes(), "bench") {
            run.observe(&event.expect("an event"));
        }
        run
    });
}

/// The first half of that: parse and check.
#[divan::bench(args = [4, 200], sample_count = 20)]
fn parse(bencher: Bencher, shards: u32) {
    let text = text(shards);
    let events = text.lines().count();
    bencher.counter(ItemsCount::new(events)).counter(BytesCount::of_str(&text)).bench(|| {
        for event in EventReader::growing(text.as_bytes(), "bench") {
            divan::black_box(event.expect("an event"));
        }
    });
}

/// The second half: aggregate and take over.
#[divan::bench(args = [4, 200], sample_count = 20)]
fn observe(bencher: Bencher, shards: u32) {
    let events = Sample { shards, requests: 20_000, qps: 400.0, ..Sample::default() }.events();
    bencher.counter(ItemsCount::new(events.len())).bench(|| {
        let mut run = Run::new("bench");
        events.iter().for_each(|event| run.observe(event));
        run
    });
}

fn big() -> Live {
    let mut run = Run::new("bench");
    let sample = Sample { shards: 200, requests: 40_000, qps: 400.0, ..Sample::default() };
    sample.events().iter().for_each(|event| run.observe(event));
    run.refresh();
    run.live
}

/// One frame at 200×60 over 200 shards.
#[divan::bench(args = View::ALL.map(View::name))]
fn frame(bencher: Bencher, name: &str) {
    let live = big();
    let runs = if name == "Compare" { vec![&live, &live] } else { vec![&live] };
    let view = View::ALL.into_iter().find(|view| view.name() == name).unwrap_or_default();
    let mut app = App { view, ..App::new(runs.len()) };
    let look = Look { palette: Palette { level: Level::True }, ascii: false };
    let area = Rect::new(0, 0, 200, 60);
    bencher.bench_local(|| {
        let mut buffer = Buffer::empty(area);
        view::draw(area, &mut buffer, &mut app, &Scene { runs: &runs, system: None, look });
        buffer
    });
}

/// The copy that a frozen picture takes.
#[divan::bench]
fn freeze(bencher: Bencher) {
    let live = big();
    bencher.bench_local(|| live.clone());
}
