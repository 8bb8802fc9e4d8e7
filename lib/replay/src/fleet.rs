//! The shards, and what a router sees of them.

use crate::serving::Serving;
use cr_cost::CostModel;
use cr_engine::{
    Backend, BlockPool, Departed, EngineError, Pool, Refused, RunPool, Shard, ShardConfig, SimBackend,
};
use cr_report::events::{ShardState, Shards as ShardStates};
use cr_routing::ShardView;
use cr_trace::{Request, ShardId, Time};
use std::sync::Arc;

/// Shards of one kind of pool.
enum Shards {
    /// For backends that need block tables.
    Blocks(Vec<Shard<BlockPool>>),
    /// For the simulator.
    Runs(Vec<Shard<RunPool>>),
}

/// Does the same with the shards, whatever their pool.
macro_rules! with {
    ($shards:expr, $list:ident => $body:expr) => {
        match $shards {
            Shards::Blocks($list) => $body,
            Shards::Runs($list) => $body,
        }
    };
}

/// Does the same with one shard, whatever its pool.
macro_rules! with_shard {
    ($shards:expr, $id:expr, $shard:ident => $body:expr) => {
        match $shards {
            Shards::Blocks(list) => {
                let $shard = &mut list[$id.index()];
                $body
            }
            Shards::Runs(list) => {
                let $shard = &mut list[$id.index()];
                $body
            }
        }
    };
}

/// N shards of one kind.
pub struct Fleet {
    shards: Shards,
    views: Vec<ShardView>,
    /// When the step in progress on each shard ends, or the uneventful ones that follow it.
    step_ends: Vec<Option<Time>>,
    /// Shards whose steps end earlier than they were to, or not at all.
    moved: Vec<(ShardId, Option<Time>)>,
}

impl Fleet {
    /// A fleet of one shard for every backend.
    pub fn new(config: ShardConfig, backends: Vec<Box<dyn Backend>>) -> Fleet {
        Fleet::of(Shards::Blocks(backends.into_iter().map(|backend| Shard::new(config, backend)).collect()))
    }

    /// A simulated fleet.
    pub fn simulated(shards: u32, config: ShardConfig, cost: &Arc<CostModel>) -> Fleet {
        let backend = || Box::new(SimBackend::new(Arc::clone(cost)));
        Fleet::of(Shards::Runs((0..shards).map(|_| Shard::new(config, backend())).collect()))
    }

    /// A simulated fleet that takes every step by itself and keeps every block by itself: the slow twin of
    /// [`Fleet::simulated`], and its oracle. Both give the same bytes.
    pub fn simulated_stepwise(shards: u32, config: ShardConfig, cost: &Arc<CostModel>) -> Fleet {
        let backend = |_| Box::new(SimBackend::new(Arc::clone(cost))) as Box<dyn Backend>;
        Fleet::new(config, (0..shards).map(backend).collect())
    }

    fn of(shards: Shards) -> Fleet {
        let count = with!(&shards, list => list.len());
        let views = vec![ShardView { up: true, ..ShardView::default() }; count];
        Fleet { shards, views, step_ends: vec![None; count], moved: Vec::new() }
    }

    /// The number of shards.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// Whether there are no shards.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The limits of every shard.
    pub fn config(&self) -> Option<&ShardConfig> {
        with!(&self.shards, list => list.first().map(Shard::config))
    }

    /// The shards themselves, for whoever drives each on a thread of its own.
    pub(crate) fn into_shards(self) -> Vec<Shard<BlockPool>> {
        match self.shards {
            Shards::Blocks(list) => list,
            // Real time cannot be leapt over.
            Shards::Runs(list) => list.into_iter().map(Shard::rebuilt).collect(),
        }
    }

    /// A shard whose steps end earlier than they were to, and when; or not at all.
    pub(crate) fn next_moved(&mut self) -> Option<(ShardId, Option<Time>)> {
        self.moved.pop()
    }

