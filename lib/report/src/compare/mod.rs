//! Two results against each other: did B get worse than A?
//!
//! How a comparison is written is [`Comparison::text`], [`Comparison::markdown`] and [`Comparison::json`].

mod page;
mod table;
mod wire;

use crate::format::rate;
use crate::result::{METRICS, Metric, ResultFile};
use crate::stats::{Difference, Estimate};
use crate::summary::Summary;

/// The metrics that are compared, in the order in which they are shown.
const COMPARED: [&str; 7] = [
    "served_hit",
    "imbalance_requests",
    "imbalance_busy",
    "ttft_p50_s",
    "ttft_p99_s",
    "achieved_qps",
    "failed_share",
];

/// What a row says of B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No difference beyond noise and tolerance.
    Same,
    /// Better beyond noise and tolerance.
    Better,
    /// Worse beyond noise and tolerance.
    Worse,
    /// Not compared: a side is saturated, so its latency means nothing.
    Unquoted,
}

/// One metric of one policy at one rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy, with its variant where there are several.
    pub policy: String,
    /// The rate asked for, where the suites set one.
    pub qps: Option<f64>,
    /// The metric's name (see [`METRICS`]), or `saturated`.
    pub metric: &'static str,
    /// A's mean over seeds.
    pub a: Estimate,
    /// B's mean over seeds.
    pub b: Estimate,
    /// B − A, paired by seed where seeds match; `n` is 0 where none does.
    pub difference: Difference,
    /// What it means.
    pub change: Change,
}

/// B against A.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The share of A's value by which a metric may get worse.
    pub tolerance: f64,
    /// Every metric of every policy and rate that both have.
    pub rows: Vec<Row>,
    /// Policies and rates that A has and B lacks.
    pub missing: Vec<String>,
    /// Policies and rates that B has and A lacks.
    pub added: Vec<String>,
}

/// The runs of one policy at one rate.
struct Cell<'a> {
    /// With the variant, where there are several.
    policy: String,
    qps: Option<f64>,
    runs: Vec<&'a Summary>,
}

impl Cell<'_> {
    fn name(&self) -> String {
        match self.qps {
            Some(qps) => format!("{} at {} QPS", self.policy, rate(qps)),
            None => self.policy.clone(),
        }
    }

    fn saturated(&self) -> bool {
        self.runs.iter().any(|run| run.saturated)
    }
}

/// Compares two results.
///
/// A metric got *worse* where the mean difference over seeds goes the wrong way by more than `tolerance` times A's mean (of the share of
/// failed requests: by more than `tolerance` itself), and is beyond noise. Differences are paired by seed; where no seed matches, the
/// interval is Welch's. One seed has no interval, so there the tolerance alone decides.
pub fn compare(a: &ResultFile, b: &ResultFile, tolerance: f64) -> Comparison {
    let (cells_a, cells_b) = (cells(a), cells(b));
    let same = |x: &Cell<'_>, y: &Cell<'_>| x.policy == y.policy && x.qps == y.qps;
    let absent = |from: &[Cell<'_>], of: &[Cell<'_>]| -> Vec<String> {
        of.iter().filter(|cell| !from.iter().any(|other| same(other, cell))).map(Cell::name).collect()
    };
    let pairs =
        cells_a.iter().filter_map(|cell| Some((cell, cells_b.iter().find(|other| same(other, cell))?)));
    let rows = pairs.flat_map(|(a, b)| rows(a, b, tolerance)).collect();
    Comparison { tolerance, rows, missing: absent(&cells_b, &cells_a), added: absent(&cells_a, &cells_b) }
}

fn cells(file: &ResultFile) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    // Rates that a refinement added were chosen seed by seed: another run of the same suite has others.
    for run in file.runs.iter().filter(|run| file.on_ladder(run)) {
        let policy = match &run.variant {
            Some(variant) => format!("{} ({variant})", run.policy),
            None => run.policy.clone(),
        };
        match cells.iter_mut().find(|cell| cell.policy == policy && cell.qps == run.qps) {
            Some(cell) => cell.runs.push(run),
            None => cells.push(Cell { policy, qps: run.qps, runs: vec![run] }),
        }
    }
    cells
}

fn rows(a: &Cell<'_>, b: &Cell<'_>, tolerance: f64) -> Vec<Row> {
    let mut rows: Vec<Row> = METRICS
        .iter()
        .filter(|metric| COMPARED.contains(&metric.name))
        .map(|metric| row(metric, a, b, tolerance))
        .collect();
    let change = match (a.saturated(), b.saturated()) {
        (false, true) => Change::Worse,
        (true, false) => Change::Better,
        _ => return rows,
    };
    let share = |cell: &Cell<'_>| {
        Estimate::of(&cell.runs.iter().map(|run| f64::from(u8::from(run.saturated))).collect::<Vec<_>>())
    };
    let (of_a, of_b) = (share(a), share(b));
    let difference = Difference { n: 0, mean: of_b.mean - of_a.mean, ci95: None, within_noise: false };
    rows.push(Row {
        policy: a.policy.clone(),
        qps: a.qps,
        metric: "saturated",
        a: of_a,
        b: of_b,
        difference,
        change,
    });
    rows
}

fn row(metric: &Metric, a: &Cell<'_>, b: &Cell<'_>, tolerance: f64) -> Row {
    let values = |cell: &Cell<'_>| cell.runs.iter().map(|run| (metric.of)(run)).collect::<Vec<f64>>();
    let (of_a, of_b) = (Estimate::of(&values(a)), Estimate::of(&values(b)));
    let pairs: Vec<(f64, f64)> = b
        .runs
        .iter()
        .filter_map(|run| {
            let other = a.runs.iter().find(|other| other.seed == run.seed)?;
            Some(((metric.of)(run), (metric.of)(other)))
        })
        .collect();
    let difference =
        if pairs.is_empty() { Difference::unpaired(&values(b), &values(a)) } else { Difference::of(&pairs) };
    let allowed = if metric.name == "failed_share" { tolerance } else { tolerance * of_a.mean.abs() };
    let noise = difference.ci95.is_some() && difference.within_noise;
    let better = (difference.mean > 0.0) == metric.higher_is_better;
    let change = match better {
        _ if metric.name.starts_with("ttft") && (a.saturated() || b.saturated()) => Change::Unquoted,
        _ if noise || difference.mean.abs() <= allowed.max(1e-12) => Change::Same,
        true => Change::Better,
        false => Change::Worse,
    };
    Row { policy: a.policy.clone(), qps: a.qps, metric: metric.name, a: of_a, b: of_b, difference, change }
}

impl Comparison {
    /// The figures that got worse.
    pub fn worse(&self) -> usize {
        self.rows.iter().filter(|row| row.change == Change::Worse).count()
    }

    /// Whether B got worse anywhere, or lacks something that A has.
    pub fn regressed(&self) -> bool {
        !self.missing.is_empty() || self.worse() > 0
    }
}
