//! How fast a workload is drawn and written. Run with `cargo bench -p cr-workload`.

use cr_trace::{TraceHeader, TraceWriter};
use cr_workload::arrivals::Arrivals;
use cr_workload::popularity::Popularity;
use cr_workload::prompt::{Part, PartScope};
use cr_workload::{Generator, Length, Spec};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use std::path::Path;

const REQUESTS: u64 = 100_000;

fn main() {
    divan::main();
}

fn spec(key_sigma: f64) -> Spec {
    Spec {
        seed: 42,
        requests: Some(REQUESTS),
        duration_s: None,
        output_tokens: Length::lognormal(64, key_sigma),
        popularity: Popularity::zipf(10_000, 1.0),
        arrivals: Arrivals::poisson(50.0),
        about: None,
        rate: None,
        threads: None,
        prompt: vec![
            Part::new(PartScope::Global, Length::Constant(256)),
            Part::new(PartScope::Key, Length::lognormal(600, key_sigma)),
            Part::new(PartScope::Request, Length::lognormal(90, key_sigma)),
        ],
    }
}

/// Requests drawn and dropped.
#[divan::bench(args = [0.0, 1.0])]
fn draw(bencher: Bencher<'_, '_>, sigma: f64) {
    let generator = Generator::new(&spec(sigma), Path::new("")).expect("is valid");
    bencher
        .counter(ItemsCount::new(REQUESTS))
        .with_inputs(|| generator.clone())
        .bench_values(Iterator::count);
}

/// Requests drawn and written as native JSON lines, on one thread.
#[divan::bench(args = [0.0, 1.0])]
fn write_native(bencher: Bencher<'_, '_>, sigma: f64) {
    let generator = Generator::new(&spec(sigma), Path::new("")).expect("is valid");
    let write = |generator: Generator, out: Vec<u8>| {
        let mut writer = TraceWriter::with_header(out, &TraceHeader::new("bench")).expect("writes");
        generator.for_each(|request| writer.write(&request).expect("writes"));
        writer.finish().expect("writes")
    };
    let bytes = write(generator.clone(), Vec::new()).len();
    bencher
        .counter(ItemsCount::new(REQUESTS))
        .counter(BytesCount::new(bytes))
        .with_inputs(|| (generator.clone(), Vec::with_capacity(bytes)))
        .bench_values(|(generator, out)| write(generator, out));
}

/// The primary population of 128,824 keys, drawn by sigma.
#[divan::bench]
fn primary_population(bencher: Bencher<'_, '_>) {
    let popularity = Popularity { max_share: Some(0.003), ..Popularity::lognormal(128_824, 1.648) };
    bencher.bench(|| popularity.draw(42, Path::new("")).expect("is valid"));
}
