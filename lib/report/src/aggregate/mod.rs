//! From the events of a run to its summary, in constant memory.
//!
//! The summary is a pure function of the event stream: whoever reads the stream, live or later, gets what the run itself
//! reports. Definitions of every figure, and the rule for the measured window: `docs/metrics.md`.

mod distribution;
mod fleet;
mod growth;
mod sparse;
mod tenants;
mod timeline;

pub use distribution::Distribution;
pub use fleet::{SPAN_S, ShardTotals, imbalance};
pub use timeline::{MAX_MARKS, Mark, MarkKind, Timeline};

use crate::events::{Event, Fail, FailReason, Finish, Header, ScopeTokens, Shards, Warning};
use crate::summary::{Requests, SCHEMA, Summary, Window};
use fleet::Fleet;
use growth::QueueSeries;
use std::collections::BTreeMap;
use tenants::Tenants;
use timeline::Recorder;

/// The share of failed requests above which a run counts as saturated.
pub const MAX_FAILED_SHARE: f64 = 0.05;

/// Sums over the measured requests.
#[derive(Clone, Debug, Default)]
struct Counts {
    completed: u64,
    failed: BTreeMap<FailReason, u64>,
    rerouted: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    prompt_blocks: u64,
    cached_blocks: u64,
    hit_ratios: f64,
    cached_by_scope: ScopeTokens,
    last_arrival_s: f64,
}

/// Follows one run. Memory grows with the shards and the tenants, never with the length of the run.
#[derive(Clone, Debug)]
pub struct Aggregator {
    header: Header,
    counts: Counts,
    tpot_s: Distribution,
    e2e_s: Distribution,
    queue_s: Distribution,
    tenants: Tenants,
    fleet: Fleet,
    queue: QueueSeries,
    timeline: Recorder,
    window: Window,
    started: bool,
    warnings: Vec<Warning>,
}

/// Warnings of a run that are kept; there are few kinds of them.
const MAX_WARNINGS: usize = 16;

impl Aggregator {
    /// Nothing seen yet of the run that `header` announces.
    pub fn new(header: &Header) -> Aggregator {
        let unmeasured_start = header.plan_requests > 0 || header.warmup_s > 0.0;
        Aggregator {
            header: header.clone(),
            counts: Counts::default(),
            tpot_s: Distribution::new(),
            e2e_s: Distribution::new(),
            queue_s: Distribution::new(),
            tenants: Tenants::default(),
            fleet: Fleet::new(header.shards),
            queue: QueueSeries::starting(0.0),
            timeline: Recorder::default(),
            window: Window::default(),
            started: !unmeasured_start,
            warnings: Vec::new(),
        }
    }

    /// Takes one event of the run. Headers, summaries and gates change nothing, and warnings no figure.
    pub fn observe(&mut self, event: &Event) {
        match event {
            Event::Finish(finish) => self.finish(finish),
            Event::Fail(fail) => self.fail(fail),
            Event::Shards(snapshot) => self.snapshot(snapshot),
            Event::Fault(fault) => {
                self.reach(fault.t_s);
                self.timeline.fault(fault);
                match fault.kind.as_str() {
                    "down" => self.fleet.set_up(fault.t_s, fault.shard, false),
                    "up" => self.fleet.set_up(fault.t_s, fault.shard, true),
                    _ => {}
                }
            }
            Event::Plan(plan) => self.timeline.plan(plan),
            Event::Warning(warning) if self.warnings.len() < MAX_WARNINGS => {
                self.warnings.push(warning.clone())
            }
            Event::Header(_) | Event::Warning(_) | Event::Summary(_) | Event::Gate(_) => {}
        }
    }

    /// Whether the counters of a snapshot at `t_s` make a difference: the window has not begun, or a span of it ends.
    pub fn needs_counters(&self, t_s: f64) -> bool {
        !self.started || self.fleet.ends_span(t_s)
    }

