//! What a run says and what is said about it.
//!
//! * [`events`] — the NDJSON stream of a run, `cacheroute.events/1`;
//! * [`reader`] — reads it, also while it is being written;
//! * [`aggregate`] — from events to a summary, in constant memory;
//! * [`summary`] — what a run comes down to, `cacheroute.summary/1`;
//! * [`run`], [`result`], [`record`] — the runs of a suite and what they say together, `cacheroute.result/1`;
//! * [`design`] and [`objective`], [`capacity`] — what a suite varies, its bounds, and how much a policy carries within them;
//! * [`claims`] and [`published`], [`sensitivity`], [`regimes`] — what a suite shows, and what that hangs on;
//! * [`verdict`] and [`stats`] — whether a difference is one;
//! * [`svg`], [`markdown`], [`text`] — figures, the report, and the few lines for a terminal;
//! * [`provenance`] — what differs between machines;
//! * [`files`], [`write`], [`load`], [`html`] — the report's folder: its names, written, read back, and as a single page;
//! * [`compare`] — two results against each other;
//! * [`requests`] — a table of requests, for notebooks.
#![forbid(unsafe_code)]

pub mod aggregate;
pub mod bounds;
pub mod capacity;
pub mod claims;
pub mod compare;
pub mod design;
pub mod events;
pub mod files;
pub mod format;
pub mod html;
pub mod json;
pub mod load;
pub mod markdown;
pub mod objective;
pub mod provenance;
pub mod published;
pub mod reader;
pub mod record;
pub mod regimes;
pub mod requests;
pub mod result;
pub mod run;
pub mod sensitivity;
pub mod stats;
pub mod summary;
pub mod svg;
pub mod text;
pub mod verdict;
pub mod write;

pub use load::{load, load_result, read_runs, rebuild};
pub use record::SuiteReport;
pub use run::RunReport;
pub use write::{ReportError, write_html, write_provenance, write_report};
