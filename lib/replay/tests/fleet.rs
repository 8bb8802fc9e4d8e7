//! Laws of fleets under faults, replanning and stale views.

mod support;

use cr_replay::{Fault, Replan};
use cr_routing::policy::names;
use cr_trace::{Request, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Line, Setting, ends, lines, request};

fn fault(text: &str) -> Fault {
    text.parse().expect("is a fault")
}

/// Requests for `keys` keys in turn, one every `gap_s`.
fn steady(requests: u64, keys: u64, gap_s: f64) -> Vec<Request> {
    let one = |i: u64| {
        let (key, user) = (format!("k:k{}", i % keys), format!("u:{i}"));
        request(i, i as f64 * gap_s, &[("g:t", 32), (&key, 64), (&user, 10)], 4)
    };
    (0..requests).map(one).collect()
}

/// The shards of finished requests and how often each was sent again, by id.
fn served(bytes: &[u8]) -> BTreeMap<u64, (u32, u32)> {
    let finished = lines(bytes).into_iter().filter_map(|line| match line {
        Line::Finish { id, shard, retries, .. } => Some((id, (shard, retries))),
        _ => None,
    });
    finished.collect()
}

fn faults(bytes: &[u8]) -> Vec<(f64, u32, String, u64)> {
    let told = lines(bytes).into_iter().filter_map(|line| match line {
        Line::Fault { t_s, shard, kind, rerouted } => Some((t_s, shard, kind, rerouted)),
        _ => None,
    });
    told.collect()
}

#[test]
fn what_was_on_a_dying_shard_is_sent_again_once() {
    // Three requests on two shards; a step of 512 prompt tokens takes 56.2 ms, so at 10 ms all are in flight.
    let trace: Vec<_> = (0..4).map(|id| request(id, 0.0, &[("k:a", 512)], 2)).collect();
    let faults_ = vec![fault("down 0 at 10ms for 1s")];
    let (outcome, bytes) = Setting { faults: faults_, ..Setting::new("round-robin", 2) }.run(&trace);
    let told = faults(&bytes);
    assert_eq!(
        told,
        [(0.01, 0, "down".into(), 2)],
        "its return comes after the last request and is not awaited"
    );
    assert_eq!(served(&bytes), BTreeMap::from([(0, (1, 1)), (1, (1, 0)), (2, (1, 1)), (3, (1, 0))]));
    assert_eq!((outcome.summary.requests.rerouted, outcome.summary.requests.completed), (2, 4));
}

#[test]
fn a_request_whose_second_shard_dies_fails() {
    let trace = [request(0, 0.0, &[("k:a", 512)], 2), request(1, 2.0, &[("k:a", 16)], 1)];
    let faults_ = vec![fault("down 0 at 10ms for 1s"), fault("down 1 at 20ms for 1s")];
    let (outcome, bytes) = Setting { faults: faults_, ..Setting::new("round-robin", 2) }.run(&trace);
    let fail = lines(&bytes).into_iter().find_map(|line| match line {
        Line::Fail { id, reason, shard, retries, arrival_s, .. } => {
            Some((id, reason, shard, retries, arrival_s))
        }
        _ => None,
    });
    assert_eq!(fail, Some((0, "shard_down".into(), Some(1), Some(1), Some(0.0))));
    assert_eq!((outcome.summary.requests.rerouted, ends(&bytes).0), (1, vec![1]));
    assert_eq!(
        faults(&bytes),
        [
            (0.01, 0, "down".into(), 1),
            (0.02, 1, "down".into(), 0),
            (1.01, 0, "up".into(), 0),
            (1.02, 1, "up".into(), 0)
        ]
    );
}

#[test]
fn nobody_is_up_and_a_restart_is_cold() {
    let trace = [
        request(0, 0.0, &[("k:a", 64)], 1),
        request(1, 1.0, &[("k:a", 64)], 1),
        request(2, 2.0, &[("k:a", 64)], 1),
        request(3, 3.0, &[("k:a", 64)], 1),
    ];
    let faults_ = vec![fault("down 0 at 1s for 0.5s"), fault("cold 0 at 2.9s")];
    let (_, bytes) = Setting { faults: faults_, ..Setting::new("flat", 1) }.run(&trace);
    let (finished, failed) = ends(&bytes);
    assert_eq!((finished, failed), (vec![0, 2, 3], vec![(1, "shard_down".into())]));
    let cached: Vec<u64> = lines(&bytes)
        .into_iter()
        .filter_map(
            |line| if let Line::Finish { cached_tokens, .. } = line { Some(cached_tokens) } else { None },
        )
        .collect();
    assert_eq!(cached, [0, 0, 0], "both a death and a restart cost the cache");
}

