//! A simulated fleet, the trace's parsing included: requests a second.
//!
//! `conversation` is the Mooncake conversation trace where `CR_TRACES` names a folder that has it, on 8 shards of 4,000
//! blocks of 512 tokens. `chat` needs no file: short prompts, blocks of 16 tokens.

use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_replay::sink::NoSink;
use cr_replay::{Fleet, RunSpec, run};
use cr_report::events::{Header, SCHEMA};
use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use cr_trace::{Request, TraceReader};
use divan::Bencher;
use divan::counter::ItemsCount;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn main() {
    divan::main();
}

/// A native trace as text.
fn native(requests: impl Iterator<Item = Request>) -> (String, usize) {
    let (mut text, mut count) = (String::new(), 0);
    for request in requests {
        let line = serde_json::to_string(&request).expect("serialises");
        writeln!(text, "{line}").expect("is memory");
        count += 1;
    }
    (text, count)
}

/// Parses and replays; the number of finished requests.
fn replay(text: &str, policy: &str, shards: u32, block_tokens: u32, kv_blocks: u32) -> u64 {
    let config = ShardConfig { block_tokens, kv_blocks, ..ShardConfig::default() };
    let cost = Arc::new(CostModel::by_name_or_path("70b-2xh100").expect("is built in"));
    let header = Header {
        schema: SCHEMA.into(),
        policy: policy.into(),
        shards,
        block_tokens,
        kv_blocks,
        ..Header::default()
    };
    let spec = RunSpec { header, vnodes: 100, ..RunSpec::default() };
    let trace = TraceReader::new(text.as_bytes(), "bench").expect("is a trace");
    let fleet = Fleet::simulated(shards, config, &cost);
    let outcome = run(&spec, fleet, trace, &mut NoSink, &AtomicBool::new(false)).expect("can be run");
    outcome.summary.requests.completed
}

#[divan::bench(args = ["flat", "sticky"])]
fn conversation(bencher: Bencher<'_, '_>, policy: &str) {
    let Some(folder) = std::env::var_os("CR_TRACES") else { return };
    let rows = PathBuf::from(folder).join("mooncake/conversation_trace.jsonl");
    let file = std::fs::File::open(rows).expect("CR_TRACES has mooncake/conversation_trace.jsonl");
    let reader = MooncakeReader::new(std::io::BufReader::new(file), "conversation", Dialect::MOONCAKE);
    let import = MooncakeImport::new(reader, BlockKey::AfterTrunk);
    let (text, count) = native(import.map(|request| request.expect("is valid")));
    bencher.counter(ItemsCount::new(count)).bench(|| replay(divan::black_box(&text), policy, 8, 512, 4000));
}

#[divan::bench(args = ["flat", "sticky"])]
fn chat(bencher: Bencher<'_, '_>, policy: &str) {
    let spec = "requests = 20000\noutput_tokens = 64\n[popularity]\nmodel = 'zipf'\nkeys = 200\nalpha = 1.0\n\
                [arrivals]\nprocess = 'poisson'\nqps = 60.0\n[[prompt]]\nscope = 'global'\ntokens = 256\n\
                [[prompt]]\nscope = 'key'\ntokens = 600\n[[prompt]]\nscope = 'request'\ntokens = 90\n";
    let spec: cr_workload::Spec = toml::from_str(spec).expect("is a specification");
    let generator = cr_workload::Generator::new(&spec, std::path::Path::new(".")).expect("can be drawn");
    let (text, count) = native(generator);
    bencher.counter(ItemsCount::new(count)).bench(|| replay(divan::black_box(&text), policy, 8, 16, 4096));
}
