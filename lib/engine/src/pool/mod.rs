//! The KV pool of one shard: fixed-size blocks, shared by prefix, evicted least recently used first.
//!
//! Rules that every pool keeps, and that [`BlockPool`] is the oracle of:
//! * a block is *referenced* (some sequence holds it), *cached* (nobody does, but its prefix can be found) or *free*;
//!   the three always add up to the pool;
//! * only full blocks are shared, found by the chained hash of their content (`cr_trace::block`);
//! * allocation takes free blocks first, then evicts cached ones, oldest last use first and, among blocks last used by
//!   the same sequence, the deepest in its chain. The last use of a block is the release that left it unreferenced;
//!   so a block never goes before the blocks that continue it;
//! * with protection ([`Pool::protect_admitted`]) blocks that a request of an admitted key computed or used are *spared*: they go
//!   only when no other cached block is left. A new plan lifts all protection ([`Pool::lift_protection`]); a prefix earns
//!   it again with its next use by a request that was opened since. A request marks its whole prefix, so the rule above
//!   still holds.

mod block_pool;
mod lru;
#[cfg(test)]
mod naive;
mod run_pool;
#[cfg(test)]
mod tests;

pub use block_pool::{BlockPool, HeldBlocks};
pub use run_pool::{HeldRuns, RunPool};

use cr_trace::Request;

/// Counts of a pool, in blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Held by at least one sequence.
    pub referenced: u32,
    /// Held by none, kept for reuse.
    pub cached: u32,
    /// Empty.
    pub free: u32,
    /// Evicted since the start.
    pub evicted: u64,
    /// Of those, blocks that a request of an admitted key had computed or used.
    pub evicted_admitted: u64,
    /// Of the blocks referenced or cached, those that eviction spares.
    pub protected: u32,
}

/// A KV pool. A sequence's share of it is a [`Pool::Held`].
pub trait Pool: Send {
    /// What one sequence holds; an empty one holds nothing.
    type Held: Send;

    /// Whether a scheduler may take several steps at once: [`Pool::grow`] and [`Pool::publish`] cost the same for one block or
    /// for many, and [`Pool::meets`] can tell.
    const LEAPS: bool = false;

    /// A pool of `blocks` blocks of `block_tokens` tokens; both at least one.
    fn new(blocks: u32, block_tokens: u32) -> Self;

    /// The content of a sequence, holding nothing yet. `admitted`: its key is in the plan.
    fn open(&self, request: &Request, admitted: bool) -> Self::Held;

    /// As [`Pool::open`], in the place of a sequence that holds nothing any more.
    fn reopen(&self, held: &mut Self::Held, request: &Request, admitted: bool) {
        *held = self.open(request, admitted);
    }

    /// Takes references to the cached leading blocks of a sequence that holds nothing, at most `most_cached` of them,
    /// and allocates the rest up to `tokens` tokens. Returns the number of blocks found, or `None`, with nothing
    /// changed, where the pool cannot hold that many now.
    fn admit(&mut self, held: &mut Self::Held, tokens: u32, most_cached: u32) -> Option<u32>;

    /// Makes room for `tokens` tokens in all; false, with nothing changed, where the pool cannot hold them now.
    fn grow(&mut self, held: &mut Self::Held, tokens: u32) -> bool;

    /// As [`Pool::grow`], for a sequence with room for `room` tokens; gives the room that it has then. Where a pool only counts, it
    /// need not look at what is held: [`Pool::settle`] tells it, before [`Pool::release`], what there is room for.
    fn widen(&mut self, held: &mut Self::Held, _room: u32, tokens: u32) -> Option<u32> {
        self.grow(held, tokens).then(|| self.room(held))
    }

    /// The sequence has room for `room` tokens, as [`Pool::admit`] and [`Pool::widen`] gave it, and has computed `computed`.
    fn settle(&mut self, _held: &mut Self::Held, _room: u32, _computed: u32) {}

    /// Blocks that only their own request can ask for need not be findable from now on: those of its own turn, of what comes
    /// after that, and of its answer. The caller opens requests whose ids grow and that ask for no other one's turn or answer,
    /// or else calls [`Pool::expose`] first. To be called before anything is opened, and not with protection.
    fn keep_private(&mut self) {}

    /// Everything can be found from now on, once the caller has published again what its sequences have computed.
    fn expose(&mut self) {}

    /// This sequence will look for its own blocks, which it is about to publish again and to release.
    fn disclose(&self, _held: &mut Self::Held) {}

    /// Hands out blocks, of which there are so many, to sequences that [`Pool::settle`] will tell of. Only where a pool counts blocks
    /// and nothing else, which [`Pool::LEAPS`] says.
    fn hand_out(&mut self, _blocks: u32) {}

    /// As [`Pool::lacks`], for a sequence with room for `room` tokens.
    fn lacks_beyond(&self, held: &Self::Held, _room: u32, tokens: u32) -> u32 {
        self.lacks(held, tokens)
    }

    /// Tokens that the blocks held have room for: with no more, [`Pool::grow`] does nothing. 0 where that is not known.
    fn room(&self, _held: &Self::Held) -> u32 {
        0
    }

    /// Computed tokens from which [`Pool::publish`] finds something to do. 0 where that is not known.
    fn publishes_at(&self, _held: &Self::Held) -> u32 {
        0
    }

    /// How many blocks [`Pool::grow`] would have to find.
    fn lacks(&self, held: &Self::Held, tokens: u32) -> u32;

    /// How many more blocks could be handed out now.
    fn available(&self) -> u32;

    /// Whether a sequence that publishes its first `computed` tokens would find that another has published some of the blocks
    /// already. True where that is not known.
    fn meets(&self, _held: &mut Self::Held, _computed: u32) -> bool {
        true
    }

    /// Makes the full blocks among the first `computed` tokens findable. Where an equal block can be found already,
    /// the sequence takes that one and gives its own back, so its block table may change.
    fn publish(&mut self, held: &mut Self::Held, computed: u32);

    /// Lets go of everything held; published blocks stay cached.
    fn release(&mut self, held: &mut Self::Held);

    /// The block table: the block of tokens `[B·i, B·(i+1))` at position i. Empty in a pool that numbers no blocks.
    fn table<'a>(&self, held: &'a Self::Held) -> &'a [u32];

    /// The state of the pool.
    fn usage(&self) -> PoolUsage;

    /// Forgets everything cached (a shard came back cold). The caller has released every sequence.
    fn clear(&mut self);

    /// Spares blocks of admitted keys from now on. To be called before anything is opened.
    fn protect_admitted(&mut self);

    /// Spares nothing any more until it is used again, as a new plan decides anew whom to spare. Without protection nothing
    /// happens.
    fn lift_protection(&mut self);
}
