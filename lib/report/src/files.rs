//! The names of the files in a report's folder, beside its figures.

/// What a reader reads.
pub const REPORT: &str = "report.md";
/// What was measured, for comparisons and for version control.
pub const RESULT: &str = "result.json";
/// Distributions, shards and timelines of the runs, which figures are drawn from.
pub const DETAIL: &str = "detail.json";
/// When, where and from what it was made.
pub const RUN: &str = "run.json";
/// All of them.
pub const ALL: [&str; 4] = [REPORT, RESULT, DETAIL, RUN];
