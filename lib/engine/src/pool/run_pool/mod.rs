//! The simulator's pool: one record for a run of blocks, and no block numbers.
//!
//! It answers every question as [`super::BlockPool`] does, which is its oracle in the tests, in time that depends on the
//! segments of a prompt instead of on its blocks.
//!
//! * A sequence is a list of [`Stretch`]es: the blocks that end in one segment. A stretch has a name that stands for the
//!   segment and all before it; a block is named by the stretch that it ends in and by its number. Blocks that span
//!   several segments, and segments too short to end a block, need nothing special.
//! * A [`Node`] holds consecutive blocks as they were published. It is found by its first block; where a sequence leaves
//!   a node half way, what it publishes next is another node, so nodes are never split.
//! * What a sequence holds of a node is a number of leading blocks, so what all of them hold is the greatest such
//!   number. The blocks beyond it are cached: runs of them, one for each release, are linked in order of last use.
//!   Eviction takes the oldest run from its end, which is the deepest first among blocks of one release.
//! * Blocks that only their own request could ask for are no nodes, just runs: see [`private`].

mod held;
mod index;
mod lru;
mod node;
mod parts;
mod private;

pub use held::HeldRuns;

use super::{Pool, PoolUsage};
use cr_trace::Request;
use held::{Share, Stretch, stretch_of};
use lru::RunList;
use node::Node;
use parts::Parts;
use private::TAIL;
use smallvec::SmallVec;

/// A pool that keeps runs of blocks: for backends that need no block table.
#[derive(Clone, Debug)]
pub struct RunPool {
    block_tokens: u32,
    blocks: u32,
    free: u32,
    cached: u32,
    parts: Parts,
    /// Whether what only one request can ask for is kept apart; see [`Pool::keep_private`].
    private: bool,
    /// Which protection is in force, counted from 1; 0 where nothing is protected.
    protection: u32,
    /// Blocks that are spared, referenced or cached.
    protected: u32,
    /// Runs let go so far.
    uses: u64,
    /// How often something was published, counted from 1: what could not be found is looked for again only where this has grown.
    published: u64,
    evicted: u64,
    evicted_admitted: u64,
}

impl RunPool {
    #[inline]
    fn blocks_for(&self, tokens: u32) -> u32 {
        tokens.div_ceil(self.block_tokens)
    }

    /// The node that begins with this block.
    #[inline]
    fn node_at(&self, name: u64, block: u32) -> Option<u32> {
        self.parts.index.find(&self.parts.nodes, name, block)
    }

    /// The leading blocks of a sequence that are here, at most `most` of them, into the empty `path`.
    #[inline]
    fn find(&self, stretches: &[Stretch], most: u32, path: &mut SmallVec<[Share; 3]>) {
        let (mut block, mut at) = (0, 0);
        let mut may_go_on = true;
        while block < most && may_go_on {
            while stretches[at].end <= block {
                at += 1;
            }
            let Some(node) = self.node_at(stretches[at].name, block) else { break };
            let record = &self.parts.nodes[node as usize];
            let next = record.follow(stretches, at, block, most);
            path.push(Share { node, blocks: next - block });
            may_go_on = record.may_branch(next);
            block = next;
        }
    }

    /// The leading `blocks` of a node are about to be held: they leave the evictable ones.
    #[inline]
    fn pick_up(&mut self, Share { node, blocks }: Share, held: &HeldRuns) {
        let record = &mut self.parts.nodes[node as usize];
        let referenced = record.referenced();
        if blocks > referenced {
            self.cached -= blocks - referenced;
            while let Some(&(run, spared)) = record.runs.last() {
                let list = if spared { &mut self.parts.spared } else { &mut self.parts.lru };
                if list.get(run).from >= blocks {
                    break;
                }
                if list.get(run).to > blocks {
                    list.get_mut(run).from = blocks;
                    break;
                }
                list.remove(run);
                record.runs.pop();
            }
        }
        self.mark(node, blocks, held);
    }

    /// A sequence has computed or used the leading `blocks` of a node.
    #[inline]
    fn mark(&mut self, node: u32, blocks: u32, held: &HeldRuns) {
        let record = &mut self.parts.nodes[node as usize];
        if held.admitted {
            record.admitted = record.admitted.max(blocks);
            if self.protection > 0 && held.protection == self.protection && record.spared < blocks {
                self.protected += blocks - record.spared;
                record.spared = blocks;
            }
        }
    }

