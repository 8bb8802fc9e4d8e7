//! Two runs on one time axis: how far apart they are, and whether that is more than each wavers.
//!
//! The time that both runs measured is cut into blocks. A metric is taken in every block of both, and the paired differences give a
//! 95 % interval by Student's t. It says whether two *streams* differ, not whether two policies do: for that several
//! seeds are compared (`cr-serve compare`).

use cr_report::aggregate::imbalance;
use cr_report::stats::Difference;
use cr_report::summary::Summary;

use std::cell::RefCell;

use super::live::Live;
use super::series::{Hits, Slot, Timed};

/// Blocks that the common time is cut into.
pub const BLOCKS: usize = 10;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Served hit.
    Hit,
    /// Max / mean of tokens over shards.
    Imbalance,
    /// Median of TTFT.
    TtftP50,
    /// 99th percentile of TTFT.
    TtftP99,
    /// Median of TPOT.
    TpotP50,
    /// 99th percentile of the queue time.
    QueueP99,
    /// Requests finished per second.
    Achieved,
}

impl Metric {
    /// All metrics in the order of the table.
    pub const ALL: [Metric; 7] = [
        Metric::Hit,
        Metric::Imbalance,
        Metric::TtftP50,
        Metric::TtftP99,
        Metric::TpotP50,
        Metric::QueueP99,
        Metric::Achieved,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Hit => "served hit",
            Metric::Imbalance => "tokens m/m",
            Metric::TtftP50 => "TTFT p50",
            Metric::TtftP99 => "TTFT p99",
            Metric::TpotP50 => "TPOT p50",
            Metric::QueueP99 => "queue p99",
            Metric::Achieved => "achieved",
        }
    }

    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Metric::Hit | Metric::Achieved)
    }

    /// Its value over the measured part of a run.
    pub fn of(self, summary: &Summary) -> f64 {
        match self {
            Metric::Hit => summary.served_hit,
            Metric::Imbalance => summary.imbalance.tokens,
            Metric::TtftP50 => summary.ttft_s.p50,
            Metric::TtftP99 => summary.ttft_s.p99,
            Metric::TpotP50 => summary.tpot_s.p50,
            Metric::QueueP99 => summary.queue_s.p99,
            Metric::Achieved => summary.requests.achieved_qps,
        }
    }
}

/// The metrics of one block; `None` where nothing happened in it.
type Block = [Option<f64>; Metric::ALL.len()];

/// A run's blocks over a stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks(Vec<Block>);

/// The blocks that were worked out last. A frame needs them again long before the summary, which says what time is
/// compared, is worked out anew.
#[derive(Clone, Debug, Default)]
pub struct KnownBlocks(RefCell<Option<(Key, Blocks)>>);

/// From, to, and requests completed by then.
type Key = (f64, f64, u64);

/// The time that all runs measured: from the last start to the first end.
pub fn common_time(runs: &[&Live]) -> Option<(f64, f64)> {
    let windows: Vec<_> =
        runs.iter().filter_map(|run| run.summary.as_ref()).map(|summary| summary.window).collect();
    if windows.len() < runs.len() || windows.is_empty() {
        return None;
    }
    let from_s = windows.iter().map(|window| window.from_s).fold(0.0, f64::max);
    let to_s = windows.iter().map(|window| window.to_s).fold(f64::INFINITY, f64::min);
    (to_s > from_s).then_some((from_s, to_s))
}

impl Blocks {
    /// Cuts a run, unless that was just done.
    pub fn of(run: &Live, (from_s, to_s): (f64, f64)) -> Blocks {
        let completed = run.summary.as_ref().map_or(run.finished, |summary| summary.requests.completed);
        let key = (from_s, to_s, completed);
        let mut known = run.blocks.0.borrow_mut();
        if let Some((_, blocks)) = known.as_ref().filter(|(of, _)| *of == key) {
            return blocks.clone();
        }
        let blocks = Blocks::cut(run, (from_s, to_s));
        *known = Some((key, blocks.clone()));
        blocks
    }

