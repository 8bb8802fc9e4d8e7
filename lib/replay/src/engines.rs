//! What serves the requests: a cost model or a real model, one backend a shard.

use crate::{Fleet, ReplayError};
use cr_cost::CostModel;
use cr_engine::model::{Answers, MemoryPlan, Model, ModelBackend, ModelConfig, StepTimes, pick_device};
use cr_engine::{Backend, ShardConfig};
use cr_routing::policy::PolicyTuning;
use std::sync::Arc;

/// The engine of a fleet. Cloning shares the weights.
#[derive(Clone)]
pub enum Engine {
    /// Steps timed by a cost model; nothing is computed.
    Sim(Arc<CostModel>),
    /// A real model with real prefill and decode.
    Model {
        /// The weights, one copy for all shards.
        model: Arc<Model>,
        /// `cpu`, `cuda` or `metal`.
        device: &'static str,
        /// Where durations come from.
        times: StepTimes,
    },
}

impl Engine {
    /// A model with random weights on the best device there is: a pure function of its shape and the seed.
    ///
    /// # Errors
    /// A device that cannot hold it.
    pub fn random_model(config: &ModelConfig, seed: u64, times: StepTimes) -> Result<Engine, ReplayError> {
        let (device, kind) = pick_device();
        let model = Arc::new(Model::random(config, seed, &device)?);
        Ok(Engine::Model { model, device: kind, times })
    }

    /// The `engine` of the events: `model` or `sim`.
    pub fn kind(&self) -> &'static str {
        match self {
            Engine::Sim(_) => "sim",
            Engine::Model { .. } => "model",
        }
    }

    /// The model's name, or the cost model's.
    pub fn name(&self) -> &str {
        match self {
            Engine::Sim(cost) => &cost.name,
            Engine::Model { model, .. } => &model.config().name,
        }
    }

    /// `cpu`, `cuda`, `metal`; `none` where nothing is computed.
    pub fn device(&self) -> &'static str {
        match self {
            Engine::Sim(_) => "none",
            Engine::Model { device, .. } => device,
        }
    }

    /// `measured` or `modelled`.
    pub fn durations(&self) -> &'static str {
        match self {
            Engine::Sim(_) | Engine::Model { times: StepTimes::Modelled(_), .. } => "modelled",
            Engine::Model { times: StepTimes::Measured, .. } => "measured",
        }
    }

    /// What policies assume of these shards, where nobody says otherwise: the KV tokens that they have, and the cost model in
    /// use; with measured durations there is none, and the published one stands in.
    pub fn tuning(&self, shard: &ShardConfig) -> PolicyTuning {
        let kv_tokens = u64::from(shard.kv_blocks) * u64::from(shard.block_tokens);
        match self {
            Engine::Sim(cost) => PolicyTuning::of_cost(CostModel::clone(cost), kv_tokens),
            Engine::Model { times: StepTimes::Modelled(cost), .. } => {
                PolicyTuning::of_cost(cost.clone(), kv_tokens)
            }
            Engine::Model { times: StepTimes::Measured, .. } => {
                PolicyTuning { kv_tokens, ..PolicyTuning::default() }
            }
        }
    }

    /// A fleet of `shards` empty shards.
    ///
    /// # Errors
    /// Pools that the device cannot hold.
    pub fn fleet(&self, shards: u32, config: ShardConfig) -> Result<Fleet, ReplayError> {
        self.fleet_of(shards, config, None)
    }

    /// A fleet whose model goes on from its own greedy tokens instead of the trace's answers (`--free-run`); answers are as long as the
    /// trace's.
    ///
    /// # Errors
    /// A cost model, which says nothing; or pools that the device cannot hold.
    pub fn free_running_fleet(&self, shards: u32, config: ShardConfig) -> Result<Fleet, ReplayError> {
        match self {
            Engine::Sim(_) => {
                Err(ReplayError::Config("a cost model has no tokens of its own to go on from".into()))
            }
            Engine::Model { .. } => self.fleet_of(shards, config, Some(Answers::default())),
        }
    }

    fn fleet_of(
        &self,
        shards: u32,
        config: ShardConfig,
        answers: Option<Answers>,
    ) -> Result<Fleet, ReplayError> {
        match self {
            Engine::Sim(cost) => Ok(Fleet::simulated(shards, config, cost)),
            Engine::Model { model, times, .. } => {
                if let Some(plan) =
                    MemoryPlan::after_load(model.kv_spec(), model.device(), shards, config.block_tokens)
                {
                    plan.check(config.kv_blocks)?;
                }
                let backends = (0..shards).map(|_| {
                    let (blocks, block_tokens) = (config.kv_blocks as usize, config.block_tokens as usize);
                    let backend = ModelBackend::new(model, blocks, block_tokens, times.clone())?;
                    let backend = match &answers {
                        Some(answers) => backend.free_running(answers.clone()),
                        None => backend,
                    };
                    Ok(Box::new(backend) as Box<dyn Backend>)
                });
                Ok(Fleet::new(config, backends.collect::<Result<_, ReplayError>>()?))
            }
        }
    }
}
