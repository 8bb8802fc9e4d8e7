//! Laws of a run on the virtual clock.

mod support;

use cr_replay::{PlanFrom, Stop};
use cr_routing::planner::{PlanConfig, TableOptions, plan_table};
use cr_routing::rates::KeyRates;
use cr_trace::{Request, Time, TraceError};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Line, Setting, ends, lines, request};

/// Requests for `keys` keys in turn, one every `gap_s`.
fn steady(requests: u64, keys: u64, gap_s: f64) -> Vec<Request> {
    (0..requests)
        .map(|i| {
            let (key, user) = (format!("k:k{}", i % keys), format!("u:{i}"));
            request(i, i as f64 * gap_s, &[("g:t", 32), (&key, 64), (&user, 10)], 4)
        })
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let trace = steady(200, 7, 0.004);
    let bytes = |seed| Setting { seed, ..Setting::new("flat", 3) }.run(&trace).1;
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn a_closed_loop_releases_at_the_finish_plus_think_time() {
    let mut trace = vec![
        request(0, 0.0, &[("k:a", 20)], 2),
        request(1, 0.001, &[("k:a", 20)], 1),
        request(2, 5.0, &[("k:a", 20)], 1),
    ];
    trace[1].after = Some(0.into_id());
    trace[1].think_s = Some(1.5);
    trace[2].after = Some(1.into_id());
    let (_, bytes) = Setting::new("flat", 1).run(&trace);
    let mut seen = Vec::new();
    for line in lines(&bytes) {
        if let Line::Finish { t_s, id, arrival_s, .. } = line {
            seen.push((id, arrival_s, t_s));
        }
    }
    let finish_0 = 0.007 + 0.006;
    assert_eq!(seen[0].0, 0);
    assert!((seen[0].2 - finish_0).abs() < 1e-9);
    assert!((seen[1].1 - (finish_0 + 1.5)).abs() < 1e-9, "released by its predecessor");
    assert!((seen[2].1 - 5.0).abs() < 1e-9, "released by its own time");
}

trait IntoId {
    fn into_id(self) -> cr_trace::RequestId;
}

impl IntoId for u64 {
    fn into_id(self) -> cr_trace::RequestId {
        cr_trace::RequestId(self)
    }
}

#[test]
fn a_failed_predecessor_cancels_all_that_follow() {
    let mut trace = vec![
        request(0, 0.0, &[("k:a", 100_000)], 2),
        request(1, 0.1, &[("k:a", 20)], 1),
        request(2, 0.2, &[("k:a", 20)], 1),
        request(3, 0.3, &[("k:a", 20)], 1),
    ];
    trace[1].after = Some(0.into_id());
    trace[2].after = Some(1.into_id());
    let (outcome, bytes) = Setting::new("flat", 2).run(&trace);
    let (finished, failed) = ends(&bytes);
    assert_eq!(finished, [3]);
    let failed: Vec<(u64, &str)> = failed.iter().map(|(id, reason)| (*id, reason.as_str())).collect();
    assert_eq!(failed, [(0, "pool_too_small"), (1, "predecessor_failed"), (2, "predecessor_failed")]);
    let requests = outcome.summary.requests;
    assert_eq!((requests.completed, requests.failed, requests.cancelled), (1, 1, 2));
}

#[test]
fn what_cannot_be_served_fails_with_its_numbers_and_the_run_goes_on() {
    let mut setting = Setting::new("flat", 1);
    setting.config.context_tokens = Some(500);
    let trace = [request(0, 0.0, &[("k:a", 499)], 2), request(1, 0.0, &[("k:a", 100)], 2)];
    let (_, bytes) = setting.run(&trace);
    let fail = lines(&bytes).into_iter().find_map(|line| match line {
        Line::Fail { reason, detail, shard, .. } => Some((reason, detail, shard)),
        _ => None,
    });
    let expected = "501 tokens of prompt and output, context is 500".to_string();
    assert_eq!(fail, Some(("prompt_too_long".to_string(), expected, Some(0))));
    assert_eq!(ends(&bytes).0, [1]);
}

#[test]
fn a_request_not_finished_in_time_fails() {
    let mut setting = Setting::new("flat", 1);
    setting.config.timeout = Some(Time::from_s(0.05));
    setting.config.max_running = 1;
    let (outcome, bytes) = setting.run(&steady(50, 5, 0.001));
    let (finished, failed) = ends(&bytes);
    assert_eq!(finished.len() + failed.len(), 50);
    assert!(
        !finished.is_empty() && failed.iter().all(|(_, reason)| reason == "timeout") && failed.len() > 20
    );
    assert!(outcome.summary.e2e_s.max <= 0.05, "who finished did so in time");
    assert!(outcome.summary.saturated);
}

#[test]
fn an_interruption_loses_nothing_that_was_measured() {
    let trace = steady(400, 7, 0.01);
    let interrupt = AtomicBool::new(false);
    let stop_at_200 = trace.iter().cloned().map(|request| {
        interrupt.fetch_or(request.id.0 == 200, Ordering::Relaxed);
        Ok(request)
    });
    let (outcome, bytes) = Setting::new("flat", 2).run_with(stop_at_200, &interrupt);
    assert!(matches!(outcome.stopped, Some(Stop::Interrupted)));
    assert!(!outcome.summary.complete);
    let (finished, failed) = ends(&bytes);
    assert!(finished.len() > 150 && failed.iter().all(|(_, reason)| reason == "interrupted"));
    assert!(matches!(lines(&bytes).last(), Some(Line::Summary(_))), "the stream is whole");
    let mut ids: Vec<u64> = finished.into_iter().chain(failed.into_iter().map(|f| f.0)).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>(), "every request that arrived ends once");
}

