//! What a router knows of the caches: an index of the prompts that it dispatched to each shard.
//!
//! A node is one segment of content after one exact history. Each shard that was sent it holds it with the longest length
//! sent; the least recently sent nodes of a shard are forgotten once its tokens exceed what its KV pool can hold. The index
//! never sees a pool: a real one may have evicted more, or less.
//!
//! What only its own request could ask for, its turn, is nearly all of a long run's nodes and is looked for by nobody: as long as no
//! request quotes another one, such nodes take their place in the order of dispatch and are in no map.

mod node;
mod shard_bits;

use super::recency::Recency;
use cr_trace::prompt::Part;
use cr_trace::{Request, RequestId, ShardId};
use node::{Holder, Node};
use rustc_hash::FxHashMap;
use shard_bits::ShardBits;

/// Names a node: a hash of its whole history and of its content.
type NodeId = u64;

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
    nodes: FxHashMap<NodeId, Node>,
    /// Tokens that each shard holds.
    tokens: Vec<u64>,
    /// What each shard holds, in the order in which it was last sent there.
    order: Recency<Held>,
    /// Some request quoted another one, or came again: every node can be found.
    all_are_found: bool,
    /// The highest id so far: a request beyond it is a new one.
    newest: Option<RequestId>,
    /// The buffer of a look at the matches.
    going: ShardBits,
}

impl PrefixIndex {
    /// An empty index of this many shards that hold `kv_tokens` tokens each.
    pub(super) fn new(shards: u32, kv_tokens: u64) -> PrefixIndex {
        PrefixIndex {
            kv_tokens,
            nodes: FxHashMap::default(),
            tokens: vec![0; shards as usize],
            order: Recency::new(shards),
            all_are_found: false,
            newest: None,
            going: ShardBits::default(),
        }
    }

    /// The leading tokens of a request's prompt that each shard was sent before, into `out` (one entry a shard). The last token is
    /// always computed, so it never counts.
    pub(super) fn matches(&mut self, request: &Request, out: &mut Vec<u32>) {
        self.look_for_quotes(request);
        out.clear();
        out.resize(self.tokens.len(), 0);
        let prompt = request.prompt.outline();
        let shared = &prompt.parts()[..self.shared_parts(request)];
        let (mut before, mut whole) = (0, shared.len() == prompt.parts().len());
        let going = &mut self.going;
        going.fill(out.len() as u32);
        for &Part { name, tokens, .. } in shared {
            let node = self.nodes.get(&name).filter(|_| !going.is_empty());
            let Some(node) = node else {
                whole = false;
                break;
            };
            node.follow(tokens, before, going, out);
            before += tokens;
        }
        // A shard that lacks an earlier part cannot use a later one: only these have all parts so far.
        going.iter().for_each(|shard| out[shard.index()] = before);
        if whole {
            let most = u32::try_from(prompt.tokens()).unwrap_or(u32::MAX).saturating_sub(1);
            out.iter_mut().for_each(|matched| *matched = (*matched).min(most));
        }
    }

    /// Notes that a request, the one whose matches were told last, was sent to a shard.
    pub(super) fn insert(&mut self, request: &Request, shard: ShardId) {
        debug_assert!(self.newest >= Some(request.id), "its matches were told");
        let (shared, own) = request.prompt.outline().parts().split_at(self.shared_parts(request));
        let Some(held) = self.tokens.get_mut(shard.index()) else { return };
        // The deepest first, so that among equally old ones it is forgotten first.
        for &Part { name: node, tokens, .. } in own.iter().rev() {
            *held += u64::from(tokens);
            self.order.push(shard.0, Held { node, tokens, hits: 1 });
        }
        for &Part { name: node, tokens, .. } in shared.iter().rev() {
            let kept = self.nodes.entry(node).or_insert_with(Node::new);
            match kept.holder(shard) {
                Some(holder) => {
                    *held += u64::from(tokens.saturating_sub(holder.tokens));
                    holder.tokens = holder.tokens.max(tokens);
                    let entry = self.order.renew(shard.0, holder.place);
                    *entry = Held { tokens: holder.tokens, hits: entry.hits.saturating_add(1), ..*entry };
                }
                None => {
                    *held += u64::from(tokens);
                    let place = self.order.push(shard.0, Held { node, tokens, hits: 1 });
                    kept.insert(shard, Holder { tokens, place });
                }
            }
        }
        while self.tokens[shard.index()] > self.kv_tokens && self.forget_oldest(shard) {}
    }

