//! A node: consecutive blocks that were published one after the other.

use super::held::{Stretch, stretch_of};
use smallvec::SmallVec;

/// Consecutive blocks of one content. Its leading blocks are referenced, the others are cached, and none is missing in
/// between: a block never goes before those that continue it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The place of its first block in every sequence that has it.
    pub(super) first: u32,
    /// What its blocks hold; the last stretch ends where the node ends.
    stretches: SmallVec<[Stretch; 2]>,
    /// How many sequences hold how many of its leading blocks, most blocks first.
    holders: SmallVec<[(u32, u32); 2]>,
    /// The runs of its cached blocks, the deepest first, which is also the oldest first; and whether each is spared.
    pub(super) runs: SmallVec<[(u32, bool); 2]>,
    /// Leading blocks that a request of an admitted key computed or used.
    pub(super) admitted: u32,
    /// Leading blocks that eviction spares.
    pub(super) spared: u32,
    /// Where other nodes have ever gone on from this one, as bits: see [`Node::may_branch`].
    branches: u64,
}

impl Node {
    /// Makes this an empty node that begins at block `first`.
    #[inline]
    pub(super) fn reset(&mut self, first: u32) {
        self.first = first;
        self.stretches.clear();
        self.holders.clear();
        self.runs.clear();
        self.admitted = 0;
        self.spared = 0;
        self.branches = 0;
    }

    /// Another node begins at block `block`, which would follow on a leading part of this one.
    #[inline]
    pub(super) fn branch(&mut self, block: u32) {
        self.branches |= 1 << (block % 64);
    }

    /// Whether another node may begin at block `block`, going on from this one. A block never goes before the blocks that
    /// continue it, so the node that a branch left is there as long as the branch: where none has left, none can be found.
    #[inline]
    pub(super) fn may_branch(&self, block: u32) -> bool {
        self.branches & (1 << (block % 64)) != 0
    }

    /// The name of the stretch that it begins with.
    #[inline]
    pub(super) fn name(&self) -> Option<u64> {
        self.stretches.first().map(|stretch| stretch.name)
    }

    /// Whether block `block` of the stretch `name` is its first one.
    #[inline]
    pub(super) fn begins_with(&self, name: u64, block: u32) -> bool {
        self.first == block && self.name() == Some(name)
    }

    /// How many blocks it has.
    #[inline]
    pub(super) fn blocks(&self) -> u32 {
        self.stretches.last().map_or(0, |stretch| stretch.end - self.first)
    }

    /// How many of its leading blocks some sequence holds.
    #[inline]
    pub(super) fn referenced(&self) -> u32 {
        self.holders.first().map_or(0, |holder| holder.0)
    }

    /// Appends the blocks of a sequence up to block `to`, of which the first one lies in `stretches[at]`.
    #[inline]
    pub(super) fn append(&mut self, stretches: &[Stretch], at: usize, to: u32) {
        for stretch in &stretches[at..] {
            let end = stretch.end.min(to);
            match self.stretches.last_mut() {
                Some(last) if last.name == stretch.name => last.end = end,
                _ => self.stretches.push(Stretch { name: stretch.name, end }),
            }
            if end == to {
                break;
            }
        }
    }

    /// Takes the deepest blocks away.
    #[inline]
    pub(super) fn truncate(&mut self, blocks: u32) {
        let end = self.first + blocks;
        while let [.., before, _] = self.stretches[..]
            && before.end >= end
        {
            self.stretches.pop();
        }
        match self.stretches.last_mut() {
            Some(last) if blocks > 0 => last.end = end,
            _ => self.stretches.clear(),
        }
        self.admitted = self.admitted.min(blocks);
        self.spared = self.spared.min(blocks);
    }

    /// How far a sequence goes along this node from block `block` on, which lies in `stretches[at]` and, if it is here at
    /// all, in this node: the first block that differs or is missing here, at most `most`.
    #[inline]
    pub(super) fn follow(&self, stretches: &[Stretch], at: usize, block: u32, most: u32) -> u32 {
        let (mut here, mut there, mut block) = (stretch_of(&self.stretches, block), at, block);
        while let (Some(mine), Some(theirs)) = (self.stretches.get(here), stretches.get(there))
            && mine.name == theirs.name
            && block < most
        {
            block = mine.end.min(theirs.end).min(most);
            here += usize::from(block == mine.end);
            there += usize::from(block == theirs.end);
        }
        block
    }

    /// A sequence holds `blocks` leading blocks from now on.
    #[inline]
    pub(super) fn hold(&mut self, blocks: u32) {
        let place = self.holders.iter().position(|holder| holder.0 <= blocks);
        match place {
            Some(place) if self.holders[place].0 == blocks => self.holders[place].1 += 1,
            Some(place) => self.holders.insert(place, (blocks, 1)),
            None => self.holders.push((blocks, 1)),
        }
    }

    /// A sequence that held `blocks` leading blocks holds none any more.
    #[inline]
    pub(super) fn let_go(&mut self, blocks: u32) {
        if let Some(place) = self.holders.iter().position(|holder| holder.0 == blocks) {
            self.holders[place].1 -= 1;
            if self.holders[place].1 == 0 {
                self.holders.remove(place);
            }
        }
    }

    /// A sequence that held `before` leading blocks holds `after`, more than that.
    #[inline]
    pub(super) fn hold_more(&mut self, before: u32, after: u32) {
        match &mut self.holders[..] {
            [only] if *only == (before, 1) => only.0 = after,
            _ => {
                self.let_go(before);
                self.hold(after);
            }
        }
    }
}
