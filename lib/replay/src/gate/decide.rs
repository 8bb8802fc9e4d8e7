//! Enable, tie or keep, and why.
//!
//! The candidate is enabled only where it wins something and loses nothing: its p99 of TTFT near the knee, or its capacity, is better
//! beyond noise and beyond the tolerance, and neither of them, nor the p99 at the low load, is worse. Worse anywhere: keep the baseline. Neither: a tie.

use super::{Knee, LOW, NEAR, RUNGS};
use cr_report::bounds::Hidden;
use cr_report::capacity::Capacity;
use cr_report::events;
use cr_report::format::{percent, plus_minus, rate, ratio, seconds, seconds_plus_minus};
use cr_report::record::Record;
use cr_report::result::Aggregate;
use cr_report::stats::{Difference, Estimate};
use serde::Serialize;

/// The schema of `cr-serve gate --format json`.
pub(super) const SCHEMA: &str = "cacheroute.gate/1";

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Switch to the candidate.
    Enable,
    /// No difference worth a switch; keep the baseline.
    Tie,
    /// The candidate is worse; keep the baseline.
    Keep,
}

impl Gate {
    /// As the last line of its runs' events.
    pub fn event(&self) -> events::Event {
        events::Event::Gate(events::Gate {
            decision: self.decision.word().into(),
            baseline: self.baseline.clone(),
            candidate: self.candidate.clone(),
            reasons: self.reasons.clone(),
        })
    }
}

impl Decision {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Enable => "enable",
            Decision::Tie => "tie",
            Decision::Keep => "keep",
        }
    }
}

/// Differences up to this share of the baseline's value count as none.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance(pub f64);

/// One policy at one load, means over replicates.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The policy.
    pub policy: String,
    /// Cached / prompt tokens.
    pub served_hit: Estimate,
    /// Requests of the busiest shard / mean over shards.
    pub imbalance: Estimate,
    /// 99th percentile of TTFT, in seconds; worth nothing where saturated.
    pub ttft_p99_s: Estimate,
    /// Failed / ended requests.
    pub failed_share: f64,
    /// In any replicate.
    pub saturated: bool,
}

/// Both policies at one load.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// `low` or `near`.
    pub name: &'static str,
    /// Requests per second.
    pub qps: f64,
    /// Share of the knee.
    pub of_knee: f64,
    /// The policy in service.
    pub baseline: Side,
    /// The other.
    pub candidate: Side,
    /// p99 of TTFT, candidate − baseline, paired by replicate, in seconds.
    pub ttft_p99_difference_s: Difference,
}

/// Capacities, in requests per second.
#[derive(Clone, Debug, Serialize)]
pub struct Capacities {
    /// As quoted.
    pub baseline: String,
    /// As quoted.
    pub candidate: String,
    /// Candidate − baseline, paired by replicate; a bound where either is censored.
    pub difference: Difference,
    /// Whether either lies beyond the rates that were tried.
    pub censored: bool,
}

/// The gate's answer.
#[derive(Clone, Debug, Serialize)]
pub struct Gate {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What it says.
    pub decision: Decision,
    /// Why, a sentence each, what decided first.
    pub reasons: Vec<String>,
    /// The policy in service.
    pub baseline: String,
    /// The one that would replace it.
    pub candidate: String,
    /// The baseline's knee, in requests per second.
    pub knee_qps: f64,
    /// The trace's own rate.
    pub natural_qps: f64,
    /// The bound on the p99 of TTFT.
    pub slo_ttft_p99_s: f64,
    /// Replays of each policy at each rate.
    pub replicates: u64,
    /// Into how many parts the trace was cut for them.
    pub parts: usize,
    /// The low load and the one near the knee.
    pub loads: Vec<Load>,
    /// Under the objective.
    pub capacity: Option<Capacities>,
}

/// Which way a figure went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Better,
    Same,
    Worse,
}

/// Decides; none where the record lacks a policy or a rung.
pub fn decide(record: &Record, knee: &Knee, tolerance: Tolerance) -> Option<Gate> {
    let (baseline, candidate) = record.baseline().zip(record.candidate())?;
    let load = |name, at| load(record, (baseline, candidate), name, at);
    let (low, near) = (load("low", LOW)?, load("near", NEAR)?);
    let capacity = |policy| record.capacity(policy, record.objective()?);
    let capacities = capacity(baseline).zip(capacity(candidate));
    let mut findings: Vec<(Way, String)> = vec![judge_load(&near, tolerance), judge_load(&low, tolerance)];
    if let Some((own, other)) = capacities.map(|(baseline, candidate)| (candidate, baseline)) {
        findings.push(judge_capacity(own, other, tolerance));
    }
    let any = |way| findings.iter().any(|(found, _)| *found == way);
    // A better p99 at the low load alone is no reason to switch: nobody waits there.
    let won = findings.iter().enumerate().any(|(index, (way, _))| *way == Way::Better && index != 1);
    let decision = match () {
        () if any(Way::Worse) => Decision::Keep,
        () if won => Decision::Enable,
        () => Decision::Tie,
    };
    let decisive = match decision {
        Decision::Enable => Way::Better,
        Decision::Keep => Way::Worse,
        Decision::Tie => Way::Same,
    };
    findings.sort_by_key(|(way, _)| *way != decisive);
    let mut reasons: Vec<String> = findings.into_iter().map(|(_, reason)| reason).collect();
    reasons.push(hits_and_load(&near));
    Some(Gate {
        schema: SCHEMA,
        decision,
        reasons,
        baseline: baseline.into(),
        candidate: candidate.into(),
        knee_qps: knee.qps,
        natural_qps: knee.natural_qps,
        slo_ttft_p99_s: knee.slo_ttft_p99_s,
        replicates: near.baseline.ttft_p99_s.n,
        parts: knee.parts,
        loads: vec![low, near],
        capacity: capacities.map(|(baseline, candidate)| Capacities {
            baseline: baseline.quoted(),
            candidate: candidate.quoted(),
            difference: Difference::of(&candidate.pairs(baseline)),
            censored: baseline.is_censored() || candidate.is_censored(),
        }),
    })
}

