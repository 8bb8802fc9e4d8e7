//! A simulated fleet, the trace's parsing included: requests a second.
//!
//! `conversation` is the Mooncake conversation trace where `CR_TRACES` names a folder that has it, on 8 shards of 4,000
//! blocks of 512 tokens; `conversation_parsed` is the fleet alone, its requests in memory, and `conversation_again` the fleet that serves requests which were served before. `chat` needs no file: short prompts, blocks of 16 tokens. `primary` is a cell of the paper's primary
//! suite, generation included: 30 shards of 40,071 blocks of 16 tokens, 128 keys, prompts of four segments, a plan from the
//! first quarter. `primary_stepwise` is the same on the simulator's slow twin.

use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_replay::sink::NoSink;
use cr_replay::{Fleet, PlanFrom, RunSpec, run};
use cr_report::events::{Header, SCHEMA};
use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use cr_trace::{Request, TraceError, TraceReader};
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
    let trace = TraceReader::new(text.as_bytes(), "bench").expect("is a trace");
    serve(trace, policy, shards, block_tokens, kv_blocks)
}

/// Replays; the number of finished requests.
fn serve<R: Into<Arc<Request>>>(
    trace: impl Iterator<Item = Result<R, TraceError>>,
    policy: &str,
    shards: u32,
    block_tokens: u32,
    kv_blocks: u32,
) -> u64 {
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
    let fleet = Fleet::simulated(shards, config, &cost);
    let outcome = run(&spec, fleet, trace, &mut NoSink, &AtomicBool::new(false)).expect("can be run");
    outcome.summary.requests.completed
}

/// The conversation trace; none where it is not at hand.
fn conversation_trace() -> Option<impl Iterator<Item = Request>> {
    let rows = PathBuf::from(std::env::var_os("CR_TRACES")?).join("mooncake/conversation_trace.jsonl");
    let file = std::fs::File::open(rows).expect("CR_TRACES has mooncake/conversation_trace.jsonl");
    let reader = MooncakeReader::new(std::io::BufReader::new(file), "conversation", Dialect::MOONCAKE);
    let import = MooncakeImport::new(reader, BlockKey::AfterTrunk);
    Some(import.map(|request| request.expect("is valid")))
}

#[divan::bench(args = ["flat", "round-robin", "sticky"])]
fn conversation(bencher: Bencher<'_, '_>, policy: &str) {
    let Some(trace) = conversation_trace() else { return };
    let (text, count) = native(trace);
    bencher.counter(ItemsCount::new(count)).bench(|| replay(divan::black_box(&text), policy, 8, 512, 4000));
}

#[divan::bench(args = ["flat", "round-robin", "sticky"])]
fn conversation_parsed(bencher: Bencher<'_, '_>, policy: &str) {
    let Some(trace) = conversation_trace() else { return };
    let trace: Vec<Request> = trace.collect();
    // As they come from a parser: nothing has been computed of their prompts yet.
    let fresh = |request: &Request| {
        Arc::new(Request { prompt: request.prompt.iter().cloned().collect(), ..request.clone() })
    };
    bencher
        .counter(ItemsCount::new(trace.len()))
        .with_inputs(|| trace.iter().map(fresh).collect::<Vec<_>>())
        .bench_values(|trace| serve(trace.into_iter().map(Ok), policy, 8, 512, 4000));
}

/// The same requests once more, as a suite serves them policy by policy.
#[divan::bench(args = ["flat", "round-robin", "sticky"])]
fn conversation_again(bencher: Bencher<'_, '_>, policy: &str) {
    let Some(trace) = conversation_trace() else { return };
    let trace: Vec<Arc<Request>> = trace.map(Arc::new).collect();
    bencher.counter(ItemsCount::new(trace.len())).bench(|| {
        let requests = divan::black_box(&trace).iter().cloned().map(Ok);
        serve(requests, policy, 8, 512, 4000)
    });
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

/// Draws and replays; the number of offered requests.
fn primary_cell(policy: &str, simulated: fn(u32, ShardConfig, &Arc<CostModel>) -> Fleet) -> u64 {
    let text = include_str!("../../../workloads/primary.toml");
    let spec = cr_workload::Spec::from_toml(text, "primary.toml").expect("is a specification");
    let requests = spec.requests.expect("is given");
    let generator = cr_workload::Generator::new(&spec, std::path::Path::new(".")).expect("can be drawn");
    let config = ShardConfig { kv_blocks: 40_071, ..ShardConfig::default() };
    let cost = Arc::new(CostModel::by_name_or_path("70b-2xh100").expect("is built in"));
    let header = Header {
        schema: SCHEMA.into(),
        policy: policy.into(),
        shards: 30,
        block_tokens: 16,
        kv_blocks: config.kv_blocks,
        plan_requests: requests / 4,
        ..Header::default()
    };
    let plan_from = Some(PlanFrom { requests: requests / 4, qcap: None, warm_slots: None });
    let spec = RunSpec { header, plan_from, ..RunSpec::default() };
    let fleet = simulated(30, config, &cost);
    run(&spec, fleet, generator.map(Ok), &mut NoSink, &AtomicBool::new(false)).expect("can be run");
    requests
}

const PRIMARY: u64 = 20_000;

#[divan::bench(args = ["flat", "sticky", "chwbl", "dualmap", "preble", "cacheroute"])]
fn primary(bencher: Bencher<'_, '_>, policy: &str) {
    bencher
        .counter(ItemsCount::new(PRIMARY))
        .bench(|| assert_eq!(primary_cell(policy, Fleet::simulated), PRIMARY));
}

#[divan::bench(args = ["flat", "cacheroute"])]
fn primary_stepwise(bencher: Bencher<'_, '_>, policy: &str) {
    let counter = ItemsCount::new(PRIMARY);
    bencher.counter(counter).bench(|| primary_cell(policy, Fleet::simulated_stepwise));
}
