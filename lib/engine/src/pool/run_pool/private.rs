//! Blocks that nobody but their own request can ask for: its own turn, what comes after that, and its answer.
//!
//! Most requests bring such blocks and no other request ever quotes them. They take up room and are evicted in their turn, and that
//! is all: so what is cached of them is a run without a node, a [tail](Tail), which no index leads to. Where requests do
//! quote each other, a scheduler says so in time ([`super::Pool::expose`]), and every tail becomes a node like any other.

use super::held::{HeldRuns, Stretch};
use super::{Pool, RunPool};
use cr_trace::tokens::mix64;
use cr_trace::{ContentId, RequestId};

/// In the place of a run's node: the run is a tail.
pub(super) const TAIL: u32 = u32::MAX;

/// No node before it.
const NONE: u32 = u32::MAX;

/// What it takes to make a node of a cached tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    /// The node that it goes on from.
    after: u32,
    /// Its first block.
    first: u32,
    /// The blocks that end in the request's own turn; none where its end is not after `first`.
    turn: Stretch,
    history: u64,
    request: RequestId,
    admitted: bool,
}

impl Tail {
    const NOTHING: Tail = Tail {
        after: NONE,
        first: 0,
        turn: Stretch { name: 0, end: 0 },
        history: 0,
        request: RequestId(0),
        admitted: false,
    };

    /// How many of `blocks` blocks of it are of an admitted key.
    #[inline]
    pub(super) fn admitted_of(&self, blocks: u32) -> u32 {
        if self.admitted { blocks } else { 0 }
    }
}

impl RunPool {
    /// The first block of a sequence that is kept apart; beyond all where none is.
    #[inline]
    pub(super) fn public(&self, held: &HeldRuns) -> u32 {
        if self.private { held.private_from } else { u32::MAX }
    }

    /// Caches the full blocks of a sequence that are kept apart, and says how many; its other blocks are still held.
    #[inline]
    pub(super) fn let_tail_go(&mut self, held: &mut HeldRuns) -> u32 {
        let first = self.public(held);
        if held.published != first || held.full <= first {
            return 0;
        }
        let blocks = held.full - first;
        let mut turns = held.stretches().iter().filter(|stretch| stretch.end > first);
        let turn = turns.next().copied().unwrap_or(Tail::NOTHING.turn);
        if turns.next().is_some() {
            // A tail remembers one stretch of the prompt: a turn in several parts is published as usual.
            held.private_from = u32::MAX;
            self.publish(held, held.full.saturating_mul(self.block_tokens));
            return 0;
        }
        self.cached += blocks;
        self.uses += 1;
        let run = self.parts.lru.push_newest(TAIL, 0, blocks, self.uses) as usize;
        if run >= self.parts.tails.len() {
            self.parts.tails.resize(run + 1, Tail::NOTHING);
        }
        self.parts.tails[run] = Tail {
            after: held.path.last().map_or(NONE, |share| share.node),
            first,
            turn,
            history: held.history,
            request: held.request,
            admitted: held.admitted,
        };
        blocks
    }

    /// Makes nodes of all tails.
    pub(super) fn expose_tails(&mut self) {
        let mut next = self.parts.lru.oldest();
        while let Some(run) = next {
            next = self.parts.lru.newer(run);
            if self.parts.lru.get(run).node == TAIL {
                self.make_node(run);
            }
        }
    }

    fn make_node(&mut self, run: u32) {
        let Tail { after, first, turn, history, request, admitted } = self.parts.tails[run as usize];
        let blocks = self.parts.lru.get(run).to;
        let answer = Stretch { name: mix64(history ^ ContentId::answer(request).hash64()), end: u32::MAX };
        let both = [turn, answer];
        let stretches = if turn.end > first { &both[..] } else { &both[1..] };
        // The node before it is still there: its blocks were let go after these.
        if after != NONE {
            self.parts.nodes[after as usize].branch(first);
        }
        let number = self.new_node(stretches[0].name, first);
        let node = &mut self.parts.nodes[number as usize];
        node.append(stretches, 0, first + blocks);
        node.runs.push((run, false));
        node.admitted = if admitted { blocks } else { 0 };
        self.parts.lru.get_mut(run).node = number;
    }
}
