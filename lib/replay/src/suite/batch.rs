//! What the runs of one variant, seed and rate share: the requests, and a table that was planned ahead.

use super::drawn::Kept;
use super::plan;
use super::sweep::{Cell, Ready};
use crate::run::{Outcome, RunSpec, run};
use crate::sink::EventSink;
use crate::{PlanFrom, Replan, ReplayError};
use cr_report::events::{Header, SCHEMA};
use cr_routing::RoutingTable;
use cr_trace::Request;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The requests of one variant, seed and rate, and the table where it was planned ahead.
pub(super) struct Batch<'a> {
    ready: &'a Ready,
    /// All requests, where they are few enough.
    kept: Option<&'a [Arc<Request>]>,
    total: u64,
    table: Option<Arc<RoutingTable>>,
}

impl<'a> Batch<'a> {
    /// Draws the requests of a cell, which do not depend on its policy, from those of the batch before it where they are the same.
    pub(super) fn of(ready: &'a Ready, cell: &Cell, before: &'a mut Kept) -> Result<Batch<'a>, ReplayError> {
        let suite = &ready.suite;
        let Kept { served, planned } = before;
        let kept = served.draw(suite, suite.workload_of(cell.seed, Some(cell.qps)))?;
        let total = match kept {
            Some(kept) => kept.len() as u64,
            None => suite.requests(cell.seed, Some(cell.qps))?.total(),
        };
        let mut batch = Batch { ready, kept, total, table: None };
        if let Some(source) = suite.plan {
            let at = (cell.seed, cell.qps);
            let table = plan::table(suite, source, at, &mut batch.requests(cell)?, planned)?;
            batch.table = Some(table);
        }
        Ok(batch)
    }

    fn requests(&self, cell: &Cell) -> Result<Box<dyn Iterator<Item = Arc<Request>> + '_>, ReplayError> {
        Ok(match self.kept {
            Some(kept) => Box::new(in_turn(kept)),
            None => Box::new(self.ready.suite.requests(cell.seed, Some(cell.qps))?.map(Arc::new)),
        })
    }

    /// Makes one run.
    pub(super) fn run(
        &self,
        cell: &Cell,
        sink: &mut dyn EventSink,
        interrupt: &AtomicBool,
    ) -> Result<Outcome, ReplayError> {
        let (suite, engine) = (&self.ready.suite, &self.ready.engine);
        let share = |share: f64| (self.total as f64 * share).floor() as u64;
        let head = suite.plan_from.map_or(0, |plan_from| share(plan_from).max(1));
        let header = Header {
            schema: SCHEMA.into(),
            generator: crate::GENERATOR.into(),
            policy: cell.policy.clone(),
            seed: cell.seed,
            qps: Some(cell.qps),
            variant: self.ready.label.clone(),
            engine: engine.kind().into(),
            model: engine.name().into(),
            device: engine.device().into(),
            shards: suite.fleet.shards,
            block_tokens: suite.fleet.block_tokens,
            kv_blocks: suite.fleet.kv_blocks,
            clock: "virtual".into(),
            durations: engine.durations().into(),
            requests_expected: Some(self.total),
            warmup_s: suite.warmup_s,
            slo: suite.slo,
            plan_requests: head + share(suite.settle),
            in_sample: self.table.as_ref().is_some_and(|table| table.meta().in_sample),
            protect_admitted: suite.fleet.protect_admitted,
            ..Header::default()
        };
        let by_table = cr_routing::policy::routes_by_table(&cell.policy);
        let spec = RunSpec {
            header,
            vnodes: suite.fleet.vnodes,
            tables: self.table.iter().filter(|_| by_table).cloned().collect(),
            plan_from: suite.plan_from.map(|_| PlanFrom {
                requests: head,
                qcap: suite.qcap,
                warm_slots: suite.warm_slots,
            }),
            replan: suite.replan.map(|replan| Replan {
                qcap: replan.qcap.or(suite.qcap),
                warm_slots: replan.warm_slots.or(suite.warm_slots),
                ..replan
            }),
            faults: suite.faults.clone(),
            view_lag_s: suite.fleet.view_lag_s,
            routers: suite.fleet.routers,
            tuning: suite.assume.over(engine.tuning(&suite.shard_config()), suite.slo.ttft_p99_s),
            ..RunSpec::default()
        };
        let fleet = engine.fleet(suite.fleet.shards, suite.shard_config())?;
        run(&spec, fleet, self.requests(cell)?.map(Ok), sink, interrupt)
    }
}

/// How many requests ahead the processor is told of one; half as many ahead it is told of its prompt, which is found through it.
const AHEAD: usize = 12;

/// The requests in their order, with a hint to the processor of those that come soon: together they are larger than its caches.
fn in_turn(kept: &[Arc<Request>]) -> impl Iterator<Item = Arc<Request>> {
    kept.iter().enumerate().map(|(place, request)| {
        if let Some(soon) = kept.get(place + AHEAD) {
            soon.approaches();
        }
        if let Some(sooner) = kept.get(place + AHEAD / 2) {
            sooner.prompt.outline_approaches();
        }
        Arc::clone(request)
    })
}
