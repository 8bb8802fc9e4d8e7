//! Named warnings: what about a run makes its figures worth less than they look, and what to do about it.
//!
//! Names are stable and documented (`docs/cr-top.md`). They are worked out from the state alone, so that a file read later gives
//! those that its run gave.

use std::fmt;

use super::live::{Live, Phase};
use super::series::{Hits, Slot};
use crate::figures::count;

/// Measured requests before anything is said about rates and hits.
const ENOUGH: u64 = 100;
/// The least slots of the measured window before anything is said about how a run develops.
const LONG: usize = 10;
/// The share of the offered rate below which what is achieved falls behind.
const DELIVERED: f64 = 0.95;
/// A 99th percentile rests on a hundredth of the requests: below this, on fewer than ten.
const P99_ENOUGH: u64 = 1000;

/// A kind of warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// Latencies mean nothing: failures, or a queue that still grows.
    ShardSaturated,
    /// Achieved below offered.
    UnderDelivery,
    /// The table names few of the keys that come.
    TableMismatch,
    /// The admitted keys' prefixes do not fit a shard's pool.
    PoolTooSmall,
    /// The share of admitted traffic has fallen since the table was installed.
    PlanStale,
    /// Blocks of admitted keys are evicted.
    ColdEvicts,
    /// Caches were still filling within the measured window.
    WarmUpInside,
    /// A 99th percentile of few requests.
    FewRequests,
}

impl Name {
    /// All names, the gravest first.
    pub const ALL: [Name; 8] = [
        Name::ShardSaturated,
        Name::UnderDelivery,
        Name::TableMismatch,
        Name::PoolTooSmall,
        Name::PlanStale,
        Name::ColdEvicts,
        Name::WarmUpInside,
        Name::FewRequests,
    ];

    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Name::ShardSaturated => "shard-saturated",
            Name::UnderDelivery => "under-delivery",
            Name::TableMismatch => "table-mismatch",
            Name::PoolTooSmall => "pool-too-small",
            Name::PlanStale => "plan-stale",
            Name::ColdEvicts => "cold-evicts-admitted",
            Name::WarmUpInside => "warm-up-measured",
            Name::FewRequests => "few-requests",
        }
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Name::ShardSaturated => "lower the rate or add shards; do not quote these latencies",
            Name::UnderDelivery => {
                "lower the rate, add shards, or raise --max-running; beyond the knee latency measures the queue"
            }
            Name::TableMismatch => "plan from rates of this traffic: cr-plan TRACE, or --plan-from 25%",
            Name::PoolTooSmall => "raise --kv-blocks, or plan with fewer --warm-slots",
            Name::PlanStale => "replan while it runs: --replan, or plan from newer rates",
            Name::ColdEvicts => "--protect-admitted, fewer --warm-slots, or more --kv-blocks",
            Name::WarmUpInside => "raise --warmup until the hit is level",
            Name::FewRequests => "run longer, or quote p90",
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A warning with its numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which.
    pub name: Name,
    /// In words, with numbers.
    pub detail: String,
}

/// Everything that is to be warned of, the gravest first.
pub fn check(live: &Live) -> Vec<Finding> {
    let found = |name: Name| {
        let detail = match name {
            Name::ShardSaturated => saturated(live),
            Name::UnderDelivery => under_delivery(live),
            Name::TableMismatch => table_mismatch(live),
            Name::PoolTooSmall => pool_too_small(live),
            Name::PlanStale => plan_stale(live),
            Name::ColdEvicts => cold_evicts(live),
            Name::WarmUpInside => warm_up_inside(live),
            Name::FewRequests => few_requests(live),
        };
        detail.map(|detail| Finding { name, detail })
    };
    Name::ALL.into_iter().filter_map(found).collect()
}

fn saturated(live: &Live) -> Option<String> {
    if live.summary.as_ref().is_some_and(|summary| summary.saturated) {
        return Some("more than 5 % fail, or a queue grew until the last arrival".into());
    }
    // One shard with a queue of its own: at least eight wait, and five times what waits elsewhere on average.
    let shards = live.fleet.shards();
    let worst = shards.iter().filter(|shard| shard.now.up).max_by_key(|shard| shard.now.queued)?;
    let total: u64 = shards.iter().map(|shard| shard.now.queued).fold(0, u64::saturating_add);
    let others = total.saturating_sub(worst.now.queued) as f64 / (shards.len().max(2) - 1) as f64;
    let alone = shards.len() > 1 && worst.now.queued >= 8 && worst.now.queued as f64 >= 5.0 * others;
    alone.then(|| {
        format!(
            "shard {}: {} wait there, {others:.1} on average elsewhere",
            worst.now.shard, worst.now.queued
        )
    })
}

fn under_delivery(live: &Live) -> Option<String> {
    let requests = &live.summary.as_ref()?.requests;
    let due = requests.offered.saturating_sub(requests.interrupted);
    let is_short = requests.achieved_qps < DELIVERED * requests.offered_qps;
    let is_lost = (requests.completed as f64) < DELIVERED * due as f64;
    (requests.completed >= ENOUGH && is_short && (is_lost || falls_behind(live)))
        .then(|| format!("offered {:.1}, achieved {:.1} QPS", requests.offered_qps, requests.achieved_qps))
}

