//! `dualmap`: two hashed candidates, the one with the better cache unless it is behind.
//!
//! Rule: hash the key twice to two shards (on a collision the second is the neighbour; a shard that is down gives way to the
//! next one that is up). Take the candidate with the longer cached prefix, unless its pending prefill, this request's
//! included, would not clear within the SLO at the assumed drain rate: then the less loaded of the two. Equal prefixes: the
//! less loaded. Ties at random. Cached prefixes are those of the router's own index of what it dispatched.
//! Source: DualMap, arXiv 2602.06502. Its result hangs on the drain rate that it assumes.

use super::index::PrefixIndex;
use super::{Policy, PolicyTuning, choose};
use crate::view::FleetView;
use cr_trace::{Request, ShardId, Stream};
use twox_hash::XxHash3_64;

/// See the module's page.
#[derive(Clone, Debug)]
pub struct DualMap {
    index: PrefixIndex,
    slo_ttft_s: f64,
    drain_tokens_per_s: f64,
    matched: Vec<u32>,
}

impl DualMap {
    /// For this many shards.
    pub fn new(shards: u32, tuning: &PolicyTuning) -> DualMap {
        DualMap {
            index: PrefixIndex::new(shards, tuning.kv_tokens),
            slo_ttft_s: tuning.slo_ttft_s,
            drain_tokens_per_s: tuning.drain_tokens_per_s,
            matched: Vec::new(),
        }
    }

    fn clears(&self, shard: ShardId, missed: u64, view: &FleetView<'_>) -> bool {
        let pending = view.shard(shard).pending_tokens + missed;
        pending as f64 / self.drain_tokens_per_s <= self.slo_ttft_s
    }
}

/// The two candidates of a key, distinct where two shards are up; `None` where none is.
pub(super) fn candidates(key: &str, view: &FleetView<'_>) -> Option<(ShardId, ShardId)> {
    let shards = view.len() as u64;
    let next_up = |from: u64, except: Option<u64>| {
        (0..shards)
            .map(|n| (from + n) % shards)
            .find(|&shard| view.shards[shard as usize].up && Some(shard) != except)
    };
    if shards == 0 {
        return None;
    }
    let hash = |seed| XxHash3_64::oneshot_with_seed(seed, key.as_bytes()) % shards;
    let first = next_up(hash(0), None)?;
    let second = next_up(hash(1), Some(first)).unwrap_or(first);
    Some((ShardId(first as u32), ShardId(second as u32)))
}

impl Policy for DualMap {
    fn name(&self) -> &'static str {
        "dualmap"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let (first, second) = candidates(&request.key, view)?;
        let mut matched = std::mem::take(&mut self.matched);
        let outline = request.prompt.outline();
        self.index.matches(request, &mut matched);
        let cached = |shard: ShardId| matched.get(shard.index()).copied().unwrap_or(0);
        let better = match cached(first).cmp(&cached(second)) {
            std::cmp::Ordering::Greater => Some(first),
            std::cmp::Ordering::Less => Some(second),
            std::cmp::Ordering::Equal => None,
        };
        let missed = |shard: ShardId| outline.tokens().saturating_sub(u64::from(cached(shard)));
        let chosen = better
            .filter(|&shard| self.clears(shard, missed(shard), view))
            .or_else(|| choose::less_loaded([first, second].into_iter(), view, rng))?;
        self.matched = matched;
        self.index.insert(request, chosen);
        Some(chosen)
    }

    fn on_fault(&mut self, shard: ShardId, up: bool) {
        if !up {
            self.index.clear(shard);
        }
    }
}
