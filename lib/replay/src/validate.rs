//! How far the simulator is from the real model on one trace.
//!
//! The same requests are replayed three times under the same policy and seed: on the model with measured steps, on the
//! model with steps timed by the cost model, and simulated with that cost model. The last two must agree on every
//! request, since they differ only in whether anything is computed; the first shows what the cost model is worth: every
//! later step, queue and routing decision follows from the durations of the steps before.

use crate::ReplayError;
use crate::engines::Engine;
use crate::run::{RunSpec, Stop, run};
use crate::sink::EventSink;
use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_engine::model::{Model, StepTimes};
use cr_report::events::{Event, Finish};
use cr_report::summary::Summary;
use cr_trace::Request;
use cr_trace::stats::median;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is replayed.
pub struct Validation<'a> {
    /// The run; engine and durations of its header are set for each replay.
    pub spec: &'a RunSpec,
    /// The limits of every shard.
    pub shard: ShardConfig,
    /// The weights.
    pub model: &'a Arc<Model>,
    /// `cpu`, `cuda` or `metal`.
    pub device: &'static str,
    /// The cost model under test.
    pub cost: &'a CostModel,
    /// The requests.
    pub requests: &'a [Request],
}

/// One replay: its summary, and how every request that finished fared.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The summary.
    pub summary: Summary,
    finishes: BTreeMap<u64, Finish>,
}

/// The three replays.
#[derive(Clone, Debug)]
pub struct Agreement {
    /// The model, its steps measured.
    pub measured: Replay,
    /// The model, its steps timed by the cost model.
    pub modelled: Replay,
    /// The simulator.
    pub sim: Replay,
}

impl Agreement {
    /// Requests that the model with modelled steps and the simulator do not serve alike, of those either finished:
    /// another shard, another hit, or another time. Anything above 0 is a defect of this program.
    pub fn unlike(&self) -> usize {
        let (a, b) = (&self.modelled.finishes, &self.sim.finishes);
        let missing = b.keys().filter(|id| !a.contains_key(*id)).count();
        missing + a.iter().filter(|(id, finish)| b.get(*id) != Some(finish)).count()
    }

    /// Σ over requests |cached tokens simulated − measured| / Σ prompt tokens, over requests that both finished.
    pub fn hit_distance(&self) -> f64 {
        let (mut apart, mut prompt) = (0, 0);
        for (measured, sim) in self.pairs() {
            apart += measured.cached_tokens.abs_diff(sim.cached_tokens);
            prompt += measured.prompt_tokens;
        }
        apart as f64 / prompt.max(1) as f64
    }

    /// The share of requests that went to the same shard in the simulation.
    pub fn same_shard(&self) -> f64 {
        let (mut same, mut all) = (0, 0);
        for (measured, sim) in self.pairs() {
            same += usize::from(measured.shard == sim.shard);
            all += 1;
        }
        same as f64 / all.max(1) as f64
    }

    /// The median over requests of |TTFT simulated − measured| / measured.
    pub fn ttft_error(&self) -> f64 {
        let errors = self
            .pairs()
            .filter(|(measured, _)| measured.ttft_s > 0.0)
            .map(|(measured, sim)| (sim.ttft_s / measured.ttft_s - 1.0).abs());
        median(errors.collect()).unwrap_or(0.0)
    }

    fn pairs(&self) -> impl Iterator<Item = (&Finish, &Finish)> {
        let sim = &self.sim.finishes;
        self.measured.finishes.iter().filter_map(move |(id, measured)| Some((measured, sim.get(id)?)))
    }
}

impl Validation<'_> {
    /// Makes the three replays; `on_finish` hears of every request that ends.
    ///
    /// # Errors
    /// What [`run`] says, an engine that fails, or an interruption.
    pub fn run(&self, interrupt: &AtomicBool, on_finish: &mut dyn FnMut()) -> Result<Agreement, ReplayError> {
        let model = |times| Engine::Model { model: Arc::clone(self.model), device: self.device, times };
        let engines = [
            model(StepTimes::Measured),
            model(StepTimes::Modelled(self.cost.clone())),
            Engine::Sim(Arc::new(self.cost.clone())),
        ];
        let mut replays = Vec::with_capacity(engines.len());
        for engine in engines {
            replays.push(self.replay(&engine, interrupt, on_finish)?);
        }
        match <[Replay; 3]>::try_from(replays) {
            Ok([measured, modelled, sim]) => Ok(Agreement { measured, modelled, sim }),
            Err(_) => Err(ReplayError::Interrupted),
        }
    }

    fn replay(
        &self,
        engine: &Engine,
        interrupt: &AtomicBool,
        on_finish: &mut dyn FnMut(),
    ) -> Result<Replay, ReplayError> {
        let mut spec = self.spec.clone();
        spec.header.engine = engine.kind().into();
        spec.header.durations = engine.durations().into();
        // The simulator has no context of its own; the model's holds for all three.
        let context = self.model.config().context as u32;
        let shard = ShardConfig {
            context_tokens: Some(self.shard.context_tokens.map_or(context, |tokens| tokens.min(context))),
            ..self.shard
        };
        let fleet = engine.fleet(spec.header.shards, shard)?;
        let mut sink = Finishes { finishes: BTreeMap::new(), on_finish };
        let trace = self.requests.iter().cloned().map(Ok);
        let outcome = run(&spec, fleet, trace, &mut sink, interrupt)?;
        match outcome.stopped {
            None => Ok(Replay { summary: outcome.summary, finishes: sink.finishes }),
            Some(Stop::Interrupted) => Err(ReplayError::Interrupted),
            Some(Stop::Trace(error)) => Err(error.into()),
            Some(Stop::Engine(error)) => Err(error.into()),
            Some(Stop::ClockEnds) => Err(ReplayError::Config(Stop::CLOCK_ENDS.into())),
        }
    }
}

struct Finishes<'a> {
    finishes: BTreeMap<u64, Finish>,
    on_finish: &'a mut dyn FnMut(),
}

impl EventSink for Finishes<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Finish(finish) => {
                self.finishes.insert(finish.id.0, finish.clone());
                (self.on_finish)();
            }
            Event::Fail(_) => (self.on_finish)(),
            _ => {}
        }
        Ok(())
    }

    fn reads_snapshots(&self) -> bool {
        false
    }
}