#[test]
fn a_slow_shard_takes_its_time_and_recovers() {
    let trace: Vec<_> = (0..4).map(|id| request(id, id as f64, &[("k:a", 16)], 1)).collect();
    let faults_ = vec![fault("slow 0 at 1s for 1.5s by 3x")];
    let (_, bytes) = Setting { faults: faults_, ..Setting::new("flat", 1) }.run(&trace);
    let mut e2e = Vec::new();
    for line in lines(&bytes) {
        if let Line::Finish { e2e_s, .. } = line {
            e2e.push((e2e_s * 1e6).round() / 1e6);
        }
    }
    // 16 new tokens take 6.6 ms; after that all but the last token is cached... one block, so nothing is.
    assert_eq!(e2e, [0.0066, 0.0198, 0.0198, 0.0066]);
    let kinds: Vec<_> = faults(&bytes).into_iter().map(|(t_s, _, kind, _)| (t_s, kind)).collect();
    assert_eq!(kinds, [(1.0, "slow".into()), (2.5, "paced".into())]);
}

#[test]
fn a_fault_of_a_shard_that_does_not_exist_is_refused() {
    let setting = Setting { faults: vec![fault("down 2 at 1s")], ..Setting::new("flat", 2) };
    let error = setting.refused();
    assert_eq!(error, "fault \"down 2 at 1s\": there is no shard 2; the last one is 1");
}

/// When tables came, and the keys they admit.
fn plans(bytes: &[u8]) -> Vec<(f64, u64)> {
    let told = lines(bytes).into_iter().filter_map(|line| match line {
        Line::Plan { t_s, admitted_keys, .. } => Some((t_s, admitted_keys)),
        _ => None,
    });
    told.collect()
}

/// Interval i (of a second) asks for i + 1 keys, none of which is asked for in another.
fn drifting(intervals: u64) -> Vec<Request> {
    let mut trace = Vec::new();
    for interval in 0..intervals {
        for n in 0..40u64 {
            let key = format!("k:i{interval}k{}", n % (interval + 1));
            let id = trace.len() as u64;
            trace.push(request(id, interval as f64 + n as f64 / 40.0, &[("g:t", 16), (&key, 64)], 1));
        }
    }
    trace
}

#[test]
fn a_plan_is_of_the_interval_that_it_says() {
    let run = |replan: Replan| {
        let replan = Some(Replan { interval_s: 1.0, warm_slots: Some(100.0), ..replan });
        plans(&Setting { replan, ..Setting::new("cacheroute", 3) }.run(&drifting(5)).1)
    };
    assert_eq!(run(Replan::default()), [(1.0, 1), (2.0, 2), (3.0, 3), (4.0, 4)], "of the interval before");
    assert_eq!(run(Replan { stale: 2, ..Replan::default() }), [(3.0, 1), (4.0, 2)], "two older");
    let fresh = run(Replan { fresh: true, ..Replan::default() });
    assert_eq!(fresh, [(0.0, 1), (1.0, 2), (2.0, 3), (3.0, 4), (4.0, 5)], "its own");
}

#[test]
fn a_fresh_plan_admits_all_that_it_serves_and_says_that_it_is_an_oracle() {
    let replan = Some(Replan { interval_s: 1.0, warm_slots: Some(100.0), fresh: true, ..Replan::default() });
    let (outcome, bytes) = Setting { replan, ..Setting::new("cacheroute", 3) }.run(&drifting(5));
    assert!(outcome.summary.in_sample);
    for line in lines(&bytes) {
        match line {
            Line::Finish { admitted, arrival_s, id, .. } => assert!(admitted, "request {id} of {arrival_s}"),
            Line::Header { replan, in_sample, .. } => {
                assert!(in_sample);
                assert_eq!(replan.expect("is told")["fresh"], true);
            }
            _ => {}
        }
    }
}

