//! Event streams for tests.
#![allow(dead_code)] // each test file uses a part

pub(crate) mod suite;

use cr_report::events::{Event, Fail, FailReason, Finish, Header, ScopeTokens, ShardState, Shards};
use cr_trace::{RequestId, Scope, ShardId};

/// A header of a simulated run.
pub(crate) fn header(policy: &str, seed: u64, shards: u32) -> Header {
    Header {
        schema: cr_report::events::SCHEMA.into(),
        generator: "cr-serve 0.1.0".into(),
        policy: policy.into(),
        seed,
        engine: "sim".into(),
        model: "example".into(),
        device: "none".into(),
        shards,
        block_tokens: 16,
        kv_blocks: 64,
        clock: "virtual".into(),
        durations: "modelled".into(),
        ..Header::default()
    }
}

/// A request that finished on shard 0.
pub(crate) fn finish(id: u64, arrival_s: f64, ttft_s: f64, e2e_s: f64) -> Finish {
    Finish {
        t_s: arrival_s + e2e_s,
        id: RequestId(id),
        key: "k1".into(),
        tenant: "k1".into(),
        shard: ShardId(0),
        admitted: false,
        arrival_s,
        queue_s: 0.0,
        ttft_s,
        tpot_s: None,
        e2e_s,
        prompt_tokens: 58,
        cached_tokens: 0,
        cached_by_scope: ScopeTokens::default(),
        output_tokens: 1,
        retries: 0,
        preemptions: 0,
        measured: true,
    }
}

/// A request that failed.
pub(crate) fn fail(id: u64, t_s: f64, reason: FailReason) -> Fail {
    Fail {
        t_s,
        id: RequestId(id),
        key: "k1".into(),
        shard: None,
        reason,
        detail: Default::default(),
        measured: true,
        arrival_s: None,
        retries: 0,
    }
}

/// A shard that has done nothing.
pub(crate) fn idle(shard: u32) -> ShardState {
    ShardState::idle(ShardId(shard), 64)
}

/// The worked example of the documentation: two requests on one shard.
pub(crate) fn worked_example() -> (Header, Vec<Event>) {
    let mut b = finish(1, 0.001, 0.0168, 0.0168);
    (b.t_s, b.queue_s) = (0.0178, 0.0098);
    b.cached_tokens = 48;
    b.cached_by_scope = [(Scope::Global, 32), (Scope::Key, 16)].into_iter().collect();
    let mut a = finish(0, 0.0, 0.0108, 0.0238);
    (a.tpot_s, a.output_tokens) = (Some(0.0065), 3);
    let mut shard = idle(0);
    (shard.busy_s, shard.requests, shard.prompt_tokens, shard.cached_tokens) = (0.0238, 2, 116, 48);
    (shard.computed_tokens, shard.output_tokens) = (68, 4);
    let end = Shards { t_s: 0.0238, shards: vec![shard], window_start: false };
    (header("flat", 42, 1), vec![Event::Finish(b), Event::Finish(a), Event::Shards(end)])
}
