//! The tree of all sequences seen, one node a segment: what an unlimited prefix cache would hold.

use crate::tokens::mix64;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// What a prompt shares with everything before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixMatch {
    /// Leading tokens that some earlier prompt had too: the maximum over them of what two prompts share.
    pub tokens: u64,
    /// The very same prompt was inserted before, ending where this one ends.
    pub whole: bool,
    /// Leading segments of which some token was seen in an earlier prompt.
    pub segments: u32,
    /// As `tokens`, over earlier prompts and what followed them.
    pub sequence_tokens: u64,
}

/// One content under one parent.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The longest run of it, in prompts and in what followed them.
    longest: u32,
    /// The longest run of it in prompts.
    longest_prompt: u32,
    /// The length seen first. Others are rare and live in `PrefixTree::others`.
    first: u32,
    uses: Uses,
}

/// In what a (content, length) under a parent was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    /// Within a prompt.
    prompt: bool,
    /// At the end of a prompt.
    end: bool,
}

/// What one segment found.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    shared: u32,
    shared_prompt: u32,
    /// The same content at the same length, in any sequence.
    exact: bool,
    before: Uses,
}

/// Sequences inserted before, in about 30 bytes a distinct segment.
///
/// A node is the content of a segment under the chain of everything before it. Matching costs a look-up a segment,
/// where a set of block hashes costs one a block. Chains are 64-bit hashes: among a billion nodes, a false match is met with
/// a probability of a few percent. What has not been used for long is forgotten, see [`PrefixTree::new`].
#[derive(Clone, Debug)]
pub struct PrefixTree {
    /// By the hash of (chain before, content).
    nodes: Generations<Node>,
    /// Further lengths of a content under the same parent, by chain.
    others: Generations<Uses>,
    inserted: u64,
}

/// A map that keeps what was used lately: values live in a young generation; when it is full, it becomes the old one, whose
/// values come back if they are used and are dropped otherwise.
#[derive(Clone, Debug)]
struct Generations<V> {
    young: FxHashMap<u64, V>,
    old: FxHashMap<u64, V>,
    limit: usize,
    dropped: bool,
}

impl<V> Generations<V> {
    fn new(limit: usize) -> Generations<V> {
        Generations {
            young: FxHashMap::default(),
            old: FxHashMap::default(),
            limit: limit.max(1),
            dropped: false,
        }
    }

    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// The value that is known, or else the given one, now known; and whether it was.
    fn get_or_insert(&mut self, key: u64, value: V) -> (&mut V, bool) {
        if self.young.len() >= self.limit && !self.young.contains_key(&key) {
            self.dropped |= self.old.keys().any(|old| *old != key);
            // What is asked for now is used now.
            let asked = self.old.remove(&key);
            self.old.clear();
            std::mem::swap(&mut self.young, &mut self.old);
            if let Some(asked) = asked {
                self.young.insert(key, asked);
            }
        }
        match self.young.entry(key) {
            Entry::Occupied(entry) => (entry.into_mut(), true),
            Entry::Vacant(entry) => match self.old.remove(&key) {
                Some(known) => (entry.insert(known), true),
                None => (entry.insert(value), false),
            },
        }
    }
}

fn chain(parent: u64, content: u64) -> u64 {
    mix64(parent.rotate_left(29) ^ content)
}

impl PrefixTree {
    /// An empty tree that keeps at least the `generation` segments used last (at least one), and at most twice as many.
    pub fn new(generation: usize) -> PrefixTree {
        PrefixTree { nodes: Generations::new(generation), others: Generations::new(generation), inserted: 0 }
    }

