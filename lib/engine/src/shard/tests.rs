//! The scheduler on small cases worked by hand, and its laws on random ones.

use super::*;
use crate::backend::{Batch, BatchSeq};
use crate::pool::BlockPool;
use crate::sim::SimBackend;
use cr_cost::CostModel;
use cr_trace::{ContentId, RequestId, Segment};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;

fn cost() -> Arc<CostModel> {
    let text = "schema = 'cacheroute.cost/1'\nname = 'worked'\nsource = 'docs/metrics.md'\n\
                [step]\nbase_ms = 5.0\nprefill_token_ms = 0.1\ndecode_seq_ms = 1.0\n";
    Arc::new(CostModel::from_toml(text, "worked.toml").expect("parses"))
}

fn config(kv_blocks: u32) -> ShardConfig {
    ShardConfig { kv_blocks, ..ShardConfig::default() }
}

fn request(id: u64, prompt: &[(&str, u32)], output_tokens: u32) -> Arc<Request> {
    Arc::new(Request {
        id: RequestId(id),
        t_s: 0.0,
        key: "k1".into(),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        output_tokens,
        prompt: prompt.iter().map(|&(c, n)| Segment(ContentId::new(c), n)).collect(),
    })
}

/// Runs a shard alone over arrivals in order of time, as the fleet would.
fn serve(shard: &mut Shard<BlockPool>, arrivals: &[(Time, Arc<Request>)]) -> Vec<Departed> {
    let (mut now, mut departed, mut next) = (Time::ZERO, Vec::new(), 0);
    loop {
        while next < arrivals.len() && arrivals[next].0 <= now {
            shard.enqueue(arrivals[next].1.clone(), arrivals[next].0, false).expect("fits");
            next += 1;
        }
        match shard.start_step(now, &mut departed).expect("the simulator never fails") {
            Some(duration) => {
                let end = now + duration;
                while next < arrivals.len() && arrivals[next].0 < end {
                    shard.enqueue(arrivals[next].1.clone(), arrivals[next].0, false).expect("fits");
                    next += 1;
                }
                now = end;
                shard.end_step(now, &mut departed);
            }
            None if next < arrivals.len() => now = arrivals[next].0,
            None => return departed,
        }
    }
}

/// The contract's worked example, to the picosecond.
#[test]
fn the_worked_example() {
    let mut shard = Shard::new(config(64), Box::new(SimBackend::new(cost())));
    let a = request(0, &[("g:t", 32), ("k:k1", 16), ("u:0", 10)], 3);
    let b = request(1, &[("g:t", 32), ("k:k1", 16), ("u:1", 10)], 1);
    let done = serve(&mut shard, &[(Time::ZERO, a), (Time::from_s(0.001), b)]);
    let ms = |t: Option<Time>| (t.expect("is set").as_s() * 1e3 * 1e6).round() / 1e6;
    let (b, a) = (&done[0], &done[1]);
    assert_eq!((a.request.id, b.request.id), (RequestId(0), RequestId(1)));
    assert_eq!((ms(a.scheduled_at), ms(a.first_token_at), ms(Some(a.left_at))), (0.0, 10.8, 23.8));
    assert_eq!((ms(b.scheduled_at), ms(b.first_token_at), ms(Some(b.left_at))), (10.8, 17.8, 17.8));
    assert_eq!((a.cached_tokens, b.cached_tokens), (0, 48));
    assert_eq!(shard.totals().busy, Time::from_s(0.0238));
    assert_eq!(shard.totals().steps, 3);
}

/// A backend that checks what every real one relies on.
struct Checked {
    inner: SimBackend,
    budget: u32,
    max_running: u32,
    block_tokens: u32,
    fed: Arc<Mutex<Fed>>,
}

/// What a backend was fed, in the terms of the totals.
#[derive(Clone, Debug, Default)]
struct Fed {
    /// How far each request has come.
    reached: BTreeMap<RequestId, u32>,
    prompt_tokens: u64,
    again: u64,
    /// Prompt tokens that a request passed over after it had begun, as others had computed them while it had no blocks.
    passed_over: u64,
}

impl Fed {
    fn feed(&mut self, seq: &BatchSeq<'_>) {
        let prompt = seq.request.prompt_tokens() as u32;
        let reached = self.reached.entry(seq.request.id).or_insert(seq.start);
        let (from, to) = (seq.start, seq.start + seq.tokens);
        self.again += u64::from(to.min(*reached).saturating_sub(from));
        self.passed_over += u64::from(from.min(prompt).saturating_sub(*reached));
        self.prompt_tokens += u64::from(to.min(prompt).saturating_sub(from.max(*reached)));
        *reached = to.max(*reached);
    }
}

impl Backend for Checked {
    fn step(&mut self, batch: &Batch<'_>) -> Result<Time, EngineError> {
        assert!(batch.seqs.iter().map(|s| s.tokens).sum::<u32>() <= self.budget);
        assert!(batch.seqs.len() <= self.max_running as usize);
        for seq in &batch.seqs {
            assert!(seq.tokens > 0);
            let room = seq.blocks.len() as u32 * self.block_tokens;
            assert!(seq.start + seq.tokens <= room, "a token without a slot");
        }
        // A block that is written to in this step belongs to one sequence alone.
        let mut written: Vec<u32> = batch
            .seqs
            .iter()
            .flat_map(|s| &s.blocks[(s.start / self.block_tokens) as usize..])
            .copied()
            .collect();
        let all = written.len();
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len(), all, "two sequences write to one block");
        let mut fed = self.fed.lock().expect("no test has panicked");
        batch.seqs.iter().for_each(|seq| fed.feed(seq));
        self.inner.step(batch)
    }
}

