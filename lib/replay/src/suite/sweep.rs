//! The cells of a suite, and running one.

use super::spec::Load;
use super::{Suite, probe};
use crate::run::{Outcome, RunSpec, run};
use crate::sink::EventSink;
use crate::{Engine, PlanFrom, ReplayError};
use cr_report::events::{Header, SCHEMA};
use std::sync::atomic::AtomicBool;

/// One run of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The routing policy's name.
    pub policy: String,
    /// The rate, in requests per second.
    pub qps: f64,
    /// The seed of the requests and of the policy.
    pub seed: u64,
}

/// A suite ready to run: its engine is loaded, its rates are known.
pub struct Sweep {
    suite: Suite,
    engine: Engine,
    rates: Vec<f64>,
    /// What the fleet can take, in requests per second, where the suite asked for a share of it.
    capacity_qps: Option<f64>,
}

impl Sweep {
    /// Loads the engine and, where the suite sets a utilisation, finds out what the fleet can take.
    ///
    /// # Errors
    /// An engine that cannot be loaded or fails.
    pub fn new(suite: Suite, interrupt: &AtomicBool) -> Result<Sweep, ReplayError> {
        let engine = suite.engine()?;
        let (rates, capacity_qps) = match &suite.load {
            Load::Rates { qps } => (qps.clone(), None),
            Load::Utilisation { utilisation, probe_requests } => {
                let capacity = probe::capacity_qps(&suite, &engine, *probe_requests, interrupt)?;
                // Three digits are all that a probe is good for.
                let digits = 2 - (capacity * utilisation).log10().floor() as i32;
                let unit = 10f64.powi(digits);
                (vec![(capacity * utilisation * unit).round() / unit], Some(capacity))
            }
        };
        Ok(Sweep { suite, engine, rates, capacity_qps })
    }

    /// The suite.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// What serves.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the fleet can take, in requests per second, where the suite asked for a share of it.
    pub fn capacity_qps(&self) -> Option<f64> {
        self.capacity_qps
    }

    /// All runs, in the order in which they are best made: the policies of a seed next to each other, so that a machine
    /// that slows down slows all of them.
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &qps in &self.rates {
            for &seed in &self.suite.seeds {
                for policy in &self.suite.policies {
                    cells.push(Cell { policy: policy.clone(), qps, seed });
                }
            }
        }
        cells
    }

    /// Makes one run.
    ///
    /// # Errors
    /// A workload that cannot be drawn, an engine that fails, or events that cannot be written.
    pub fn run(
        &self,
        cell: &Cell,
        sink: &mut dyn EventSink,
        interrupt: &AtomicBool,
    ) -> Result<Outcome, ReplayError> {
        let suite = &self.suite;
        let generator = suite.requests(cell.seed, Some(cell.qps))?;
        let requests = suite.workload.requests.unwrap_or(0);
        let share = |share: f64| (requests as f64 * share).floor() as u64;
        let head = share(suite.plan_from).max(1);
        let spec = RunSpec {
            header: Header {
                schema: SCHEMA.into(),
                generator: crate::GENERATOR.into(),
                policy: cell.policy.clone(),
                seed: cell.seed,
                qps: Some(cell.qps),
                engine: self.engine.kind().into(),
                model: self.engine.name().into(),
                device: self.engine.device().into(),
                shards: suite.fleet.shards,
                block_tokens: suite.fleet.block_tokens,
                kv_blocks: suite.fleet.kv_blocks,
                clock: "virtual".into(),
                durations: self.engine.durations().into(),
                requests_expected: Some(requests),
                warmup_s: suite.warmup_s,
                slo: suite.slo,
                plan_requests: head + share(suite.settle),
                in_sample: false,
            },
            vnodes: suite.fleet.vnodes,
            tables: Vec::new(),
            plan_from: Some(PlanFrom { requests: head, qcap: suite.qcap, warm_slots: suite.warm_slots }),
        };
        let fleet = self.engine.fleet(suite.fleet.shards, suite.shard_config())?;
        run(&spec, fleet, generator.map(Ok), sink, interrupt)
    }
}
