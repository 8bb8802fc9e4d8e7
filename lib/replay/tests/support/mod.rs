//! What the tests of the replay share: small traces, a simulated fleet, and the stream read back through types of its own.
#![allow(dead_code)]

use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_replay::sink::{EventSink, JsonLines};
use cr_replay::{Clock, Fault, Fleet, Outcome, PlanFrom, Replan, RunSpec, run};
use cr_report::events::{Header, SCHEMA};
use cr_routing::RoutingTable;
use cr_trace::{ContentId, Request, RequestId, Segment, TraceError};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The events of the contract, declared once more and strictly: a field that is renamed, dropped or added shows.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
#[rustfmt::skip]
#[expect(clippy::large_enum_variant, reason = "a header comes once a run")]
pub(crate) enum Line {
    Header { schema: String, generator: String, policy: String, seed: u64, engine: String, model: String, device: String, shards: u32,
        block_tokens: u32, kv_blocks: u32, clock: String, durations: String, requests_expected: Option<u64>, warmup_s: f64,
        slo: BTreeMap<String, f64>, plan_requests: Option<u64>, in_sample: bool, qps: Option<f64>, replan: Option<serde_json::Value>,
        faults: Option<Vec<String>>, routers: Option<u32>, view_lag_s: Option<f64>, protect_admitted: Option<bool>, free_run: Option<bool>, assumes: Option<String> },
    Finish { t_s: f64, id: u64, key: String, tenant: String, shard: u32, admitted: bool, arrival_s: f64, queue_s: f64, ttft_s: f64,
        tpot_s: Option<f64>, e2e_s: f64, prompt_tokens: u64, cached_tokens: u64, cached_by_scope: BTreeMap<String, u64>,
        output_tokens: u64, retries: u32, preemptions: u32, measured: Option<bool> },
    Fail { t_s: f64, id: u64, key: String, shard: Option<u32>, reason: String, detail: String, arrival_s: Option<f64>,
        retries: Option<u32>, measured: Option<bool> },
    Shards { t_s: f64, shards: Vec<Shard>, window_start: Option<bool> },
    Plan { t_s: f64, admitted_keys: u64, moved_keys: u64, churn: f64, imbalance: f64, cold_rate: f64 },
    Fault { t_s: f64, shard: u32, kind: String, rerouted: u64 },
    Warning { t_s: f64, name: String, detail: String },
    Summary(serde_json::Value),
}

/// One shard of a snapshot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[rustfmt::skip]
pub(crate) struct Shard {
    pub(crate) shard: u32, pub(crate) up: bool, pub(crate) queued: u64, pub(crate) running: u64, pub(crate) kv_used_blocks: u64, pub(crate) kv_total_blocks: u64,
    pub(crate) kv_protected_blocks: u64, pub(crate) busy_s: f64, pub(crate) requests: u64, pub(crate) prompt_tokens: u64, pub(crate) cached_tokens: u64,
    pub(crate) computed_tokens: u64, pub(crate) output_tokens: u64, pub(crate) evicted_blocks: u64, pub(crate) evicted_admitted_blocks: u64, pub(crate) preemptions: u64,
    pub(crate) recomputed_tokens: u64,
}

/// A request of `prompt` for the first key that it names.
pub(crate) fn request(id: u64, t_s: f64, prompt: &[(&str, u32)], output_tokens: u32) -> Request {
    let key = prompt.iter().find_map(|(c, _)| c.strip_prefix("k:")).unwrap_or("none");
    Request {
        id: RequestId(id),
        t_s,
        key: key.into(),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        prompt: prompt.iter().map(|&(c, n)| Segment(ContentId::new(c), n)).collect(),
        output_tokens,
    }
}

/// A run to be made.
pub(crate) struct Setting {
    pub(crate) policy: &'static str,
    pub(crate) seed: u64,
    pub(crate) shards: u32,
    pub(crate) config: ShardConfig,
    pub(crate) warmup_s: f64,
    pub(crate) tables: Vec<Arc<RoutingTable>>,
    pub(crate) plan_from: Option<PlanFrom>,
    pub(crate) replan: Option<Replan>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) view_lag_s: f64,
    pub(crate) routers: u32,
    pub(crate) clock: Clock,
    pub(crate) cost: &'static str,
    /// The simulator's slow twin serves.
    pub(crate) stepwise: bool,
}

