//! Hits and TTFT over time, in bins whose number does not grow with the run.

use super::sparse::Sparse;
use crate::events::{Fault, Finish, Plan};
use serde::{Deserialize, Serialize};

/// Bins at most. When a request finishes later, neighbours are merged and bins become twice as wide.
const BINS: usize = 120;

/// Width of a bin at first, in seconds.
const FIRST_WIDTH_S: f64 = 0.5;

/// Marks kept at most; later ones are only counted.
pub const MAX_MARKS: usize = 256;

/// Measured requests by the time at which they finished: bin i covers [i·width, (i+1)·width) of run time. All lists are equally long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Width of a bin, in seconds.
    pub width_s: f64,
    /// Requests that finished.
    pub requests: Vec<u64>,
    /// Their cached / prompt tokens; 0 where there are none.
    pub served_hit: Vec<f64>,
    /// The 99th percentile of their TTFT, in seconds, to 1 %; 0 where there are none.
    pub ttft_p99_s: Vec<f64>,
    /// When plans and shards changed, in the order of time.
    pub marks: Vec<Mark>,
    /// Changes beyond the first [`MAX_MARKS`].
    pub marks_left_out: u64,
}

/// A change worth a line in a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// When, in seconds of run time.
    pub t_s: f64,
    /// What changed.
    pub kind: MarkKind,
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkKind {
    /// A routing table was installed.
    Plan,
    /// A shard changed its state.
    Fault,
}

#[derive(Clone, Debug)]
struct Bin {
    prompt_tokens: u64,
    cached_tokens: u64,
    ttft_s: Sparse,
}

impl Bin {
    fn empty() -> Bin {
        Bin { prompt_tokens: 0, cached_tokens: 0, ttft_s: Sparse::new() }
    }

    fn merge(&mut self, other: &Bin) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.ttft_s.merge(&other.ttft_s);
    }
}

/// Fills a [`Timeline`].
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    width_s: f64,
    bins: Vec<Bin>,
    marks: Vec<Mark>,
    marks_left_out: u64,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder { width_s: FIRST_WIDTH_S, bins: Vec::new(), marks: Vec::new(), marks_left_out: 0 }
    }
}

impl Recorder {
    pub(super) fn finish(&mut self, event: &Finish) {
        let mut bin = (event.t_s.max(0.0) / self.width_s) as usize;
        while bin >= BINS {
            self.halve();
            bin = (event.t_s / self.width_s) as usize;
        }
        if bin >= self.bins.len() {
            self.bins.resize_with(bin + 1, Bin::empty);
        }
        let bin = &mut self.bins[bin];
        bin.prompt_tokens = bin.prompt_tokens.saturating_add(event.prompt_tokens);
        bin.cached_tokens = bin.cached_tokens.saturating_add(event.cached_tokens);
        bin.ttft_s.record(event.ttft_s);
    }

    pub(super) fn plan(&mut self, event: &Plan) {
        self.mark(Mark { t_s: event.t_s, kind: MarkKind::Plan });
    }

    pub(super) fn fault(&mut self, event: &Fault) {
        self.mark(Mark { t_s: event.t_s, kind: MarkKind::Fault });
    }

    fn mark(&mut self, mark: Mark) {
        if self.marks.len() < MAX_MARKS {
            self.marks.push(mark);
        } else {
            self.marks_left_out += 1;
        }
    }

    fn halve(&mut self) {
        let mut left = std::mem::take(&mut self.bins).into_iter();
        while let Some(mut bin) = left.next() {
            if let Some(next) = left.next() {
                bin.merge(&next);
            }
            self.bins.push(bin);
        }
        self.width_s *= 2.0;
    }

    pub(super) fn timeline(&self) -> Timeline {
        let hit = |bin: &Bin| {
            if bin.prompt_tokens == 0 { 0.0 } else { bin.cached_tokens as f64 / bin.prompt_tokens as f64 }
        };
        Timeline {
            width_s: self.width_s,
            requests: self.bins.iter().map(|bin| bin.ttft_s.count()).collect(),
            served_hit: self.bins.iter().map(hit).collect(),
            ttft_p99_s: self.bins.iter().map(|bin| bin.ttft_s.quantile(0.99)).collect(),
            marks: self.marks.clone(),
            marks_left_out: self.marks_left_out,
        }
    }
}

