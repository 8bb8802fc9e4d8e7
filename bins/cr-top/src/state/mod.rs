//! What is known and what is shown, without a terminal in sight.
//!
//! * [`live`] — one run as it is now, from its events;
//! * [`app`] — what the user looks at.

pub mod app;
pub mod compare;
pub mod dist;
pub mod findings;
pub mod fleet;
pub mod keys;
pub mod live;
pub mod log;
pub mod run;
pub mod scope;
pub mod series;

pub use app::App;
pub use live::{Live, Phase};
pub use run::Run;
