//! The engine of one shard: a paged KV pool with prefix reuse, a continuous-batching scheduler, and what executes its steps.
//!
//! **Invariant.** This crate never sees a routing policy; a shard is handed requests and asked for steps.
//!
//! * [`backend`] — what a batch is and who executes it;
//! * [`model`] — the real backend: a transformer on candle.
#![deny(unsafe_code)]

pub mod backend;
pub mod error;
pub mod model;

pub use backend::{Backend, Batch, BatchSeq};
pub use error::EngineError;
