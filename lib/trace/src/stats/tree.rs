//! The tree of all prompts seen, one node a segment: what an unlimited prefix cache would hold.

use crate::Segment;
use crate::tokens::mix64;
use rustc_hash::FxHashMap;

/// What a prompt shares with everything before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixMatch {
    /// Leading tokens that some earlier sequence had too: the maximum over them of what two prompts share.
    pub tokens: u64,
    /// The very same prompt was inserted before, ending where this one ends.
    pub whole: bool,
}

/// One content under one parent.
#[derive(Clone, Copy, Debug)]
struct Node {
    longest: u32,
    /// The length seen first. Others are rare and live in `PrefixTree::others`.
    first: u32,
    first_ends: bool,
}

/// All sequences inserted so far, in about 50 bytes a distinct segment.
///
/// A node is the content of a segment under the chain of everything before it. Matching costs a look-up a segment,
/// where a set of block hashes costs one a block. Chains are 64-bit hashes: among a billion nodes, a false match is met with
/// a probability of a few percent.
#[derive(Clone, Debug, Default)]
pub struct PrefixTree {
    /// By the hash of (chain before, content).
    nodes: FxHashMap<u64, Node>,
    /// Further lengths of a content under the same parent, by chain, and whether a prompt ended there.
    others: FxHashMap<u64, bool>,
}

fn chain(parent: u64, content: u64) -> u64 {
    mix64(parent.rotate_left(29) ^ content)
}

impl PrefixTree {
    /// An empty tree.
    pub fn new() -> PrefixTree {
        PrefixTree::default()
    }

    /// How many nodes it has.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.others.len()
    }

    /// Whether nothing was inserted.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Matches a prompt and inserts it, followed by `tail` (content hash, tokens), which is inserted and not matched.
    ///
    /// Trees of different `root`s do not see each other.
    pub fn insert(&mut self, root: u64, prompt: &[Segment], tail: Option<(u64, u32)>) -> PrefixMatch {
        let mut found = PrefixMatch { tokens: 0, whole: true };
        let mut parent = root;
        for (index, segment) in prompt.iter().enumerate() {
            let last = index + 1 == prompt.len();
            let at = chain(parent, segment.content().hash64());
            let step = self.visit(at, segment.tokens(), last);
            if found.whole {
                found.tokens += u64::from(step.shared);
                // Once a length differs nothing further is shared.
                found.whole = step.exact && (!last || step.ended);
            }
            parent = chain(at, u64::from(segment.tokens()));
        }
        if let Some((content, tokens)) = tail
            && tokens > 0
        {
            self.visit(chain(parent, content), tokens, false);
        }
        found.whole &= !prompt.is_empty();
        found
    }

    /// Matches and inserts one segment.
    fn visit(&mut self, at: u64, tokens: u32, ends: bool) -> Step {
        let Some(node) = self.nodes.get_mut(&at) else {
            self.nodes.insert(at, Node { longest: tokens, first: tokens, first_ends: ends });
            return Step { shared: 0, exact: false, ended: false };
        };
        let shared = tokens.min(node.longest);
        node.longest = node.longest.max(tokens);
        if node.first == tokens {
            let ended = node.first_ends;
            node.first_ends |= ends;
            return Step { shared, exact: true, ended };
        }
        match self.others.entry(chain(at, u64::from(tokens))) {
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                let ended = *entry.get();
                *entry.get_mut() |= ends;
                Step { shared, exact: true, ended }
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(ends);
                Step { shared, exact: false, ended: false }
            }
        }
    }
}

/// What one segment found.
struct Step {
    shared: u32,
    exact: bool,
    ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{ContentId, Prompt, shared_tokens};
    use proptest::prelude::*;

    fn prompts() -> impl Strategy<Value = Vec<Prompt>> {
        let prompt = proptest::collection::vec((0u8..3, 1u32..4), 1..5).prop_map(|parts| {
            parts.into_iter().map(|(id, tokens)| Segment(ContentId::key(&id.to_string()), tokens)).collect()
        });
        proptest::collection::vec(prompt, 1..60)
    }

    proptest! {
        /// The oracle compares with every earlier prompt.
        #[test]
        fn the_tree_finds_the_longest_common_prefix(prompts in prompts()) {
            let mut tree = PrefixTree::new();
            for (index, prompt) in prompts.iter().enumerate() {
                let tokens = prompts[..index].iter().map(|p| shared_tokens(p, prompt)).max().unwrap_or(0);
                let whole = prompts[..index].contains(prompt);
                prop_assert_eq!(tree.insert(7, prompt, None), PrefixMatch { tokens, whole });
            }
        }
    }

    #[test]
    fn a_tail_is_found_by_who_continues_it() {
        let mut tree = PrefixTree::new();
        let user = Segment(ContentId::key("u"), 10);
        let answer = ContentId::key("a");
        tree.insert(0, std::slice::from_ref(&user), Some((answer.hash64(), 63)));
        let next = [user, Segment(answer, 64), Segment(ContentId::key("v"), 5)];
        assert_eq!(tree.insert(0, &next, None).tokens, 73);
        assert_eq!(tree.insert(1, &next, None).tokens, 0, "another root");
    }
}
