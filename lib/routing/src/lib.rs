//! Where requests go: rate estimation, the planner, the routing table and the policies.
//!
//! **Invariant.** This crate never sees a KV block or a model. What a policy knows of the fleet is a [`FleetView`]:
//! what a router could really observe.
//!
//! * [`view`] — what a router sees of the fleet;
//! * [`table`] — the routing table, its JSON and its files;
//! * [`rates`] — per-key rates, from a trace, a list or live;
//! * [`planner`] — rates in, places out: Algorithm 1 of the paper;
//! * [`calibrate`] — from measurements to the planner's inputs;
//! * [`export`] — tables as configurations of load balancers;
//! * [`policy`] — the trait, and one file for each policy.
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod export;
pub mod planner;
pub mod policy;
pub mod rates;
pub mod table;
pub mod view;

pub use policy::Policy;
pub use table::RoutingTable;
pub use view::{FleetView, ShardView};