    /// Takes a snapshot whose counters make no difference, of which the longest queue of the shards that are up is enough. What
    /// [`Aggregator::shard_totals`] says is as of the last whole one, as is all that the next whole one brings.
    pub fn observe_queues(&mut self, t_s: f64, longest: u64) {
        self.fleet.advance(t_s);
        self.reach(t_s);
        if self.started {
            self.queue.record(t_s, longest);
        }
    }

    /// What the run comes down to so far; `complete` says whether it came to its end.
    pub fn summary(&self, complete: bool) -> Summary {
        let counts = &self.counts;
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Summary {
            schema: SCHEMA.into(),
            policy: self.header.policy.clone(),
            seed: self.header.seed,
            qps: self.header.qps,
            variant: self.header.variant.clone(),
            complete,
            in_sample: self.header.in_sample,
            window: self.window(),
            requests: self.requests(),
            served_hit: share(counts.cached_tokens, counts.prompt_tokens),
            hit_request_mean: if counts.completed == 0 {
                0.0
            } else {
                counts.hit_ratios / counts.completed as f64
            },
            hit_block: share(counts.cached_blocks, counts.prompt_blocks),
            hit_by_scope: counts
                .cached_by_scope
                .iter()
                .map(|(scope, tokens)| (scope.letter().into(), share(tokens, counts.prompt_tokens)))
                .collect(),
            imbalance: self.fleet.imbalance(),
            ttft_s: self.ttft_s().quantiles(),
            tpot_s: self.tpot_s.quantiles(),
            e2e_s: self.e2e_s.quantiles(),
            queue_s: self.queue_s.quantiles(),
            fairness: self.tenants.fairness(),
            saturated: self.saturated(),
            work: self.fleet.work(),
        }
    }

    /// What is run, on what.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Each shard's totals in the measured window so far, in order of shard id.
    pub fn shard_totals(&self) -> Vec<ShardTotals> {
        self.fleet.totals()
    }

    /// TTFT of the measured requests, in seconds.
    pub fn ttft_s(&self) -> Distribution {
        self.tenants.ttft_s()
    }

    /// Hits and TTFT over time, and when plans and shards changed.
    pub fn timeline(&self) -> Timeline {
        self.timeline.timeline()
    }

    /// What a reader of the numbers should know, the first few of it.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether the measured window has begun.
    pub fn measuring(&self) -> bool {
        self.started
    }

    /// The measured window so far.
    pub fn window(&self) -> Window {
        let from_s =
            if self.started { self.window.from_s } else { self.window.to_s.max(self.header.warmup_s) };
        Window { from_s, to_s: self.window.to_s.max(from_s) }
    }

    fn requests(&self) -> Requests {
        let counts = &self.counts;
        let of = |reason| counts.failed.get(&reason).copied().unwrap_or(0);
        let (cancelled, interrupted) = (of(FailReason::PredecessorFailed), of(FailReason::Interrupted));
        let offered = counts.completed + counts.failed.values().sum::<u64>();
        let window = self.window();
        let window_s = window.to_s - window.from_s;
        let arrivals_s = match counts.last_arrival_s - window.from_s {
            span_s if span_s > 0.0 => span_s,
            _ => window_s,
        };
        let rate = |n: u64, span_s: f64| if span_s > 0.0 { n as f64 / span_s } else { 0.0 };
        let apart = [FailReason::PredecessorFailed, FailReason::Interrupted];
        Requests {
            offered,
            completed: counts.completed,
            failed: offered - counts.completed - cancelled - interrupted,
            failed_by_reason: counts
                .failed
                .iter()
                .filter(|(reason, _)| !apart.contains(reason))
                .map(|(reason, &n)| (reason.as_str().to_owned(), n))
                .collect(),
            cancelled,
            interrupted,
            rerouted: counts.rerouted,
            offered_qps: rate(offered, arrivals_s),
            achieved_qps: rate(counts.completed, window_s),
        }
    }

