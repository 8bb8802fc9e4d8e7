//! What the shards did within the measured window: counters, uptime and imbalance.

use crate::aggregate::Distribution;
use crate::events::{ShardState, Shards};
use crate::summary::{Imbalance, ImbalanceWindows, WindowQuantiles, Work};
use cr_trace::ShardId;

/// Length of the spans that imbalance is also taken over, in seconds.
pub const SPAN_S: f64 = 10.0;

/// One shard's totals in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShardTotals {
    /// Measured requests that it finished.
    pub requests: u64,
    /// Seconds that it was up.
    pub up_s: f64,
    /// Its work.
    pub work: Work,
}

impl ShardTotals {
    /// Computed prompt plus output tokens.
    pub fn tokens(&self) -> u64 {
        self.work.computed_tokens.saturating_add(self.work.output_tokens)
    }

    /// What was added since `earlier`. A counter that ran backwards counts as unchanged.
    fn since(&self, earlier: &ShardTotals) -> ShardTotals {
        let (now, then) = (&self.work, &earlier.work);
        ShardTotals {
            requests: self.requests.saturating_sub(earlier.requests),
            up_s: (self.up_s - earlier.up_s).max(0.0),
            work: Work {
                busy_s: (now.busy_s - then.busy_s).max(0.0),
                prompt_tokens: now.prompt_tokens.saturating_sub(then.prompt_tokens),
                cached_tokens: now.cached_tokens.saturating_sub(then.cached_tokens),
                computed_tokens: now.computed_tokens.saturating_sub(then.computed_tokens),
                output_tokens: now.output_tokens.saturating_sub(then.output_tokens),
                recomputed_tokens: now.recomputed_tokens.saturating_sub(then.recomputed_tokens),
                preemptions: now.preemptions.saturating_sub(then.preemptions),
                evicted_blocks: now.evicted_blocks.saturating_sub(then.evicted_blocks),
                evicted_admitted_blocks: now
                    .evicted_admitted_blocks
                    .saturating_sub(then.evicted_admitted_blocks),
            },
        }
    }
}

impl Work {
    /// The counters of a snapshot.
    fn of(state: &ShardState) -> Work {
        Work {
            busy_s: state.busy_s,
            prompt_tokens: state.prompt_tokens,
            cached_tokens: state.cached_tokens,
            computed_tokens: state.computed_tokens,
            output_tokens: state.output_tokens,
            recomputed_tokens: state.recomputed_tokens,
            preemptions: state.preemptions,
            evicted_blocks: state.evicted_blocks,
            evicted_admitted_blocks: state.evicted_admitted_blocks,
        }
    }

    /// Adds another shard's work.
    pub fn add(&mut self, other: &Work) {
        self.busy_s += other.busy_s;
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.computed_tokens = self.computed_tokens.saturating_add(other.computed_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.recomputed_tokens = self.recomputed_tokens.saturating_add(other.recomputed_tokens);
        self.preemptions = self.preemptions.saturating_add(other.preemptions);
        self.evicted_blocks = self.evicted_blocks.saturating_add(other.evicted_blocks);
        self.evicted_admitted_blocks =
            self.evicted_admitted_blocks.saturating_add(other.evicted_admitted_blocks);
    }
}

/// Max / mean over shards, weighted by uptime: max(xᵢ/uᵢ) / (Σx / Σu) over the shards that were up for some time uᵢ. With
/// all shards up throughout this is max(x) / mean(x). `None` where there is no load at all.
pub fn imbalance(loads: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let up = loads.filter(|&(_, up_s)| up_s > 0.0);
    let (load, up_s) = up.clone().fold((0.0, 0.0), |sum, shard| (sum.0 + shard.0, sum.1 + shard.1));
    if load <= 0.0 {
        return None;
    }
    let highest = up.map(|(load, up_s)| load / up_s).fold(0.0, f64::max);
    // Rounding may leave the maximum a hair under the mean.
    Some((highest * up_s / load).max(1.0))
}

fn of_totals(totals: &[ShardTotals], load: impl Fn(&ShardTotals) -> f64 + Copy) -> Option<f64> {
    imbalance(totals.iter().map(|shard| (load(shard), shard.up_s)))
}

const LOADS: [fn(&ShardTotals) -> f64; 3] =
    [|shard| shard.requests as f64, |shard| shard.tokens() as f64, |shard| shard.work.busy_s];

/// Follows all shards. Counters in `now` are cumulative since the start of the run; `base` holds them at the start of the
/// window.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    now: Vec<ShardTotals>,
    base: Vec<ShardTotals>,
    up: Vec<bool>,
    seen_s: f64,
    from_s: f64,
    spans: Spans,
}

#[derive(Clone, Debug, Default)]
struct Spans {
    base: Vec<ShardTotals>,
    ends_s: f64,
    count: u64,
    ratios: [Distribution; 3],
}