    /// How many parts of a request's prompt anybody else could have, too.
    #[inline]
    fn shared_parts(&self, request: &Request) -> usize {
        let prompt = request.prompt.outline();
        let own = if self.all_are_found { None } else { prompt.first_of(request.id.0) };
        own.unwrap_or(prompt.parts().len())
    }

    /// Where a request may ask for another one's turn or answer, or for its own once more, everything can be found from now on.
    #[inline]
    fn look_for_quotes(&mut self, request: &Request) {
        let comes_again = self.newest >= Some(request.id);
        if !self.all_are_found && (comes_again || request.prompt.outline().quotes_others(request.id.0)) {
            self.find_all();
        }
        self.newest = self.newest.max(Some(request.id));
    }

    /// Puts those nodes into the map that are only in the order of dispatch.
    #[cold]
    fn find_all(&mut self) {
        self.all_are_found = true;
        for shard in (0..self.tokens.len() as u32).map(ShardId) {
            for (place, held) in self.order.iter(shard.0) {
                let node = self.nodes.entry(held.node).or_insert_with(Node::new);
                if node.holder(shard).is_none() {
                    node.insert(shard, Holder { tokens: held.tokens, place });
                }
            }
        }
    }

    /// Forgets everything about a shard that lost its cache.
    pub(super) fn clear(&mut self, shard: ShardId) {
        while self.forget_oldest(shard) {}
    }

