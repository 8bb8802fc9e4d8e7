//! The shards as the last snapshot shows them.

use cr_report::events::{Finish, ShardState, Shards};

use super::dist::Dist;

/// Fleets of more shards than this are shown without each shard's percentiles, whose distributions would take too much
/// memory.
pub const DETAILED_SHARDS: u32 = 4096;

/// One shard.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The last snapshot.
    pub now: ShardState,
    /// Time to first token of its finished requests; none in a fleet of more than [`DETAILED_SHARDS`].
    pub ttft: Option<Dist>,
    /// Requests that finished there, from `finish` events.
    pub finished: u64,
}

impl Shard {
    /// Tokens of work: computed prompt plus output.
    pub fn work_tokens(&self) -> u64 {
        self.now.computed_tokens.saturating_add(self.now.output_tokens)
    }

    /// Cached / prompt tokens of the requests scheduled so far.
    pub fn hit(&self) -> Option<f64> {
        let ShardState { prompt_tokens, cached_tokens, .. } = self.now;
        (prompt_tokens > 0).then(|| cached_tokens as f64 / prompt_tokens as f64)
    }

    /// 99th percentile of its time to first token, in seconds.
    pub fn p99_s(&self) -> Option<f64> {
        self.ttft.as_ref()?.quantile(0.99)
    }

    /// Used / all KV blocks.
    pub fn kv_use(&self) -> f64 {
        share(self.now.kv_used_blocks, self.now.kv_total_blocks)
    }

    /// Protected / all KV blocks.
    pub fn kv_protected(&self) -> f64 {
        share(self.now.kv_protected_blocks, self.now.kv_total_blocks)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) }
}

/// What happened between two snapshots.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Blocks of admitted keys evicted.
    pub evicted_admitted: u64,
    /// Tokens of work, by shard.
    pub tokens: Vec<u64>,
}

/// All shards, in order of shard id.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    shards: Vec<Shard>,
    /// Whether a snapshot has come.
    pub seen: bool,
}

impl Fleet {
    /// A fleet of `count` shards that did nothing yet.
    pub fn new(count: u32, kv_blocks: u32) -> Fleet {
        let shard = |id| Shard {
            now: ShardState::idle(cr_trace::ShardId(id), u64::from(kv_blocks)),
            ttft: (count <= DETAILED_SHARDS).then(Dist::default),
            finished: 0,
        };
        Fleet { shards: (0..count).map(shard).collect(), seen: false }
    }

    /// The shards in order of their id.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Which shards are up, in order.
    pub fn up(&self) -> Vec<bool> {
        self.shards.iter().map(|shard| shard.now.up).collect()
    }

    /// Requests that wait or run.
    pub fn in_flight(&self) -> u64 {
        self.shards.iter().map(|shard| shard.now.queued + shard.now.running).sum()
    }

    /// Takes over a snapshot; returns what has changed. A counter that ran backwards counts as unchanged.
    pub fn snapshot(&mut self, shards: &Shards) -> Change {
        let mut change = Change { evicted_admitted: 0, tokens: vec![0; self.shards.len()] };
        for state in &shards.shards {
            let index = state.shard.index();
            if let Some(shard) = self.shards.get_mut(index) {
                let before = (shard.now.evicted_admitted_blocks, shard.work_tokens());
                shard.now = state.clone();
                change.evicted_admitted += state.evicted_admitted_blocks.saturating_sub(before.0);
                change.tokens[index] += shard.work_tokens().saturating_sub(before.1);
            }
        }
        self.seen = true;
        change
    }

    /// Counts a finished request.
    pub fn finish(&mut self, finish: &Finish) {
        if let Some(shard) = self.shards.get_mut(finish.shard.index()) {
            if let Some(ttft) = &mut shard.ttft {
                ttft.record(finish.ttft_s);
            }
            shard.finished += 1;
        }
    }

    /// Marks a shard up or down.
    pub fn set_up(&mut self, shard: cr_trace::ShardId, up: bool) {
        if let Some(shard) = self.shards.get_mut(shard.index()) {
            shard.now.up = up;
        }
    }
}
