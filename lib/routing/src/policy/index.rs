//! What a router knows of the caches: an index of the prompts that it dispatched to each shard.
//!
//! A node is one segment of content after one exact history. Each shard that was sent it holds it with the longest length
//! sent; the least recently sent nodes of a shard are forgotten once its tokens exceed what its KV pool can hold. The index
//! never sees a pool: a real one may have evicted more, or less.

use super::recency::Recency;
use cr_trace::ShardId;
use cr_trace::prompt::{Outline, Part};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Names a node: a hash of its whole history and of its content.
type NodeId = u64;

#[derive(Clone, Copy, Debug)]
struct Holder {
    shard: ShardId,
    tokens: u32,
    /// Its place in the order of dispatch.
    place: u32,
}

/// What a shard holds of a node.
#[derive(Clone, Copy, Debug)]
struct Held {
    node: NodeId,
    tokens: u32,
    /// How often it was sent.
    hits: u32,
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
    /// Tokens that each shard holds.
    tokens: Vec<u64>,
    /// What each shard holds, in the order in which it was last sent there.
    order: Recency<Held>,
}

impl PrefixIndex {
    /// An empty index of this many shards that hold `kv_tokens` tokens each.
    pub(super) fn new(shards: u32, kv_tokens: u64) -> PrefixIndex {
        PrefixIndex {
            kv_tokens,
            nodes: FxHashMap::default(),
            tokens: vec![0; shards as usize],
            order: Recency::new(shards),
        }
    }

    /// The leading tokens of a prompt that each shard was sent before, into `out` (one entry a shard). The last token is
    /// always computed, so it never counts.
    pub(super) fn matches(&self, prompt: &Outline, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.tokens.len(), 0);
        let mut before = 0;
        let whole = prompt.parts().iter().all(|&Part { name: node, tokens, .. }| {
            let Some(holders) = self.nodes.get(&node) else { return false };
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
            if goes_on {
                before += tokens;
            }
            goes_on
        });
        if whole {
            let most = u32::try_from(prompt.tokens()).unwrap_or(u32::MAX).saturating_sub(1);
            out.iter_mut().for_each(|matched| *matched = (*matched).min(most));
        }
    }

    /// Notes that a prompt was sent to a shard.
    pub(super) fn insert(&mut self, prompt: &Outline, shard: ShardId) {
        let Some(held) = self.tokens.get_mut(shard.index()) else { return };
        // The deepest first, so that among equally old ones it is forgotten first.
        for &Part { name: node, tokens, .. } in prompt.parts().iter().rev() {
            let holders = self.nodes.entry(node).or_default();
            match holders.iter_mut().find(|holder| holder.shard == shard) {
                Some(holder) => {
                    *held += u64::from(tokens.saturating_sub(holder.tokens));
                    holder.tokens = holder.tokens.max(tokens);
                    let entry = self.order.renew(shard.0, holder.place);
                    *entry = Held { tokens: holder.tokens, hits: entry.hits.saturating_add(1), ..*entry };
                }
                None => {
                    *held += u64::from(tokens);
                    let place = self.order.push(shard.0, Held { node, tokens, hits: 1 });
                    holders.push(Holder { shard, tokens, place });
                }
            }
        }
        while self.tokens[shard.index()] > self.kv_tokens && self.forget_oldest(shard) {}
    }

    /// Forgets everything about a shard that lost its cache.
    pub(super) fn clear(&mut self, shard: ShardId) {
        while self.forget_oldest(shard) {}
    }

    /// What a shard would forget to make room for this many tokens, oldest first.
    pub(super) fn would_forget(&self, shard: ShardId, tokens: u64) -> impl Iterator<Item = Forgotten> + '_ {
        let mut excess = (self.tokens[shard.index()] + tokens).saturating_sub(self.kv_tokens);
        let all = self.order.iter(shard.0).map(|held| Forgotten { tokens: held.tokens, hits: held.hits });
        all.take_while(move |gone| {
            let needed = excess > 0;
            excess = excess.saturating_sub(u64::from(gone.tokens));
            needed
        })
    }

    /// Forgets one node; false where there is none left.
    fn forget_oldest(&mut self, shard: ShardId) -> bool {
        if shard.index() >= self.tokens.len() {
            return false;
        }
        let Some(held) = self.order.pop_oldest(shard.0) else { return false };
        self.tokens[shard.index()] -= u64::from(held.tokens);
        if let Some(holders) = self.nodes.get_mut(&held.node) {
            holders.retain(|holder| holder.shard != shard);
            if holders.is_empty() {
                self.nodes.remove(&held.node);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;
    use cr_trace::content::shared_tokens;
    use cr_trace::{ContentId, Request, Segment};
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
                index.matches(request.prompt.outline(), &mut found);
                for shard in 0..3 {
                    let before = history.iter().filter(|(_, to)| *to == shard);
                    let naive = before.map(|(other, _)| shared_tokens(&other.prompt, &request.prompt)).max();
                    let naive = naive.unwrap_or(0).min(request.prompt_tokens() - 1);
                    prop_assert_eq!(u64::from(found[shard as usize]), naive);
                }
                index.insert(request.prompt.outline(), ShardId(*shard));
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
                let held = index.tokens[shard.index()];
                prop_assert!(promised >= (held + 25).saturating_sub(kv_tokens).min(held));
                index.insert(request.prompt.outline(), shard);
                for n in 0..3u32 {
                    let live = index.nodes.values().flatten().filter(|holder| holder.shard.0 == n);
                    let (count, tokens) = live.fold((0, 0), |(count, sum), holder| (count + 1, sum + u64::from(holder.tokens)));
                    prop_assert_eq!(index.tokens[n as usize], tokens);
                    prop_assert_eq!(index.order.iter(n).count(), count);
                    prop_assert_eq!(index.order.iter(n).map(|held| u64::from(held.tokens)).sum::<u64>(), tokens);
                    prop_assert!(tokens <= kv_tokens);
                }
            }
            index.clear(ShardId(1));
            prop_assert!(index.nodes.values().flatten().all(|holder| holder.shard != ShardId(1)));
        }
    }
}
