//! Synthetic workloads: a specification becomes an iterator of requests.
//!
//! * [`spec`] — the TOML specification, from which everything follows;
//! * [`popularity`] — how often each key is asked for;
//! * [`arrivals`] — when requests come;
//! * [`length`] — how many tokens something has;
//! * [`prompt`] — what a prompt is made of;
//! * [`generator`] — all of it together, as a stream of constant memory.
//!
//! One seed, one random stream per purpose: changing the rate moves the arrivals and changes no key, prompt or length.
//! Logarithms and powers come from `libm`, not from the system's library, so that every machine draws the same.
#![forbid(unsafe_code)]

pub mod arrivals;
pub mod error;
pub mod generator;
pub mod length;
pub mod popularity;
pub mod prompt;
pub mod spec;
#[cfg(test)]
mod testing;

pub use error::WorkloadError;
pub use generator::Generator;
pub use length::Length;
pub use spec::Spec;