#[test]
fn a_trace_that_breaks_off_keeps_what_was_measured() {
    let bad = TraceError::line("w.jsonl", 102, "this is no request");
    let trace = steady(100, 7, 0.01).into_iter().map(Ok).chain([Err(bad)]);
    let (outcome, bytes) = Setting::new("flat", 2).run_with(trace, &AtomicBool::new(false));
    assert!(
        matches!(&outcome.stopped, Some(Stop::Trace(e)) if e.to_string() == "w.jsonl:102: this is no request")
    );
    assert!(ends(&bytes).0.len() > 90 && !outcome.summary.complete);
}

#[test]
fn the_head_that_a_plan_is_learned_from_is_served_alike_and_not_measured() {
    let trace = steady(400, 8, 0.004);
    let head = |policy| {
        let plan_from = Some(PlanFrom { requests: 100, qcap: None, warm_slots: None });
        let (outcome, bytes) = Setting { plan_from, ..Setting::new(policy, 4) }.run(&trace);
        let mut before = Vec::new();
        let mut planned_at = f64::INFINITY;
        for line in lines(&bytes) {
            match line {
                Line::Finish { t_s, id, shard, measured, .. } => {
                    assert_eq!(measured.is_none(), id >= 100, "request {id}");
                    if t_s < planned_at {
                        before.push((id, shard));
                    }
                }
                Line::Plan { t_s, admitted_keys, .. } => {
                    assert_eq!(admitted_keys, 8);
                    planned_at = t_s;
                }
                _ => {}
            }
        }
        assert_eq!(outcome.summary.requests.offered, 300);
        assert_eq!(outcome.summary.window.from_s, planned_at);
        assert!((planned_at - 0.4).abs() < 1e-9);
        (before, outcome.summary.served_hit)
    };
    let (flat, sticky, cacheroute) = (head("flat"), head("sticky"), head("cacheroute"));
    assert!(flat.0 == sticky.0 && sticky.0 == cacheroute.0);
    assert!(cacheroute.1 >= flat.1);
}

#[test]
fn tables_are_installed_when_they_are_due() {
    let table = |from_s: f64, keys: [(&str, f64); 2]| {
        let rates: KeyRates = keys.into_iter().map(|(key, rate)| (key.into(), rate)).collect();
        let options = TableOptions { from_s, ..TableOptions::default() };
        Arc::new(plan_table(&rates, &PlanConfig::new(2, 100.0, 10.0), &options).expect("can be planned"))
    };
    let tables = vec![table(0.0, [("k0", 2.0), ("k1", 1.0)]), table(0.5, [("k1", 2.0), ("k0", 1.0)])];
    let (_, bytes) = Setting { tables, ..Setting::new("cacheroute", 2) }.run(&steady(100, 2, 0.01));
    let mut plans = Vec::new();
    let mut places = std::collections::BTreeSet::new();
    for line in lines(&bytes) {
        match line {
            Line::Plan { t_s, moved_keys, churn, .. } => plans.push((t_s, moved_keys, churn)),
            Line::Finish { key, shard, admitted, arrival_s, .. } => {
                assert!(admitted);
                places.insert((arrival_s >= 0.5, key, shard));
            }
            _ => {}
        }
    }
    assert_eq!(plans, [(0.0, 0, 0.0), (0.5, 2, 1.0)]);
    let places: Vec<_> = places.iter().map(|(late, key, shard)| (*late, key.as_str(), *shard)).collect();
    assert_eq!(places, [(false, "k0", 0), (false, "k1", 1), (true, "k0", 1), (true, "k1", 0)]);
}

