//! The engine of one shard: a paged KV pool with prefix reuse, a continuous-batching scheduler, and what executes its steps.
//!
//! **Invariant.** This crate never sees a routing policy; a shard is handed requests and asked for steps.
//!
//! * [`pool`] — KV blocks: found by prefix, counted by reference, evicted least recently used first;
//! * [`shard`] — the queue, the batch and the scheduler of one shard;
//! * [`backend`] — what a batch is and who executes it;
//! * [`sim`] — steps timed by a cost model;
//! * [`model`] — the real backend: a transformer on candle.
#![deny(unsafe_code)]

pub mod backend;
pub mod error;
pub mod model;
pub mod pool;
mod recycle;
pub mod shard;
pub mod sim;

pub use backend::{Backend, Batch, BatchSeq};
pub use error::EngineError;
pub use pool::{BlockPool, Pool, RunPool};
pub use shard::{Departed, Refused, Rejection, Shard, ShardConfig, ShardTotals};
pub use sim::SimBackend;
