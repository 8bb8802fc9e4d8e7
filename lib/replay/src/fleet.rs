//! The shards, and what a router sees of them.

use crate::serving::Serving;
use cr_cost::CostModel;
use cr_engine::{Backend, BlockPool, Departed, EngineError, Rejection, Shard, ShardConfig, SimBackend};
use cr_report::events::{ShardState, Shards};
use cr_routing::ShardView;
use cr_trace::{Request, ShardId, Time};
use std::sync::Arc;

/// N shards of one kind.
pub struct Fleet {
    shards: Vec<Shard<BlockPool>>,
    views: Vec<ShardView>,
    /// When the step in progress on each shard ends.
    step_ends: Vec<Option<Time>>,
}

impl Fleet {
    /// A fleet of one shard for every backend.
    pub fn new(config: ShardConfig, backends: Vec<Box<dyn Backend>>) -> Fleet {
        let shards: Vec<_> = backends.into_iter().map(|backend| Shard::new(config, backend)).collect();
        let views = vec![ShardView { up: true, ..ShardView::default() }; shards.len()];
        let step_ends = vec![None; shards.len()];
        Fleet { shards, views, step_ends }
    }

    /// A simulated fleet.
    pub fn simulated(shards: u32, config: ShardConfig, cost: &Arc<CostModel>) -> Fleet {
        let backend = |_| Box::new(SimBackend::new(Arc::clone(cost))) as Box<dyn Backend>;
        Fleet::new(config, (0..shards).map(backend).collect())
    }

    /// The number of shards.
    pub fn len(&self) -> usize {
        self.shards.len()
    }

    /// Whether there are no shards.
    pub fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// The limits of every shard.
    pub fn config(&self) -> Option<&ShardConfig> {
        self.shards.first().map(Shard::config)
    }

    /// The shards themselves, for whoever drives each on a thread of its own.
    pub(crate) fn into_shards(self) -> Vec<Shard<BlockPool>> {
        self.shards
    }

    /// Starts a step; returns when it ends, `None` where the shard has nothing to do.
    pub(crate) fn start_step(
        &mut self,
        id: ShardId,
        now: Time,
        departed: &mut Vec<Departed>,
    ) -> Result<Option<Time>, EngineError> {
        let duration = self.shards[id.index()].start_step(now, departed)?;
        self.look(id);
        // A step that took no time at all would let the clock stand still.
        let end = duration.map(|duration| now + duration.max(Time(1)));
        self.step_ends[id.index()] = end;
        Ok(end)
    }

    /// Ends the step that ends at `now`, if it is still in progress: its shard may have died. Says whether the shard has more
    /// to do.
    pub(crate) fn end_step(&mut self, id: ShardId, now: Time, departed: &mut Vec<Departed>) -> bool {
        if self.step_ends[id.index()] != Some(now) {
            return false;
        }
        self.step_ends[id.index()] = None;
        let shard = &mut self.shards[id.index()];
        shard.end_step(now, departed);
        let more = shard.has_work();
        self.look(id);
        more
    }

    /// Gives up everything on every shard.
    pub(crate) fn abandon(&mut self, now: Time) -> Vec<(ShardId, Vec<Departed>)> {
        let ids = (0..self.shards.len() as u32).map(ShardId);
        ids.map(|id| (id, self.evacuate(id, now, "stopped").unwrap_or_default())).collect()
    }

    fn look(&mut self, id: ShardId) {
        let shard = &self.shards[id.index()];
        let view = &mut self.views[id.index()];
        view.load = (shard.queued() + shard.running()) as u32;
        view.running = shard.running() as u32;
        view.pending_tokens = shard.pending_tokens();
    }
}

impl Serving for Fleet {
    fn views(&self) -> &[ShardView] {
        &self.views
    }

    fn kv_tokens(&self) -> u64 {
        self.config().map_or(0, |config| u64::from(config.kv_blocks) * u64::from(config.block_tokens))
    }

    fn enqueue(
        &mut self,
        id: ShardId,
        request: Arc<Request>,
        arrival: Time,
        admitted: bool,
    ) -> Result<bool, Rejection> {
        let shard = &mut self.shards[id.index()];
        shard.enqueue(request, arrival, admitted)?;
        let idle = !shard.in_step();
        self.look(id);
        Ok(idle)
    }

    fn set_up(&mut self, id: ShardId, up: bool) {
        self.views[id.index()].up = up;
    }

    fn set_pace(&mut self, id: ShardId, pace: f64) {
        self.shards[id.index()].set_pace(pace);
    }

    fn evacuate(&mut self, id: ShardId, now: Time, _kind: &'static str) -> Option<Vec<Departed>> {
        let mut departed = Vec::new();
        self.step_ends[id.index()] = None;
        self.shards[id.index()].abandon(now, &mut departed);
        self.look(id);
        Some(departed)
    }

    fn lift_protection(&mut self) {
        self.shards.iter_mut().for_each(Shard::lift_protection);
    }

    fn is_idle(&self) -> bool {
        self.step_ends.iter().all(Option::is_none)
    }

    fn snapshot(&mut self, now: Time, window_start: bool) -> Shards {
        let states = self.shards.iter().zip(&self.views).enumerate();
        let states = states.map(|(index, (shard, view))| state(ShardId(index as u32), shard, view.up, now));
        Shards { t_s: now.as_s(), shards: states.collect(), window_start }
    }
}

/// One shard of a snapshot.
pub(crate) fn state(id: ShardId, shard: &Shard<BlockPool>, up: bool, now: Time) -> ShardState {
    let (totals, usage) = (shard.totals(), shard.usage());
    ShardState {
        shard: id,
        up,
        queued: shard.queued() as u64,
        running: shard.running() as u64,
        kv_used_blocks: u64::from(usage.referenced + usage.cached),
        kv_total_blocks: u64::from(shard.config().kv_blocks),
        kv_protected_blocks: u64::from(usage.protected),
        busy_s: shard.busy(now).as_s(),
        requests: totals.requests,
        prompt_tokens: totals.prompt_tokens,
        cached_tokens: totals.cached_tokens,
        computed_tokens: totals.computed_tokens,
        output_tokens: totals.output_tokens,
        evicted_blocks: usage.evicted,
        evicted_admitted_blocks: usage.evicted_admitted,
        preemptions: totals.preemptions,
        recomputed_tokens: totals.recomputed_tokens,
    }
}
