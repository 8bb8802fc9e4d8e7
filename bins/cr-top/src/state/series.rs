//! What happened over time, in at most [`MAX_SLOTS`] slots: when they are used up, pairs of slots are merged and a
//! slot covers twice the time. So a run of any length has between half and all of the slots, in constant memory.

use cr_report::aggregate::{SPAN_S, imbalance};
use cr_report::events::{Finish, Shards};
use std::cell::Cell;

use super::dist::Dist;
use super::fleet::Change;
use super::scope::{Group, GroupTokens};

/// The most slots that are kept; even.
pub const MAX_SLOTS: usize = 480;
/// The least of a fleet of any size; even.
const MIN_SLOTS: usize = 60;
/// Slots × shards stays below this, as far as [`MIN_SLOTS`] lets it: 16 MB.
const MAX_CELLS: usize = 2_000_000;
/// The time that a slot covers at first, in seconds.
pub const FIRST_WIDTH_S: f64 = 1.0;

/// Prompt tokens, and those of them that were found in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Prompt tokens.
    pub prompt: u64,
    /// Of those, cached.
    pub cached: u64,
}

impl Hits {
    /// Adds one request.
    pub fn add(&mut self, prompt: u64, cached: u64) {
        self.prompt += prompt;
        self.cached += cached;
    }

    /// Cached / prompt tokens; `None` without any prompt token.
    pub fn ratio(self) -> Option<f64> {
        (self.prompt > 0).then(|| self.cached as f64 / self.prompt as f64)
    }

    fn merge(&mut self, other: Hits) {
        self.add(other.prompt, other.cached);
    }
}

/// The 50th, 90th and 99th percentile, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A distribution whose percentiles are worked out once, not on every frame.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    dist: Option<Box<Dist>>,
    known: Cell<Option<Percentiles>>,
}

impl Timed {
    /// Counts one duration in seconds.
    pub fn record(&mut self, seconds: f64) {
        self.dist.get_or_insert_default().record(seconds);
        self.known.set(None);
    }

    /// The percentiles; `None` where nothing was counted.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let dist = self.dist.as_ref()?;
        if self.known.get().is_none() {
            let at = |q| dist.quantile(q).unwrap_or_default();
            self.known.set(Some(Percentiles { p50: at(0.5), p90: at(0.9), p99: at(0.99) }));
        }
        self.known.get()
    }

    /// Adds all values of another one.
    pub fn add(&mut self, other: &Timed) {
        if let Some(theirs) = &other.dist {
            self.dist.get_or_insert_default().merge(theirs);
            self.known.set(None);
        }
    }

    fn merge(&mut self, other: Timed) {
        let Some(theirs) = other.dist else { return };
        match &mut self.dist {
            Some(mine) => mine.merge(&theirs),
            mine => *mine = Some(theirs),
        }
        self.known.set(None);
    }
}

/// What happened in one stretch of run time.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// Requests finished.
    pub finished: u64,
    /// Requests failed.
    pub failed: u64,
    /// Tokens of finished requests.
    pub hits: Hits,
    /// Of admitted keys.
    pub admitted: Hits,
    /// Of all other keys.
    pub cold: Hits,
    /// Cached tokens by what they are.
    pub by_group: GroupTokens,
    /// Time to first token.
    pub ttft: Timed,
    /// Its sum over the finished requests, in seconds.
    pub ttft_sum_s: f64,
    /// Time per output token.
    pub tpot: Timed,
    /// Time in the queue.
    pub queue: Timed,
    /// Tokens of work (computed prompt plus output), by shard.
    pub tokens: Vec<u64>,
    /// Blocks of admitted keys that were evicted.
    pub evicted_admitted: u64,
    /// Requests in the fleet, from the last snapshot of the slot.
    pub in_flight: Option<u64>,
}