fn load(record: &Record, (baseline, candidate): (&str, &str), name: &'static str, at: usize) -> Option<Load> {
    let qps = record.file.design.ladder_qps.get(at).copied()?;
    let (baseline, candidate) = (record.cell(baseline, Some(qps))?, record.cell(candidate, Some(qps))?);
    Some(Load {
        name,
        qps,
        of_knee: RUNGS[at],
        baseline: side(baseline),
        candidate: side(candidate),
        ttft_p99_difference_s: candidate.against_baseline.get("ttft_p99_s").copied().unwrap_or_default(),
    })
}

fn side(cell: &Aggregate) -> Side {
    Side {
        policy: cell.policy.clone(),
        served_hit: cell.metric("served_hit"),
        imbalance: cell.metric("imbalance_requests"),
        ttft_p99_s: cell.metric("ttft_p99_s"),
        failed_share: cell.failed_share(),
        saturated: cell.saturated(),
    }
}

/// Beyond noise, and by more than the tolerance's share of the baseline's value. One replicate has no noise to go by.
fn way(difference: &Difference, baseline: f64, tolerance: Tolerance, higher_is_better: bool) -> Way {
    let noise = difference.ci95.is_some() && difference.within_noise;
    match (difference.mean > 0.0) == higher_is_better {
        _ if noise || difference.mean.abs() <= tolerance.0 * baseline.abs() => Way::Same,
        true => Way::Better,
        false => Way::Worse,
    }
}

fn judge_load(load: &Load, tolerance: Tolerance) -> (Way, String) {
    let at = match load.name {
        "low" => format!("at the low load ({} QPS)", rate(load.qps)),
        _ => format!("near the knee ({} QPS)", rate(load.qps)),
    };
    let (own, other) = (&load.candidate, &load.baseline);
    match (own.saturated, other.saturated) {
        (true, true) => return (Way::Same, format!("both are saturated {at}")),
        (true, false) => {
            return (Way::Worse, format!("{} is saturated {at}, {} is not", own.policy, other.policy));
        }
        (false, true) => {
            return (Way::Better, format!("{} is saturated {at}, {} is not", other.policy, own.policy));
        }
        (false, false) => {}
    }
    let difference = &load.ttft_p99_difference_s;
    let way = way(difference, other.ttft_p99_s.mean, tolerance, false);
    let reason = format!(
        "{at} the p99 of TTFT is {} with {} and {} with {}: {}, {}",
        seconds(own.ttft_p99_s.mean),
        own.policy,
        seconds(other.ttft_p99_s.mean),
        other.policy,
        seconds_plus_minus(difference.mean, difference.ci95),
        worded(way, difference, tolerance)
    );
    (way, reason)
}

/// What is said of a difference that lies beyond the rates that were tried.
const UNKNOWN: &str = "the rates that were tried end before it shows";

fn judge_capacity(own: &Capacity, other: &Capacity, tolerance: Tolerance) -> (Way, String) {
    let difference = Difference::of(&own.pairs(other));
    let hidden = Hidden::of(own, other);
    let (way, word) = match way(&difference, other.mean_qps.mean, tolerance, true) {
        // What the ends of the ladder hide is no reason for anything.
        Way::Better if hidden.less => (Way::Same, UNKNOWN.into()),
        Way::Worse if hidden.greater => (Way::Same, UNKNOWN.into()),
        Way::Same if !hidden.nothing() => (Way::Same, UNKNOWN.into()),
        way => (way, worded(way, &difference, tolerance)),
    };
    let change = match hidden.sign() {
        Some("") => plus_minus(difference.mean, difference.ci95, rate),
        Some(bound) => format!("{bound}{}", rate(difference.mean)),
        None => "unknown".into(),
    };
    let reason = format!(
        "the capacity at {} is {} QPS with {} and {} with {}: {change}, {word}",
        own.objective().text(),
        own.quoted(),
        own.policy,
        other.quoted(),
        other.policy,
    );
    (way, reason)
}

fn worded(way: Way, difference: &Difference, tolerance: Tolerance) -> String {
    match way {
        Way::Better => "better".into(),
        Way::Worse => "worse".into(),
        Way::Same if difference.ci95.is_some() && difference.within_noise => "within noise".into(),
        Way::Same => format!("within the tolerance of {}", percent(tolerance.0)),
    }
}

fn hits_and_load(load: &Load) -> String {
    let (own, other) = (&load.candidate, &load.baseline);
    format!(
        "there, {} serves {} of the prompt tokens from caches ({}: {}) and its busiest shard has {} times the mean of requests ({}: {})",
        own.policy,
        percent(own.served_hit.mean),
        other.policy,
        percent(other.served_hit.mean),
        ratio(own.imbalance.mean),
        other.policy,
        ratio(other.imbalance.mean)
    )
}
