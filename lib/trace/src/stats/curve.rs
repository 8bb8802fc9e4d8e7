//! Reuse against the size of the cache, from stack distances.
//!
//! A block is found by a cache of C blocks that evicts the least recently used exactly if fewer than C distinct blocks were
//! used since its last use (Mattson et al. 1970). The blocks of a request are used from the deepest to the first, so that a
//! block is never evicted before one that hangs on it. All cache sizes are counted in one pass.
//!
//! Beyond a number of distinct blocks only those whose hash lies under a falling threshold are followed, and distances are
//! scaled up (fixed-size SHARDS, Waldspurger et al., FAST '15), with its correction for how many references the sample
//! should have had. Below that number the curve is exact.

use crate::Request;
use crate::block::{BlockChain, BlockHash};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeSet;

/// Distinct blocks that are followed at most; about 6 MB.
pub const CURVE_SAMPLES: usize = 1 << 16;

/// Buckets of distances in a doubling.
const STEPS: u32 = 4;
const BUCKETS: usize = 64 * STEPS as usize;

/// A point of the curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The size of the cache in tokens.
    pub cache_tokens: u64,
    /// Blocks found / all full blocks of prompts.
    pub hit: f64,
}

/// Reuse against the size of the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CurveReport {
    /// Tokens of a block.
    pub block_tokens: u32,
    /// The share of blocks that was followed; 1 where the curve is exact.
    pub sampled: f64,
    /// The curve, from one block up to a cache in which everything fits.
    pub points: Vec<CurvePoint>,
}

/// Gathers the curve, request by request.
#[derive(Debug)]
pub struct CacheCurve {
    block_tokens: u32,
    samples: usize,
    /// Blocks are followed whose hash is below this; none where all are.
    threshold: Option<u64>,
    followed: BTreeSet<u64>,
    stack: Stack,
    /// Weighted references by distance, and those never seen before.
    histogram: Vec<f64>,
    cold: f64,
    references: u64,
    hashes: Vec<BlockHash>,
}

impl CacheCurve {
    /// Follows at most `samples` distinct blocks of `block_tokens` tokens.
    pub fn new(block_tokens: u32, samples: usize) -> CacheCurve {
        CacheCurve {
            block_tokens: block_tokens.max(1),
            samples: samples.max(1),
            threshold: None,
            followed: BTreeSet::new(),
            stack: Stack::default(),
            histogram: vec![0.0; BUCKETS],
            cold: 0.0,
            references: 0,
            hashes: Vec::new(),
        }
    }

    fn rate(&self) -> f64 {
        self.threshold.map_or(1.0, |threshold| threshold as f64 / (u64::MAX as f64))
    }

    /// Takes in one request.
    pub fn observe(&mut self, request: &Request) {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.clear();
        BlockChain::new(self.block_tokens).append_prompt(&request.prompt, &mut hashes);
        self.references += hashes.len() as u64;
        hashes.retain(|hash| self.threshold.is_none_or(|threshold| hash.0 < threshold));
        // All distances first: a request finds what was there before it.
        for hash in &hashes {
            match self.stack.distance(hash.0) {
                Some(distance) => {
                    let scaled = (distance as f64 / self.rate()).max(1.0);
                    self.histogram[bucket(scaled)] += 1.0;
                }
                None => self.cold += 1.0,
            }
        }
        for hash in hashes.iter().rev() {
            self.stack.touch(hash.0);
            self.followed.insert(hash.0);
        }
        while self.followed.len() > self.samples {
            self.lower_threshold();
        }
        self.hashes = hashes;
    }

    /// Stops to follow the block of the highest hash, and weighs what was counted as if it had never been followed.
    fn lower_threshold(&mut self) {
        let Some(highest) = self.followed.pop_last() else { return };
        let before = self.rate();
        self.stack.forget(highest);
        self.threshold = Some(highest);
        let scale = self.rate() / before;
        self.histogram.iter_mut().for_each(|count| *count *= scale);
        self.cold *= scale;
    }

    /// The curve so far.
    pub fn report(&self) -> CurveReport {
        let rate = self.rate();
        let expected = self.references as f64 * rate;
        let mut histogram = self.histogram.clone();
        // The references that the sample has too few or too many of are those of the hottest blocks: the nearest distance.
        let counted: f64 = histogram.iter().sum::<f64>() + self.cold;
        histogram[0] += expected - counted;
        let last = histogram.iter().rposition(|&count| count > 0.0).unwrap_or(0);
        let mut found = 0.0;
        let points = histogram[..=last].iter().enumerate().map(|(index, count)| {
            found += count;
            let blocks = upper_bound(index);
            CurvePoint {
                cache_tokens: blocks.saturating_mul(u64::from(self.block_tokens)),
                hit: if expected > 0.0 { (found / expected).clamp(0.0, 1.0) } else { 0.0 },
            }
        });
        // Small distances share buckets; one point a size.
        let mut points: Vec<CurvePoint> = points.collect();
        points.dedup_by(|later, earlier| {
            let same = later.cache_tokens == earlier.cache_tokens;
            if same {
                earlier.hit = later.hit;
            }
            same
        });
        CurveReport { block_tokens: self.block_tokens, sampled: rate, points }
    }
}

/// The bucket of a distance of at least 1: a quarter of a doubling each.
fn bucket(distance: f64) -> usize {
    ((libm::log2(distance) * f64::from(STEPS) - 1e-9).ceil().max(0.0) as usize).min(BUCKETS - 1)
}

/// The largest distance in a bucket.
fn upper_bound(bucket: usize) -> u64 {
    libm::exp2(bucket as f64 / f64::from(STEPS)).floor() as u64
}