    /// How many nodes it holds.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.others.len()
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 0
    }

    /// How many nodes were inserted, those forgotten since included.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Whether something was forgotten, so that matches may fall short from then on.
    pub fn forgets(&self) -> bool {
        self.nodes.dropped || self.others.dropped
    }

    /// Matches a prompt and inserts it, followed by `tail`, which is inserted and not matched. Segments are given as
    /// (content hash, tokens).
    ///
    /// Trees of different `root`s do not see each other.
    pub fn insert(&mut self, root: u64, prompt: &[(u64, u32)], tail: Option<(u64, u32)>) -> PrefixMatch {
        let mut found = PrefixMatch::default();
        let (mut in_prompts, mut in_sequences) = (true, true);
        let mut parent = root;
        for (index, &(content, tokens)) in prompt.iter().enumerate() {
            let end = index + 1 == prompt.len();
            let at = chain(parent, content);
            let step = self.visit(at, tokens, Uses { prompt: true, end });
            if in_sequences {
                found.sequence_tokens += u64::from(step.shared);
                in_sequences = step.exact;
            }
            if in_prompts {
                found.tokens += u64::from(step.shared_prompt);
                found.segments += u32::from(step.shared_prompt > 0);
                // Once a length differs nothing further is shared.
                in_prompts = step.before.prompt;
                found.whole = step.before.end;
            } else {
                found.whole = false;
            }
            parent = chain(at, u64::from(tokens));
        }
        if let Some((content, tokens)) = tail
            && tokens > 0
        {
            self.visit(chain(parent, content), tokens, Uses::default());
        }
        found
    }

    /// Matches and inserts one segment.
    fn visit(&mut self, at: u64, tokens: u32, uses: Uses) -> Step {
        let in_prompt = if uses.prompt { tokens } else { 0 };
        let fresh = Node { longest: tokens, longest_prompt: in_prompt, first: tokens, uses };
        let (node, known) = self.nodes.get_or_insert(at, fresh);
        if !known {
            self.inserted += 1;
            return Step::default();
        }
        let mut step = Step {
            shared: tokens.min(node.longest),
            shared_prompt: tokens.min(node.longest_prompt),
            ..Step::default()
        };
        node.longest = node.longest.max(tokens);
        node.longest_prompt = node.longest_prompt.max(in_prompt);
        let seen = if node.first == tokens {
            step.exact = true;
            &mut node.uses
        } else {
            let (other, known) = self.others.get_or_insert(chain(at, u64::from(tokens)), Uses::default());
            step.exact = known;
            self.inserted += u64::from(!known);
            other
        };
        step.before = *seen;
        *seen = Uses { prompt: seen.prompt | uses.prompt, end: seen.end | uses.end };
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prompt;
    use crate::Segment;
    use crate::content::{ContentId, shared_tokens};
    use proptest::prelude::*;

    fn prompts() -> impl Strategy<Value = Vec<(Prompt, u8, u32)>> {
        let prompt = proptest::collection::vec((0u8..3, 1u32..4), 1..5)
            .prop_map(|parts| parts.into_iter().map(|(id, tokens)| segment(id, tokens)).collect());
        proptest::collection::vec((prompt, 0u8..3, 0u32..4), 1..60)
    }

    fn hashed(prompt: &[Segment]) -> Vec<(u64, u32)> {
        prompt.iter().map(|segment| (segment.content().hash64(), segment.tokens())).collect()
    }

    fn segment(id: u8, tokens: u32) -> Segment {
        Segment(ContentId::key(&id.to_string()), tokens)
    }

    proptest! {
        /// The oracle compares with every earlier prompt, and with every earlier prompt and its tail.
        #[test]
        fn the_tree_finds_the_longest_common_prefix(prompts in prompts()) {
            let mut tree = PrefixTree::new(usize::MAX);
            let mut sequences: Vec<Prompt> = Vec::new();
            for (index, (prompt, tail, tail_tokens)) in prompts.iter().enumerate() {
                let earlier = || prompts[..index].iter().map(|(prompt, ..)| prompt);
                let tokens = earlier().map(|p| shared_tokens(p, prompt)).max().unwrap_or(0);
                let sequence_tokens = sequences.iter().map(|s| shared_tokens(s, prompt)).max().unwrap_or(0);
                let found = tree.insert(7, &hashed(prompt), Some((segment(*tail, 1).content().hash64(), *tail_tokens)));
                prop_assert_eq!(found.tokens, tokens);
                prop_assert_eq!(found.whole, earlier().any(|p| p == prompt));
                prop_assert_eq!(found.sequence_tokens, sequence_tokens);
                let mut sequence = prompt.clone();
                if *tail_tokens > 0 {
                    sequence.push(segment(*tail, *tail_tokens));
                }
                sequences.push(sequence);
            }
        }

        /// A tree that forgets finds no more than one that does not.
        #[test]
        fn a_small_tree_falls_short_and_says_so(prompts in prompts(), limit in 1usize..10) {
            let (mut small, mut large) = (PrefixTree::new(limit), PrefixTree::new(usize::MAX));
            for (prompt, ..) in &prompts {
                let (few, all) = (small.insert(0, &hashed(prompt), None), large.insert(0, &hashed(prompt), None));
                prop_assert!(few.tokens <= all.tokens && small.nodes.len() <= 2 * limit && small.others.len() <= 2 * limit);
                prop_assert!(few == all || small.forgets());
            }
            prop_assert!(!large.forgets());
        }

        /// The last so many distinct keys are always known.
        #[test]
        fn generations_keep_what_was_used_last(uses in proptest::collection::vec(0u64..20, 1..200), limit in 1usize..8) {
            let (mut map, mut order): (Generations<u64>, Vec<u64>) = (Generations::new(limit), Vec::new());
            for key in uses {
                let place = order.iter().rev().position(|&held| held == key);
                let (value, known) = map.get_or_insert(key, key);
                prop_assert_eq!(*value, key);
                prop_assert!(known || place.is_none_or(|place| place >= limit), "{key} was used {place:?} ago");
                prop_assert!(!known || place.is_some());
                order.retain(|&held| held != key);
                order.push(key);
                prop_assert!(map.len() <= 2 * limit);
            }
        }
    }

    #[test]
    fn a_tail_is_found_by_who_continues_it() {
        let mut tree = PrefixTree::new(usize::MAX);
        let user = segment(0, 10);
        let answer = ContentId::key("a");
        tree.insert(0, &hashed(std::slice::from_ref(&user)), Some((answer.hash64(), 63)));
        let next = hashed(&[user, Segment(answer, 64), segment(1, 5)]);
        let found = tree.insert(0, &next, None);
        assert_eq!((found.sequence_tokens, found.tokens, found.segments), (73, 10, 1));
        assert_eq!(tree.insert(1, &next, None).sequence_tokens, 0, "another root");
    }
}
