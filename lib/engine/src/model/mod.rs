//! The real backend: a Llama-style transformer on candle, over a paged KV pool.
//!
//! One [`Model`] (the weights) serves every shard; each shard owns a [`KvPool`]. A [`Step`] is packed and ragged:
//! prefill chunks and decodes of many sequences go through the layers together, and only attention tells them apart.
//!
//! * [`config`] — the shape of a model, and its TOML;
//! * [`step`] — what one step feeds;
//! * [`weights`] — where tensors come from, random ones included; [`load`] — checkpoints as GGUF and safetensors;
//!   [`hub`] — getting them by name;
//! * [`tokenizer`], [`generate`], [`inspect`] — text in and out, and what a model is;
//! * [`memory`] — what KV pools may take; [`check`], [`bench`] — is it right, and how fast;
//! * [`transformer`] — the layers;
//! * [`attention`] — the trait behind which attention lives; [`stock`] implements it for every device, [`fused`] for
//!   CPUs, on the kernels of [`kernel`];
//! * [`runner`] — a model and an attention backend, ready for steps;
//! * [`executor`] — [`crate::Backend`] on top of a runner: a scheduler's batches in, durations out.
//!
//! **Invariant.** Nothing here knows of block hashes, reference counts or eviction: a step names its blocks, and they
//! are read and written.

pub mod attention;
pub mod bench;
pub mod check;
pub mod config;
pub mod contents;
pub mod device;
mod executor;
pub mod fused;
pub mod generate;
pub mod hub;
pub mod inspect;
pub mod kernel;
pub mod kv;
pub mod linear;
pub mod load;
pub mod memory;
pub mod rope;
pub mod runner;
pub mod step;
pub mod stock;
pub mod tokenizer;
pub mod transformer;
pub mod weights;

pub use attention::AttnBackend;
pub use config::{ModelConfig, RopeScaling};
pub use contents::Answers;
pub use device::{DeviceKind, compute_dtype, pick_device};
pub use executor::{ModelBackend, StepTimes};
pub use fused::FusedAttention;
pub use generate::{Generation, Sampling, generate};
pub use hub::{Hub, HubName};
pub use inspect::Inspection;
pub use kernel::Isa;
pub use kv::{KvPool, KvSpec};
pub use linear::Product;
pub use load::{LoadOptions, Loaded, Quant, load, load_reference};
pub use memory::{MemoryPlan, free_bytes};
pub use runner::{ModelRunner, Runner, best_runner};
pub use step::{SeqSlice, Step};
pub use stock::StockAttention;
pub use tokenizer::TextTokenizer;
pub use transformer::Model;
