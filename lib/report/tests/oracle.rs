//! The aggregator against a naive oracle that keeps every event, on random streams.

mod common;

use common::{fail, finish, header, idle};
use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, FailReason, Fault, Finish, Header, Shards};
use cr_report::summary::{Quantiles, Summary};
use cr_trace::{Scope, ShardId};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SHARDS: usize = 3;

/// What happens at one moment of a random run.
#[derive(Clone, Debug)]
enum Step {
    Finish {
        shard: u32,
        tenant: u8,
        prompt: u64,
        blocks: u64,
        queue_s: f64,
        prefill_s: f64,
        decode_s: f64,
        retries: u32,
    },
    Fail {
        reason: FailReason,
        arrived: bool,
        retries: u32,
    },
    Flip {
        shard: u32,
        up: bool,
    },
    Snapshot {
        work: [(u64, u64, f64); SHARDS],
    },
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    let reason = prop::sample::select(vec![
        FailReason::PromptTooLong,
        FailReason::Timeout,
        FailReason::PredecessorFailed,
        FailReason::Interrupted,
    ]);
    let times = (0.0f64..2.0, 1e-4f64..3.0, 0.0f64..4.0);
    prop_oneof![
        8 => (0..SHARDS as u32, 0u8..5, 1u64..400, 0u64..30, times, 0u32..2).prop_map(
            |(shard, tenant, prompt, blocks, (queue_s, prefill_s, decode_s), retries)| Step::Finish {
                shard, tenant, prompt, blocks: blocks.min((prompt - 1) / 16), queue_s, prefill_s, decode_s, retries
            }),
        1 => (reason, any::<bool>(), 0u32..2).prop_map(|(reason, arrived, retries)| Step::Fail { reason, arrived, retries }),
        1 => (0..SHARDS as u32, any::<bool>()).prop_map(|(shard, up)| Step::Flip { shard, up }),
        4 => prop::array::uniform3((0u64..500, 0u64..90, 0.0f64..2.0)).prop_map(|work| Step::Snapshot { work }),
    ]
}

/// A run: the header, and events in the order of time. `start` puts the marked snapshot there.
fn events(steps: &[(f64, Step)], start: Option<usize>) -> (Header, Vec<Event>) {
    let mut head = header("flat", 7, SHARDS as u32);
    head.plan_requests = u64::from(start.is_some());
    let (mut t_s, mut up, mut shards) = (0.0, [true; SHARDS], [0, 1, 2].map(idle));
    let mut out = Vec::new();
    for (index, (gap_s, step)) in steps.iter().enumerate() {
        t_s += gap_s;
        if start == Some(index) {
            one(&mut out, t_s, &Step::Start, &mut up, &mut shards, true);
        }
        let measured = start.is_none_or(|at| index >= at);
        one(&mut out, t_s, step, &mut up, &mut shards, measured);
    }
    let last = Step::Snapshot { work: [(0, 0, 0.0); SHARDS] };
    one(&mut out, t_s, &last, &mut up, &mut shards, true);
    (head, out)
}

fn one(
    out: &mut Vec<Event>,
    t_s: f64,
    step: &Step,
    up: &mut [bool; SHARDS],
    shards: &mut [cr_report::events::ShardState; SHARDS],
    measured: bool,
) {
    match step {
        Step::Finish { shard, tenant, prompt, blocks, queue_s, prefill_s, decode_s, retries } => {
            let e2e_s = (queue_s + prefill_s + decode_s).min(t_s);
            let mut event = finish(out.len() as u64, t_s - e2e_s, (queue_s + prefill_s).min(e2e_s), e2e_s);
            event.t_s = t_s;
            event.queue_s = queue_s.min(event.ttft_s);
            event.shard = ShardId(*shard);
            event.tenant = format!("t{tenant}").into();
            (event.prompt_tokens, event.cached_tokens) = (*prompt, blocks * 16);
            event.cached_by_scope =
                [(Scope::Global, blocks * 12), (Scope::Key, blocks * 4)].into_iter().collect();
            event.tpot_s = (*decode_s > 1.0).then_some(*decode_s / 8.0);
            (event.retries, event.measured) = (*retries, measured);
            out.push(Event::Finish(event));
        }
        Step::Fail { reason, arrived, retries } => {
            let mut event = fail(out.len() as u64, t_s, *reason);
            event.arrival_s = arrived.then_some((t_s - 0.5).max(0.0));
            (event.retries, event.measured) = (*retries, measured);
            out.push(Event::Fail(event));
        }
        Step::Flip { shard, up: now } => {
            up[*shard as usize] = *now;
            let kind = if *now { "up" } else { "down" }.to_string();
            out.push(Event::Fault(Fault { t_s, shard: ShardId(*shard), kind, rerouted: 0 }));
        }
        Step::Snapshot { work } => {
            for (shard, (computed, output, busy_s)) in shards.iter_mut().zip(work) {
                shard.computed_tokens += computed;
                shard.output_tokens += output;
                shard.busy_s += busy_s;
            }
            snapshot(out, t_s, up, shards, false);
        }
        Step::Start => snapshot(out, t_s, up, shards, true),
    }
}

