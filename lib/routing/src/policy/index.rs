//! What a router knows of the caches: an index of the prompts that it dispatched to each shard.
//!
//! A node is one segment of content after one exact history. Each shard that was sent it holds it with the longest length
//! sent; the least recently sent nodes of a shard are forgotten once its tokens exceed what its KV pool can hold. The index
//! never sees a pool: a real one may have evicted more, or less.

use cr_trace::tokens::mix64;
use cr_trace::{Request, ShardId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Names a node: a hash of its whole history and of its content.
type NodeId = u64;

#[derive(Clone, Copy, Debug)]
struct Holder {
    shard: ShardId,
    tokens: u32,
    /// When it was last sent, in dispatches to any shard.
    stamp: u64,
    /// How often it was sent.
    hits: u32,
}

/// What one shard holds.
#[derive(Clone, Debug, Default)]
struct Held {
    tokens: u64,
    nodes: usize,
    /// Stamps and nodes, oldest first; an entry whose stamp is not the holder's is outdated.
    order: VecDeque<(u64, NodeId)>,
}

/// Something that a shard would forget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forgotten {
    pub(super) tokens: u32,
    pub(super) hits: u32,
}

/// An index of dispatched prompts.
#[derive(Clone, Debug)]
pub(super) struct PrefixIndex {
    kv_tokens: u64,
    nodes: FxHashMap<NodeId, SmallVec<[Holder; 2]>>,
    shards: Vec<Held>,
    clock: u64,
}

/// The nodes of a prompt with their tokens, first segment first.
fn path(request: &Request) -> SmallVec<[(NodeId, u32); 8]> {
    let mut history = 0;
    request
        .prompt
        .iter()
        .map(|segment| {
            let node = mix64(history ^ segment.content().hash64());
            history = mix64(node ^ u64::from(segment.tokens()));
            (node, segment.tokens())
        })
        .collect()
}

impl PrefixIndex {
    /// An empty index of this many shards that hold `kv_tokens` tokens each.
    pub(super) fn new(shards: u32, kv_tokens: u64) -> PrefixIndex {
        PrefixIndex {
            kv_tokens,
            nodes: FxHashMap::default(),
            shards: vec![Held::default(); shards as usize],
            clock: 0,
        }
    }

