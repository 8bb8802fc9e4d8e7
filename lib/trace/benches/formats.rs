//! How fast traces are read, written and described. Run with `cargo bench -p cr-trace`.
//!
//! The rows have the shape of the published conversation trace: about 24 blocks, of which a third were seen before.

use cr_trace::mooncake::{BlockKey, Dialect, HashIds, MooncakeImport, MooncakeReader, MooncakeWriter};
use cr_trace::stats::TraceStats;
use cr_trace::{Request, TraceReader, TraceWriter};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use std::fmt::Write;

const ROWS: u64 = 20_000;

fn main() {
    divan::main();
}

fn mooncake_text() -> String {
    let mut text = String::new();
    let mut fresh = 0;
    for row in 0..ROWS {
        let blocks = 2 + (row * 7919) % 45;
        let _ = write!(
            text,
            "{{\"timestamp\":{},\"input_length\":{},\"output_length\":350,\"hash_ids\":[0",
            row * 300,
            blocks * 512 - 100
        );
        for depth in 1..blocks {
            let id = if depth < 8 { (row % 4000) * 8 + depth } else { 1_000_000 + fresh };
            fresh += u64::from(depth >= 8);
            let _ = write!(text, ",{id}");
        }
        text.push_str("]}\n");
    }
    text
}

fn rows(text: &str) -> impl Iterator<Item = Request> {
    MooncakeImport::new(
        MooncakeReader::new(text.as_bytes(), "bench", Dialect::MOONCAKE),
        BlockKey::AfterTrunk,
    )
    .map(|request| request.expect("is valid"))
}

fn native_text() -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new());
    rows(&mooncake_text()).for_each(|request| writer.write(&request).expect("writes"));
    writer.finish().expect("writes")
}

#[divan::bench]
fn mooncake_to_requests(bencher: Bencher<'_, '_>) {
    let text = mooncake_text();
    bencher
        .counter(ItemsCount::new(ROWS))
        .counter(BytesCount::new(text.len()))
        .bench(|| rows(divan::black_box(&text)).count());
}

/// Import as `cr-gen import` does it; bytes are those of the input.
#[divan::bench]
fn mooncake_to_native(bencher: Bencher<'_, '_>) {
    let text = mooncake_text();
    bencher.counter(ItemsCount::new(ROWS)).counter(BytesCount::new(text.len())).bench(|| {
        let mut writer = TraceWriter::new(std::io::sink());
        rows(divan::black_box(&text)).for_each(|request| writer.write(&request).expect("writes"));
    });
}

#[divan::bench]
fn native_to_requests(bencher: Bencher<'_, '_>) {
    let text = native_text();
    bencher
        .counter(ItemsCount::new(ROWS))
        .counter(BytesCount::new(text.len()))
        .bench(|| TraceReader::new(divan::black_box(&text[..]), "bench").expect("opens").flatten().count());
}

#[divan::bench(args = [true, false])]
fn requests_to_mooncake(bencher: Bencher<'_, '_>, dense: bool) {
    let requests: Vec<Request> = rows(&mooncake_text()).collect();
    let numbering = if dense { HashIds::Dense } else { HashIds::Chained };
    bencher.counter(ItemsCount::new(ROWS)).bench(|| {
        let mut writer = MooncakeWriter::new(std::io::sink(), 512, numbering);
        requests.iter().for_each(|request| writer.write(request).expect("writes"));
    });
}

#[divan::bench]
fn requests_to_stats(bencher: Bencher<'_, '_>) {
    let requests: Vec<Request> = rows(&mooncake_text()).collect();
    bencher.counter(ItemsCount::new(ROWS)).bench(|| {
        let mut stats = TraceStats::new(512);
        requests.iter().for_each(|request| stats.observe(request));
        stats.report()
    });
}
