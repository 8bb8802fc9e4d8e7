//! Suites: policies × rates × seeds over one workload, from a TOML file.
//!
//! * [`spec`] — the file;
//! * [`probe`] — what rate the fleet can take, for suites that set a utilisation;
//! * [`sweep`] — its cells, and running one.

pub mod probe;
pub mod spec;
pub mod sweep;

pub use spec::{Suite, SuiteError};
pub use sweep::{Cell, Sweep};
