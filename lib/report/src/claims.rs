//! Claims: what a suite sets out to show, held against its results.
//!
//! A claim is one of a closed set of checks. It is evaluated on every variant that it is about, and holds where it holds in all of them.

mod check;

pub use check::Check;

use crate::bounds::Bounds;
use crate::capacity::Capacity;
use crate::format::{percent_plus_minus, rate, ratio, three};
use crate::objective::Objective;
use crate::published::{metric_text, metric_value};
use crate::record::Record;
use crate::result::Aggregate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A claim and how it is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In a sentence.
    pub text: String,
    /// What a reader should know before believing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// The variants it is about, by their points; all where empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, String>,
    /// The rate it is about; the rate of comparison where absent. Capacities have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// The bound on the p99 of TTFT that capacities are of; the first objective where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_s: Option<f64>,
    /// What is checked.
    pub check: Check,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Whether it holds; none where the results do not say.
    pub holds: Option<bool>,
    /// The numbers, a phrase for every variant.
    pub said: Vec<String>,
    /// The fewest seeds behind any of them.
    pub seeds: u64,
}

impl Evidence {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "fails",
            None => "not shown",
        }
    }
}

/// One variant's finding: whether the claim holds there, where that can be said, and the numbers.
type Finding = (Option<bool>, String);

/// Evaluates every claim, in order.
pub fn evaluate(record: &Record) -> Vec<Evidence> {
    let parts = record.parts();
    record.file.design.claims.iter().map(|claim| evidence(record, &parts, claim)).collect()
}

fn evidence(record: &Record, parts: &[(Option<String>, Record)], claim: &Claim) -> Evidence {
    let wanted: Vec<&str> = record.file.design.variants_at(&claim.at).map(|v| v.label.as_str()).collect();
    let about = |label: &Option<String>| label.as_deref().is_none_or(|label| wanted.contains(&label));
    let (mut said, mut all, mut seeds) = (Vec::new(), Vec::new(), u64::MAX);
    for (label, part) in parts.iter().filter(|(label, _)| about(label)) {
        let view = View { part, claim };
        let finding = view.find();
        all.push(finding.as_ref().and_then(|(holds, _)| *holds));
        let phrase = finding.map_or_else(|| "no such results".into(), |(_, phrase)| phrase);
        said.push(match label {
            Some(label) => format!("{label}: {phrase}"),
            None => phrase,
        });
        seeds = seeds.min(part.file.aggregates.iter().map(|cell| cell.seeds.len() as u64).min().unwrap_or(0));
    }
    Evidence { holds: of_all(&all), said, seeds: if seeds == u64::MAX { 0 } else { seeds } }
}

/// What is so of all: not where it is not so of one, and unknown where it is unknown of one, or there are none.
fn of_all(each: &[Option<bool>]) -> Option<bool> {
    match each {
        [] => None,
        each if each.contains(&Some(false)) => Some(false),
        each if each.contains(&None) => None,
        _ => Some(true),
    }
}

/// A claim and the variant it is held against.
struct View<'a> {
    part: &'a Record,
    claim: &'a Claim,
}