#[test]
fn bounded_churn_moves_less_than_a_plain_plan() {
    // Rates drift a little every interval.
    let mut trace = Vec::new();
    for n in 0..4_000u64 {
        let interval = n / 1_000;
        let key = (n * n + n / 7 + interval * (n % 3)) % 37;
        trace.push(request(n, n as f64 / 1_000.0, &[(&format!("k:k{key}"), 32)], 1));
    }
    let churn = |max_churn| {
        let replan = Some(Replan { interval_s: 1.0, warm_slots: Some(20.0), max_churn, ..Replan::default() });
        let bytes = Setting { replan, ..Setting::new("cacheroute", 4) }.run(&trace).1;
        let told = lines(&bytes).into_iter().filter_map(|line| match line {
            Line::Plan { t_s, churn, .. } if t_s > 1.5 => Some(churn),
            _ => None,
        });
        told.collect::<Vec<_>>()
    };
    let (plain, bounded) = (churn(None), churn(Some(0.1)));
    // The last requests are still being served when the fourth interval ends.
    assert_eq!((plain.len(), bounded.len()), (3, 3));
    assert!(bounded.iter().all(|churn| *churn <= 0.1 + 1e-9), "{bounded:?}");
    assert!(plain.iter().sum::<f64>() > 2.0 * bounded.iter().sum::<f64>(), "{plain:?} {bounded:?}");
}

#[test]
fn plans_leave_out_shards_that_are_down() {
    let replan = Some(Replan { interval_s: 1.0, ..Replan::default() });
    let faults_ = vec![fault("down 1 at 0.5s for 2s")];
    let bytes =
        Setting { replan, faults: faults_, ..Setting::new("cacheroute", 3) }.run(&steady(400, 9, 0.01)).1;
    assert_eq!(plans(&bytes).len(), 4);
    for line in lines(&bytes) {
        if let Line::Finish { arrival_s, shard, admitted, .. } = line {
            assert!(
                !(admitted && shard == 1 && arrival_s < 3.0),
                "the table of 2.5 s still knows of two shards only"
            );
        }
    }
}

#[test]
fn the_loop_begins_behind_the_head() {
    let plan_from = Some(cr_replay::PlanFrom { requests: 100, qcap: None, warm_slots: None });
    let replan = Some(Replan { interval_s: 1.0, ..Replan::default() });
    let (_, bytes) =
        Setting { replan, plan_from, ..Setting::new("cacheroute", 3) }.run(&steady(350, 9, 0.01));
    let told: Vec<f64> = plans(&bytes).into_iter().map(|(t_s, _)| (t_s * 1e6).round() / 1e6).collect();
    assert_eq!(told, [1.0, 2.0, 3.0]);
}

#[test]
fn protection_spares_admitted_keys() {
    // Two hot keys that a table admits, and a flood of others through a small pool.
    let mut trace = Vec::new();
    for n in 0..600u64 {
        let key = if n % 6 == 0 { format!("k:hot{}", n / 6 % 2) } else { format!("k:cold{n}") };
        trace.push(request(n, n as f64 * 0.02, &[(&key, 160)], 1));
    }
    let rates = [("hot0", 9.0), ("hot1", 9.0)].into_iter().map(|(key, rate)| (key.into(), rate)).collect();
    let config = cr_routing::planner::PlanConfig::new(1, 100.0, 10.0);
    let table =
        cr_routing::planner::plan_table(&rates, &config, &Default::default()).expect("can be planned");
    let tables = vec![std::sync::Arc::new(table)];
    let run = |protect_admitted| {
        let mut setting = Setting { tables: tables.clone(), ..Setting::new("cacheroute", 1) };
        setting.config.kv_blocks = 48;
        setting.config.protect_admitted = protect_admitted;
        let (outcome, bytes) = setting.run(&trace);
        let protected = lines(&bytes).into_iter().filter_map(|line| match line {
            Line::Shards { shards, .. } => shards.first().map(|shard| shard.kv_protected_blocks),
            _ => None,
        });
        (outcome.summary.served_hit, outcome.summary.work.evicted_admitted_blocks, protected.max())
    };
    let (without, with) = (run(false), run(true));
    assert!(without.0 == 0.0 && without.1 > 0 && without.2 == Some(0), "{without:?}");
    assert!(with.0 > 0.1 && with.1 == 0 && with.2 == Some(20), "{with:?}");
}

