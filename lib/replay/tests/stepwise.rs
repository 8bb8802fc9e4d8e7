//! The simulator against its slow twin, which takes every step and keeps every block by itself: the same bytes.

mod support;

use cr_replay::PlanFrom;
use cr_replay::faults::Fault;
use cr_replay::sink::{JsonLines, NoSink};
use cr_routing::policy::names;
use cr_trace::{Request, RequestId, Time};
use proptest::prelude::*;
use support::{Setting, request};

/// Threads of turns over a few keys: some wait for the turn before, some are sent before it has been answered.
fn traces() -> impl Strategy<Value = Vec<Request>> {
    let one = (1u32..90, 0u8..5, 1u32..200, 1u32..120, any::<bool>(), proptest::option::of(0u32..30));
    // Nobody quotes an answer before this request.
    let quoted_from = prop_oneof![Just(0), 0u64..80];
    (proptest::collection::vec(one, 1..80), quoted_from).prop_map(|(rows, quoted_from)| {
        let (mut at_ms, mut trace) = (0, Vec::<Request>::new());
        for (id, (gap_ms, key, tokens, output, follows, think_ms)) in (0u64..).zip(rows) {
            at_ms += gap_ms;
            let (key, user, answer) =
                (format!("k:k{key}"), format!("u:{id}"), format!("a:{}", id.saturating_sub(2)));
            let mut prompt = vec![("g:t", 20), (&key, tokens)];
            if follows && id > 1 && id >= quoted_from {
                prompt.push((&answer, trace[id as usize - 2].output_tokens));
            }
            prompt.push((&user, 7));
            let mut r = request(id, f64::from(at_ms) / 1e3, &prompt, output);
            if let Some(think_ms) = think_ms.filter(|_| follows && id > 1) {
                r.after = Some(RequestId(id - 2));
                r.think_s = Some(f64::from(think_ms) / 1e3);
            }
            trace.push(r);
        }
        trace
    })
}

/// Up to three faults, as sentences of shards that the fleet may not have.
fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let one = (0u32..5, 0u32..3_000, 1u32..1_000, 0u8..5);
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        let fault = |(shard, at_ms, for_ms, kind)| match kind {
            0 => format!("cold {shard} at {at_ms}ms"),
            1 => format!("slow {shard} at {at_ms}ms for {for_ms}ms by 2.7x"),
            _ => format!("down {shard} at {at_ms}ms for {for_ms}ms"),
        };
        all.into_iter().map(|one| fault(one).parse().expect("is a fault")).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_give_the_same_bytes(
        trace in traces(),
        policy in proptest::sample::select(names()),
        shards in 1u32..6,
        (kv_blocks, token_budget, max_running) in (12u32..80, 16u32..300, 1u32..20),
        timeout_ms in proptest::option::of(50u64..2_000),
        warmup_ms in prop_oneof![Just(0u32), 0u32..500],
        (protects, lag_ms, faults) in (any::<bool>(), prop_oneof![Just(0u32), 1u32..300], faults()),
        plan_from in prop_oneof![Just(None), (2u64..10).prop_map(Some)],
    ) {
        let mut setting = Setting::new(policy, shards);
        setting.cost = "70b-2xh100";
        setting.config.kv_blocks = kv_blocks;
        setting.config.token_budget = token_budget;
        setting.config.max_running = max_running;
        setting.config.timeout = timeout_ms.map(|ms| Time::from_s(ms as f64 / 1e3));
        setting.warmup_s = f64::from(warmup_ms) / 1e3;
        setting.plan_from = plan_from
            .filter(|&requests| requests < trace.len() as u64)
            .map(|requests| PlanFrom { requests, qcap: None, warm_slots: None });
        setting.config.protect_admitted = protects;
        setting.view_lag_s = f64::from(lag_ms) / 1e3;
        setting.faults = faults.into_iter().filter(|fault| fault.shard.0 < shards).collect();
        let (fast, refused) = setting.bytes(&trace);
        let (read, unread) =
            (setting.sums(&trace, &mut JsonLines::new(std::io::sink())), setting.sums(&trace, &mut NoSink));
        prop_assert_eq!(read, unread, "whoever reads changes nothing");
        setting.stepwise = true;
        let (slow, refused_too) = setting.bytes(&trace);
        prop_assert_eq!(String::from_utf8(fast), String::from_utf8(slow));
        prop_assert_eq!(refused, refused_too);
    }
}
