//! What a run says and what is said about it.
//!
//! * [`events`] — the NDJSON stream of a run, `cacheroute.events/1`;
//! * [`reader`] — reads it, also while it is being written;
//! * [`aggregate`] — from events to a summary, in constant memory;
//! * [`summary`] — what a run comes down to, `cacheroute.summary/1`.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod events;
pub mod json;
pub mod reader;
pub mod stats;
pub mod summary;