fn snapshot(
    out: &mut Vec<Event>,
    t_s: f64,
    up: &[bool; SHARDS],
    shards: &mut [cr_report::events::ShardState; SHARDS],
    window_start: bool,
) {
    for (shard, up) in shards.iter_mut().zip(up) {
        shard.up = *up;
    }
    out.push(Event::Shards(Shards { t_s, shards: shards.to_vec(), window_start }));
}

/// Everything kept, everything summed the slow way.
struct Oracle<'a> {
    events: &'a [Event],
    from: Option<usize>,
}

impl Oracle<'_> {
    fn finishes(&self) -> Vec<&Finish> {
        self.events
            .iter()
            .filter_map(|e| if let Event::Finish(f) = e { Some(f) } else { None })
            .filter(|f| f.measured)
            .collect()
    }

    fn fails(&self, reasons: &[FailReason]) -> u64 {
        let fails = self.events.iter().filter_map(|e| if let Event::Fail(f) = e { Some(f) } else { None });
        fails.filter(|f| f.measured && reasons.contains(&f.reason)).count() as u64
    }

    fn start_s(&self) -> f64 {
        self.from.and_then(|at| self.events[at].t_s()).unwrap_or(0.0)
    }

    fn to_s(&self) -> f64 {
        self.events.iter().filter_map(Event::t_s).fold(0.0, f64::max)
    }

    /// Seconds that a shard was up, from a walk over all changes of its state.
    fn up_s(&self, shard: usize) -> f64 {
        let (mut up, mut since, mut sum) = (true, 0.0, 0.0);
        let from_s = self.start_s();
        for event in self.events {
            if let Event::Fault(fault) = event
                && fault.shard.index() == shard
            {
                if up {
                    sum += (fault.t_s - f64::max(since, from_s)).max(0.0);
                }
                (up, since) = (fault.kind == "up", fault.t_s);
            }
        }
        if up { sum + (self.to_s() - f64::max(since, from_s)).max(0.0) } else { sum }
    }

    /// A counter's growth from the marked to the last snapshot.
    fn grown(&self, shard: usize, counter: impl Fn(&cr_report::events::ShardState) -> f64) -> f64 {
        let at =
            |event: &Event| if let Event::Shards(s) = event { Some(counter(&s.shards[shard])) } else { None };
        let base = self.from.and_then(|from| at(&self.events[from])).unwrap_or(0.0);
        self.events.iter().rev().find_map(at).unwrap_or(0.0) - base
    }

    fn imbalance(&self, load: impl Fn(usize) -> f64) -> f64 {
        let up: Vec<usize> = (0..SHARDS).filter(|&s| self.up_s(s) > 0.0).collect();
        let (x, u): (f64, f64) = (up.iter().map(|&s| load(s)).sum(), up.iter().map(|&s| self.up_s(s)).sum());
        if x <= 0.0 {
            return 0.0;
        }
        up.iter().map(|&s| load(s) / self.up_s(s)).fold(0.0, f64::max) / (x / u)
    }

    fn jain(&self) -> f64 {
        let mut by: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        self.finishes().iter().for_each(|f| by.entry(f.tenant.as_str()).or_default().push(f.ttft_s));
        let means: Vec<f64> = by.values().map(|v| v.iter().sum::<f64>() / v.len() as f64).collect();
        let squares: f64 = means.iter().map(|x| x * x).sum();
        if means.is_empty() {
            0.0
        } else {
            means.iter().sum::<f64>().powi(2) / (means.len() as f64 * squares)
        }
    }
}

fn close(got: f64, want: f64) -> bool {
    (got - want).abs() <= 1e-9 * want.abs().max(1.0)
}

fn check_quantiles(got: &Quantiles, mut values: Vec<f64>) -> Result<(), TestCaseError> {
    values.sort_by(f64::total_cmp);
    prop_assert_eq!(got.count, values.len() as u64);
    prop_assert!(got.p50 <= got.p90 && got.p90 <= got.p99 && got.p99 <= got.max);
    if values.is_empty() {
        prop_assert_eq!(*got, Quantiles::default());
        return Ok(());
    }
    prop_assert!(close(got.mean, values.iter().sum::<f64>() / values.len() as f64));
    prop_assert_eq!(got.max, values[values.len() - 1]);
    for (q, value) in [(0.5, got.p50), (0.9, got.p90), (0.99, got.p99)] {
        let exact = values[((q * values.len() as f64).ceil() as usize).max(1) - 1];
        prop_assert!((value - exact).abs() <= exact * 1e-3 + 2e-9, "p{q}: {value} for {exact}");
    }
    Ok(())
}

