//! Why a run could not be set up or could not go on.

use cr_engine::EngineError;
use cr_routing::policy::PolicyError;
use cr_trace::TraceError;

/// Why a run could not be set up or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// Options that do not go together; the message says what to change.
    #[error("{0}")]
    Config(String),
    /// The policy does not exist or does not fit the fleet.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The model cannot be set up, or failed in a step.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An output cannot be written; it says itself which.
    #[error("{0}")]
    Sink(#[from] std::io::Error),
    /// A plan from the head of the trace, or from an interval of it, cannot be made.
    #[error("cannot plan from the trace: {0}")]
    Plan(String),
    /// Somebody asked for it to end.
    #[error("interrupted")]
    Interrupted,
    /// The run broke a law that every run must keep.
    #[error(transparent)]
    Ledger(#[from] crate::ledger::Violation),
}