/// Arrival in milliseconds, segments as (key, tokens), output tokens.
type Sent = (u64, Vec<(u8, u32)>, u32);

#[derive(Clone, Debug)]
struct Case {
    config: ShardConfig,
    requests: Vec<Sent>,
}

fn case() -> impl Strategy<Value = Case> {
    let one = (0u64..60, proptest::collection::vec((0u8..4, 1u32..30), 1..4), 1u32..20);
    (
        4u32..40,
        1u32..20,
        1u32..40,
        1u32..8,
        proptest::collection::vec(one, 1..25),
        proptest::option::of(10u64..200),
    )
        .prop_map(|(kv_blocks, block_tokens, token_budget, max_running, mut requests, timeout_ms)| {
            requests.sort_by_key(|r| r.0);
            let timeout = timeout_ms.map(|ms| Time::from_s(ms as f64 / 1e3));
            Case {
                config: ShardConfig {
                    block_tokens,
                    kv_blocks,
                    token_budget,
                    max_running,
                    timeout,
                    ..ShardConfig::default()
                },
                requests,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every request that fits leaves exactly once; times and counts are consistent; nothing leaks.
    #[test]
    fn laws_of_the_scheduler(case in case()) {
        let fed = Arc::new(Mutex::new(Fed::default()));
        let checked = Checked {
            fed: Arc::clone(&fed), inner: SimBackend::new(cost()), budget: case.config.token_budget,
            max_running: case.config.max_running, block_tokens: case.config.block_tokens,
        };
        let mut shard = Shard::<BlockPool>::new(case.config, Box::new(checked));
        let mut arrivals = Vec::new();
        for (id, (at_ms, prompt, output)) in case.requests.iter().enumerate() {
            let parts: Vec<(String, u32)> = prompt.iter().map(|&(c, n)| (format!("k:{c}"), n)).collect();
            let parts: Vec<(&str, u32)> = parts.iter().map(|(c, n)| (c.as_str(), *n)).collect();
            let request = request(id as u64, &parts, *output);
            let tokens = request.prompt_tokens() + u64::from(*output) - 1;
            if tokens.div_ceil(u64::from(case.config.block_tokens)) <= u64::from(case.config.kv_blocks) {
                arrivals.push((Time::from_s(*at_ms as f64 / 1e3), request));
            } else {
                prop_assert!(shard.enqueue(request, Time::ZERO, false).is_err());
            }
        }
        let done = serve(&mut shard, &arrivals);
        let mut ids: Vec<_> = done.iter().map(|d| d.request.id).collect();
        ids.sort_unstable();
        let expected: Vec<_> = arrivals.iter().map(|(_, r)| r.id).collect();
        prop_assert_eq!(ids, expected, "each leaves exactly once");
        for d in &done {
            let prompt = d.request.prompt_tokens();
            prop_assert!(u64::from(d.cached_tokens) < prompt && d.cached_tokens % case.config.block_tokens == 0);
            if d.finished {
                prop_assert_eq!(d.output_tokens, d.request.output_tokens);
                let (queued, first) = (d.scheduled_at.expect("was scheduled"), d.first_token_at.expect("has a token"));
                prop_assert!(d.arrival <= queued && queued < first && first <= d.left_at);
            } else {
                prop_assert!(case.config.timeout.is_some());
            }
        }
        prop_assert_eq!(shard.usage().referenced, 0);
        prop_assert_eq!(shard.pending_tokens(), 0);
        let totals = shard.totals();
        let fed = fed.lock().expect("no test has panicked").clone();
        prop_assert_eq!((totals.computed_tokens, totals.recomputed_tokens), (fed.prompt_tokens, fed.again));
        prop_assert!(totals.preemptions > 0 || (fed.passed_over, fed.again) == (0, 0));
        if case.config.timeout.is_none() {
            let accounted = totals.cached_tokens + totals.computed_tokens + fed.passed_over;
            prop_assert_eq!(accounted, totals.prompt_tokens, "a prompt token is found, computed, or passed over");
            prop_assert_eq!(totals.output_tokens, arrivals.iter().map(|(_, r)| u64::from(r.output_tokens)).sum::<u64>());
        }
    }
}

#[test]
fn decodes_preempt_the_latest_when_blocks_run_out() {
    let mut shard = Shard::<BlockPool>::new(config(4), Box::new(SimBackend::new(cost())));
    let a = request(0, &[("k:a", 30)], 20);
    let b = request(1, &[("k:b", 30)], 20);
    let done = serve(&mut shard, &[(Time::ZERO, a), (Time::ZERO, b)]);
    assert_eq!(done.iter().map(|d| d.preemptions).collect::<Vec<_>>(), [0, 1]);
    assert!(done.iter().all(|d| d.finished && d.output_tokens == 20));
    assert!(shard.totals().recomputed_tokens > 0);
    assert_eq!(shard.totals().computed_tokens, 60);
}

#[test]
fn what_can_never_fit_is_refused_with_numbers() {
    let mut shard = Shard::<BlockPool>::new(
        ShardConfig { context_tokens: Some(100), ..config(4) },
        Box::new(SimBackend::new(cost())),
    );
    let why = |taken: Result<(), Refused>| taken.map_err(|refused| refused.rejection);
    let long = shard.enqueue(request(0, &[("k:a", 90)], 11), Time::ZERO, false);
    assert_eq!(why(long), Err(Rejection::PromptTooLong { tokens: 101, context: 100 }));
    let big = shard.enqueue(request(1, &[("k:a", 60)], 6), Time::ZERO, false);
    assert_eq!(why(big), Err(Rejection::PoolTooSmall { blocks: 5, pool: 4 }));
    assert_eq!(why(shard.enqueue(request(2, &[("k:a", 60)], 5), Time::ZERO, false)), Ok(()));
}
