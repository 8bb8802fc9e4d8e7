//! Requests, their content segments, and the formats they travel in.
//!
//! Everything that moves between the four programs as traffic is a [`Request`]: an arrival time, a routing key
//! and a prompt made of [`Segment`]s. This crate knows nothing of routing, engines or reports.
//!
//! * [`request`] — the request and its ids;
//! * [`content`] — segments, scopes, and what two prompts share;
//! * [`tokens`] — token values as a pure function of content;
//! * [`block`] — chained hashes of fixed-size KV blocks;
//! * [`time`] — integer virtual time;
//! * [`native`] — the native trace format, read and written as a stream;
//! * [`mooncake`] — the Mooncake format, read and written; [`trunk`] — a routing key for its hash blocks;
//! * [`table_csv`] — Azure's and BurstGPT's tables; [`text`] — prompts and conversations as text; [`compress`] — gzip and zstd; [`tolerance`] — bad rows put up with;
//! * [`shape`] — cutting a trace to a window, a limit, a pace; [`unbunch`] — spreading rounded timestamps;
//! * [`stats`] — what a trace is like: skew, lengths, reuse; [`digest`] — knowing one again;
//! * [`lines`], [`ids`] — what the readers are made of; [`bounded`] — inputs without end; [`ahead`] — reading on a thread of its own; [`config_text`], [`number`] — what is wrong, in a sentence.
#![forbid(unsafe_code)]

pub mod ahead;
mod approach;
pub mod block;
pub mod bounded;
pub mod compress;
pub mod config_text;
pub mod content;
pub mod digest;
pub mod error;
pub mod ids;
pub mod json;
mod line;
pub mod lines;
pub mod mooncake;
pub mod native;
pub mod number;
pub mod prompt;
pub mod request;
pub mod shape;
pub mod stats;
pub mod stream;
pub mod table_csv;
pub mod text;
pub mod time;
pub mod tokens;
pub mod tolerance;
pub mod trunk;
pub mod unbunch;

pub use content::{ContentId, Scope, Segment};
pub use digest::TraceDigest;
pub use error::{Place, TraceError};
pub use native::{TRACE_SCHEMA, TraceHeader, TraceReader, TraceWriter};
pub use prompt::Prompt;
pub use request::{Key, MAX_SHARDS, Request, RequestId, SessionId, ShardId};
pub use stream::{Stream, stream};
pub use time::Time;
