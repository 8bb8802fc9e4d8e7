//! The hottest keys, by the space-saving sketch (Metwally, Agrawal, El Abbadi 2005): a fixed number of counters; a key
//! without one takes over the least counter, whose count becomes the bound of its error.
//!
//! A key with more than n / [`MAX_KEYS`] of n requests is never missing.

use compact_str::CompactString;
use cr_report::events::Finish;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

use super::dist::Dist;
use super::series::Hits;

/// The number of counters.
pub const MAX_KEYS: usize = 512;

/// What is known of one key.
#[derive(Clone, Debug, Default)]
pub struct KeyStat {
    /// Its requests, at most; see [`KeyStat::error`].
    pub requests: u64,
    /// By how much `requests` may be too high.
    pub error: u64,
    /// Whether its last request was admitted.
    pub admitted: bool,
    /// Tokens since it has its counter.
    pub hits: Hits,
    /// Requests by shard since it has its counter.
    pub shards: BTreeMap<u32, u64>,
    /// Time to first token since it has its counter.
    pub ttft: Dist,
}

/// The sketch.
#[derive(Clone, Debug, Default)]
pub struct TopKeys {
    by_key: FxHashMap<CompactString, usize>,
    /// Counters, with the position in `order`.
    stats: Vec<(CompactString, KeyStat, usize)>,
    /// Positions of counters, by descending count: an increment moves a counter past its equals.
    order: Vec<usize>,
    total: u64,
}

impl TopKeys {
    /// Counts a finished request.
    pub fn finish(&mut self, finish: &Finish) {
        self.total += 1;
        let at = match self.by_key.get(&finish.key) {
            Some(at) => *at,
            None => self.claim(&finish.key),
        };
        self.raise(at);
        let stat = &mut self.stats[at].1;
        stat.admitted = finish.admitted;
        stat.hits.add(finish.prompt_tokens, finish.cached_tokens);
        *stat.shards.entry(finish.shard.0).or_default() += 1;
        stat.ttft.record(finish.ttft_s);
    }

    fn claim(&mut self, key: &CompactString) -> usize {
        let at = if self.stats.len() < MAX_KEYS {
            let at = self.stats.len();
            self.stats.push((key.clone(), KeyStat::default(), self.order.len()));
            self.order.push(at);
            at
        } else {
            let at = self.order[MAX_KEYS - 1];
            let (old, stat, _) = &mut self.stats[at];
            self.by_key.remove(old);
            *old = key.clone();
            *stat = KeyStat { requests: stat.requests, error: stat.requests, ..KeyStat::default() };
            at
        };
        self.by_key.insert(key.clone(), at);
        at
    }

    /// Adds one to a counter and keeps `order` descending: it changes places with the first of its equals.
    fn raise(&mut self, at: usize) {
        let count = self.stats[at].1.requests;
        let place = self.stats[at].2;
        let first = self.order.partition_point(|other| self.stats[*other].1.requests > count);
        let other = self.order[first];
        self.order.swap(place, first);
        self.stats[other].2 = place;
        self.stats[at].2 = first;
        self.stats[at].1.requests += 1;
    }

    /// Keys by descending number of requests.
    pub fn hottest(&self) -> impl Iterator<Item = (&CompactString, &KeyStat)> {
        self.order.iter().map(|at| (&self.stats[*at].0, &self.stats[*at].1))
    }

    /// One key, where it has a counter.
    pub fn get(&self, key: &str) -> Option<&KeyStat> {
        self.by_key.get(key).map(|at| &self.stats[*at].1)
    }

    /// The number of keys that have a counter.
    pub fn len(&self) -> usize {
        self.stats.len()
    }

    /// Whether no request was counted.
    pub fn is_empty(&self) -> bool {
        self.stats.is_empty()
    }

    /// Requests counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether every key had a counter all along, so that all counts are exact.
    pub fn is_exact(&self) -> bool {
        self.stats.iter().all(|(_, stat, _)| stat.error == 0)
    }
}