impl Spans {
    fn starting(from_s: f64, base: Vec<ShardTotals>) -> Spans {
        Spans { base, ends_s: from_s + SPAN_S, count: 0, ratios: Default::default() }
    }
}

impl Fleet {
    pub(super) fn new(shards: u32) -> Fleet {
        let zero = vec![ShardTotals::default(); shards as usize];
        Fleet {
            now: zero.clone(),
            base: zero.clone(),
            up: vec![true; shards as usize],
            seen_s: 0.0,
            from_s: 0.0,
            spans: Spans::starting(0.0, zero),
        }
    }

    /// The window starts at `from_s` with the counters as they were last seen.
    pub(super) fn start(&mut self, from_s: f64) {
        self.advance(from_s);
        self.from_s = from_s;
        self.base.clone_from(&self.now);
        self.spans = Spans::starting(from_s, self.now.clone());
    }

    /// Lets time pass for the shards that are up.
    pub(super) fn advance(&mut self, t_s: f64) {
        let passed_s = t_s - self.seen_s;
        if passed_s > 0.0 {
            for (shard, _) in self.now.iter_mut().zip(&self.up).filter(|(_, up)| **up) {
                shard.up_s += passed_s;
            }
            self.seen_s = t_s;
        }
    }

    pub(super) fn finish(&mut self, shard: ShardId) {
        if let Some(totals) = self.now.get_mut(shard.index()) {
            totals.requests += 1;
        }
    }

    pub(super) fn set_up(&mut self, t_s: f64, shard: ShardId, up: bool) {
        self.advance(t_s);
        if let Some(flag) = self.up.get_mut(shard.index()) {
            *flag = up;
        }
    }

    /// Takes the counters of a snapshot.
    pub(super) fn snapshot(&mut self, event: &Shards) {
        self.advance(event.t_s);
        for state in &event.shards {
            if let Some(totals) = self.now.get_mut(state.shard.index()) {
                totals.work = Work::of(state);
                self.up[state.shard.index()] = state.up;
            }
        }
        if self.ends_span(event.t_s) {
            self.end_span(event.t_s);
        }
    }

    /// Whether a snapshot at `t_s` ends a span.
    pub(super) fn ends_span(&self, t_s: f64) -> bool {
        t_s >= self.spans.ends_s
    }

    /// Ends a span at the first snapshot at or after its nominal end; the next one ends at the next multiple.
    fn end_span(&mut self, t_s: f64) {
        let spans = &mut self.spans;
        let within: Vec<_> = self.now.iter().zip(&spans.base).map(|(now, base)| now.since(base)).collect();
        let mut any = false;
        for (ratios, load) in spans.ratios.iter_mut().zip(LOADS) {
            if let Some(ratio) = of_totals(&within, load) {
                ratios.record(ratio);
                any = true;
            }
        }
        // A span without any load says nothing.
        spans.count += u64::from(any);
        spans.base.clone_from(&self.now);
        spans.ends_s = self.from_s + (((t_s - self.from_s) / SPAN_S).floor() + 1.0) * SPAN_S;
    }

    /// Each shard's totals in the window so far.
    pub(super) fn totals(&self) -> Vec<ShardTotals> {
        self.now.iter().zip(&self.base).map(|(now, base)| now.since(base)).collect()
    }

    pub(super) fn imbalance(&self) -> Imbalance {
        let totals = self.totals();
        let [requests, tokens, busy] = LOADS.map(|load| of_totals(&totals, load).unwrap_or(0.0));
        let quantiles = |d: &Distribution| WindowQuantiles { p50: d.quantile(0.5), p95: d.quantile(0.95) };
        let [r, t, b] = &self.spans.ratios;
        let windows = ImbalanceWindows {
            count: self.spans.count,
            requests: quantiles(r),
            tokens: quantiles(t),
            busy: quantiles(b),
        };
        Imbalance { requests, tokens, busy, windows }
    }

    pub(super) fn work(&self) -> Work {
        self.totals().iter().fold(Work::default(), |mut sum, shard| {
            sum.add(&shard.work);
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_over_mean_weighted_by_uptime() {
        let all_up =
            |loads: &[f64]| imbalance(loads.iter().map(|&x| (x, 5.0)).collect::<Vec<_>>().into_iter());
        assert_eq!(all_up(&[1.0, 1.0, 1.0]), Some(1.0));
        assert_eq!(all_up(&[4.0, 0.0, 0.0, 0.0]), Some(4.0));
        assert_eq!(all_up(&[3.0, 1.0]), Some(1.5));
        assert_eq!(all_up(&[0.0, 0.0]), None);
        assert_eq!(all_up(&[]), None);
        // A shard that was up half the time and did half the work is in balance; one never up does not count.
        let half = [(10.0, 10.0), (5.0, 5.0), (0.0, 0.0)];
        assert_eq!(imbalance(half.into_iter()), Some(1.0));
    }
}