    /// A sequence lets go of the leading `blocks` of a node; what nobody else holds becomes evictable.
    #[inline]
    fn let_go(&mut self, Share { node, blocks }: Share) {
        let record = &mut self.parts.nodes[node as usize];
        record.let_go(blocks);
        let referenced = record.referenced();
        if blocks > referenced {
            self.cached += blocks - referenced;
            // The deepest first: what is spared lies before what is not.
            let border = record.spared.clamp(referenced, blocks);
            for (spared, from, to) in [(false, border, blocks), (true, referenced, border)] {
                if from < to {
                    self.uses += 1;
                    let list = if spared { &mut self.parts.spared } else { &mut self.parts.lru };
                    record.runs.push((list.push_newest(node, from, to, self.uses), spared));
                }
            }
        }
    }

    /// Hands out empty blocks, evicting where none is free. The caller has checked that there are so many.
    #[inline]
    fn take(&mut self, blocks: u32) {
        let free = blocks.min(self.free);
        self.free -= free;
        if free == blocks {
            return;
        }
        let evicted = self.drop_oldest(blocks - free);
        self.evicted += u64::from(evicted.0);
        self.evicted_admitted += u64::from(evicted.1);
    }

    /// Drops cached blocks; says how many, and how many of them were of admitted keys.
    #[inline]
    fn drop_oldest(&mut self, blocks: u32) -> (u32, u32) {
        let (mut left, mut admitted) = (blocks, 0);
        while left > 0
            && let Some((list, run)) = oldest(&mut self.parts.lru, &mut self.parts.spared)
        {
            let record = list.get_mut(run);
            let (number, from, to) = (record.node, record.from, record.to);
            let keep = to - (to - from).min(left);
            record.to = keep;
            left -= to - keep;
            if number == TAIL {
                admitted += self.parts.tails[run as usize].admitted_of(to - keep);
                if keep == from {
                    list.remove(run);
                }
                continue;
            }
            let node = &mut self.parts.nodes[number as usize];
            admitted += node.admitted.saturating_sub(keep);
            if keep == from {
                list.remove(run);
                node.runs.remove(0);
            }
            self.protected -= node.spared.saturating_sub(keep);
            match (keep, node.name()) {
                (0, Some(name)) => {
                    self.parts.index.remove(number, name, node.first);
                    self.parts.spare.push(number);
                }
                _ => node.truncate(keep),
            }
        }
        self.cached -= blocks - left;
        (blocks - left, admitted)
    }

    /// A new node, empty, that begins with this block.
    #[inline]
    fn new_node(&mut self, name: u64, first: u32) -> u32 {
        let node = self.parts.spare.pop().unwrap_or_else(|| {
            self.parts.nodes.push(Node::default());
            // Room for all, so that giving one up allocates nothing.
            self.parts.spare.reserve(self.parts.nodes.capacity());
            self.parts.nodes.len() as u32 - 1
        });
        self.parts.nodes[node as usize].reset(first);
        self.parts.index.insert(&self.parts.nodes, node, name, first);
        node
    }

    /// Where the block that a sequence would publish next can be found already: in the node that it holds last, or in
    /// one that begins there.
    #[inline]
    fn next_block(&self, held: &HeldRuns, at: usize) -> Option<Place> {
        let (stretches, block) = (held.stretches(), held.published);
        if held.absent == (block, self.published) {
            return None;
        }
        if let Some(share) = held.path.last() {
            let node = &self.parts.nodes[share.node as usize];
            if share.blocks < node.blocks() && node.follow(stretches, at, block, block + 1) > block {
                return Some(Place::GoesOn);
            }
            if !node.may_branch(block) {
                return None;
            }
        }
        self.node_at(stretches[at].name, block).map(Place::Begins)
    }

    /// Takes blocks that others have published, up to block `most`, and gives its own back.
    #[inline]
    fn adopt(&mut self, held: &mut HeldRuns, place: Place, at: usize, most: u32) {
        let block = held.published;
        let (node, before) = match place {
            Place::GoesOn => held.path.last().map_or((0, 0), |share| (share.node, share.blocks)),
            Place::Begins(node) => (node, 0),
        };
        let next = self.parts.nodes[node as usize].follow(held.stretches(), at, block, most);
        let share = Share { node, blocks: before + next - block };
        self.pick_up(share, held);
        self.free += next - block;
        held.published = next;
        match place {
            Place::GoesOn => {
                self.parts.nodes[node as usize].hold_more(before, share.blocks);
                if let Some(last) = held.path.last_mut() {
                    *last = share;
                }
            }
            Place::Begins(_) => {
                self.parts.nodes[node as usize].hold(share.blocks);
                held.path.push(share);
            }
        }
    }

