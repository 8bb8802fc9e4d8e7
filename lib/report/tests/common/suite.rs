//! A small fleet for reports: made-up service times, but hits, queues and imbalance that follow from them.

use super::{header, idle};
use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, Finish, Header, Plan, Shards};
use cr_report::{RunReport, SuiteReport};
use cr_trace::{RequestId, Scope, ShardId, stream};
use rand::RngExt;

/// A policy in caricature: the share of prompt tokens it finds cached, and how unevenly it spreads requests.
#[derive(Clone, Copy)]
pub(crate) struct Caricature {
    pub(crate) name: &'static str,
    pub(crate) hit: f64,
    pub(crate) skew: f64,
}

pub(crate) const POLICIES: [Caricature; 6] = [
    Caricature { name: "flat", hit: 0.35, skew: 0.0 },
    Caricature { name: "sticky", hit: 0.72, skew: 1.0 },
    Caricature { name: "chwbl", hit: 0.6, skew: 0.3 },
    Caricature { name: "dualmap", hit: 0.66, skew: 0.4 },
    Caricature { name: "preble", hit: 0.55, skew: 0.15 },
    Caricature { name: "cacheroute", hit: 0.74, skew: 0.08 },
];

/// A request by its arrival, wait, time to first token and to the last, and by its tokens, in all and cached.
fn finish(id: u64, shard: usize, times: [f64; 4], tokens: [u64; 2]) -> Event {
    let ([arrival_s, queue_s, ttft_s, e2e_s], [prompt, cached]) = (times, tokens);
    let key = format!("k{}", id % 17);
    Event::Finish(Finish {
        t_s: arrival_s + e2e_s,
        id: RequestId(id),
        key: key.as_str().into(),
        tenant: key.as_str().into(),
        shard: ShardId(shard as u32),
        admitted: true,
        arrival_s,
        queue_s,
        ttft_s,
        tpot_s: Some(0.005),
        e2e_s,
        prompt_tokens: prompt,
        cached_tokens: cached,
        cached_by_scope: [(Scope::Global, cached / 2), (Scope::Key, cached - cached / 2)]
            .into_iter()
            .collect(),
        output_tokens: 13,
        retries: 0,
        preemptions: 0,
        measured: true,
    })
}

/// The events of one run.
pub(crate) fn events(
    policy: Caricature,
    seed: u64,
    qps: f64,
    shards: u32,
    requests: u64,
) -> (Header, Vec<Event>) {
    let mut head = header(policy.name, seed, shards);
    head.qps = Some(qps);
    let mut arrivals = stream(seed, "arrivals");
    let mut rng = stream(seed, "policy");
    let (mut free_s, mut state) = (vec![0.0f64; shards as usize], (0..shards).map(idle).collect::<Vec<_>>());
    let mut timed: Vec<(f64, Event)> = Vec::new();
    let (mut t_s, mut next_s) = (0.0, 0.25);
    for id in 0..requests {
        t_s += -f64::ln(1.0 - arrivals.random::<f64>()) / qps;
        while next_s < t_s {
            for (shard, free_s) in state.iter_mut().zip(&free_s) {
                shard.queued = ((free_s - next_s).max(0.0) / 0.1) as u64;
            }
            timed.push((
                next_s,
                Event::Shards(Shards { t_s: next_s, shards: state.clone(), window_start: false }),
            ));
            next_s += 0.25;
        }
        let position: f64 = rng.random();
        let shard =
            ((position.powf(1.0 + policy.skew) * f64::from(shards)) as usize).min(shards as usize - 1);
        let prompt = 400 + (rng.random::<f64>() * 1600.0) as u64;
        let hit = (policy.hit + (rng.random::<f64>() - 0.5) * 0.4).clamp(0.0, 0.95);
        let cached = ((prompt as f64 * hit) as u64 / 16 * 16).min((prompt - 1) / 16 * 16);
        let prefill_s = 0.005 + (prompt - cached) as f64 * 1e-4;
        let start_s = t_s.max(free_s[shard]);
        let (ttft_s, e2e_s) = (start_s + prefill_s - t_s, start_s + prefill_s + 0.06 - t_s);
        free_s[shard] = start_s + prefill_s;
        let totals = &mut state[shard];
        (totals.busy_s, totals.requests) = (totals.busy_s + prefill_s, totals.requests + 1);
        (totals.computed_tokens, totals.output_tokens) =
            (totals.computed_tokens + prompt - cached, totals.output_tokens + 13);
        let times = [t_s, start_s - t_s, ttft_s, e2e_s];
        timed.push((t_s + e2e_s, finish(id, shard, times, [prompt, cached])));
        if id == requests / 2 && policy.name == "cacheroute" {
            let plan =
                Plan { t_s, admitted_keys: 17, moved_keys: 3, churn: 0.1, imbalance: 1.02, cold_rate: 0.5 };
            timed.push((t_s, Event::Plan(plan)));
        }
    }
    let end_s = timed.iter().map(|(t_s, _)| *t_s).fold(next_s, f64::max);
    state.iter_mut().for_each(|shard| shard.queued = 0);
    timed.push((end_s, Event::Shards(Shards { t_s: end_s, shards: state, window_start: false })));
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    (head, timed.into_iter().map(|(_, event)| event).collect())
}

/// One run as a report takes it.
pub(crate) fn run(policy: Caricature, seed: u64, qps: f64, shards: u32, requests: u64) -> RunReport {
    let (head, events) = events(policy, seed, qps, shards, requests);
    let mut aggregator = Aggregator::new(&head);
    events.iter().for_each(|event| aggregator.observe(event));
    RunReport::of(&aggregator, true)
}

/// A suite of all six policies; without rates, one cell a policy at a rate that saturates none.
pub(crate) fn suite(rates: &[f64], seeds: u64, shards: u32, requests: u64) -> SuiteReport {
    let mut runs = Vec::new();
    for policy in POLICIES {
        for &qps in if rates.is_empty() { &[12.0][..] } else { rates } {
            for seed in 1..=seeds {
                let mut made = run(policy, seed, qps, shards, requests);
                if rates.is_empty() {
                    (made.summary.qps, made.header.qps) = (None, None);
                }
                runs.push(made);
            }
        }
    }
    SuiteReport {
        suite: "example".into(),
        title: "Six policies in caricature".into(),
        baseline: Some("flat".into()),
        candidate: Some("cacheroute".into()),
        commands: vec![
            "cr-gen zipf --seed 1 -o w.jsonl".into(),
            "cr-serve sweep configs/suites/example.toml".into(),
        ],
        notes: vec!["Service times are made up.".into()],
        runs,
        ..SuiteReport::default()
    }
}
