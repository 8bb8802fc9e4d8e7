//! Synthetic workloads: a specification becomes an iterator of requests.
//!
//! * [`spec`] — the TOML specification, from which everything follows;
//! * [`popularity`] — how often each key is asked for; [`drift`] — drawing them, and how shares move;
//! * [`arrivals`] — when requests come; [`profile`] — how the rate moves;
//! * [`length`] — how many tokens something has;
//! * [`prompt`] — what a prompt is made of; [`threads`] — multi-turn conversations;
//! * [`servegen`] — published per-client rates as requests; [`texts`] — conversations of text as requests;
//! * [`generator`] — all of it together, as a stream of constant memory.
//!
//! One seed, one random stream per purpose: changing the rate moves the arrivals and changes no key, prompt or length.
//! Logarithms and powers come from `libm`, not from the system's library, so that every machine draws the same.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod drift;
pub mod error;
mod gamma;
pub mod generator;
pub mod length;
mod numbers;
mod parts;
pub mod popularity;
pub mod profile;
pub mod prompt;
mod rates;
pub mod servegen;
pub mod spec;
#[cfg(test)]
mod testing;
pub mod texts;
pub mod threads;

pub use error::WorkloadError;
pub use generator::Generator;
pub use length::Length;
pub use spec::Spec;