    /// Publishes its own blocks up to block `to`, which nobody has: in the node that it holds last where that ends here.
    #[inline]
    fn publish_own(&mut self, held: &mut HeldRuns, at: usize, to: u32) {
        let more = to - held.published;
        let goes_on = held
            .path
            .last()
            .is_some_and(|share| share.blocks == self.parts.nodes[share.node as usize].blocks());
        self.published += 1;
        if !goes_on {
            if let Some(left) = held.path.last() {
                self.parts.nodes[left.node as usize].branch(held.published);
            }
            let node = self.new_node(held.stretches()[at].name, held.published);
            held.path.push(Share { node, blocks: 0 });
        }
        let (path, stretches) = held.path_and_stretches();
        let Some(share) = path.last_mut() else { return };
        let node = &mut self.parts.nodes[share.node as usize];
        node.append(stretches, at, to);
        match share.blocks {
            0 => node.hold(more),
            before => node.hold_more(before, before + more),
        }
        share.blocks += more;
        let share = *share;
        self.mark(share.node, share.blocks, held);
        held.published = to;
    }
}

impl Drop for RunPool {
    fn drop(&mut self) {
        std::mem::take(&mut self.parts).leave();
    }
}

/// The run that goes first: the oldest of those that are not spared, and only then of those that are.
#[inline]
fn oldest<'a>(lru: &'a mut RunList, spared: &'a mut RunList) -> Option<(&'a mut RunList, u32)> {
    match (lru.oldest(), spared.oldest()) {
        (Some(run), _) => Some((lru, run)),
        (None, Some(run)) => Some((spared, run)),
        (None, None) => None,
    }
}

/// Where a block can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the node that the sequence holds last, after its share of it.
    GoesOn,
    /// In this node, as its first.
    Begins(u32),
}

impl Pool for RunPool {
    type Held = HeldRuns;

    const LEAPS: bool = true;

    fn new(blocks: u32, block_tokens: u32) -> RunPool {
        RunPool {
            block_tokens,
            blocks,
            free: blocks,
            cached: 0,
            parts: Parts::take(),
            private: false,
            protection: 0,
            protected: 0,
            uses: 0,
            published: 1,
            evicted: 0,
            evicted_admitted: 0,
        }
    }

    #[inline]
    fn open(&self, request: &Request, admitted: bool) -> HeldRuns {
        let mut held = HeldRuns::nothing();
        self.reopen(&mut held, request, admitted);
        held
    }

    #[inline]
    fn reopen(&self, held: &mut HeldRuns, request: &Request, admitted: bool) {
        held.describe(request, self.block_tokens);
        (held.admitted, held.protection) = (admitted, self.protection);
    }

    #[inline]
    fn admit(&mut self, held: &mut HeldRuns, tokens: u32, most_cached: u32) -> Option<u32> {
        debug_assert!(held.blocks == 0, "a sequence is admitted holding nothing");
        let most = most_cached.min(held.named).min(self.public(held));
        let (path, stretches) = held.path_and_stretches();
        self.find(stretches, most, path);
        let (mut found, mut idle) = (0, 0);
        for share in path.iter() {
            found += share.blocks;
            idle += share.blocks.saturating_sub(self.parts.nodes[share.node as usize].referenced());
        }
        let fresh = self.blocks_for(tokens).saturating_sub(found);
        // Idle blocks that are found leave the evictable ones.
        if fresh > self.available() - idle {
            held.path.clear();
            return None;
        }
        for &share in &held.path {
            self.pick_up(share, held);
            self.parts.nodes[share.node as usize].hold(share.blocks);
        }
        self.take(fresh);
        held.published = found;
        if found < most {
            held.absent = (found, self.published);
        }
        held.blocks = found + fresh;
        Some(found)
    }

    #[inline]
    fn grow(&mut self, held: &mut HeldRuns, tokens: u32) -> bool {
        let fresh = self.lacks(held, tokens);
        if fresh > self.available() {
            return false;
        }
        if fresh > 0 {
            self.take(fresh);
            held.blocks += fresh;
        }
        true
    }

