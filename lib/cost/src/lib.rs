//! What a step of an engine costs.
//!
//! One linear model serves the simulator, work-sized plans and policies that weigh prefill against balance:
//!
//! ```text
//! step = base
//!      + prefill_token · new                 every computed prompt token
//!      + prefill_ctx   · ctx                 every token of context a prefill chunk starts from
//!      + prefill_pair  · new · ctx           attention of the chunk over that context
//!      + decode_seq    · sequences decoding
//!      + decode_ctx    · tokens of context those sequences attend to
//! ```
//!
//! The first four terms are the form that Preble publishes for its prefill fit. Coefficients are kept as whole
//! picoseconds, so sums over steps are exact in any order.
#![forbid(unsafe_code)]

mod fit;
mod model;
mod named;
mod work;

pub use fit::{FitError, FitFailure, Sample};
pub use model::{CostError, CostModel};
pub use work::StepWork;
