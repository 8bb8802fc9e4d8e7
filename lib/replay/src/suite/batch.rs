//! What the runs of one variant, seed and rate share: the requests, and a table that was planned ahead.

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

/// Requests of which more are drawn anew for every run instead of being kept in memory.
const KEPT_REQUESTS: u64 = 400_000;

/// The requests of one variant, seed and rate, and the table where it was planned ahead.
pub(super) struct Batch<'a> {
    ready: &'a Ready,
    kept: Option<Vec<Request>>,
    total: u64,
    table: Option<Arc<RoutingTable>>,
}

impl<'a> Batch<'a> {
    /// Draws the requests of a cell; they do not depend on its policy.
    pub(super) fn of(ready: &'a Ready, cell: &Cell) -> Result<Batch<'a>, ReplayError> {
        let suite = &ready.suite;
        let generator = suite.requests(cell.seed, Some(cell.qps))?;
        let total = generator.total();
        let kept = (total <= KEPT_REQUESTS).then(|| generator.collect());
        let mut batch = Batch { ready, kept, total, table: None };
        if let Some(source) = suite.plan {
            let table = plan::table(suite, source, (cell.seed, cell.qps), &mut batch.requests(cell)?)?;
            batch.table = Some(table);
        }
        Ok(batch)
    }

    fn requests(&self, cell: &Cell) -> Result<Box<dyn Iterator<Item = Request> + '_>, ReplayError> {
        Ok(match &self.kept {
            Some(kept) => Box::new(kept.iter().cloned()),
            None => Box::new(self.ready.suite.requests(cell.seed, Some(cell.qps))?),
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