impl View<'_> {
    fn find(&self) -> Option<Finding> {
        match &self.claim.check {
            Check::HitWithinOfBest { policy, points } => self.hit_within(policy, *points),
            Check::ImbalanceAtMost { policy, value } => {
                self.metric(policy, "imbalance_requests", |own| own <= *value, *value, "at most")
            }
            Check::MetricAtMost { policy, metric, value } => {
                self.metric(policy, metric, |own| own <= *value, *value, "at most")
            }
            Check::MetricAtLeast { policy, metric, value } => {
                self.metric(policy, metric, |own| own >= *value, *value, "at least")
            }
            Check::CapacityAboveAll { policy } => self.capacity_above_all(policy),
            Check::CapacityAtLeast { policy, qps } => {
                let own = self.capacity(policy)?;
                let holds = Bounds::of(own).is_at_least(Bounds::exact(*qps));
                Some((holds, format!("{} QPS, at least {}", own.quoted(), rate(*qps))))
            }
            Check::CapacityRatioAtLeast { policy, over, ratio } => self.capacity_ratio(policy, over, *ratio),
            Check::WorstTail { policy } => self.worst_tail(policy),
            Check::Order { metric, policies } => self.order(metric, policies),
            Check::Verdict { is } => {
                let verdict = crate::verdict::of_record(self.part)?;
                Some((
                    (verdict.outcome.word() == is).into(),
                    format!("{}: {}", verdict.outcome.word(), verdict.reason),
                ))
            }
        }
    }

    fn rate(&self) -> Option<f64> {
        self.claim.qps.or_else(|| self.part.reference_rate())
    }

    fn cell(&self, policy: &str) -> Option<&Aggregate> {
        self.part.cell(policy, self.rate())
    }

    fn at(&self) -> String {
        self.rate().map(|qps| format!(" at {} QPS", rate(qps))).unwrap_or_default()
    }

    fn capacity(&self, policy: &str) -> Option<&Capacity> {
        let objective = self.claim.ttft_p99_s.map(Objective::ttft).or_else(|| self.part.objective())?;
        self.part.capacity(policy, objective).filter(|capacity| capacity.mean_qps.n > 0)
    }

    fn hit_within(&self, policy: &str, points: f64) -> Option<Finding> {
        let hit = |cell: &Aggregate| cell.metric("served_hit");
        let own = hit(self.cell(policy)?);
        let best =
            self.part.cells_at(self.rate()).into_iter().max_by(|a, b| hit(a).mean.total_cmp(&hit(b).mean))?;
        let gap = (hit(best).mean - own.mean) * 100.0;
        let phrase = format!(
            "{}, {gap:.1} points below the best ({} of {}){}",
            percent_plus_minus(own.mean, own.ci95),
            percent_plus_minus(hit(best).mean, hit(best).ci95),
            best.policy,
            self.at()
        );
        Some(((gap <= points + 1e-9).into(), phrase))
    }

    fn metric(
        &self,
        policy: &str,
        metric: &str,
        holds: impl Fn(f64) -> bool,
        bound: f64,
        word: &str,
    ) -> Option<Finding> {
        let cell = self.cell(policy)?;
        let own = cell.metrics.get(metric).copied()?;
        // What a saturated policy's latencies are worth, they are worth here.
        let quoted = !(cell.saturated() && metric.starts_with("ttft"));
        let text = if quoted { metric_text(metric, own.mean, own.ci95) } else { "saturated".into() };
        let phrase = format!("{text}, {word} {}{}", metric_text(metric, bound, None), self.at());
        Some(((quoted && holds(own.mean)).into(), phrase))
    }

    fn capacity_above_all(&self, policy: &str) -> Option<Finding> {
        let own = self.capacity(policy)?;
        let rivals = self.part.policies().into_iter().filter(|name| *name != policy);
        let rivals: Vec<&Capacity> = rivals.map(|name| self.capacity(name)).collect::<Option<_>>()?;
        let best = rivals.iter().max_by(|a, b| a.mean_qps.mean.total_cmp(&b.mean_qps.mean))?;
        let phrase = format!("{} QPS; the next is {} with {}", own.quoted(), best.policy, best.quoted());
        let above: Vec<Option<bool>> =
            rivals.iter().map(|rival| Bounds::of(own).is_above(Bounds::of(rival))).collect();
        Some((of_all(&above), phrase))
    }

    fn capacity_ratio(&self, policy: &str, over: &str, least: f64) -> Option<Finding> {
        let (own, other) = (self.capacity(policy)?, self.capacity(over)?);
        let times = own.mean_qps.mean / other.mean_qps.mean;
        let phrase = format!(
            "{} against {} QPS, {} times; at least {}",
            own.quoted(),
            other.quoted(),
            ratio(times),
            three(least)
        );
        Some((Bounds::of(own).is_at_least(Bounds::of(other).times(least)), phrase))
    }

    fn worst_tail(&self, policy: &str) -> Option<Finding> {
        let tail = |cell: &Aggregate| match cell.saturated() {
            true => f64::INFINITY,
            false => cell.metric("ttft_p99_s").mean,
        };
        let own = tail(self.cell(policy)?);
        let cells = self.part.cells_at(self.rate());
        let rivals = cells.into_iter().filter(|cell| cell.policy != policy);
        let worst = rivals.max_by(|a, b| tail(a).total_cmp(&tail(b)))?;
        let text = |seconds: f64| match seconds.is_finite() {
            true => crate::format::seconds(seconds),
            false => "saturated".into(),
        };
        let phrase = format!(
            "p99 {}; the next is {} with {}{}",
            text(own),
            worst.policy,
            text(tail(worst)),
            self.at()
        );
        // Of two that are saturated neither p99 means anything.
        let told = own.is_finite() || tail(worst).is_finite();
        Some((told.then_some(own >= tail(worst)), phrase))
    }

    fn order(&self, metric: &str, policies: &[String]) -> Option<Finding> {
        let value = |policy: &String| match metric {
            "capacity" => self.capacity(policy).map(|own| (Bounds::of(own), own.quoted())),
            _ => {
                let own = metric_value(self.cell(policy)?, metric)?;
                Some((Bounds::exact(own.mean), metric_text(metric, own.mean, own.ci95)))
            }
        };
        let values: Vec<(Bounds, String)> = policies.iter().map(value).collect::<Option<_>>()?;
        let named = policies.iter().zip(&values).map(|(policy, (_, text))| format!("{policy} {text}"));
        let phrase = named.collect::<Vec<_>>().join(", ");
        let at = if metric == "capacity" { String::new() } else { self.at() };
        let steps: Vec<Option<bool>> = values.windows(2).map(|two| two[1].0.is_at_least(two[0].0)).collect();
        // One policy is in order by itself.
        let holds = if steps.is_empty() { Some(true) } else { of_all(&steps) };
        Some((holds, format!("{phrase}{at}")))
    }
}
