//! What a run says and what is said about it.
//!
//! * [`events`] — the NDJSON stream of a run, `cacheroute.events/1`;
//! * [`summary`] — what a run comes down to, `cacheroute.summary/1`.
#![forbid(unsafe_code)]

pub mod events;
pub mod summary;
