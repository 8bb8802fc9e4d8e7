//! From flags to an engine and the limits of its shards.

use crate::args::{Durations, EngineArgs, EngineKind, MeasureArgs, PoolArgs};
use crate::model::{ModelArgs, fetch};
use cr_cli::{CommonArgs, InputContext, bad_input};
use cr_cost::CostModel;
use cr_engine::ShardConfig;
use cr_engine::model::{Inspection, MemoryPlan, StepTimes};
use cr_replay::{Engine, Fleet, ReplayError, limits};
use cr_trace::Time;
use std::sync::Arc;

/// The blocks of a shard that computes nothing.
const DEFAULT_KV_BLOCKS: u32 = 4096;

/// No output is written over the files that the engine is read from.
pub(crate) fn reserve(args: &EngineArgs) {
    [&args.cost, &args.model.model].into_iter().for_each(cr_cli::opened::reserve);
}

/// The engine that was asked for.
pub(crate) fn engine(args: &EngineArgs, seed: u64, common: &CommonArgs) -> anyhow::Result<Engine> {
    let cost = || CostModel::by_name_or_path(&args.cost).bad_input();
    match (args.engine, args.durations) {
        (EngineKind::Sim | EngineKind::SimStepwise, _) if args.free_run => {
            Err(bad_input("--engine sim has no tokens of its own; leave out --free-run, or serve a model"))
        }
        (EngineKind::Sim | EngineKind::SimStepwise, _) if args.model.is_chosen() => Err(bad_input(
            "--engine sim runs no model; leave out --model and --quant, or name the cost of a model by --cost",
        )),
        (EngineKind::Sim | EngineKind::SimStepwise, Some(Durations::Measured)) => Err(bad_input(
            "--engine sim computes nothing that could be measured; leave out --durations measured",
        )),
        (EngineKind::Sim | EngineKind::SimStepwise, _) => Ok(Engine::Sim(Arc::new(cost()?))),
        (EngineKind::Model, durations) => {
            let times = match durations {
                Some(Durations::Modelled) => StepTimes::Modelled(cost()?),
                _ => StepTimes::Measured,
            };
            let (loaded, device) = args.model.load(seed, common)?;
            Ok(Engine::Model { model: Arc::new(loaded.model), device, times })
        }
    }
}

/// The shards of that engine.
pub(crate) fn fleet(
    args: &EngineArgs,
    engine: &Engine,
    shards: u32,
    config: ShardConfig,
) -> Result<Fleet, ReplayError> {
    match (args.engine, engine) {
        (EngineKind::SimStepwise, Engine::Sim(cost)) => match limits::of_blocks(shards, &config) {
            Some(what) => Err(ReplayError::Config(what)),
            None => Ok(Fleet::simulated_stepwise(shards, config, cost)),
        },
        _ if args.free_run => engine.free_running_fleet(shards, config),
        _ => engine.fleet(shards, config),
    }
}

/// The limits of every shard of a fleet that a model serves, its pools planned for the memory that is free. An error says
/// what would fit, before weights or pools are loaded.
pub(crate) fn planned_config(
    model: &ModelArgs,
    pool: &PoolArgs,
    measure: &MeasureArgs,
    shards: u32,
    common: &CommonArgs,
) -> anyhow::Result<ShardConfig> {
    let config = shard_config(pool, measure)?;
    fetch(&model.model, common)?;
    let (options, _) = model.weights.options(measure.seed);
    let inspection = Inspection::of(&model.model, &options).bad_input()?;
    let Some(plan) = MemoryPlan::before_load(&inspection, &options.device, shards, pool.block_tokens) else {
        return Ok(config);
    };
    if pool.kv_blocks.is_some() || pool.kv_tokens.is_some() {
        plan.check(config.kv_blocks).bad_input()?;
        return Ok(config);
    }
    let kv_blocks = plan.default_blocks().bad_input()?;
    if kv_blocks < config.kv_blocks {
        common.note(format!(
            "{kv_blocks} KV blocks a shard, not {}, so that {shards} shards fit in the memory that is free; --kv-blocks sets it",
            config.kv_blocks
        ));
    }
    Ok(ShardConfig { kv_blocks, ..config })
}

/// The limits of every shard.
pub(crate) fn shard_config(pool: &PoolArgs, measure: &MeasureArgs) -> anyhow::Result<ShardConfig> {
    limits(pool, measure.timeout)
}

/// The limits of every shard; requests are given up after `timeout_s`.
pub(crate) fn limits(pool: &PoolArgs, timeout_s: Option<f64>) -> anyhow::Result<ShardConfig> {
    let kv_blocks = match (pool.kv_blocks, pool.kv_tokens) {
        (Some(blocks), _) => blocks,
        (None, Some(tokens)) if tokens < pool.block_tokens => {
            return Err(bad_input(format!(
                "--kv-tokens {tokens} is less than one block of {} tokens",
                pool.block_tokens
            )));
        }
        (None, Some(tokens)) => tokens / pool.block_tokens,
        (None, None) => DEFAULT_KV_BLOCKS,
    };
    // Positions are counted in 32 bits.
    if u64::from(kv_blocks) * u64::from(pool.block_tokens) > u64::from(u32::MAX) / 2 {
        return Err(bad_input(format!(
            "{kv_blocks} blocks of {} tokens are more than the 2 billion tokens a shard may have",
            pool.block_tokens
        )));
    }
    Ok(ShardConfig {
        block_tokens: pool.block_tokens,
        kv_blocks,
        token_budget: pool.token_budget,
        max_running: pool.max_running,
        timeout: timeout_s.map(Time::from_s),
        ..ShardConfig::default()
    })
}
