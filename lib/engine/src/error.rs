//! Errors of the engine.

/// Why the engine could not be set up, or a step could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A configuration that cannot be run; the message says what to change.
    #[error("{0}")]
    Config(String),
    /// The device or the tensor library refused.
    #[error("the model failed: {0}")]
    Candle(#[from] candle_core::Error),
}