    #[inline]
    fn widen(&mut self, _held: &mut HeldRuns, room: u32, tokens: u32) -> Option<u32> {
        let (blocks, needed) = (self.blocks_for(room), self.blocks_for(tokens));
        let fresh = needed.saturating_sub(blocks);
        if fresh > self.available() {
            return None;
        }
        self.take(fresh);
        Some(needed.max(blocks).saturating_mul(self.block_tokens))
    }

    #[inline]
    fn hand_out(&mut self, blocks: u32) {
        // Mostly there are none to hand out.
        if blocks > 0 {
            self.take(blocks);
        }
    }

    #[inline]
    fn settle(&mut self, held: &mut HeldRuns, room: u32, computed: u32) {
        // A room beyond all numbers is rounded down to the last one: up again.
        held.blocks = self.blocks_for(room);
        held.full = computed / self.block_tokens;
    }

    fn keep_private(&mut self) {
        self.private = true;
    }

    fn expose(&mut self) {
        self.private = false;
        self.expose_tails();
    }

    fn disclose(&self, held: &mut HeldRuns) {
        held.private_from = u32::MAX;
    }

    #[inline]
    fn lacks_beyond(&self, _held: &HeldRuns, room: u32, tokens: u32) -> u32 {
        self.blocks_for(tokens).saturating_sub(self.blocks_for(room))
    }

    #[inline]
    fn room(&self, held: &HeldRuns) -> u32 {
        held.blocks.saturating_mul(self.block_tokens)
    }

    #[inline]
    fn publishes_at(&self, held: &HeldRuns) -> u32 {
        if held.published >= self.public(held) {
            return u32::MAX;
        }
        (held.published + 1).saturating_mul(self.block_tokens)
    }

    #[inline]
    fn lacks(&self, held: &HeldRuns, tokens: u32) -> u32 {
        self.blocks_for(tokens).saturating_sub(held.blocks)
    }

    #[inline]
    fn available(&self) -> u32 {
        self.free + self.cached
    }

    #[inline]
    fn meets(&self, held: &mut HeldRuns, computed: u32) -> bool {
        let full = (computed / self.block_tokens).min(self.public(held));
        if full <= held.published {
            return false;
        }
        // What comes after a block that nobody has, nobody has.
        let block = held.published;
        let at = stretch_of(held.stretches_to(full), block);
        let meets = self.next_block(held, at).is_some();
        if !meets {
            held.absent = (block, self.published);
        }
        meets
    }

    #[inline]
    fn publish(&mut self, held: &mut HeldRuns, computed: u32) {
        let full = (computed / self.block_tokens).min(self.public(held));
        while held.published < full {
            let block = held.published;
            let at = stretch_of(held.stretches_to(full), block);
            match self.next_block(held, at) {
                Some(place) => self.adopt(held, place, at, full),
                None => self.publish_own(held, at, full),
            }
            held.named = held.named.max(held.published);
        }
    }

    #[inline]
    fn release(&mut self, held: &mut HeldRuns) {
        // Deepest first, so that among blocks of one release the deepest is evicted first.
        let tail = self.let_tail_go(held);
        while let Some(share) = held.path.pop() {
            self.let_go(share);
        }
        self.free += held.blocks - held.published - tail;
        held.blocks = 0;
        held.published = 0;
    }

    fn table<'a>(&self, _held: &'a HeldRuns) -> &'a [u32] {
        &[]
    }

    #[inline]
    fn usage(&self) -> PoolUsage {
        PoolUsage {
            referenced: self.blocks - self.free - self.cached,
            cached: self.cached,
            free: self.free,
            evicted: self.evicted,
            evicted_admitted: self.evicted_admitted,
            protected: self.protected,
        }
    }

    fn clear(&mut self) {
        self.free += self.drop_oldest(self.cached).0;
    }

    fn protect_admitted(&mut self) {
        self.protection = self.protection.max(1);
    }

    fn lift_protection(&mut self) {
        if self.protection == 0 {
            return;
        }
        self.protection += 1;
        self.protected = 0;
        // One list again, in order of last use.
        let mut all: Vec<_> = self.parts.lru.drain().chain(self.parts.spared.drain()).collect();
        all.sort_unstable_by_key(|run| run.last_use);
        self.parts.nodes.iter_mut().for_each(|node| {
            node.spared = 0;
            node.runs.clear();
        });
        for run in all {
            let number = self.parts.lru.push_newest(run.node, run.from, run.to, run.last_use);
            self.parts.nodes[run.node as usize].runs.push((number, false));
        }
    }
}
