//! A ledger that cannot be broken would not be worth having: every law is broken once.

use super::*;
use cr_report::events::FailReason;
use cr_trace::ShardId;

fn finish(id: u64) -> Finish {
    Finish {
        t_s: 2.0,
        id: RequestId(id),
        key: "k".into(),
        tenant: "k".into(),
        shard: ShardId(0),
        admitted: false,
        arrival_s: 1.0,
        queue_s: 0.1,
        ttft_s: 0.5,
        tpot_s: None,
        e2e_s: 1.0,
        prompt_tokens: 100,
        cached_tokens: 96,
        cached_by_scope: Default::default(),
        output_tokens: 3,
        retries: 0,
        preemptions: 0,
        measured: true,
    }
}

fn broken(finish: Finish) -> String {
    let mut ledger = Ledger::default();
    assert!(ledger.offered(RequestId(7)));
    ledger.event(&Event::Finish(finish)).expect_err("is broken").to_string()
}

#[test]
fn a_run_that_balances_is_silent() {
    let mut ledger = Ledger::default();
    assert!(ledger.offered(RequestId(7)));
    ledger.event(&Event::Finish(finish(7))).expect("holds");
    ledger.close().expect("holds");
}

#[test]
fn every_law_can_be_broken() {
    assert!(broken(finish(8)).contains("request 8 ended without being in flight"));
    let cached = broken(Finish { cached_tokens: 101, ..finish(7) });
    assert!(cached.ends_with("request 7 found 101 of 100 prompt tokens cached"), "{cached}");
    assert!(broken(Finish { queue_s: 0.6, ..finish(7) }).contains("request 7 was scheduled 0.6 s"));
    assert!(broken(Finish { queue_s: -0.1, ..finish(7) }).contains("-0.1 s"));
    assert!(broken(Finish { ttft_s: 1.1, ..finish(7) }).contains("first token 1.1 s"));
    assert!(broken(Finish { t_s: 2.5, ..finish(7) }).contains("but finished at 2.5 s"));
    let mut ledger = Ledger::default();
    assert!(ledger.offered(RequestId(7)) && !ledger.offered(RequestId(7)));
    assert!(
        ledger.close().expect_err("is open").to_string().contains("request 7 was offered and never ended")
    );
    let early = Fail {
        t_s: 1.0,
        id: RequestId(7),
        key: "k".into(),
        shard: None,
        reason: FailReason::Timeout,
        detail: Default::default(),
        measured: true,
        arrival_s: Some(1.5),
        retries: 0,
    };
    assert!(
        ledger.event(&Event::Fail(early)).expect_err("is broken").to_string().contains("before it arrived")
    );
}

fn state() -> ShardState {
    ShardState {
        shard: ShardId(0),
        up: true,
        queued: 0,
        running: 0,
        kv_used_blocks: 5,
        kv_total_blocks: 10,
        kv_protected_blocks: 1,
        busy_s: 0.9,
        requests: 3,
        prompt_tokens: 300,
        cached_tokens: 100,
        computed_tokens: 200,
        output_tokens: 9,
        evicted_blocks: 0,
        evicted_admitted_blocks: 0,
        preemptions: 0,
        recomputed_tokens: 0,
    }
}

#[test]
fn shards_keep_their_laws() {
    let at = |t_s, state| Event::Shards(Shards { t_s, shards: vec![state], window_start: false });
    let mut ledger = Ledger::default();
    ledger.event(&at(1.0, state())).expect("holds");
    for (broken, what) in [
        (ShardState { busy_s: 2.1, ..state() }, "shard 0 was busy for 2.1 s within 2 s"),
        (ShardState { kv_used_blocks: 11, ..state() }, "uses 11 of 10 blocks"),
        (ShardState { kv_protected_blocks: 6, ..state() }, "6 of them protected"),
        (ShardState { cached_tokens: 301, ..state() }, "more cached than was asked for"),
        (ShardState { output_tokens: 8, ..state() }, "a counter of shard 0 ran back"),
    ] {
        let error = ledger.event(&at(2.0, broken)).expect_err("is broken").to_string();
        assert!(error.contains(what), "{error}");
    }
}
