//! The summary on streams whose right values are known.

mod common;

use common::{fail, finish, header, idle, worked_example};
use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, FailReason, Header, Shards};
use cr_report::summary::Summary;

fn summarise(head: &Header, events: &[Event]) -> Summary {
    let mut aggregator = Aggregator::new(head);
    events.iter().for_each(|event| aggregator.observe(event));
    aggregator.summary(true)
}

fn near(got: f64, want: f64, tolerance: f64) {
    assert!((got - want).abs() <= tolerance, "{got}, not {want}");
}

#[test]
fn the_worked_example() {
    let (head, events) = worked_example();
    let summary = summarise(&head, &events);
    near(summary.served_hit, 48.0 / 116.0, 1e-12);
    near(summary.hit_request_mean, 48.0 / 116.0, 1e-12);
    assert_eq!(summary.hit_block, 3.0 / 8.0);
    near(summary.hit_by_scope["g"], 32.0 / 116.0, 1e-12);
    near(summary.hit_by_scope["k"], 16.0 / 116.0, 1e-12);
    assert_eq!(summary.imbalance.busy, 1.0);
    assert_eq!((summary.window.from_s, summary.window.to_s), (0.0, 0.0238));
    near(summary.work.busy_s, 0.0238, 1e-12);
    assert_eq!((summary.requests.offered, summary.requests.completed), (2, 2));
    near(summary.requests.achieved_qps, 2.0 / 0.0238, 1e-9);
    near(summary.ttft_s.mean, (0.0108 + 0.0168) / 2.0, 1e-12);
    near(summary.ttft_s.p50, 0.0108, 1.1e-5);
    assert_eq!((summary.ttft_s.p99, summary.ttft_s.max), (0.0168, 0.0168));
    assert_eq!((summary.tpot_s.count, summary.tpot_s.p50), (1, 0.0065));
    assert_eq!((summary.queue_s.max, summary.e2e_s.max), (0.0098, 0.0238));
    assert!(summary.complete && !summary.saturated);
}

#[test]
fn an_empty_run_divides_by_nothing() {
    let summary = summarise(&header("flat", 1, 4), &[]);
    let text = serde_json::to_string(&summary).expect("finite numbers");
    assert!(!text.contains("null,\"") || !text.contains("NaN"), "{text}");
    assert_eq!(
        (summary.served_hit, summary.requests.offered_qps, summary.imbalance.requests),
        (0.0, 0.0, 0.0)
    );
    assert!(!summary.saturated);
}

#[test]
fn what_came_before_the_marked_snapshot_does_not_count() {
    let mut head = header("cacheroute", 1, 2);
    head.plan_requests = 1;
    let mut plan_part = finish(0, 0.0, 1.0, 2.0);
    plan_part.measured = false;
    let counters = |busy: [f64; 2]| {
        let mut shards = vec![idle(0), idle(1)];
        shards.iter_mut().zip(busy).for_each(|(shard, busy_s)| shard.busy_s = busy_s);
        shards
    };
    let events = [
        Event::Finish(plan_part),
        Event::Shards(Shards { t_s: 3.0, shards: counters([2.0, 0.0]), window_start: true }),
        Event::Finish(finish(1, 3.0, 0.5, 1.0)),
        Event::Shards(Shards { t_s: 7.0, shards: counters([3.0, 1.0]), window_start: false }),
    ];
    let summary = summarise(&head, &events);
    assert_eq!((summary.window.from_s, summary.window.to_s), (3.0, 7.0));
    assert_eq!((summary.requests.offered, summary.imbalance.busy, summary.work.busy_s), (1, 1.0, 2.0));
}

#[test]
fn without_a_marked_snapshot_the_window_starts_with_the_warm_up() {
    let mut head = header("flat", 1, 1);
    head.warmup_s = 2.0;
    let snapshot = |t_s: f64| {
        let mut shard = idle(0);
        shard.busy_s = t_s;
        Event::Shards(Shards { t_s, shards: vec![shard], window_start: false })
    };
    // The first finishes before the end of the warm-up, the second after it, though nothing in the stream is marked.
    let events = [
        Event::Finish(finish(0, 0.0, 0.1, 0.2)),
        snapshot(2.0),
        snapshot(2.25),
        Event::Finish(finish(1, 0.0, 0.1, 3.0)),
        snapshot(4.0),
    ];
    let summary = summarise(&head, &events);
    assert_eq!((summary.window.from_s, summary.window.to_s, summary.requests.completed), (2.0, 4.0, 1));
    assert_eq!(summary.work.busy_s, 2.0);
}

#[test]
fn five_per_cent_of_failures_are_borne_and_more_saturate() {
    let run = |failed: u64, reason: FailReason| {
        let mut events: Vec<Event> =
            (0..95).map(|id| Event::Finish(finish(id, id as f64, 0.1, 0.2))).collect();
        events.extend((0..failed).map(|id| Event::Fail(fail(1000 + id, 95.0, reason))));
        summarise(&header("flat", 1, 1), &events)
    };
    assert!(!run(5, FailReason::Timeout).saturated);
    assert!(run(6, FailReason::Timeout).saturated);
    // Requests that were never sent, or not given the time to end, did not fail.
    assert!(!run(50, FailReason::PredecessorFailed).saturated);
    let interrupted = run(50, FailReason::Interrupted);
    assert!(!interrupted.saturated);
    assert_eq!(
        (interrupted.requests.failed, interrupted.requests.interrupted, interrupted.requests.offered),
        (0, 50, 145)
    );
}

#[test]
fn a_growing_queue_saturates() {
    let run = |queue: &dyn Fn(f64) -> u64| {
        let mut events = Vec::new();
        for tick in 0..400u32 {
            let t_s = f64::from(tick) * 0.25;
            let mut busy = idle(1);
            busy.queued = queue(t_s);
            events.push(Event::Finish(finish(u64::from(tick), t_s, 0.0, 0.0)));
            events.push(Event::Shards(Shards { t_s, shards: vec![idle(0), busy], window_start: false }));
        }
        summarise(&header("sticky", 1, 2), &events).saturated
    };
    assert!(run(&|t_s| t_s as u64));
    assert!(!run(&|_| 30));
}

#[test]
fn ten_second_spans_show_what_the_total_hides() {
    // Each shard does all the work for ten seconds, in turns: perfectly balanced over the run, 2 within each span.
    let mut events = Vec::new();
    let mut shards = vec![idle(0), idle(1)];
    for tick in 1..=160u32 {
        let t_s = f64::from(tick) * 0.25;
        shards[((tick - 1) / 40 % 2) as usize].busy_s += 0.25;
        events.push(Event::Shards(Shards { t_s, shards: shards.clone(), window_start: false }));
    }
    let imbalance = summarise(&header("flat", 1, 2), &events).imbalance;
    assert_eq!((imbalance.busy, imbalance.windows.count), (1.0, 4));
    assert_eq!((imbalance.windows.busy.p50, imbalance.windows.busy.p95), (2.0, 2.0));
    assert_eq!(imbalance.windows.requests.p50, 0.0);
}