    /// What a shard would forget to make room for this many tokens, oldest first.
    pub(super) fn would_forget(&self, shard: ShardId, tokens: u64) -> impl Iterator<Item = Forgotten> + '_ {
        let mut excess = (self.tokens[shard.index()] + tokens).saturating_sub(self.kv_tokens);
        let all =
            self.order.iter(shard.0).map(|(_, held)| Forgotten { tokens: held.tokens, hits: held.hits });
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
        if let Some(node) = self.nodes.get_mut(&held.node) {
            node.remove(shard);
            if node.is_empty() {
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
    use cr_trace::{ContentId, Segment};
    use proptest::prelude::*;

    /// Where requests go, in a fleet of so many shards.
    const SHARDS: [u32; 3] = [0, 1, 70];
    const FLEET: u32 = 71;

    /// What is sent: by whom, its content and where it goes.
    #[derive(Clone, Debug)]
    struct Sent {
        request: Request,
        shard: ShardId,
    }

    /// Requests of a few keys. Most have a turn of their own; `quotes` of 16 have the turn or the answer of another one, too, or come
    /// again.
    fn sent(quotes: u8) -> impl Strategy<Value = Vec<Sent>> {
        let shared = proptest::collection::vec((0u8..3, 1u32..20), 0..4);
        let one = (shared, 0u8..8, (0u8..16, 0u64..30, any::<bool>()), 0usize..3, 1u32..20);
        proptest::collection::vec(one, 1..30).prop_map(move |script| {
            let each = script.into_iter().zip(0u64..);
            each.map(|((shared, turn, (quote, other, answer), shard, tokens), place)| {
                let again = quote == 0 && quotes > 0 && turn > 3;
                let id = RequestId(if again { other.min(place) } else { place });
                let key = |(name, tokens): (u8, u32)| Segment(ContentId::key(&name.to_string()), tokens);
                let mut prompt: Vec<Segment> = shared.into_iter().map(key).collect();
                if quote < quotes {
                    let other = RequestId(other);
                    let content = if answer { ContentId::answer(other) } else { ContentId::user(other) };
                    prompt.push(Segment(content, tokens));
                }
                if turn > 1 || prompt.is_empty() {
                    prompt.push(Segment(ContentId::user(id), tokens));
                }
                if turn == 2 {
                    prompt.push(Segment(ContentId::key("0"), tokens));
                }
                let mut request = request(id.0, "k");
                request.prompt = prompt.into();
                Sent { request, shard: ShardId(SHARDS[shard]) }
            })
            .collect()
        })
    }

    fn any_sent() -> impl Strategy<Value = Vec<Sent>> {
        prop_oneof![sent(0), sent(1), sent(8)]
    }

    proptest! {
        /// With room for all, a shard's match is the longest prefix shared with any prompt sent to it.
        #[test]
        fn unlimited_matches_are_the_shared_tokens(sent in any_sent()) {
            let mut index = PrefixIndex::new(FLEET, u64::MAX);
            let mut history: Vec<Sent> = Vec::new();
            let mut found = Vec::new();
            for Sent { request, shard } in sent {
                index.matches(&request, &mut found);
                for n in SHARDS {
                    let before = history.iter().filter(|one| one.shard == ShardId(n));
                    let naive = before.map(|one| shared_tokens(&one.request.prompt, &request.prompt)).max();
                    let naive = naive.unwrap_or(0).min(request.prompt_tokens() - 1);
                    prop_assert_eq!(u64::from(found[n as usize]), naive);
                }
                index.insert(&request, shard);
                history.push(Sent { request, shard });
            }
        }

        /// What is kept out of the map changes no answer.
        #[test]
        fn it_is_as_one_that_has_every_node_in_its_map(sent in any_sent(), kv_tokens in 0u64..200, dies in 0usize..30) {
            let mut index = PrefixIndex::new(FLEET, kv_tokens);
            let mut eager = PrefixIndex { all_are_found: true, ..index.clone() };
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            for (place, Sent { request, shard }) in sent.into_iter().enumerate() {
                if place == dies {
                    index.clear(ShardId(1));
                    eager.clear(ShardId(1));
                }
                index.matches(&request, &mut found);
                eager.matches(&request, &mut wanted);
                prop_assert_eq!(&found, &wanted);
                index.insert(&request, shard);
                eager.insert(&request, shard);
                for n in SHARDS.map(ShardId) {
                    let gone = |index: &PrefixIndex| index.would_forget(n, 40).collect::<Vec<_>>();
                    prop_assert_eq!(gone(&index), gone(&eager));
                }
                prop_assert_eq!(&index.tokens, &eager.tokens);
            }
        }

        #[test]
        fn a_bounded_index_stays_in_its_bound(sent in any_sent(), kv_tokens in 0u64..60) {
            let mut index = PrefixIndex { all_are_found: true, ..PrefixIndex::new(FLEET, kv_tokens) };
            for Sent { request, shard } in sent {
                let promised: u64 = index.would_forget(shard, 25).map(|gone| u64::from(gone.tokens)).sum();
                let held = index.tokens[shard.index()];
                prop_assert!(promised >= (held + 25).saturating_sub(kv_tokens).min(held));
                index.matches(&request, &mut Vec::new());
                index.insert(&request, shard);
                for n in SHARDS {
                    let live = index.nodes.values().flat_map(Node::iter).filter(|(shard, _)| shard.0 == n);
                    let (count, tokens) = live.fold((0, 0), |(count, sum), (_, holder)| (count + 1, sum + u64::from(holder.tokens)));
                    prop_assert_eq!(index.tokens[n as usize], tokens);
                    prop_assert_eq!(index.order.iter(n).count(), count);
                    prop_assert_eq!(index.order.iter(n).map(|(_, held)| u64::from(held.tokens)).sum::<u64>(), tokens);
                    prop_assert!(tokens <= kv_tokens);
                }
            }
            index.clear(ShardId(1));
            prop_assert!(index.nodes.values().flat_map(Node::iter).all(|(shard, _)| shard != ShardId(1)));
        }
    }
}