#[test]
fn routers_do_not_see_what_others_sent_until_the_view_catches_up() {
    // Eight requests at one instant on four shards: one router with a true view spreads them evenly, as does one with a
    // stale view, which knows its own sends; four routers with stale views know two each.
    let trace: Vec<_> = (0..8).map(|id| request(id, 1.0, &[("k:a", 160)], 1)).collect();
    let evenly = |routers, view_lag_s| {
        let even = |seed: &u64| {
            let mut counts = [0u32; 4];
            let setting = Setting { routers, view_lag_s, seed: *seed, ..Setting::new("least-loaded", 4) };
            served(&setting.run(&trace).1).values().for_each(|(shard, _)| counts[*shard as usize] += 1);
            counts == [2; 4]
        };
        (0..20).filter(even).count()
    };
    assert_eq!((evenly(1, 0.0), evenly(4, 0.0), evenly(1, 0.5)), (20, 20, 20));
    // By chance 90 of 6⁴ ways are even.
    assert!(evenly(4, 0.5) < 6);
}

#[test]
fn one_router_with_a_true_view_is_the_default_to_the_byte() {
    let trace = steady(200, 7, 0.004);
    let one = Setting::new("preble", 3).run(&trace).1;
    assert_eq!(one, Setting { routers: 1, view_lag_s: 0.0, ..Setting::new("preble", 3) }.run(&trace).1);
    assert_ne!(one, Setting { view_lag_s: 0.05, ..Setting::new("preble", 3) }.run(&trace).1);
}

#[test]
fn an_oracle_knows_what_every_router_sent() {
    let trace = steady(200, 7, 0.004);
    let places = |policy, routers| served(&Setting { routers, ..Setting::new(policy, 3) }.run(&trace).1);
    assert_eq!(places("lru-oracle", 4), places("lru-oracle", 1));
    // Where each router has an index of its own, it makes a difference.
    assert_ne!(places("preble", 4), places("preble", 1));
}

#[test]
fn a_week_of_silence_does_not_fill_the_disk() {
    let week = 7.0 * 86_400.0;
    let trace = [request(0, 0.0, &[("k:a", 64)], 1), request(1, week, &[("k:a", 64)], 1)];
    let (outcome, bytes) = Setting::new("flat", 2).run(&trace);
    let told: Vec<f64> = lines(&bytes)
        .into_iter()
        .filter_map(|line| if let Line::Shards { t_s, .. } = line { Some(t_s) } else { None })
        .collect();
    assert!(told.len() < 11_000, "{} snapshots", told.len());
    assert!(told.windows(2).all(|pair| pair[1] - pair[0] <= 60.0 + 1e-9));
    assert!(told.iter().take(200).enumerate().all(|(n, t_s)| (t_s - 0.25 * (n + 1) as f64).abs() < 1e-9));
    assert_eq!(outcome.summary.requests.completed, 2);
}

#[test]
fn an_interruption_ends_those_that_wait_as_well() {
    let mut trace = steady(100, 5, 0.004);
    for id in (3..100).step_by(4) {
        trace[id].after = Some(cr_trace::RequestId(id as u64 - 3));
        trace[id].think_s = Some(0.05);
    }
    let interrupt = std::sync::atomic::AtomicBool::new(false);
    let stop_at_60 = trace.iter().cloned().map(|request| {
        interrupt.fetch_or(request.id.0 == 60, std::sync::atomic::Ordering::Relaxed);
        Ok(request)
    });
    let (outcome, bytes) = Setting::new("flat", 2).run_with(stop_at_60, &interrupt);
    assert!(matches!(outcome.stopped, Some(cr_replay::Stop::Interrupted)));
    let (finished, failed) = ends(&bytes);
    assert!(failed.len() > 5 && failed.iter().all(|(_, reason)| reason == "interrupted"), "{failed:?}");
    let offered = finished.len() + failed.len();
    assert!((60..=61).contains(&offered), "{offered}: the one read last may not have arrived");
}

