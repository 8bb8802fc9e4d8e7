//! Each named warning comes where it should, and not where it should not.

mod support;

use cr_report::events::{Event, Finish, Plan, ShardState, Shards};
use cr_routing::table::{RoutingTable, TableMeta};
use cr_top::state::Run;
use cr_top::state::findings::Name;
use cr_trace::ShardId;
use std::sync::Arc;
use support::Sample;

/// The names found in a stream that was changed event by event.
fn names(change: impl Fn(&mut Event), table: Option<RoutingTable>) -> Vec<Name> {
    let sample = Sample { requests: 2400, qps: 16.0, incidents: false, ..Sample::default() };
    let mut run = Run::new("x").with_tables(Arc::new(table.into_iter().collect()));
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
    }
    run.end();
    run.live.findings.iter().map(|finding| finding.name).collect()
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
    assert_eq!(names(|_| (), None), []);
}

#[test]
fn a_shard_with_a_queue_of_its_own() {
    let busy = on_shards(|_, shards| shards[1].queued = 40);
    assert!(names(busy, None).contains(&Name::ShardSaturated));
    // The same queue everywhere is no single shard's.
    let all = on_shards(|_, shards| shards.iter_mut().for_each(|shard| shard.queued = 40));
    assert!(!names(all, None).contains(&Name::ShardSaturated));
}

#[test]
fn less_achieved_than_offered() {
    // Everything ends long after it arrived.
    let late = on_finish(|finish| finish.arrival_s *= 0.5);
    assert!(names(late, None).contains(&Name::UnderDelivery));
}

#[test]
fn a_table_of_other_keys() {
    let cold = |finish: &mut Finish| finish.admitted = false;
    assert!(names(on_finish(cold), None).contains(&Name::TableMismatch));
    let flat = |event: &mut Event| match event {
        Event::Header(header) => header.policy = "flat".into(),
        event => on_finish(cold)(event),
    };
    assert!(!names(flat, None).contains(&Name::TableMismatch));
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
