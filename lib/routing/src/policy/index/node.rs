//! One segment of content after one exact history, and which shards were sent it.

use super::shard_bits::ShardBits;
use cr_trace::ShardId;
use smallvec::SmallVec;

/// What a shard holds of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) tokens: u32,
    /// Its place in the order of dispatch.
    pub(super) place: u32,
}

/// See the module's page.
#[derive(Clone, Debug)]
pub(super) struct Node {
    shards: ShardBits,
    /// One for each of `shards`, in their order.
    holders: SmallVec<[Holder; 2]>,
    /// No holder has fewer tokens.
    least: u32,
}

impl Node {
    /// Nobody holds it.
    pub(super) fn new() -> Node {
        Node { shards: ShardBits::default(), holders: SmallVec::new(), least: u32::MAX }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holders.is_empty()
    }

    /// The shards that hold it, in order, with what they hold.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (ShardId, Holder)> + '_ {
        self.shards.iter().zip(self.holders.iter().copied())
    }

    /// What a shard holds.
    #[inline]
    pub(super) fn holder(&mut self, shard: ShardId) -> Option<&mut Holder> {
        self.shards.rank(shard).map(|at| &mut self.holders[at])
    }

    /// A shard that did not hold it does.
    pub(super) fn insert(&mut self, shard: ShardId, holder: Holder) {
        self.holders.insert(self.shards.insert(shard), holder);
        self.least = self.least.min(holder.tokens);
    }

    /// A shard does not hold it any more.
    pub(super) fn remove(&mut self, shard: ShardId) {
        if let Some(at) = self.shards.rank(shard) {
            self.holders.remove(at);
            self.shards.remove(shard);
        }
    }

    /// Of the shards that have all `before` tokens before it, `going` are left that have so many `tokens` of it, too. What the others have
    /// is written to `out`.
    #[inline]
    pub(super) fn follow(&self, tokens: u32, before: u32, going: &mut ShardBits, out: &mut [u32]) {
        going.keep(&self.shards, |shard| out[shard.index()] = before);
        if self.least >= tokens {
            return;
        }
        for (shard, holder) in self.shards.iter().zip(&self.holders) {
            if holder.tokens < tokens && going.rank(shard).is_some() {
                out[shard.index()] = before + holder.tokens;
                going.remove(shard);
            }
        }
    }
}
