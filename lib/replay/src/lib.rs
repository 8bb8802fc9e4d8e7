//! The fleet: a trace replayed over N shards under a routing policy.
//!
//! **Invariant.** Only this crate joins routing and engine, through `FleetView`: what a router could really observe.
//!
//! * [`fleet`] — the shards and what a router sees of them;
//! * [`engines`] — what serves: a cost model or a real model;
//! * [`run`] — one run; its clock drives a desk that routes, plans and tells;
//! * [`faults`] — what happens to shards; [`control`] — a new plan every interval;
//! * [`ledger`] — what must hold of every run, checked on every run;
//! * [`sink`] — where its events go; [`decoupled`] — without ever waiting for a reader;
//! * [`gate`] — may traffic be switched from one policy to another?
//! * [`fit`] — a search for parameters that a publication leaves unsaid;
//! * [`suite`] — policies × rates × seeds; [`appended`] — files by which it, and a fit, go on where they were;
//! * [`learn`] — planning from the head of a trace.
#![forbid(unsafe_code)]

mod agenda;
pub mod appended;
mod arrivals;
pub mod assume;
pub mod calibrate;
pub mod control;
pub mod decoupled;
mod desk;
pub mod engines;
mod error;
pub mod faults;
pub mod fit;
pub mod fleet;
pub mod gate;
mod health;
mod lag;
pub mod learn;
pub mod ledger;
pub mod limits;
mod narrator;
mod parallel;
mod router;
pub mod run;
mod serving;
pub mod sink;
pub mod suite;
mod timetable;
pub mod validate;
mod virtual_clock;
mod wall;

pub use assume::Assume;
pub use control::Replan;
pub use engines::Engine;
pub use error::ReplayError;
pub use faults::Fault;
pub use fleet::Fleet;
pub use learn::PlanFrom;
pub use run::{Clock, Outcome, RunSpec, Stop, run};
pub use sink::EventSink;

/// Program and version, as outputs name it.
pub const GENERATOR: &str = concat!("cr-serve ", env!("CARGO_PKG_VERSION"));