impl Slot {
    fn merge(&mut self, later: Slot) {
        self.finished += later.finished;
        self.failed += later.failed;
        self.hits.merge(later.hits);
        self.admitted.merge(later.admitted);
        self.cold.merge(later.cold);
        for group in Group::ALL {
            self.by_group[group as usize] += later.by_group[group as usize];
        }
        self.ttft.merge(later.ttft);
        self.ttft_sum_s += later.ttft_sum_s;
        self.tpot.merge(later.tpot);
        self.queue.merge(later.queue);
        grow(&mut self.tokens, later.tokens.len());
        for (mine, theirs) in self.tokens.iter_mut().zip(&later.tokens) {
            *mine += theirs;
        }
        self.evicted_admitted += later.evicted_admitted;
        self.in_flight = later.in_flight.or(self.in_flight);
    }
}

fn grow(list: &mut Vec<u64>, len: usize) {
    if list.len() < len {
        list.resize(len, 0);
    }
}

/// The slots of a run, from its first event on.
#[derive(Clone, Debug)]
pub struct Series {
    origin_s: Option<f64>,
    width_s: f64,
    slots: Vec<Slot>,
    limit: usize,
}

impl Default for Series {
    fn default() -> Series {
        Series { origin_s: None, width_s: FIRST_WIDTH_S, slots: Vec::new(), limit: MAX_SLOTS }
    }
}

impl Series {
    /// A series for so many shards: the more, the fewer slots.
    pub fn of_fleet(shards: u32) -> Series {
        let limit = (MAX_CELLS / (shards as usize).max(1)).clamp(MIN_SLOTS, MAX_SLOTS);
        Series { limit: limit & !1, ..Series::default() }
    }

    /// The slots in order of time.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The time that one slot covers, in seconds.
    pub fn width_s(&self) -> f64 {
        self.width_s
    }

    /// The run time at which slot `index` begins, in seconds.
    pub fn start_s(&self, index: usize) -> f64 {
        self.origin_s.unwrap_or_default() + index as f64 * self.width_s
    }

    /// The run time at which the last slot ends, in seconds.
    pub fn end_s(&self) -> f64 {
        self.start_s(self.slots.len())
    }

    /// The slots without those at the end, two at most, in which hardly any request has finished yet: one that has just begun, or the
    /// last moments of a run. A ratio of a handful of requests says nothing about now.
    pub fn settled(&self) -> &[Slot] {
        let total: u64 = self.slots.iter().map(|slot| slot.finished).sum();
        let is_thin = |slot: &&Slot| 4 * slot.finished * (self.slots.len() as u64) < total;
        let thin = self.slots.iter().rev().take(2).take_while(is_thin).count();
        &self.slots[..self.slots.len() - thin]
    }