impl Timeline {
    /// The same with bins of `width_s`, where that is this one's width doubled some number of times; otherwise unchanged. A merged
    /// bin's hit is weighted by requests, and its p99 is the higher one: this is for figures.
    pub fn widened(&self, width_s: f64) -> Timeline {
        let mut made = self.clone();
        while made.width_s > 0.0 && made.width_s * 1.5 < width_s {
            let pairs =
                || made.requests.chunks(2).zip(made.served_hit.chunks(2)).zip(made.ttft_p99_s.chunks(2));
            let hit = |((n, hit), _): ((&[u64], &[f64]), &[f64])| {
                let all: u64 = n.iter().sum();
                let sum: f64 = n.iter().zip(hit).map(|(&n, hit)| n as f64 * hit).sum();
                if all == 0 { 0.0 } else { sum / all as f64 }
            };
            let served_hit = pairs().map(hit).collect();
            let ttft_p99_s = pairs().map(|(_, p99)| p99.iter().copied().fold(0.0, f64::max)).collect();
            let requests = pairs().map(|((n, _), _)| n.iter().sum()).collect();
            made = Timeline { width_s: made.width_s * 2.0, requests, served_hit, ttft_p99_s, ..made };
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ScopeTokens;

    fn finish(t_s: f64, ttft_s: f64, cached_tokens: u64) -> Finish {
        Finish {
            t_s,
            id: cr_trace::RequestId(0),
            key: "k".into(),
            tenant: "k".into(),
            shard: cr_trace::ShardId(0),
            admitted: true,
            arrival_s: 0.0,
            queue_s: 0.0,
            ttft_s,
            tpot_s: None,
            e2e_s: ttft_s,
            prompt_tokens: 100,
            cached_tokens,
            cached_by_scope: ScopeTokens::default(),
            output_tokens: 1,
            retries: 0,
            preemptions: 0,
            measured: true,
        }
    }

    #[test]
    fn bins_double_and_nothing_is_lost() {
        let mut recorder = Recorder::default();
        for n in 0..10_000u32 {
            recorder.finish(&finish(f64::from(n) * 0.1, 0.5, u64::from(n % 2) * 80));
        }
        let line = recorder.timeline();
        assert_eq!((line.width_s, line.requests.len()), (16.0, 63));
        assert_eq!(line.requests.iter().sum::<u64>(), 10_000);
        assert!(line.served_hit.iter().all(|hit| (hit - 0.4).abs() < 0.01));
        assert!(line.ttft_p99_s.iter().all(|p99| *p99 == 0.5));
        recorder.finish(&finish(15_000_000.0, 0.5, 0));
        assert!(recorder.timeline().requests.len() <= BINS);
    }

    #[test]
    fn marks_are_bounded() {
        let mut recorder = Recorder::default();
        for n in 0..1000u32 {
            recorder.mark(Mark { t_s: f64::from(n), kind: MarkKind::Plan });
        }
        assert_eq!(
            (recorder.timeline().marks.len(), recorder.timeline().marks_left_out),
            (MAX_MARKS, 1000 - MAX_MARKS as u64)
        );
    }

    #[test]
    fn widening_merges_neighbours() {
        let line = Timeline {
            width_s: 0.5,
            requests: vec![1, 3, 2],
            served_hit: vec![1.0, 0.0, 0.5],
            ttft_p99_s: vec![0.1, 0.4, 0.2],
            ..Timeline::default()
        };
        let wide = line.widened(1.0);
        assert_eq!(
            (wide.requests, wide.served_hit, wide.ttft_p99_s),
            (vec![4, 2], vec![0.25, 0.5], vec![0.4, 0.2])
        );
        assert_eq!(line.widened(0.5), line);
    }
}
