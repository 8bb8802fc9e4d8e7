//! What serves, whatever the clock: shards that are handed requests and tell how they are.

use cr_engine::{Departed, Refused};
use cr_report::events::Shards;
use cr_routing::ShardView;
use cr_trace::{Request, ShardId, Time};
use std::sync::Arc;

/// The shards of a run, as the desk deals with them.
pub(crate) trait Serving {
    /// Every shard as it is now.
    fn views(&self) -> &[ShardView];

    /// KV tokens of one shard.
    fn kv_tokens(&self) -> u64;

    /// Hands a request to a shard, whose intended arrival may lie before `now`; says whether the shard is idle and has to be woken.
    fn enqueue(
        &mut self,
        id: ShardId,
        now: Time,
        request: Arc<Request>,
        arrival: Time,
        admitted: bool,
    ) -> Result<bool, Refused>;

    /// A shard goes down or comes back.
    fn set_up(&mut self, id: ShardId, up: bool);

    /// Steps that start from now on take `pace` times as long.
    fn set_pace(&mut self, id: ShardId, now: Time, pace: f64);

    /// Takes everything off a shard and empties its cache, for a fault of this name; `None` where its requests come later.
    fn evacuate(&mut self, id: ShardId, now: Time, kind: &'static str) -> Option<Vec<Departed>>;

    /// A new plan decides anew whose blocks pools spare.
    fn lift_protection(&mut self, now: Time);

    /// Whether nothing is being computed.
    fn is_idle(&self) -> bool;

    /// The longest queue of the shards that are up, as a snapshot would tell it; `None` where only that can.
    fn longest_queue(&self) -> Option<u64> {
        None
    }

    /// The snapshot of every shard at `now`. `started`: whether steps that start at `now` have started.
    fn snapshot(&mut self, now: Time, started: bool, window_start: bool) -> Shards;
}