    fn cut(run: &Live, (from_s, to_s): (f64, f64)) -> Blocks {
        let up = run.fleet.up();
        let width_s = (to_s - from_s) / BLOCKS as f64;
        let mut parts: Vec<Vec<&Slot>> = vec![Vec::new(); BLOCKS];
        for (index, slot) in run.series.slots().iter().enumerate() {
            let middle_s = run.series.start_s(index) + run.series.width_s() / 2.0;
            let block = (middle_s - from_s) / width_s;
            if (0.0..BLOCKS as f64).contains(&block) {
                parts[block as usize].push(slot);
            }
        }
        Blocks(parts.iter().map(|slots| block(slots, &up, run.series.width_s())).collect())
    }

    /// Mean difference (other − self) over the blocks that both have.
    pub fn difference(&self, other: &Blocks, metric: Metric) -> Difference {
        let at = metric as usize;
        let pairs = self.0.iter().zip(&other.0).filter_map(|(mine, theirs)| Some((theirs[at]?, mine[at]?)));
        Difference::of(&pairs.collect::<Vec<_>>())
    }
}

fn block(slots: &[&Slot], up: &[bool], width_s: f64) -> Block {
    let mut hits = Hits::default();
    let (mut ttft, mut tpot, mut queue) = (Timed::default(), Timed::default(), Timed::default());
    let mut tokens = vec![0u64; up.len()];
    let mut finished = 0;
    for slot in slots {
        hits.add(slot.hits.prompt, slot.hits.cached);
        ttft.add(&slot.ttft);
        tpot.add(&slot.tpot);
        queue.add(&slot.queue);
        finished += slot.finished;
        for (sum, tokens) in tokens.iter_mut().zip(&slot.tokens) {
            *sum += tokens;
        }
    }
    let loads =
        tokens.iter().zip(up).map(|(tokens, up)| (*tokens as f64, f64::from(u8::from(*up || *tokens > 0))));
    let (ttft, tpot, queue) = (ttft.percentiles(), tpot.percentiles(), queue.percentiles());
    [
        hits.ratio(),
        imbalance(loads),
        ttft.map(|p| p.p50),
        ttft.map(|p| p.p99),
        tpot.map(|p| p.p50),
        queue.map(|p| p.p99),
        (!slots.is_empty()).then(|| finished as f64 / (slots.len() as f64 * width_s)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::fleet::Change;
    use cr_report::events::Shards;

    fn run(hit: impl Fn(u32) -> u64) -> Live {
        let mut live = Live::new("x");
        for n in 0..100 {
            let t_s = f64::from(n);
            live.series.shards(&Shards { t_s, shards: Vec::new(), window_start: false }, &Change::default());
            live.series.at(t_s).hits.add(1000, hit(n));
        }
        live
    }

    #[test]
    fn a_steady_difference_is_beyond_the_noise_and_a_wavering_one_is_not() {
        let time = (0.0, 100.0);
        let blocks = |hit: &dyn Fn(u32) -> u64| Blocks::of(&run(hit), time);
        // Both waver together by far more than they differ: pairing removes it.
        let (a, b) = (blocks(&|n| 300 + u64::from(n) * 5), blocks(&|n| 310 + u64::from(n) * 5));
        let d = a.difference(&b, Metric::Hit);
        assert!(!d.within_noise && (d.mean - 0.01).abs() < 1e-9, "{d:?}");
        let (a, b) = (
            blocks(&|n| if n / 10 % 2 == 0 { 300 } else { 500 }),
            blocks(&|n| if n / 10 % 2 == 0 { 500 } else { 310 }),
        );
        assert!(a.difference(&b, Metric::Hit).within_noise);
        assert_eq!(a.difference(&b, Metric::TtftP99).n, 0);
    }
}
