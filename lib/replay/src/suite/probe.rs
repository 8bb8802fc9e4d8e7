//! What rate a fleet can take.
//!
//! One shard is handed the first requests of the workload all at once; what it finishes a second, times the number of
//! shards, is called the fleet's capacity. That is what power of two choices would reach with its queues always full:
//! every shard then sees the same mix of keys. A suite that asks for a share of it loads a fast device and a slow one
//! alike.

use super::Suite;
use crate::run::{RunSpec, run};
use crate::sink::NoSink;
use crate::{Engine, ReplayError};
use cr_report::events::{Header, SCHEMA};
use cr_trace::Request;
use std::sync::atomic::AtomicBool;

/// Requests that a cold engine is given first, so that memory is mapped and clocks are up.
const WARM_UP_REQUESTS: u64 = 8;

/// The rate that a suite's fleet can take, in requests per second.
///
/// # Errors
/// A workload that cannot be drawn, or an engine that fails.
pub fn capacity_qps(
    suite: &Suite,
    engine: &Engine,
    probe_requests: u64,
    interrupt: &AtomicBool,
) -> Result<f64, ReplayError> {
    at_once(suite, engine, WARM_UP_REQUESTS, interrupt)?;
    let shard_qps = at_once(suite, engine, probe_requests, interrupt)?;
    Ok(shard_qps * f64::from(suite.fleet.shards))
}

/// What one shard finishes a second when handed `requests` requests at once.
fn at_once(
    suite: &Suite,
    engine: &Engine,
    requests: u64,
    interrupt: &AtomicBool,
) -> Result<f64, ReplayError> {
    let generator = suite.requests(suite.seeds.first().copied().unwrap_or(0), None)?;
    let trace = generator.take(requests as usize).map(|request| Ok(Request { t_s: 0.0, ..request }));
    let header = Header {
        schema: SCHEMA.into(),
        policy: "flat".into(),
        seed: 0,
        shards: 1,
        block_tokens: suite.fleet.block_tokens,
        ..Header::default()
    };
    let spec = RunSpec { header, vnodes: 1, ..RunSpec::default() };
    let config = cr_engine::ShardConfig { timeout: None, ..suite.shard_config() };
    let outcome = run(&spec, engine.fleet(1, config)?, trace, &mut NoSink, interrupt)?;
    match outcome.summary.requests.achieved_qps {
        qps if qps > 0.0 => Ok(qps),
        _ => Err(ReplayError::Config("the probe finished no request; the pool may be too small".into())),
    }
}
