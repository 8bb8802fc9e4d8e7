//! Does a prefix come back before it is evicted? A cheap prediction of what affinity can win.
//!
//! Every shard is reduced to a cache of so many tokens that evicts the segment used longest ago; there are no queues and no
//! time. Each request goes to one shard, either by its own hash (spread, as cache-blind balancing does) or by its key's
//! (pinned, as affinity does), and its prefix has reappeared if that shard still holds it. A gap between the two
//! is what affinity can win; no gap means that it can only lose.

use super::tree::PrefixMatch;
use crate::Request;
use crate::tokens::mix64;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;
use twox_hash::XxHash3_64;

/// What the prediction is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fleet {
    /// Shards, at least one.
    pub shards: u32,
    /// Tokens that each shard's cache holds.
    pub kv_tokens: u64,
}

/// What reappears under one way of sending requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reappearance {
    /// Requests whose shard held at least 90 % of the tokens that an unlimited cache would find / requests with any such
    /// tokens.
    pub requests: f64,
    /// Tokens found / prompt tokens of all requests.
    pub tokens: f64,
}

/// The prediction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReappearReport {
    /// What it is about.
    pub fleet: Fleet,
    /// Requests sent to any shard.
    pub spread: Reappearance,
    /// Requests sent to their key's shard.
    pub pinned: Reappearance,
}

/// Gathers the prediction, request by request.
#[derive(Debug)]
pub struct Reappear {
    fleet: Fleet,
    spread: Side,
    pinned: Side,
    reusable: u64,
    input_tokens: u64,
    chain: Vec<(u64, u32)>,
}

#[derive(Debug)]
struct Side {
    shards: Vec<SegmentCache>,
    requests: u64,
    tokens: u64,
}

impl Side {
    fn new(fleet: Fleet) -> Side {
        let shards = (0..fleet.shards.max(1)).map(|_| SegmentCache::new(fleet.kv_tokens)).collect();
        Side { shards, requests: 0, tokens: 0 }
    }

    fn send(&mut self, hash: u64, chain: &[(u64, u32)], reusable: u64) {
        let shard = (hash % self.shards.len() as u64) as usize;
        let found = self.shards[shard].serve(chain);
        self.tokens += found;
        self.requests += u64::from(reusable > 0 && found * 10 >= reusable * 9);
    }
}

impl Reappear {
    /// Nothing sent yet.
    pub fn new(fleet: Fleet) -> Reappear {
        Reappear {
            fleet,
            spread: Side::new(fleet),
            pinned: Side::new(fleet),
            reusable: 0,
            input_tokens: 0,
            chain: Vec::new(),
        }
    }

    /// Sends one request; `found` is what an unlimited cache finds of it.
    pub fn observe(&mut self, request: &Request, found: PrefixMatch) {
        self.chain.clear();
        let mut parent = 0u64;
        for segment in &request.prompt {
            parent = mix64(
                parent.rotate_left(29) ^ segment.content().hash64() ^ u64::from(segment.tokens()) << 32,
            );
            self.chain.push((parent, segment.tokens()));
        }
        self.reusable += u64::from(found.tokens > 0);
        self.input_tokens += request.prompt_tokens();
        self.spread.send(mix64(request.id.0), &self.chain, found.tokens);
        self.pinned.send(XxHash3_64::oneshot(request.key.as_bytes()), &self.chain, found.tokens);
    }

    /// The prediction so far.
    pub fn report(&self) -> ReappearReport {
        let of = |side: &Side| Reappearance {
            requests: side.requests as f64 / self.reusable.max(1) as f64,
            tokens: side.tokens as f64 / self.input_tokens.max(1) as f64,
        };
        ReappearReport { fleet: self.fleet, spread: of(&self.spread), pinned: of(&self.pinned) }
    }
}

