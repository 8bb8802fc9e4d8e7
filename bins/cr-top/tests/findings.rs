//! Each named warning comes where it should, and not where it should not.

mod support;

use cr_report::events::{Event, Fail, FailReason, Finish, Plan, ShardState, Shards};
use cr_routing::table::{RoutingTable, TableMeta};
use cr_top::state::Run;
use cr_top::state::findings::Name;
use cr_trace::ShardId;
use std::collections::BTreeSet;
use std::sync::Arc;
use support::Sample;

/// What is found in a stream that was changed event by event: at any second while it runs, and at its end.
struct Found {
    meanwhile: BTreeSet<Name>,
    at_end: Vec<Name>,
}

fn found(change: impl Fn(&mut Event), table: Option<RoutingTable>) -> Found {
    let sample = Sample { requests: 2400, qps: 16.0, incidents: false, ..Sample::default() };
    let mut run = Run::new("x").with_tables(Arc::new(table.into_iter().collect()));
    let names = |run: &Run| run.live.findings.iter().map(|finding| finding.name).collect::<Vec<_>>();
    let mut meanwhile = BTreeSet::new();
    for mut event in sample.events() {
        if matches!(event, Event::Summary(_)) {
            break;
        }
        if let Event::Header(header) = &mut event {
            // Past the time in which the caches of the sample fill.
            header.warmup_s = 20.0;
        }
        if let Event::Shards(Shards { shards, .. }) = &mut event {
            // A pool that is large enough.
            shards
                .iter_mut()
                .for_each(|shard| (shard.evicted_blocks, shard.evicted_admitted_blocks) = (0, 0));
        }
        change(&mut event);
        run.observe(&event);
        if event.t_s().is_some_and(|t_s| t_s.fract() == 0.0) {
            run.refresh();
            meanwhile.extend(names(&run));
        }
    }
    run.end();
    Found { meanwhile, at_end: names(&run) }
}

/// What is found at the end.
fn names(change: impl Fn(&mut Event), table: Option<RoutingTable>) -> Vec<Name> {
    found(change, table).at_end
}

fn on_finish(change: impl Fn(&mut Finish)) -> impl Fn(&mut Event) {
    move |event| {
        if let Event::Finish(finish) = event {
            change(finish);
        }
    }
}

fn on_shards(change: impl Fn(f64, &mut [ShardState])) -> impl Fn(&mut Event) {
    move |event| {
        if let Event::Shards(Shards { t_s, shards, .. }) = event {
            change(*t_s, shards);
        }
    }
}

#[test]
fn a_healthy_run_has_none() {
    let found = found(|_| (), None);
    assert_eq!((found.meanwhile, found.at_end), (BTreeSet::new(), vec![]));
}

#[test]
fn a_shard_with_a_queue_of_its_own() {
    let busy = on_shards(|_, shards| shards[1].queued = 40);
    assert!(names(busy, None).contains(&Name::ShardSaturated));
    // The same queue everywhere is no single shard's.
    let all = on_shards(|_, shards| shards.iter_mut().for_each(|shard| shard.queued = 40));
    assert!(!names(all, None).contains(&Name::ShardSaturated));
}

/// Time passes between a request's arrival and its end.
fn delayed(finish: &mut Finish, by_s: f64) {
    finish.arrival_s -= by_s;
    finish.e2e_s += by_s;
}

#[test]
fn less_achieved_than_offered() {
    // Everything waits half of the time that has passed.
    let late = |finish: &mut Finish| {
        let wait_s = 0.5 * finish.arrival_s;
        delayed(finish, wait_s);
        (finish.queue_s, finish.ttft_s) = (finish.queue_s + wait_s, finish.ttft_s + wait_s);
    };
    let late = found(on_finish(late), None);
    assert!(late.meanwhile.contains(&Name::UnderDelivery) && late.at_end.contains(&Name::UnderDelivery));
    // A tenth of the requests fails, the others are served at once.
    let lost = |event: &mut Event| {
        if let Event::Finish(finish) = event
            && finish.id.0.is_multiple_of(10)
        {
            *event = Event::Fail(Fail {
                t_s: finish.t_s,
                id: finish.id,
                key: finish.key.clone(),
                shard: None,
                reason: FailReason::Timeout,
                detail: "too late".into(),
                measured: true,
                arrival_s: Some(finish.arrival_s),
                retries: 0,
            });
        }
    };
    assert!(names(lost, None).contains(&Name::UnderDelivery));
}