fn any_fault(shards: u32) -> impl Strategy<Value = Fault> {
    let lasting = proptest::option::of(1u64..400);
    (0..shards, 0u64..1_500, lasting, 0..4u8).prop_map(|(shard, at, lasting, which)| {
        let lasting = lasting.map_or(String::new(), |ms| format!(" for {ms}ms"));
        match which {
            0 => fault(&format!("cold {shard} at {at}ms")),
            1 => fault(&format!("slow {shard} at {at}ms{lasting} by 3x")),
            _ => fault(&format!("down {shard} at {at}ms{lasting}")),
        }
    })
}

fn any_trace() -> impl Strategy<Value = Vec<Request>> {
    let one = (0u32..40, 0u8..5, 1u32..200, 1u32..12, proptest::option::of((0u64..40, 0u32..30)));
    proptest::collection::vec(one, 1..60).prop_map(|rows| {
        let (mut at_ms, mut trace) = (0, Vec::new());
        for (id, (gap_ms, key, tokens, output, after)) in rows.into_iter().enumerate() {
            at_ms += gap_ms;
            let (id, key, user) = (id as u64, format!("k:k{key}"), format!("u:{id}"));
            let mut r =
                request(id, f64::from(at_ms) / 1e3, &[("g:t", 20), (&key, tokens), (&user, 7)], output);
            if let Some((after, think_ms)) = after.filter(|(after, _)| *after < id) {
                r.after = Some(cr_trace::RequestId(after));
                r.think_s = Some(f64::from(think_ms) / 1e3);
            }
            trace.push(r);
        }
        trace
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the fleet, the policy and the faults: the ledger balances (or the run would fail), and so do the sums that
    /// nobody but this test takes.
    #[test]
    fn conservation_under_faults(
        trace in any_trace(),
        policy in prop::sample::select(names()),
        shards in 1u32..5,
        kv_blocks in 20u32..60,
        faults in proptest::collection::vec(any_fault(4), 0..6),
        (routers, lag_ms) in (1u32..4, prop_oneof![Just(0u32), 1u32..300]),
        replan_ms in proptest::option::of((50u32..600, 0u32..3, any::<bool>())),
        (protect, timeout_ms) in (any::<bool>(), proptest::option::of(50u64..600)),
    ) {
        let mut setting = Setting::new(policy, shards);
        setting.config.kv_blocks = kv_blocks;
        setting.config.protect_admitted = protect;
        setting.config.timeout = timeout_ms.map(|ms| Time::from_s(ms as f64 / 1e3));
        setting.faults = faults.into_iter().filter(|fault| fault.shard.0 < shards).collect();
        setting.routers = routers;
        setting.view_lag_s = f64::from(lag_ms) / 1e3;
        setting.replan = replan_ms.map(|(ms, stale, fresh)| Replan {
            interval_s: f64::from(ms) / 1e3,
            stale: if fresh { 0 } else { stale },
            fresh,
            max_churn: (stale == 1).then_some(0.3),
            ..Replan::default()
        });
        let (outcome, bytes) = setting.run(&trace);
        let (mut ids, mut retried) = (Vec::new(), 0);
        let mut down: BTreeMap<u32, f64> = BTreeMap::new();
        for line in lines(&bytes) {
            match line {
                Line::Finish { id, retries, shard, t_s, .. } => {
                    ids.push(id);
                    retried += u64::from(retries > 0);
                    prop_assert!(retries <= 1);
                    // A step that ends at the very instant of a death comes before it.
                    prop_assert!(down.get(&shard).is_none_or(|since| t_s <= *since), "request {} finished on a dead shard", id);
                }
                Line::Fail { id, retries, reason, detail, .. } => {
                    ids.push(id);
                    retried += u64::from(retries.is_some());
                    prop_assert!(reason != "shard_down" || retries.is_some() || detail == "no shard is up");
                }
                Line::Fault { shard, kind, t_s, .. } if kind == "down" => { down.insert(shard, t_s); }
                Line::Fault { shard, kind, .. } if kind == "up" => { down.remove(&shard); }
                _ => {}
            }
        }
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..trace.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(outcome.summary.requests.rerouted, retried);
        prop_assert_eq!(setting.run(&trace).1, bytes, "the same run gives the same bytes");
    }
}