/// A cache of whole segments, by the chain of everything up to them. Evicts what was used longest ago, and of one request
/// the deepest first, so that what it holds are always leading segments.
#[derive(Debug)]
struct SegmentCache {
    capacity: u64,
    held: u64,
    clock: u64,
    /// When it was used last, and its tokens.
    segments: FxHashMap<u64, (u64, u32)>,
    by_age: BTreeMap<u64, u64>,
}

impl SegmentCache {
    fn new(capacity: u64) -> SegmentCache {
        SegmentCache { capacity, held: 0, clock: 0, segments: FxHashMap::default(), by_age: BTreeMap::new() }
    }

    /// The leading tokens held; then holds them all.
    fn serve(&mut self, chain: &[(u64, u32)]) -> u64 {
        let held = chain.iter().take_while(|(hash, _)| self.segments.contains_key(hash));
        let found = held.map(|(_, tokens)| u64::from(*tokens)).sum();
        for &(hash, tokens) in chain.iter().rev() {
            self.clock += 1;
            match self.segments.insert(hash, (self.clock, tokens)) {
                Some((before, _)) => {
                    self.by_age.remove(&before);
                }
                None => self.held += u64::from(tokens),
            }
            self.by_age.insert(self.clock, hash);
        }
        while self.held > self.capacity
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            if let Some((_, tokens)) = self.segments.remove(&oldest) {
                self.held -= u64::from(tokens);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::PrefixTree;
    use crate::{ContentId, RequestId, Segment};

    #[test]
    fn a_cache_keeps_leading_segments_and_forgets_the_oldest() {
        let mut cache = SegmentCache::new(100);
        let chain = |key: u64| [(0, 30), (key, 30), (key + 100, 10)];
        assert_eq!((cache.serve(&chain(1)), cache.serve(&chain(1))), (0, 70));
        // The next one makes room by the oldest request's deepest segments: its turn, then its context.
        assert_eq!((cache.serve(&chain(2)), cache.serve(&chain(2))), (30, 70));
        assert_eq!(cache.held, 100);
        assert_eq!(cache.serve(&chain(1)), 60, "the context of key 1 was still there");
        assert_eq!(cache.serve(&[(9, 500)]), 0);
        assert_eq!(cache.held, 0, "what does not fit is not held");
    }

    fn report(fleet: Fleet, keys: u64, requests: u64) -> ReappearReport {
        let (mut reappear, mut tree) = (Reappear::new(fleet), PrefixTree::new(usize::MAX));
        for id in 0..requests {
            let key = compact_str::format_compact!("k{}", mix64(id ^ 0x5eed) % keys);
            let request = Request {
                id: RequestId(id),
                t_s: 0.0,
                tenant: None,
                session: None,
                turn: None,
                after: None,
                think_s: None,
                prompt: [Segment(ContentId::key(&key), 900), Segment(ContentId::user(RequestId(id)), 100)]
                    .into_iter()
                    .collect(),
                key,
                output_tokens: 1,
            };
            let hashed: Vec<_> = request.prompt.iter().map(|s| (s.content().hash64(), s.tokens())).collect();
            reappear.observe(&request, tree.insert(0, &hashed, None));
        }
        reappear.report()
    }

    /// With room for a fifth of the keys on each of 10 shards, pinned keys all fit and spread ones do not.
    #[test]
    fn scarce_caches_favour_pinning() {
        let scarce = report(Fleet { shards: 10, kv_tokens: 20_000 }, 100, 20_000);
        assert!(scarce.pinned.requests > 0.9 && scarce.spread.requests < 0.3, "{scarce:?}");
        // A request of which the context is found gives 900 of 1,000 tokens.
        assert!((scarce.pinned.tokens - 0.9 * scarce.pinned.requests).abs() < 0.01);
    }

    #[test]
    fn plentiful_caches_need_no_affinity() {
        let ample = report(Fleet { shards: 10, kv_tokens: 10_000_000 }, 100, 50_000);
        assert!(ample.pinned.requests > 0.99 && ample.spread.requests > 0.97, "{ample:?}");
    }
}