#[test]
fn what_is_on_its_way_is_not_missing() {
    // Long answers: for most of the run the newest requests finished are more than 5 % of it old.
    let long = found(on_finish(|finish| delayed(finish, 10.0)), None);
    assert_eq!((long.meanwhile, long.at_end), (BTreeSet::new(), vec![]));
}

#[test]
fn a_table_of_other_keys() {
    let cold = |finish: &mut Finish| finish.admitted = false;
    let mismatch = found(on_finish(cold), None);
    assert!(mismatch.meanwhile.contains(&Name::TableMismatch));
    assert!(mismatch.at_end.contains(&Name::TableMismatch));
    let flat = |event: &mut Event| match event {
        Event::Header(header) => header.policy = "flat".into(),
        event => on_finish(cold)(event),
    };
    assert!(!names(flat, None).contains(&Name::TableMismatch));
}

#[test]
fn a_table_that_is_still_learned_matches() {
    let learned = |event: &mut Event| match event {
        Event::Header(header) => (header.warmup_s, header.plan_requests) = (0.0, 700),
        Event::Finish(finish) => {
            finish.measured = finish.id.0 >= 700;
            finish.admitted &= finish.measured;
        }
        _ => {}
    };
    let found = found(learned, None);
    assert_eq!((found.meanwhile, found.at_end), (BTreeSet::new(), vec![]));
}

#[test]
fn a_pool_that_cannot_hold_what_it_is_to_keep_warm() {
    let table = |tokens: u64| {
        let meta = TableMeta {
            shards: 4,
            qcap: 5.0,
            expected_load: vec![5.0; 4],
            imbalance: 1.0,
            ..TableMeta::default()
        };
        let places =
            (0..30u32).map(|key| (format!("k{key}").into(), [ShardId(key % 4)].into_iter().collect()));
        let table = RoutingTable::new(meta, places.collect()).expect("valid");
        table
            .with_prefix_tokens((0..30u32).map(|key| (format!("k{key}").into(), tokens)).collect())
            .expect("valid")
    };
    assert!(names(|_| (), Some(table(20_000))).contains(&Name::PoolTooSmall));
    assert!(!names(|_| (), Some(table(200))).contains(&Name::PoolTooSmall));
}

#[test]
fn a_plan_that_the_traffic_has_left() {
    let drift = on_finish(|finish| finish.admitted = finish.t_s < 60.0);
    assert!(names(drift, None).contains(&Name::PlanStale));
    // A newer table for the new traffic: not stale.
    let replanned = |event: &mut Event| {
        if let Event::Finish(finish) = event {
            finish.admitted = finish.t_s < 60.0;
        }
        if let Event::Shards(shards) = event
            && shards.t_s == 62.0
        {
            let t_s = 62.0;
            let (admitted_keys, moved_keys) = (30, 30);
            *event = Event::Plan(Plan {
                t_s,
                admitted_keys,
                moved_keys,
                churn: 1.0,
                imbalance: 1.0,
                cold_rate: 1.0,
            });
        }
    };
    assert!(!names(replanned, None).contains(&Name::PlanStale));
}

#[test]
fn admitted_blocks_evicted_by_the_cold_tail() {
    let evict = on_shards(|t_s, shards| {
        (shards[0].evicted_blocks, shards[0].evicted_admitted_blocks) = (t_s as u64 * 20, t_s as u64 * 10);
    });
    assert!(names(evict, None).contains(&Name::ColdEvicts));
}

#[test]
fn caches_that_fill_within_the_window() {
    let filling = on_finish(|finish| {
        if finish.t_s < 40.0 {
            finish.cached_tokens = 0;
            finish.cached_by_scope = Default::default();
        }
    });
    assert!(names(filling, None).contains(&Name::WarmUpInside));
}

#[test]
fn a_percentile_of_few() {
    let mut run = Run::new("x");
    Sample::default().events().iter().for_each(|event| run.observe(event));
    assert!(run.live.findings.iter().any(|finding| finding.name == Name::FewRequests));
}

#[test]
fn every_name_is_documented_with_its_remedy() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cr-top.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for name in Name::ALL {
        assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
        assert!(name.remedy().len() > 10);
    }
}

#[test]
fn every_key_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cr-top.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    for binding in cr_top::keys::BINDINGS {
        assert!(page.contains(binding.what), "{:?} is not on the page", binding.keys);
    }
}
