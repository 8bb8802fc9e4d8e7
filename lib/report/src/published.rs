//! Published values beside ours.

use crate::format::{percent, percent_plus_minus, rate, ratio, ratio_plus_minus, seconds_plus_minus};
use crate::objective::Objective;
use crate::record::Record;
use crate::result::Aggregate;
use crate::stats::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The policy.
    pub policy: String,
    /// Its metric's name in `result.json`, or `capacity`.
    pub metric: String,
    /// The value, in the metric's unit: shares from 0 to 1, seconds, requests per second.
    pub value: f64,
    /// Its published uncertainty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plus_minus: Option<f64>,
    /// `<` or `≥` where it is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The variant, by its points; must name a single one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, String>,
    /// The rate; the rate of comparison where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// The bound on the p99 of TTFT that a capacity is of; the first objective where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_s: Option<f64>,
}

/// Which side a bound is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// The true value is below.
    Below,
    /// The true value is at or above.
    Above,
}

/// Our value beside a published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// As we quote it; empty where it was not measured.
    pub ours: String,
    /// Our mean over seeds.
    pub mean: Option<f64>,
    /// (ours − published) / published; none where either is only a bound, or nothing was measured.
    pub deviation: Option<f64>,
}

/// Our values beside the published ones, in their order.
pub fn beside(record: &Record) -> Vec<Beside> {
    let parts = record.parts();
    record.file.design.published.iter().map(|published| one(record, &parts, published)).collect()
}

fn one(record: &Record, parts: &[(Option<String>, Record)], published: &Published) -> Beside {
    let none = Beside { ours: String::new(), mean: None, deviation: None };
    let mut labels = record.file.design.variants_at(&published.at).map(|variant| variant.label.as_str());
    let label = labels.next();
    let Some((_, part)) = parts.iter().find(|(own, _)| own.as_deref() == label) else { return none };
    let Some((mean, ours, bound)) = measured(part, published) else { return none };
    let exact = !bound && published.bound.is_none() && published.value != 0.0;
    let deviation = exact.then(|| (mean - published.value) / published.value);
    Beside { ours, mean: Some(mean), deviation }
}

/// Our mean, as it is quoted, and whether it is only a bound.
fn measured(part: &Record, published: &Published) -> Option<(f64, String, bool)> {
    if published.metric == "capacity" {
        let objective = published.ttft_p99_s.map(Objective::ttft).or_else(|| part.objective())?;
        let own = part.capacity(&published.policy, objective).filter(|own| own.mean_qps.n > 0)?;
        return Some((own.mean_qps.mean, own.quoted(), own.is_censored()));
    }
    let cell = part.cell(&published.policy, published.qps.or_else(|| part.reference_rate()))?;
    let own = metric_value(cell, &published.metric)?;
    let saturated = cell.saturated() && published.metric.starts_with("ttft");
    let text = metric_text(&published.metric, own.mean, own.ci95);
    Some((own.mean, if saturated { format!("{text} (saturated)") } else { text }, saturated))
}

/// A metric of a cell, by its name in `result.json`.
pub(crate) fn metric_value(cell: &Aggregate, metric: &str) -> Option<Estimate> {
    cell.metrics.get(metric).copied()
}

/// A metric's value as reports write it.
pub(crate) fn metric_text(metric: &str, mean: f64, half: Option<f64>) -> String {
    match metric {
        "capacity" | "achieved_qps" => crate::format::plus_minus(mean, half, rate),
        name if name.starts_with("ttft") => seconds_plus_minus(mean, half),
        name if name.starts_with("imbalance") || name == "jain" => ratio_plus_minus(mean, half),
        _ => percent_plus_minus(mean, half),
    }
}

impl Published {
    /// As it was published.
    pub fn text(&self) -> String {
        let value = metric_text(&self.metric, self.value, self.plus_minus);
        match self.bound {
            None => value,
            Some(Bound::Below) => format!("<{value}"),
            Some(Bound::Above) => format!("≥{value}"),
        }
    }

    /// What it is a value of.
    pub fn what(&self) -> String {
        let at = self.qps.map(|qps| format!(" at {} QPS", rate(qps))).unwrap_or_default();
        let within = self.ttft_p99_s.map(|s| format!(", {}", Objective::ttft(s).text())).unwrap_or_default();
        let points: String = self.at.iter().map(|(axis, point)| format!(", {axis} {point}")).collect();
        let name = match self.metric.as_str() {
            "served_hit" => "served hit",
            "imbalance_requests" => "imbalance, requests",
            "ttft_p99_s" => "p99 TTFT",
            other => other,
        };
        format!("{name}{at}{within}{points}")
    }
}

/// A deviation as a table writes it; a share's in points.
pub(crate) fn deviation_text(published: &Published, beside: &Beside) -> String {
    match (beside.deviation, beside.mean) {
        (Some(_), Some(mean)) if published.metric == "served_hit" => {
            format!("{:+.1} points", 100.0 * (mean - published.value))
        }
        (Some(deviation), _) => format!("{}{}", if deviation > 0.0 { "+" } else { "" }, percent(deviation)),
        (None, Some(mean)) if published.value != 0.0 => {
            format!("a bound ({} times)", ratio(mean / published.value))
        }
        (None, Some(mean)) => format!("{} above", metric_text(&published.metric, mean, None)),
        (None, None) => String::new(),
    }
}
