//! The real backend: a Llama-style transformer on candle, over a paged KV pool.
//!
//! One [`Model`] (the weights) serves every shard; each shard owns a [`KvPool`]. A [`Step`] is packed and ragged:
//! prefill chunks and decodes of many sequences go through the layers together, and only attention tells them apart.
//!
//! * [`config`] — the shape of a model, and its TOML;
//! * [`step`] — what one step feeds;
//! * [`weights`] — where tensors come from, random ones included;
//! * [`transformer`] — the layers;
//! * [`attention`] — the trait behind which attention lives, and [`stock`], its portable implementation;
//! * [`runner`] — a model and an attention backend, ready for steps;
//! * [`executor`] — [`crate::Backend`] on top of a runner: a scheduler's batches in, durations out.
//!
//! **Invariant.** Nothing here knows of block hashes, reference counts or eviction: a step names its blocks, and they
//! are read and written.

pub mod attention;
pub mod config;
pub mod device;
pub mod executor;
pub mod kv;
pub mod linear;
pub mod rope;
pub mod runner;
pub mod step;
pub mod stock;
pub mod transformer;
pub mod weights;

pub use attention::AttnBackend;
pub use config::ModelConfig;
pub use device::{DeviceKind, compute_dtype, pick_device};
pub use executor::{ModelBackend, StepTimes};
pub use kv::{KvPool, KvSpec};
pub use runner::{ModelRunner, Runner};
pub use step::{SeqSlice, Step};
pub use stock::StockAttention;
pub use transformer::Model;
