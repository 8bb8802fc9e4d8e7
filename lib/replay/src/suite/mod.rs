//! Suites: policies × rates × seeds over one workload, and any parameter that varies, from a TOML file.
//!
//! * [`spec`] — the file;
//! * [`vary`] — its variants, one for every combination of the parameters that vary;
//! * [`probe`] — what rate the fleet can take, for suites that set a utilisation;
//! * [`sweep`] — its cells;
//! * [`execute`] — making the runs, side by side; [`journal`] — and going on after an interruption.

mod batch;
mod check;
mod drawn;
pub mod execute;
mod extends;
pub mod journal;
mod plan;
pub mod probe;
pub mod spec;
pub mod sweep;
pub mod vary;

pub use execute::{Made, Making, NoWatcher, Watcher};
pub use extends::tables_of;
pub use journal::Journal;
pub use spec::{Suite, SuiteError};
pub use sweep::{Cell, Sweep};