fn check(summary: &Summary, oracle: &Oracle<'_>) -> Result<(), TestCaseError> {
    let done = oracle.finishes();
    let requests = &summary.requests;
    prop_assert_eq!(requests.completed, done.len() as u64);
    prop_assert_eq!(requests.failed, oracle.fails(&[FailReason::PromptTooLong, FailReason::Timeout]));
    prop_assert_eq!(requests.cancelled, oracle.fails(&[FailReason::PredecessorFailed]));
    prop_assert_eq!(requests.interrupted, oracle.fails(&[FailReason::Interrupted]));
    prop_assert_eq!(requests.failed_by_reason.values().sum::<u64>(), requests.failed);
    let ended = requests.completed + requests.failed + requests.cancelled + requests.interrupted;
    prop_assert_eq!(requests.offered, ended);
    if requests.failed * 20 > requests.completed + requests.failed {
        prop_assert!(summary.saturated);
    }
    prop_assert!(close(summary.window.from_s, oracle.start_s()) && close(summary.window.to_s, oracle.to_s()));
    let window_s = oracle.to_s() - oracle.start_s();
    if window_s > 0.0 {
        prop_assert!(close(requests.achieved_qps, done.len() as f64 / window_s));
    }
    let sum = |of: &dyn Fn(&Finish) -> f64| done.iter().map(|f| of(f)).sum::<f64>();
    let prompt = sum(&|f| f.prompt_tokens as f64).max(1.0);
    prop_assert!(close(summary.served_hit, sum(&|f| f.cached_tokens as f64) / prompt));
    prop_assert!(close(
        summary.hit_request_mean,
        sum(&|f| f.cached_tokens as f64 / f.prompt_tokens as f64) / done.len().max(1) as f64
    ));
    let blocks = sum(&|f| (f.prompt_tokens as f64 / 16.0).ceil()).max(1.0);
    prop_assert!(close(summary.hit_block, sum(&|f| (f.cached_tokens / 16) as f64) / blocks));
    prop_assert!(close(summary.hit_by_scope.values().sum::<f64>(), summary.served_hit));
    check_quantiles(&summary.ttft_s, done.iter().map(|f| f.ttft_s).collect())?;
    check_quantiles(&summary.e2e_s, done.iter().map(|f| f.e2e_s).collect())?;
    check_quantiles(&summary.queue_s, done.iter().map(|f| f.queue_s).collect())?;
    check_quantiles(&summary.tpot_s, done.iter().filter_map(|f| f.tpot_s).collect())?;
    let (ttft, e2e) = (&summary.ttft_s, &summary.e2e_s);
    prop_assert!(ttft.mean <= e2e.mean + 1e-12 && ttft.max <= e2e.max && ttft.p99 <= e2e.p99 * 1.001 + 2e-9);
    let tokens = |s| oracle.grown(s, |state| (state.computed_tokens + state.output_tokens) as f64);
    let got = &summary.imbalance;
    prop_assert!(close(got.busy, oracle.imbalance(|s| oracle.grown(s, |state| state.busy_s))));
    prop_assert!(close(got.tokens, oracle.imbalance(tokens)), "{} {}", got.tokens, oracle.imbalance(tokens));
    let by_shard = |s| done.iter().filter(|f| f.shard.index() == s).count() as f64;
    let up_only = (0..SHARDS).all(|s| by_shard(s) == 0.0 || oracle.up_s(s) > 0.0);
    if up_only {
        prop_assert!(close(got.requests, oracle.imbalance(by_shard)));
    }
    prop_assert!(close(summary.fairness.jain, oracle.jain()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_oracle(steps in prop::collection::vec((0.0f64..0.7, step()), 0..160), start in prop::option::of(0usize..40)) {
        let start = start.filter(|&at| at < steps.len());
        let (head, events) = events(&steps, start);
        let mut aggregator = Aggregator::new(&head);
        events.iter().for_each(|event| aggregator.observe(event));
        let from = events.iter().position(|e| matches!(e, Event::Shards(s) if s.window_start));
        check(&aggregator.summary(true), &Oracle { events: &events, from })?;
    }

    #[test]
    fn survives_the_stream_and_back(steps in prop::collection::vec((0.0f64..0.7, step()), 0..60)) {
        let (head, events) = events(&steps, None);
        let mut text = serde_json::to_string(&Event::Header(head.clone())).expect("a line");
        for event in &events {
            text.push('\n');
            text.push_str(&serde_json::to_string(event).expect("a line"));
        }
        let mut reader = cr_report::reader::EventReader::new(text.as_bytes(), "memory");
        prop_assert_eq!(reader.header().expect("a header"), head);
        let back: Vec<Event> = reader.map(|event| event.expect("an event")).collect();
        prop_assert_eq!(back, events);
    }
}