#[test]
fn snapshots_come_every_quarter_second_and_add_up() {
    let (outcome, bytes) = Setting { warmup_s: 0.9, ..Setting::new("sticky", 3) }.run(&steady(300, 9, 0.01));
    let mut last: Option<(f64, Vec<support::Shard>)> = None;
    let mut marks = 0;
    for line in lines(&bytes) {
        let Line::Shards { t_s, shards, window_start } = line else { continue };
        marks += usize::from(window_start == Some(true));
        if window_start == Some(true) {
            assert_eq!(t_s, 0.9);
        }
        for shard in &shards {
            assert!(shard.busy_s <= t_s + 1e-12 && shard.cached_tokens <= shard.prompt_tokens);
            assert!(shard.kv_used_blocks <= shard.kv_total_blocks);
        }
        if let Some((before, earlier)) = &last {
            assert!(*before <= t_s);
            let grows =
                |f: fn(&support::Shard) -> u64| earlier.iter().zip(&shards).all(|(a, b)| f(a) <= f(b));
            assert!(grows(|s| s.requests) && grows(|s| s.computed_tokens) && grows(|s| s.output_tokens));
        }
        last = Some((t_s, shards));
    }
    assert_eq!(marks, 1);
    let (end, shards) = last.expect("there are snapshots");
    assert_eq!(end, outcome.summary.window.to_s);
    assert_eq!(shards.iter().map(|s| s.requests).sum::<u64>(), 300);
    assert_eq!(shards.iter().map(|s| s.queued + s.running).sum::<u64>(), 0);
}

fn random_trace() -> impl Strategy<Value = Vec<Request>> {
    let one = (0u32..40, 0u8..5, 1u32..200, 1u32..12, proptest::option::of((0u64..40, 0u32..30)));
    proptest::collection::vec(one, 1..60).prop_map(|rows| {
        let mut at_ms = 0;
        let mut trace = Vec::new();
        for (id, (gap_ms, key, tokens, output, after)) in rows.into_iter().enumerate() {
            at_ms += gap_ms;
            let (key, user) = (format!("k:k{key}"), format!("u:{id}"));
            let mut r = request(
                id as u64,
                f64::from(at_ms) / 1e3,
                &[("g:t", 20), (&key, tokens), (&user, 7)],
                output,
            );
            if let Some((after, think_ms)) = after.filter(|(after, _)| *after < id as u64) {
                r.after = Some(after.into_id());
                r.think_s = Some(f64::from(think_ms) / 1e3);
            }
            trace.push(r);
        }
        trace
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the fleet and the policy: every request ends once, no sooner than it could, and the sums agree.
    #[test]
    fn every_request_finishes_or_fails_exactly_once(
        trace in random_trace(),
        policy in prop_oneof![Just("flat"), Just("sticky")],
        shards in 1u32..5,
        kv_blocks in 4u32..40,
        timeout_ms in proptest::option::of(20u64..300),
    ) {
        let mut setting = Setting::new(policy, shards);
        setting.config.kv_blocks = kv_blocks;
        setting.config.timeout = timeout_ms.map(|ms| Time::from_s(ms as f64 / 1e3));
        let (outcome, bytes) = setting.run(&trace);
        let (mut cached, mut prompt) = (0, 0);
        let mut ids = Vec::new();
        for line in lines(&bytes) {
            match line {
                Line::Finish { t_s, id, arrival_s, queue_s, ttft_s, e2e_s, prompt_tokens, cached_tokens, cached_by_scope, output_tokens, .. } => {
                    ids.push(id);
                    let sent = &trace[id as usize];
                    prop_assert!(arrival_s >= sent.t_s - 1e-9 && (arrival_s + e2e_s - t_s).abs() < 1e-9);
                    prop_assert!(0.0 <= queue_s && queue_s < ttft_s && ttft_s <= e2e_s);
                    prop_assert_eq!(prompt_tokens, sent.prompt_tokens());
                    prop_assert_eq!(output_tokens, u64::from(sent.output_tokens));
                    prop_assert!(cached_tokens < prompt_tokens && cached_tokens % 16 == 0);
                    prop_assert_eq!(cached_by_scope.values().sum::<u64>(), cached_tokens);
                    cached += cached_tokens;
                    prompt += prompt_tokens;
                }
                Line::Fail { id, .. } => ids.push(id),
                _ => {}
            }
        }
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..trace.len() as u64).collect::<Vec<_>>());
        let summary = outcome.summary;
        prop_assert_eq!(summary.requests.offered, trace.len() as u64);
        let hit = if prompt == 0 { 0.0 } else { cached as f64 / prompt as f64 };
        prop_assert!((summary.served_hit - hit).abs() < 1e-12);
    }
}