    /// The slot of the instant `t_s`; an instant before the first event belongs to the first slot.
    pub fn at(&mut self, t_s: f64) -> &mut Slot {
        let origin = *self.origin_s.get_or_insert((t_s / FIRST_WIDTH_S).floor() * FIRST_WIDTH_S);
        loop {
            let index = ((t_s - origin) / self.width_s).max(0.0) as usize;
            if index < self.limit {
                if index >= self.slots.len() {
                    self.slots.resize_with(index + 1, Slot::default);
                }
                return &mut self.slots[index];
            }
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.width_s *= 2.0;
        let mut merged: Vec<Slot> = Vec::with_capacity(self.limit);
        for (index, slot) in std::mem::take(&mut self.slots).into_iter().enumerate() {
            match merged.last_mut() {
                Some(earlier) if index % 2 == 1 => earlier.merge(slot),
                _ => merged.push(slot),
            }
        }
        self.slots = merged;
    }

    /// Counts a finished request.
    pub fn finish(&mut self, finish: &Finish) {
        let slot = self.at(finish.t_s);
        let (prompt, cached) = (finish.prompt_tokens, finish.cached_tokens);
        slot.finished += 1;
        slot.hits.add(prompt, cached);
        if finish.admitted { &mut slot.admitted } else { &mut slot.cold }.add(prompt, cached);
        for (scope, tokens) in finish.cached_by_scope.iter() {
            slot.by_group[Group::of_scope(scope) as usize] += tokens;
        }
        slot.ttft.record(finish.ttft_s);
        slot.ttft_sum_s += finish.ttft_s;
        slot.queue.record(finish.queue_s);
        if let Some(tpot_s) = finish.tpot_s {
            slot.tpot.record(tpot_s);
        }
    }

    /// Takes over a snapshot and what has changed since the one before.
    pub fn shards(&mut self, shards: &Shards, change: &Change) {
        let slot = self.at(shards.t_s);
        slot.evicted_admitted += change.evicted_admitted;
        grow(&mut slot.tokens, change.tokens.len());
        for (sum, tokens) in slot.tokens.iter_mut().zip(&change.tokens) {
            *sum += tokens;
        }
        slot.in_flight = Some(shards.shards.iter().map(|shard| shard.queued + shard.running).sum());
    }

    /// Max / mean over shards of the tokens that each slot and the slots before it, [`SPAN_S`] together,
    /// computed; one value a slot, `None` where no token was computed. `up` says which shards count.
    pub fn imbalance(&self, up: &[bool]) -> Vec<Option<f64>> {
        let span = ((SPAN_S / self.width_s).ceil() as usize).max(1);
        let mut window = vec![0u64; up.len()];
        let add = |window: &mut Vec<u64>, slot: &Slot, sign: bool| {
            for (sum, tokens) in window.iter_mut().zip(&slot.tokens) {
                *sum = if sign { *sum + tokens } else { *sum - tokens };
            }
        };
        let mut out = Vec::with_capacity(self.slots.len());
        for (index, slot) in self.slots.iter().enumerate() {
            add(&mut window, slot, true);
            if index >= span {
                add(&mut window, &self.slots[index - span], false);
            }
            // Within a window a shard counts as up throughout or not at all.
            let loads = window.iter().zip(up).map(|(tokens, up)| {
                let counts = *up || *tokens > 0;
                (*tokens as f64, if counts { 1.0 } else { 0.0 })
            });
            out.push(imbalance(loads));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(t_s: f64) -> Shards {
        Shards { t_s, shards: Vec::new(), window_start: false }
    }

    #[test]
    fn a_long_run_keeps_its_sums_in_bounded_memory() {
        let mut series = Series::default();
        for n in 0..100_000u64 {
            let change = Change { evicted_admitted: 1, tokens: vec![2, 1] };
            series.shards(&snapshot(1000.0 + n as f64 * 0.25), &change);
        }
        assert!(series.slots().len() <= MAX_SLOTS && series.slots().len() >= MAX_SLOTS / 4);
        assert_eq!(series.slots().iter().map(|slot| slot.evicted_admitted).sum::<u64>(), 100_000);
        assert_eq!(series.slots().iter().map(|slot| slot.tokens[0]).sum::<u64>(), 200_000);
        assert_eq!(series.start_s(0), 1000.0);
        assert!(series.end_s() >= 26_000.0);
        let ratios = series.imbalance(&[true, true]);
        assert!(ratios.iter().flatten().all(|ratio| (ratio - 4.0 / 3.0).abs() < 1e-9));
    }

    #[test]
    fn a_jump_to_the_end_of_time_ends() {
        let mut series = Series::default();
        series.at(0.0).finished += 1;
        series.at(1.5e7).finished += 1;
        assert_eq!(series.slots().iter().map(|slot| slot.finished).sum::<u64>(), 2);
        assert!(series.slots().len() <= MAX_SLOTS);
    }

    #[test]
    fn a_shard_that_is_down_does_not_count() {
        let mut series = Series::default();
        series.shards(&snapshot(0.0), &Change { evicted_admitted: 0, tokens: vec![3, 3, 0] });
        assert_eq!(series.imbalance(&[true, true, false]), [Some(1.0)]);
        assert_eq!(series.imbalance(&[true, true, true]), [Some(1.5)]);
    }
}