    /// More than 5 % of the requests that came to an end failed, or a queue still grew when the last request arrived.
    fn saturated(&self) -> bool {
        let requests = self.requests();
        let ended = requests.completed + requests.failed;
        let failing = requests.failed as f64 > MAX_FAILED_SHARE * ended as f64;
        let per_shard = requests.offered as f64 / f64::from(self.header.shards.max(1));
        failing || self.queue.still_grows(self.counts.last_arrival_s, per_shard)
    }

    fn finish(&mut self, event: &Finish) {
        self.reach(event.t_s);
        if !self.counts_in(event.measured, event.t_s) {
            return;
        }
        self.begin(event.arrival_s);
        let block = u64::from(self.header.block_tokens.max(1));
        let counts = &mut self.counts;
        counts.completed += 1;
        counts.rerouted += u64::from(event.retries > 0);
        counts.prompt_tokens = counts.prompt_tokens.saturating_add(event.prompt_tokens);
        counts.cached_tokens = counts.cached_tokens.saturating_add(event.cached_tokens);
        counts.prompt_blocks = counts.prompt_blocks.saturating_add(event.prompt_tokens.div_ceil(block));
        counts.cached_blocks = counts.cached_blocks.saturating_add(event.cached_tokens / block);
        counts.hit_ratios += event.cached_tokens as f64 / event.prompt_tokens.max(1) as f64;
        for (scope, tokens) in event.cached_by_scope.iter() {
            counts.cached_by_scope.add(scope, tokens);
        }
        counts.last_arrival_s = counts.last_arrival_s.max(event.arrival_s);
        self.e2e_s.record(event.e2e_s);
        self.queue_s.record(event.queue_s);
        if let Some(tpot_s) = event.tpot_s {
            self.tpot_s.record(tpot_s);
        }
        self.timeline.finish(event);
        self.tenants.record(event);
        self.fleet.finish(event.shard);
    }

    fn fail(&mut self, event: &Fail) {
        self.reach(event.t_s);
        if !self.counts_in(event.measured, event.t_s) {
            return;
        }
        self.begin(event.arrival_s.unwrap_or(event.t_s));
        *self.counts.failed.entry(event.reason).or_default() += 1;
        self.counts.rerouted += u64::from(event.retries > 0);
        if let Some(arrival_s) = event.arrival_s {
            self.counts.last_arrival_s = self.counts.last_arrival_s.max(arrival_s);
        }
    }

    fn snapshot(&mut self, event: &Shards) {
        let past_warmup = self.header.plan_requests == 0 && event.t_s > self.header.warmup_s;
        if !event.window_start && past_warmup {
            self.begin(self.header.warmup_s);
        }
        self.fleet.snapshot(event);
        if event.window_start {
            self.start(event.t_s);
        }
        let longest = event.shards.iter().filter(|state| state.up).map(|state| state.queued).max();
        self.observe_queues(event.t_s, longest.unwrap_or(0));
    }

    /// Whether a request that came to its end at `t_s` is measured.
    fn counts_in(&self, measured: bool, t_s: f64) -> bool {
        measured && t_s >= self.header.warmup_s
    }

    /// Starts the window where no marked snapshot did: at the end of the warm-up, or at the arrival `arrival_s` of the first
    /// measured request, with the counters as they were last seen.
    fn begin(&mut self, arrival_s: f64) {
        if !self.started {
            let from_s = if self.header.plan_requests > 0 { arrival_s } else { self.header.warmup_s };
            self.start(from_s.max(self.header.warmup_s));
        }
    }

    fn start(&mut self, from_s: f64) {
        self.started = true;
        self.window.from_s = from_s;
        self.fleet.start(from_s);
        self.queue = QueueSeries::starting(from_s);
    }

    fn reach(&mut self, t_s: f64) {
        self.window.to_s = self.window.to_s.max(t_s);
    }
}
