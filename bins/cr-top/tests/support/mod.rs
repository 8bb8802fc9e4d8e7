//! A small event stream for tests, benches and the committed sample: plausible, complete, and the same for the same seed.
#![allow(dead_code)]

use compact_str::format_compact;
use cr_report::aggregate::Aggregator;
use cr_report::events::{
    Event, Fail, FailReason, Fault, Finish, Header, Plan, SCHEMA, SHARDS_EVERY_S, ScopeTokens, ShardState,
    Shards, Slo, Warning,
};
use cr_trace::{RequestId, Scope, ShardId};
use rand::RngExt;
use std::collections::BTreeMap;

/// What the stream is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) shards: u32,
    pub(crate) requests: u64,
    pub(crate) qps: f64,
    pub(crate) seed: u64,
    /// Whether the last line is there.
    pub(crate) ends: bool,
    /// Whether tables, a fault, failures and a warning are among the events.
    pub(crate) incidents: bool,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample { shards: 4, requests: 600, qps: 20.0, seed: 7, ends: true, incidents: true }
    }
}

const KEYS: u32 = 40;
const KV_BLOCKS: u64 = 4096;

struct Server {
    free_s: f64,
    state: ShardState,
    /// (start, end, finish) of everything sent here.
    served: Vec<Served>,
    warm: BTreeMap<u32, u64>,
}

struct Served {
    start_s: f64,
    prefill_s: f64,
    finish: Finish,
}

impl Sample {
    pub(crate) fn header(&self) -> Header {
        Header {
            schema: SCHEMA.into(),
            generator: "sample 1".into(),
            policy: "cacheroute".into(),
            seed: self.seed,
            engine: "model".into(),
            model: "llama-8m".into(),
            device: "cpu".into(),
            shards: self.shards,
            block_tokens: 16,
            kv_blocks: KV_BLOCKS as u32,
            clock: "virtual".into(),
            durations: "measured".into(),
            requests_expected: Some(self.requests + if self.incidents { 3 } else { 0 }),
            warmup_s: 2.0,
            slo: Slo { ttft_p99_s: Some(0.9) },
            ..Header::default()
        }
    }

    /// All events in order.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut servers = self.serve();
        let end_s = servers.iter().flat_map(|s| &s.served).map(|s| s.finish.t_s).fold(0.0, f64::max) + 0.25;
        let mut timed: Vec<(f64, u8, Event)> = Vec::new();
        let snapshots = (end_s / SHARDS_EVERY_S).ceil() as u64;
        let down = (end_s * 0.6, end_s * 0.75);
        for n in 1..=snapshots {
            let t_s = n as f64 * SHARDS_EVERY_S;
            let mut shards: Vec<ShardState> = servers.iter_mut().map(|server| server.at(t_s)).collect();
            if self.incidents && shards.len() > 2 && (down.0..down.1).contains(&t_s) {
                shards[2].up = false;
            }
            timed.push((t_s, 9, Event::Shards(Shards { t_s, shards, window_start: false })));
        }
        for served in servers.into_iter().flat_map(|server| server.served) {
            timed.push((served.finish.t_s, 1, Event::Finish(served.finish)));
        }
        if self.incidents {
            timed.extend(self.incidents(end_s, down));
        }
        timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        self.complete(timed.into_iter().map(|(_, _, event)| event).collect())
    }

    fn complete(&self, middle: Vec<Event>) -> Vec<Event> {
        let header = self.header();
        let mut aggregator = Aggregator::new(&header);
        middle.iter().for_each(|event| aggregator.observe(event));
        let mut events = vec![Event::Header(header)];
        events.extend(middle);
        if self.ends {
            events.push(Event::Summary(Box::new(aggregator.summary(true))));
        }
        events
    }

    fn incidents(&self, end_s: f64, down: (f64, f64)) -> Vec<(f64, u8, Event)> {
        let plan = |t_s: f64, moved_keys: u64, churn: f64| {
            Event::Plan(Plan { t_s, admitted_keys: 30, moved_keys, churn, imbalance: 1.02, cold_rate: 1.8 })
        };
        let fault = |t_s: f64, kind: &str, rerouted: u64| {
            Event::Fault(Fault { t_s, shard: ShardId(2), kind: kind.into(), rerouted })
        };
        let warning = Event::Warning(Warning {
            t_s: end_s * 0.5,
            name: "under-delivery".into(),
            detail: "offered 20.0, achieved 17.2 QPS".into(),
        });
        let mut events = vec![
            (end_s * 0.3, 0, plan(end_s * 0.3, 30, 1.0)),
            (end_s * 0.66, 0, plan(end_s * 0.66, 4, 0.07)),
            (end_s * 0.5, 2, warning),
        ];
        if self.shards > 2 {
            events.push((down.0, 0, fault(down.0, "down", 4)));
            events.push((down.1, 0, fault(down.1, "up", 0)));
        }
        for n in 0..3u64 {
            let t_s = end_s * (0.2 + 0.2 * n as f64);
            let fail = Fail {
                t_s,
                id: RequestId(self.requests + n),
                key: format_compact!("k{n}"),
                shard: None,
                reason: FailReason::PromptTooLong,
                detail: "9,120 tokens, context is 8,192".into(),
                measured: true,
                arrival_s: Some(t_s),
                retries: 0,
            };
            events.push((t_s, 1, Event::Fail(fail)));
        }
        events
    }

    fn serve(&self) -> Vec<Server> {
        let mut rng = cr_trace::stream(self.seed, "sample");
        let mut servers: Vec<Server> = (0..self.shards).map(Server::new).collect();
        let mut t_s = 0.0;
        for id in 0..self.requests {
            t_s += -(1.0 - rng.random::<f64>()).ln() / self.qps;
            // The square makes low numbers hot.
            let key = ((rng.random::<f64>().powi(3)) * f64::from(KEYS)) as u32;
            let admitted = key < KEYS * 3 / 4;
            let shard = if admitted { key % self.shards } else { rng.random_range(0..self.shards) };
            let (own, output) = (rng.random_range(40..140u64), rng.random_range(8..40u64));
            servers[shard as usize].push(
                id,
                t_s,
                key,
                admitted,
                [256, 180 + u64::from(key) * 16, own, output],
            );
        }
        servers
    }

    /// The stream as text.
    pub(crate) fn ndjson(&self) -> String {
        self.events()
            .iter()
            .map(|event| serde_json::to_string(event).expect("an event is JSON") + "\n")
            .collect()
    }
}