/// Distinct elements by their last use, with the number of those used later in logarithmic time (a Fenwick tree over time).
#[derive(Debug, Default)]
struct Stack {
    slots: FxHashMap<u64, usize>,
    /// Fenwick tree: one where the slot is the last use of its element.
    tree: Vec<u32>,
    next: usize,
}

impl Stack {
    /// The place of an element from the top, from 1; `None` where it is not there.
    fn distance(&self, element: u64) -> Option<u64> {
        let slot = *self.slots.get(&element)?;
        Some((self.slots.len() - self.count_up_to(slot) + 1) as u64)
    }

    /// Puts an element on top.
    fn touch(&mut self, element: u64) {
        if self.next + 1 >= self.tree.len() {
            self.compact();
        }
        self.next += 1;
        if let Some(before) = self.slots.insert(element, self.next) {
            self.add(before, -1);
        }
        self.add(self.next, 1);
    }

    fn forget(&mut self, element: u64) {
        if let Some(slot) = self.slots.remove(&element) {
            self.add(slot, -1);
        }
    }

    /// Numbers the slots anew, without gaps.
    fn compact(&mut self) {
        let mut in_order: Vec<(usize, u64)> =
            self.slots.iter().map(|(&element, &slot)| (slot, element)).collect();
        in_order.sort_unstable();
        self.next = 0;
        self.tree = vec![0; (2 * in_order.len()).max(1024) + 1];
        for (_, element) in in_order {
            self.next += 1;
            self.slots.insert(element, self.next);
            self.add(self.next, 1);
        }
    }

    fn add(&mut self, slot: usize, delta: i32) {
        let mut at = slot;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add_signed(delta);
            at += at & at.wrapping_neg();
        }
    }

    fn count_up_to(&self, slot: usize) -> usize {
        let (mut at, mut count) = (slot, 0);
        while at > 0 {
            count += self.tree[at] as usize;
            at &= at - 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::mix64;
    use crate::{ContentId, RequestId, Segment};
    use proptest::prelude::*;

    fn request(parts: &[u8]) -> Request {
        Request {
            id: RequestId(0),
            t_s: 0.0,
            key: "k".into(),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: parts.iter().map(|&id| Segment(ContentId::block(id.into()), 4)).collect(),
            output_tokens: 1,
        }
    }

    /// Blocks found by a plain list of at most `size` blocks, most recent first.
    fn plain_hits(requests: &[Vec<u8>], size: usize) -> usize {
        let (mut list, mut hits): (Vec<BlockHash>, usize) = (Vec::new(), 0);
        for parts in requests {
            let blocks = crate::block::prompt_blocks(&request(parts).prompt, 4);
            hits += blocks.iter().filter(|block| list.contains(block)).count();
            for block in blocks.iter().rev() {
                list.retain(|held| held != block);
                list.insert(0, *block);
            }
            list.truncate(size);
        }
        hits
    }

    proptest! {
        /// Without sampling, each point is what a cache of that size finds. A request longer than the cache is cut from the
        /// deepest block, as the list is.
        #[test]
        fn every_point_is_a_cache(
            requests in proptest::collection::vec(proptest::collection::vec(0u8..4, 1..6), 1..40),
        ) {
            let mut curve = CacheCurve::new(4, 1 << 16);
            requests.iter().for_each(|parts| curve.observe(&request(parts)));
            let blocks: usize = requests.iter().map(Vec::len).sum();
            let report = curve.report();
            prop_assert_eq!(report.sampled, 1.0);
            for point in report.points {
                let size = (point.cache_tokens / 4) as usize;
                let wanted = plain_hits(&requests, size) as f64 / blocks as f64;
                prop_assert!((point.hit - wanted).abs() < 1e-9, "{} at {}: {}", point.hit, size, wanted);
            }
        }

        #[test]
        fn the_stack_is_a_list(uses in proptest::collection::vec((0u64..20, any::<bool>()), 0..3000)) {
            let (mut stack, mut list): (Stack, Vec<u64>) = (Stack::default(), Vec::new());
            for (element, forget) in uses {
                let place = list.iter().position(|&held| held == element).map(|place| place as u64 + 1);
                prop_assert_eq!(stack.distance(element), place);
                list.retain(|&held| held != element);
                if forget && element == 3 {
                    stack.forget(element);
                } else {
                    stack.touch(element);
                    list.insert(0, element);
                }
            }
        }
    }

    /// A sample of a twentieth comes within three points of the exact curve.
    #[test]
    fn a_sampled_curve_is_close() {
        let (mut exact, mut sampled) = (CacheCurve::new(4, 1 << 20), CacheCurve::new(4, 1000));
        for step in 0..60_000u64 {
            // Skewed over 20,000 contents: the square of a uniform number.
            let uniform = mix64(step) as f64 / u64::MAX as f64;
            let content = (uniform * uniform * 20_000.0) as u64;
            let mut request = request(&[]);
            request.prompt.push(Segment(ContentId::block(content), 4));
            exact.observe(&request);
            sampled.observe(&request);
        }
        let (exact, sampled) = (exact.report(), sampled.report());
        assert!(exact.sampled == 1.0 && sampled.sampled < 0.07, "{}", sampled.sampled);
        let at = |report: &CurveReport, tokens: u64| {
            report
                .points
                .iter()
                .rev()
                .find(|point| point.cache_tokens <= tokens)
                .map_or(0.0, |point| point.hit)
        };
        for blocks in [300u64, 1000, 3000, 10_000, 20_000] {
            let (wanted, found) = (at(&exact, blocks * 4), at(&sampled, blocks * 4));
            assert!((wanted - found).abs() < 0.03, "{blocks} blocks: {found} is not {wanted}");
        }
    }
}
