//! The shards, and what a router sees of them.

use cr_cost::CostModel;
use cr_engine::{Backend, BlockPool, Departed, EngineError, Rejection, Shard, ShardConfig, SimBackend};
use cr_report::events::{ShardState, Shards};
use cr_routing::{FleetView, ShardView};
use cr_trace::{Request, ShardId, Time};
use std::sync::Arc;

/// N shards of one kind.
pub struct Fleet {
    shards: Vec<Shard<BlockPool>>,
    views: Vec<ShardView>,
}

impl Fleet {
    /// A fleet of one shard for every backend.
    pub fn new(config: ShardConfig, backends: Vec<Box<dyn Backend>>) -> Fleet {
        let shards: Vec<_> = backends.into_iter().map(|backend| Shard::new(config, backend)).collect();
        let views = vec![ShardView { up: true, ..ShardView::default() }; shards.len()];
        Fleet { shards, views }
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

    /// What a router sees at `now`.
    pub(crate) fn view(&self, now: Time) -> FleetView<'_> {
        FleetView { shards: &self.views, as_of: now }
    }

    /// Hands a request to a shard; says whether the shard is idle and should start a step.
    pub(crate) fn enqueue(
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

    /// Starts a step; returns how long it takes, `None` where the shard has nothing to do.
    pub(crate) fn start_step(
        &mut self,
        id: ShardId,
        now: Time,
        departed: &mut Vec<Departed>,
    ) -> Result<Option<Time>, EngineError> {
        let duration = self.shards[id.index()].start_step(now, departed)?;
        self.look(id);
        Ok(duration)
    }

    /// Ends a step; says whether the shard has more to do.
    pub(crate) fn end_step(&mut self, id: ShardId, now: Time, departed: &mut Vec<Departed>) -> bool {
        let shard = &mut self.shards[id.index()];
        shard.end_step(now, departed);
        let more = shard.has_work();
        self.look(id);
        more
    }

    /// Gives up everything on every shard.
    pub(crate) fn abandon(&mut self, now: Time) -> Vec<(ShardId, Departed)> {
        let mut all = Vec::new();
        for (index, shard) in self.shards.iter_mut().enumerate() {
            let mut departed = Vec::new();
            shard.abandon(now, &mut departed);
            all.extend(departed.into_iter().map(|gone| (ShardId(index as u32), gone)));
        }
        (0..self.shards.len()).for_each(|index| self.look(ShardId(index as u32)));
        all
    }

    fn look(&mut self, id: ShardId) {
        let shard = &self.shards[id.index()];
        let view = &mut self.views[id.index()];
        view.load = (shard.queued() + shard.running()) as u32;
        view.running = shard.running() as u32;
        view.pending_tokens = shard.pending_tokens();
    }

    /// The snapshot of every shard at `now`.
    pub(crate) fn snapshot(&self, now: Time, window_start: bool) -> Shards {
        let shards = self.shards.iter().zip(&self.views).enumerate().map(|(index, (shard, view))| {
            let (totals, usage) = (shard.totals(), shard.usage());
            ShardState {
                shard: ShardId(index as u32),
                up: view.up,
                queued: shard.queued() as u64,
                running: shard.running() as u64,
                kv_used_blocks: u64::from(usage.referenced + usage.cached),
                kv_total_blocks: u64::from(shard.config().kv_blocks),
                kv_protected_blocks: 0,
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
        });
        Shards { t_s: now.as_s(), shards: shards.collect(), window_start }
    }
}