    /// Starts a step; returns when it ends, `None` where the shard has nothing to do.
    pub(crate) fn start_step(
        &mut self,
        id: ShardId,
        now: Time,
        departed: &mut Vec<Departed>,
    ) -> Result<Option<Time>, EngineError> {
        let view = &mut self.views[id.index()];
        let duration = with_shard!(&mut self.shards, id, shard => {
            let duration = shard.start_step(now, departed)?;
            look(view, shard);
            duration
        });
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
        let view = &mut self.views[id.index()];
        with_shard!(&mut self.shards, id, shard => {
            shard.end_step(now, departed);
            look(view, shard);
            shard.has_work()
        })
    }

    /// Gives up everything on every shard.
    pub(crate) fn abandon(&mut self, now: Time) -> Vec<(ShardId, Vec<Departed>)> {
        let ids = (0..self.len() as u32).map(ShardId);
        ids.map(|id| (id, self.evacuate(id, now, "stopped").unwrap_or_default())).collect()
    }

    /// The steps of a shard end earlier.
    fn move_end(&mut self, id: ShardId, end: Option<Time>) {
        if end.is_some() {
            self.step_ends[id.index()] = end;
            self.moved.push((id, end));
        }
    }
}

/// What a router sees of a shard, as it is now.
#[inline]
fn look<P: Pool>(view: &mut ShardView, shard: &Shard<P>) {
    view.load = (shard.queued() + shard.running()) as u32;
    view.running = shard.running() as u32;
    view.pending_tokens = shard.pending_tokens();
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
        now: Time,
        request: Arc<Request>,
        arrival: Time,
        admitted: bool,
    ) -> Result<bool, Refused> {
        let view = &mut self.views[id.index()];
        let (idle, cut) = with_shard!(&mut self.shards, id, shard => {
            shard.enqueue(request, arrival, admitted)?;
            look(view, shard);
            (!shard.in_step(), shard.interrupt_leap(now))
        });
        self.move_end(id, cut);
        Ok(idle)
    }

    fn set_up(&mut self, id: ShardId, up: bool) {
        self.views[id.index()].up = up;
    }

    fn set_pace(&mut self, id: ShardId, now: Time, pace: f64) {
        let cut = with_shard!(&mut self.shards, id, shard => {
            shard.set_pace(pace);
            shard.cut_leap(now)
        });
        self.move_end(id, cut);
    }

    fn evacuate(&mut self, id: ShardId, now: Time, _kind: &'static str) -> Option<Vec<Departed>> {
        let mut departed = Vec::new();
        self.step_ends[id.index()] = None;
        self.moved.push((id, None));
        let view = &mut self.views[id.index()];
        with_shard!(&mut self.shards, id, shard => {
            shard.abandon(now, &mut departed);
            look(view, shard);
        });
        Some(departed)
    }

    fn lift_protection(&mut self, now: Time) {
        with!(&mut self.shards, list => list.iter_mut().for_each(|shard| {
            shard.catch_up(now, false);
            shard.lift_protection();
        }));
    }

    fn is_idle(&self) -> bool {
        self.step_ends.iter().all(Option::is_none)
    }

    fn longest_queue(&self) -> Option<u64> {
        let up = self.views.iter().filter(|view| view.up);
        Some(up.map(|view| u64::from(view.load - view.running)).max().unwrap_or(0))
    }

    fn snapshot(&mut self, now: Time, started: bool, window_start: bool) -> ShardStates {
        let views = &self.views;
        let shards = with!(&mut self.shards, list => {
            let each = list.iter_mut().zip(views).zip(0..).map(|((shard, view), id)| {
                shard.catch_up(now, started);
                state(ShardId(id), shard, view.up, now)
            });
            each.collect()
        });
        ShardStates { t_s: now.as_s(), shards, window_start }
    }
}

/// One shard of a snapshot.
pub(crate) fn state<P: Pool>(id: ShardId, shard: &Shard<P>, up: bool, now: Time) -> ShardState {
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