impl Setting {
    pub(crate) fn new(policy: &'static str, shards: u32) -> Setting {
        let config = ShardConfig { kv_blocks: 256, ..ShardConfig::default() };
        Setting {
            policy,
            seed: 42,
            shards,
            config,
            warmup_s: 0.0,
            tables: Vec::new(),
            plan_from: None,
            replan: None,
            faults: Vec::new(),
            view_lag_s: 0.0,
            routers: 1,
            clock: Clock::Virtual,
            cost: "worked-example",
            stepwise: false,
        }
    }

    fn fleet(&self) -> Fleet {
        let simulated = if self.stepwise { Fleet::simulated_stepwise } else { Fleet::simulated };
        simulated(self.shards, self.config, &self.cost())
    }

    fn cost(&self) -> Arc<CostModel> {
        Arc::new(CostModel::by_name_or_path(self.cost).expect("is built in"))
    }

    fn spec(&self) -> RunSpec {
        RunSpec {
            header: Header {
                schema: SCHEMA.into(),
                generator: "test".into(),
                policy: self.policy.into(),
                seed: self.seed,
                engine: "sim".into(),
                model: "worked-example".into(),
                device: "none".into(),
                shards: self.shards,
                block_tokens: self.config.block_tokens,
                kv_blocks: self.config.kv_blocks,
                clock: "virtual".into(),
                durations: "modelled".into(),
                warmup_s: self.warmup_s,
                plan_requests: self.plan_from.map_or(0, |p| p.requests),
                ..Header::default()
            },
            vnodes: 100,
            tables: self.tables.clone(),
            plan_from: self.plan_from,
            replan: self.replan,
            faults: self.faults.clone(),
            view_lag_s: self.view_lag_s,
            routers: self.routers,
            clock: self.clock,
            ..RunSpec::default()
        }
    }

    /// The run's outcome and the bytes of its events.
    pub(crate) fn run_with(
        &self,
        trace: impl Iterator<Item = Result<Request, TraceError>>,
        interrupt: &AtomicBool,
    ) -> (Outcome, Vec<u8>) {
        let spec = self.spec();
        let fleet = self.fleet();
        let mut bytes = Vec::new();
        let outcome = run(&spec, fleet, trace, &mut JsonLines::new(&mut bytes), interrupt)
            .expect("the run can be made");
        (outcome, bytes)
    }

    /// The bytes of the run's events, or why it cannot be made; then with the bytes until there.
    pub(crate) fn bytes(&self, trace: &[Request]) -> (Vec<u8>, Option<String>) {
        let mut bytes = Vec::new();
        let trace = trace.iter().cloned().map(Ok);
        let mut sink = JsonLines::new(&mut bytes);
        let outcome = run(&self.spec(), self.fleet(), trace, &mut sink, &AtomicBool::new(false));
        (bytes, outcome.err().map(|error| error.to_string()))
    }

    /// What the run comes down to, or why it cannot be made.
    pub(crate) fn sums(&self, trace: &[Request], sink: &mut dyn EventSink) -> String {
        let trace = trace.iter().cloned().map(Ok);
        match run(&self.spec(), self.fleet(), trace, sink, &AtomicBool::new(false)) {
            Ok(Outcome { summary, aggregator, .. }) => {
                format!("{summary:?} {:?} {:?}", aggregator.shard_totals(), aggregator.timeline())
            }
            Err(error) => error.to_string(),
        }
    }

    /// Why the run cannot be made.
    pub(crate) fn refused(&self) -> String {
        let fleet = self.fleet();
        let nothing = std::iter::empty::<Result<Request, TraceError>>();
        let outcome =
            run(&self.spec(), fleet, nothing, &mut cr_replay::sink::NoSink, &AtomicBool::new(false));
        outcome.expect_err("is refused").to_string()
    }

    pub(crate) fn run(&self, trace: &[Request]) -> (Outcome, Vec<u8>) {
        self.run_with(trace.iter().cloned().map(Ok), &AtomicBool::new(false))
    }
}

/// Every line of the stream.
pub(crate) fn lines(bytes: &[u8]) -> Vec<Line> {
    let text = std::str::from_utf8(bytes).expect("is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The ids that finished and those that failed, with the reason.
pub(crate) fn ends(bytes: &[u8]) -> (Vec<u64>, Vec<(u64, String)>) {
    let (mut finished, mut failed) = (Vec::new(), Vec::new());
    for line in lines(bytes) {
        match line {
            Line::Finish { id, .. } => finished.push(id),
            Line::Fail { id, reason, .. } => failed.push((id, reason)),
            _ => {}
        }
    }
    (finished, failed)
}