/// Whether requests wait ever longer. The achieved rate alone does not tell: the newest requests are still on their way, and in the
/// first seconds of a run those are most. Where only a share of what is offered gets done, the time to first token grows by the rest of
/// the time that passes, so it is compared between the first and the last fifth of the window.
fn falls_behind(live: &Live) -> bool {
    let window = measured(live);
    if !is_long(live, window) {
        return false;
    }
    let fifth = window.len() / 5;
    let passed_s = (window.len() - fifth) as f64 * live.series.width_s();
    let mean_s = |slots: &[Slot]| {
        let (sum_s, n) = slots.iter().fold((0.0, 0), |sum, s| (sum.0 + s.ttft_sum_s, sum.1 + s.finished));
        (n > 0).then(|| sum_s / n as f64)
    };
    let (then_s, now_s) = (mean_s(&window[..fifth]), mean_s(&window[window.len() - fifth..]));
    then_s.zip(now_s).is_some_and(|(then_s, now_s)| now_s - then_s > (1.0 - DELIVERED) * passed_s)
}

/// Whether a stretch of the window says something about the run: while it goes on, a burst is no trend.
fn is_long(live: &Live, window: &[Slot]) -> bool {
    window.len() >= LONG || is_over(live)
}

fn is_over(live: &Live) -> bool {
    matches!(live.phase, Phase::Ended | Phase::CutShort)
}

/// The slots that lie within the measured window, from the first one in which a request finished.
fn measured(live: &Live) -> &[Slot] {
    let (slots, series) = (live.series.slots(), &live.series);
    let from_s = live.summary.as_ref().map_or(0.0, |summary| summary.window.from_s);
    let first = ((from_s - series.start_s(0)) / series.width_s()).ceil().max(0.0) as usize;
    let window = &slots[first.min(slots.len())..];
    let idle = window.iter().take_while(|slot| slot.finished == 0).count();
    &window[idle..]
}

fn table_mismatch(live: &Live) -> Option<String> {
    let planned = live.header.as_ref()?.policy == "cacheroute";
    // While the plan is learned, no key is admitted.
    let window = measured(live);
    let finished: u64 = window.iter().map(|slot| slot.finished).sum();
    let enough = finished >= ENOUGH && is_long(live, window);
    let admitted = share_admitted(window)?;
    (planned && enough && admitted < 0.1)
        .then(|| format!("{:.1} % of the prompt tokens belong to admitted keys", admitted * 100.0))
}

/// The admitted share of the prompt tokens.
fn share_admitted(slots: &[Slot]) -> Option<f64> {
    let (admitted, all) =
        slots.iter().fold((0, 0), |sum, slot| (sum.0 + slot.admitted.prompt, sum.1 + slot.hits.prompt));
    (all > 0).then(|| admitted as f64 / all as f64)
}

fn pool_too_small(live: &Live) -> Option<String> {
    let (table, header) = (live.table()?, live.header.as_ref()?);
    let mut blocks = vec![0u64; table.shards() as usize];
    for (key, shards) in table.places() {
        let tokens = table.prefix_tokens_of(key).unwrap_or(0);
        for shard in shards {
            blocks[shard.index()] += tokens.div_ceil(u64::from(header.block_tokens.max(1)));
        }
    }
    let (shard, most) = blocks.iter().enumerate().max_by_key(|(_, blocks)| **blocks)?;
    (*most > u64::from(header.kv_blocks)).then(|| {
        format!("shard {shard} is to keep {most} blocks of admitted prefixes, it has {}", header.kv_blocks)
    })
}

fn plan_stale(live: &Live) -> Option<String> {
    let installed = live.plans.back().map_or(0.0, |plan| plan.t_s);
    let (slots, width_s) = (live.series.slots(), live.series.width_s());
    let first = ((installed - live.series.start_s(0)) / width_s).ceil().max(0.0) as usize;
    let since = slots.get(first.min(slots.len())..)?;
    // A sixth of the time since, at least ten seconds, at both ends.
    let span = (since.len() / 6).max((10.0 / width_s).ceil() as usize);
    if since.len() < 3 * span || live.finished < ENOUGH {
        return None;
    }
    let then = share_admitted(&since[..span])?;
    let now = share_admitted(&since[since.len() - span..])?;
    (then - now > 0.1).then(|| {
        let (then, now) = (then * 100.0, now * 100.0);
        format!(
            "admitted keys had {then:.0} % of the prompt tokens after the table was installed, now {now:.0} %"
        )
    })
}

fn cold_evicts(live: &Live) -> Option<String> {
    let (all, admitted) = live.fleet.shards().iter().fold((0u64, 0u64), |sum, shard| {
        (
            sum.0.saturating_add(shard.now.evicted_blocks),
            sum.1.saturating_add(shard.now.evicted_admitted_blocks),
        )
    });
    (admitted >= 100).then(|| {
        let share = admitted as f64 / all.max(admitted) as f64 * 100.0;
        format!("{} blocks of admitted keys were evicted, {share:.0} % of all evictions", count(admitted))
    })
}

fn warm_up_inside(live: &Live) -> Option<String> {
    let window = measured(live);
    if window.len() < LONG || live.finished < ENOUGH {
        return None;
    }
    let (early, late) = window.split_at(window.len() / 5);
    let (early, late) = (ratio(early)?, ratio(late)?);
    (late - early > 0.1).then(|| {
        format!(
            "the hit was {:.0} % in the first fifth of the window, {:.0} % after it",
            early * 100.0,
            late * 100.0
        )
    })
}

fn ratio(slots: &[Slot]) -> Option<f64> {
    let mut hits = Hits::default();
    slots.iter().for_each(|slot| hits.add(slot.hits.prompt, slot.hits.cached));
    hits.ratio()
}

fn few_requests(live: &Live) -> Option<String> {
    let count = live.summary.as_ref()?.ttft_s.count;
    (is_over(live) && (1..P99_ENOUGH).contains(&count))
        .then(|| format!("the p99 of {count} requests rests on the {} slowest", (count / 100).max(1)))
}
