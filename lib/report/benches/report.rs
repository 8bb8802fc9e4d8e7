//! How fast a report is made, and how fast events are taken in.

#[path = "../tests/common/mod.rs"]
mod common;

use common::suite::{POLICIES, events, suite};
use cr_report::SuiteReport;
use cr_report::aggregate::Aggregator;
use cr_report::events::Event;
use cr_report::reader::EventReader;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// Six policies at ten rates and five seeds, on 30 shards.
fn large() -> SuiteReport {
    let rates = [30.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0, 220.0, 300.0];
    let mut suite = suite(&rates, 5, 30, 2_000);
    suite.slo.ttft_p99_s = Some(0.3);
    suite.ablation = vec!["flat".into(), "sticky".into(), "cacheroute".into()];
    suite
}

/// The whole folder: result.json, detail.json, report.md and every figure.
#[divan::bench(sample_count = 5)]
fn report_of_six_policies_ten_rates_five_seeds(bencher: Bencher<'_, '_>) {
    let suite = large();
    let dir = tempfile::tempdir().expect("a folder");
    bencher.bench_local(|| cr_report::write_report(dir.path(), black_box(&suite)).expect("a report"));
}

/// The same from its files, and as a single page.
#[divan::bench(sample_count = 5)]
fn rebuild_and_html(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a folder");
    cr_report::write_report(dir.path(), &large()).expect("a report");
    bencher.bench_local(|| {
        cr_report::rebuild(dir.path()).expect("rebuilt");
        cr_report::write_html(dir.path()).expect("a page")
    });
}

const REQUESTS: u64 = 100_000;

fn stream() -> (Vec<Event>, Vec<u8>) {
    let (head, events) = events(POLICIES[5], 1, 300.0, 30, REQUESTS);
    let mut text = Vec::new();
    let all: Vec<Event> = std::iter::once(Event::Header(head)).chain(events).collect();
    for event in &all {
        serde_json::to_writer(&mut text, event).expect("a line");
        text.push(b'\n');
    }
    (all, text)
}

/// Lines of a stream to a summary.
#[divan::bench(sample_count = 10)]
fn events_read_and_aggregated(bencher: Bencher<'_, '_>) {
    let (events, text) = stream();
    bencher.counter(ItemsCount::new(events.len())).bench_local(|| {
        cr_report::read_runs(EventReader::new(black_box(&text[..]), "memory")).expect("a run")
    });
}

/// Lines of a stream to events, without the summary.
#[divan::bench(sample_count = 10)]
fn events_read(bencher: Bencher<'_, '_>) {
    let (events, text) = stream();
    bencher
        .counter(ItemsCount::new(events.len()))
        .bench_local(|| EventReader::new(black_box(&text[..]), "memory").filter(Result::is_ok).count());
}

/// Events to a summary, without the reading.
#[divan::bench(sample_count = 10)]
fn events_aggregated(bencher: Bencher<'_, '_>) {
    let (events, _) = stream();
    let Event::Header(head) = &events[0] else { return };
    bencher.counter(ItemsCount::new(events.len())).bench_local(|| {
        let mut aggregator = Aggregator::new(head);
        black_box(&events).iter().for_each(|event| aggregator.observe(event));
        aggregator.summary(true)
    });
}
