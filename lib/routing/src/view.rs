//! What a router sees of the fleet.

use cr_trace::{ShardId, Time};

/// One shard as a router sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardView {
    /// Whether it takes requests.
    pub up: bool,
    /// Requests assigned and not finished: the *load* that every rule compares.
    pub load: u32,
    /// Of those, requests that have been scheduled at least once.
    pub running: u32,
    /// Uncached prompt tokens of the assigned requests that have no first token yet, as far as the router knows.
    pub pending_tokens: u64,
}

/// The fleet as a router sees it, one entry a shard in order of shard id.
#[derive(Clone, Copy, Debug)]
pub struct FleetView<'a> {
    /// One entry a shard; the position is the shard id.
    pub shards: &'a [ShardView],
    /// The instant that this view describes: now, or earlier where views are stale.
    pub as_of: Time,
}

impl FleetView<'_> {
    /// The number of shards, up or not.
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether there are no shards at all.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// The view of one shard; of one that does not exist, a shard that is down.
    pub fn shard(&self, id: ShardId) -> ShardView {
        self.shards.get(id.index()).copied().unwrap_or_default()
    }

    /// The shards that take requests, in order.
    pub fn up(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.shards.iter().enumerate().filter(|(_, shard)| shard.up).map(|(index, _)| ShardId(index as u32))
    }
}
