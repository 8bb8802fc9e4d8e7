//! A comparison as JSON, `cacheroute.comparison/1`.

use super::{Change, Comparison, Row};
use crate::json::stable;
use crate::stats::Estimate;
use serde::Serialize;

/// The `schema` of a comparison.
const SCHEMA: &str = "cacheroute.comparison/1";

#[derive(Serialize)]
struct Wire<'a> {
    schema: &'static str,
    tolerance: f64,
    regressed: bool,
    worse: usize,
    missing: &'a [String],
    added: &'a [String],
    rows: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    policy: &'a str,
    qps: Option<f64>,
    metric: &'static str,
    a: Estimate,
    b: Estimate,
    difference: f64,
    ci95: Option<f64>,
    paired_seeds: u64,
    within_noise: bool,
    change: &'static str,
}

impl Comparison {
    /// The whole comparison: keys sorted, six decimals, a newline at the end.
    ///
    /// # Errors
    /// As [`stable`]; no comparison brings one about.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        stable(&Wire {
            schema: SCHEMA,
            tolerance: self.tolerance,
            regressed: self.regressed(),
            worse: self.worse(),
            missing: &self.missing,
            added: &self.added,
            rows: self.rows.iter().map(line).collect(),
        })
    }
}

fn line(row: &Row) -> Line<'_> {
    Line {
        policy: &row.policy,
        qps: row.qps,
        metric: row.metric,
        a: row.a,
        b: row.b,
        difference: row.difference.mean,
        ci95: row.difference.ci95,
        paired_seeds: row.difference.n,
        within_noise: row.difference.within_noise,
        change: match row.change {
            Change::Same => "same",
            Change::Better => "better",
            Change::Worse => "worse",
            Change::Unquoted => "unquoted",
        },
    }
}