impl Server {
    fn new(id: u32) -> Server {
        let state = ShardState::idle(ShardId(id), KV_BLOCKS);
        Server { free_s: 0.0, state, served: Vec::new(), warm: BTreeMap::new() }
    }

    fn push(&mut self, id: u64, arrival_s: f64, key: u32, admitted: bool, tokens: [u64; 4]) {
        let [template, context, own, output_tokens] = tokens;
        let prompt_tokens = template + context + own;
        let known = self.warm.insert(key, id).is_some();
        let template = if self.warm.len() > 1 || known { template } else { 0 };
        let cached_tokens = if known { (template + context) / 16 * 16 } else { template / 16 * 16 };
        let start_s = self.free_s.max(arrival_s);
        let prefill_s = 0.012 + (prompt_tokens - cached_tokens) as f64 * 1.6e-4;
        let decode_s = output_tokens as f64 * 4e-3;
        self.free_s = start_s + prefill_s + decode_s * 0.35;
        let t_s = start_s + prefill_s + decode_s;
        let mut cached_by_scope = ScopeTokens::default();
        if cached_tokens > 0 {
            cached_by_scope.add(Scope::Global, template.min(cached_tokens));
            if cached_tokens > template {
                cached_by_scope.add(Scope::Key, cached_tokens - template);
            }
        }
        let finish = Finish {
            t_s,
            id: RequestId(id),
            key: format_compact!("k{key}"),
            tenant: format_compact!("k{key}"),
            shard: self.state.shard,
            admitted,
            arrival_s,
            queue_s: start_s - arrival_s,
            ttft_s: start_s + prefill_s - arrival_s,
            tpot_s: Some(decode_s / (output_tokens - 1) as f64),
            e2e_s: t_s - arrival_s,
            prompt_tokens,
            cached_tokens,
            cached_by_scope,
            output_tokens,
            retries: 0,
            preemptions: 0,
            measured: arrival_s >= 2.0,
        };
        self.served.push(Served { start_s, prefill_s, finish });
    }

    /// The state at an instant, from what was served until then.
    fn at(&mut self, t_s: f64) -> ShardState {
        let mut state = self.state.clone();
        for Served { start_s, prefill_s, finish } in &self.served {
            if finish.arrival_s > t_s {
                break;
            }
            if *start_s > t_s {
                state.queued += 1;
                continue;
            }
            state.prompt_tokens += finish.prompt_tokens;
            state.cached_tokens += finish.cached_tokens;
            state.computed_tokens += finish.prompt_tokens - finish.cached_tokens;
            state.busy_s += prefill_s;
            state.kv_used_blocks += (finish.prompt_tokens - finish.cached_tokens).div_ceil(16) + 2;
            if finish.t_s > t_s {
                state.running += 1;
            } else {
                state.requests += 1;
                state.output_tokens += finish.output_tokens;
            }
        }
        let room = KV_BLOCKS * 15 / 16;
        if state.kv_used_blocks > room {
            state.evicted_blocks = state.kv_used_blocks - room;
            state.evicted_admitted_blocks = state.evicted_blocks / 5;
            state.kv_used_blocks = room;
        }
        state.kv_protected_blocks = KV_BLOCKS / 8;
        state
    }
}
