//! What the four programs share: exit codes, inputs and outputs, quantities, progress, signals.
//!
//! Programs print, libraries do not; this is the only library crate that writes to the terminal.
#![forbid(unsafe_code)]

pub mod common;
pub mod config;
pub mod exit;
pub mod extras;
pub mod input;
pub mod opened;
pub mod output;
pub mod progress;
pub mod quantity;
pub mod signals;
pub mod suggest;

pub use common::CommonArgs;
pub use exit::{BadInput, Exit, InputContext, bad_input, run};
pub use input::Input;
pub use output::Output;
pub use progress::Progress;