    /// The leading tokens of the prompt that each shard was sent before, into `out` (one entry a shard). The last token is
    /// always computed, so it never counts.
    pub(super) fn matches(&self, request: &Request, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.shards.len(), 0);
        let mut before = 0;
        for (node, tokens) in path(request) {
            let Some(holders) = self.nodes.get(&node) else { break };
            let mut goes_on = false;
            for holder in holders {
                // A shard that lacks an earlier part cannot use a later one.
                if let Some(matched) = out.get_mut(holder.shard.index())
                    && *matched == before
                {
                    *matched += holder.tokens.min(tokens);
                    goes_on |= holder.tokens >= tokens;
                }
            }
            if !goes_on {
                break;
            }
            before += tokens;
        }
        let most = u32::try_from(request.prompt_tokens()).unwrap_or(u32::MAX).saturating_sub(1);
        out.iter_mut().for_each(|matched| *matched = (*matched).min(most));
    }

    /// Notes that a prompt was sent to a shard.
    pub(super) fn insert(&mut self, request: &Request, shard: ShardId) {
        let Some(held) = self.shards.get_mut(shard.index()) else { return };
        self.clock += 1;
        // The deepest first, so that among equally old ones it is forgotten first.
        for &(node, tokens) in path(request).iter().rev() {
            let holders = self.nodes.entry(node).or_default();
            match holders.iter_mut().find(|holder| holder.shard == shard) {
                Some(holder) => {
                    held.tokens += u64::from(tokens.saturating_sub(holder.tokens));
                    *holder = Holder {
                        tokens: holder.tokens.max(tokens),
                        stamp: self.clock,
                        hits: holder.hits.saturating_add(1),
                        ..*holder
                    };
                }
                None => {
                    held.tokens += u64::from(tokens);
                    held.nodes += 1;
                    holders.push(Holder { shard, tokens, stamp: self.clock, hits: 1 });
                }
            }
            held.order.push_back((self.clock, node));
        }
        while self.shards[shard.index()].tokens > self.kv_tokens && self.forget_oldest(shard) {}
        self.compact(shard);
    }

    /// Forgets everything about a shard that lost its cache.
    pub(super) fn clear(&mut self, shard: ShardId) {
        if let Some(held) = self.shards.get_mut(shard.index()) {
            *held = Held::default();
            self.nodes.retain(|_, holders| {
                holders.retain(|holder| holder.shard != shard);
                !holders.is_empty()
            });
        }
    }

    /// What a shard would forget to make room for this many tokens, oldest first.
    pub(super) fn would_forget(&self, shard: ShardId, tokens: u64) -> impl Iterator<Item = Forgotten> + '_ {
        let held = &self.shards[shard.index()];
        let mut excess = (held.tokens + tokens).saturating_sub(self.kv_tokens);
        let live = held.order.iter().filter_map(move |&(stamp, node)| {
            let holder = self.nodes.get(&node)?.iter().find(|holder| holder.shard == shard)?;
            (holder.stamp == stamp).then_some(Forgotten { tokens: holder.tokens, hits: holder.hits })
        });
        live.take_while(move |gone| {
            let needed = excess > 0;
            excess = excess.saturating_sub(u64::from(gone.tokens));
            needed
        })
    }

    /// Forgets one node; false where there is none left.
    fn forget_oldest(&mut self, shard: ShardId) -> bool {
        let held = &mut self.shards[shard.index()];
        while let Some((stamp, node)) = held.order.pop_front() {
            let Some(holders) = self.nodes.get_mut(&node) else { continue };
            let found = holders.iter().position(|holder| holder.shard == shard && holder.stamp == stamp);
            if let Some(at) = found {
                held.tokens -= u64::from(holders.swap_remove(at).tokens);
                held.nodes -= 1;
                if holders.is_empty() {
                    self.nodes.remove(&node);
                }
                return true;
            }
        }
        false
    }

    /// Drops outdated entries once they are the greater part, so that the order never outgrows what is held.
    fn compact(&mut self, shard: ShardId) {
        let held = &mut self.shards[shard.index()];
        if held.order.len() > 4 * held.nodes + 64 {
            let nodes = &self.nodes;
            held.order.retain(|(stamp, node)| {
                let holders = nodes.get(node).into_iter().flatten();
                holders.into_iter().any(|holder| holder.shard == shard && holder.stamp == *stamp)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;
    use cr_trace::content::shared_tokens;
    use cr_trace::{ContentId, Segment};
    use proptest::prelude::*;

    fn prompts() -> impl Strategy<Value = Vec<(Vec<(u8, u32)>, u32)>> {
        let prompt = proptest::collection::vec((0u8..3, 1u32..20), 1..5);
        proptest::collection::vec((prompt, 0u32..3), 1..30)
    }

    fn with_prompt(id: u64, parts: &[(u8, u32)]) -> Request {
        let mut request = request(id, "k");
        request.prompt =
            parts.iter().map(|&(name, tokens)| Segment(ContentId::key(&name.to_string()), tokens)).collect();
        request
    }

    proptest! {
        /// With room for all, a shard's match is the longest prefix shared with any prompt sent to it.
        #[test]
        fn unlimited_matches_are_the_shared_tokens(sent in prompts()) {
            let mut index = PrefixIndex::new(3, u64::MAX);
            let mut history: Vec<(Request, u32)> = Vec::new();
            let mut found = Vec::new();
            for (id, (parts, shard)) in sent.iter().enumerate() {
                let request = with_prompt(id as u64, parts);
                index.matches(&request, &mut found);
                for shard in 0..3 {
                    let before = history.iter().filter(|(_, to)| *to == shard);
                    let naive = before.map(|(other, _)| shared_tokens(&other.prompt, &request.prompt)).max();
                    let naive = naive.unwrap_or(0).min(request.prompt_tokens() - 1);
                    prop_assert_eq!(u64::from(found[shard as usize]), naive);
                }
                index.insert(&request, ShardId(*shard));
                history.push((request, *shard));
            }
        }

        #[test]
        fn a_bounded_index_stays_in_its_bound(sent in prompts(), kv_tokens in 0u64..60) {
            let mut index = PrefixIndex::new(3, kv_tokens);
            for (id, (parts, shard)) in sent.iter().enumerate() {
                let request = with_prompt(id as u64, parts);
                let shard = ShardId(*shard);
                let promised: u64 = index.would_forget(shard, 25).map(|gone| u64::from(gone.tokens)).sum();
                let held = index.shards[shard.index()].tokens;
                prop_assert!(promised >= (held + 25).saturating_sub(kv_tokens).min(held));
                index.insert(&request, shard);
                for (n, held) in index.shards.iter().enumerate() {
                    let live = index.nodes.values().flatten().filter(|holder| holder.shard.index() == n);
                    let (count, tokens) = live.fold((0, 0), |(count, sum), holder| (count + 1, sum + u64::from(holder.tokens)));
                    prop_assert_eq!((held.nodes, held.tokens), (count, tokens));
                    prop_assert!(held.tokens <= kv_tokens);
                    prop_assert!(held.order.len() <= 4 * held.nodes + 64);
                }
            }
            index.clear(ShardId(1));
            prop_assert!(index.nodes.values().flatten().all(|holder| holder.shard != ShardId(1)));
        }
    }
}
