//! Capacity under a service level objective: how much a policy carries.

use crate::format::rate;
use crate::objective::{Latency, Objective};
use crate::stats::Estimate;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};

/// One policy's capacity on a ladder of rates, in requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The policy.
    pub policy: String,
    /// The variant of the suite, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The latency that is bounded.
    #[serde(default)]
    pub metric: Latency,
    /// The bound on its p99, in seconds.
    #[serde(alias = "slo_ttft_p99_s")]
    pub p99_s: f64,
    /// The ladder's rates, ascending; rates between them that a refinement added belong to single seeds and are not listed.
    pub ladder_qps: Vec<f64>,
    /// One entry a seed.
    pub seeds: Vec<SeedCapacity>,
    /// Mean over seeds. A seed that passes no rung counts as the lowest rung, one that passes all as the highest, so that a censored
    /// mean is a bound.
    pub mean_qps: Estimate,
    /// Whether the mean is only a bound.
    pub censored: Censored,
}

/// One seed's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedCapacity {
    /// The seed.
    pub seed: u64,
    /// The highest rung whose lower rungs all pass, and that passes itself; none where the lowest fails.
    pub qps: Option<f64>,
    /// The lowest rung that fails; none where all pass. The true value lies between the two.
    #[serde(default)]
    pub fails_qps: Option<f64>,
    /// Whether the end of the ladder hides the true value.
    pub censored: Censored,
    /// Whether a rung above a failed one passes: then the ladder is not monotone, and the value is to be doubted.
    pub non_monotone: bool,
}

/// Which end of the ladder hides a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Censored {
    /// It is as given.
    No,
    /// It lies below the lowest rung: `<30`.
    Below,
    /// It lies at or above the highest rung: `≥500`.
    Above,
    /// Some seeds lie below, others above: the mean says nothing.
    Both,
}

impl Capacity {
    /// From the runs of one policy of one variant; `None` where fewer than two rates were run. A seed counts only with a run at every
    /// rung of `ladder_qps`; with an empty ladder, the rungs are the rates of all runs.
    pub fn of(policy: &str, runs: &[&Summary], objective: Objective, ladder_qps: &[f64]) -> Option<Capacity> {
        let ladder_qps = match ladder_qps {
            [] => ascending(runs.iter().filter_map(|run| run.qps)),
            given => ascending(given.iter().copied()),
        };
        let (&lowest, &highest) = (ladder_qps.first()?, ladder_qps.get(1..)?.last()?);
        let mut names: Vec<u64> = Vec::new();
        for run in runs {
            if !names.contains(&run.seed) {
                names.push(run.seed);
            }
        }
        let seeds: Vec<SeedCapacity> = names
            .into_iter()
            .filter_map(|seed| {
                let rungs = rungs(seed, runs, objective);
                let whole = ladder_qps.iter().all(|&qps| rungs.iter().any(|rung| rung.0 == qps));
                whole.then(|| seed_capacity(seed, &rungs))
            })
            .collect();
        let values: Vec<f64> =
            seeds.iter().map(|seed| seed.qps.unwrap_or(lowest).clamp(lowest, highest)).collect();
        Some(Capacity {
            policy: policy.into(),
            variant: runs.first().and_then(|run| run.variant.clone()),
            metric: objective.metric,
            p99_s: objective.p99_s,
            ladder_qps,
            mean_qps: Estimate::of(&values),
            censored: censored(&seeds),
            seeds,
        })
    }

    /// What it is a capacity under.
    pub fn objective(&self) -> Objective {
        Objective { metric: self.metric, p99_s: self.p99_s }
    }

    /// A seed's value, where one that passes no rung counts as the lowest.
    pub fn value(&self, seed: u64) -> Option<f64> {
        let lowest = self.ladder_qps.first().copied().unwrap_or(0.0);
        self.seeds.iter().find(|own| own.seed == seed).map(|own| own.qps.unwrap_or(lowest))
    }

    /// `(this, other)` of every seed that both have.
    pub fn pairs(&self, other: &Capacity) -> Vec<(f64, f64)> {
        self.seeds.iter().filter_map(|own| self.value(own.seed).zip(other.value(own.seed))).collect()
    }

    /// As it is quoted: `176 ± 11`, `<30`, `≥500`.
    pub fn quoted(&self) -> String {
        let mean = rate(self.mean_qps.mean);
        match (self.censored, self.mean_qps.ci95) {
            _ if self.mean_qps.n == 0 => "unknown".into(),
            (Censored::No, Some(half)) => format!("{mean} ± {}", rate(half)),
            (Censored::No, None) => mean,
            (Censored::Below, _) => format!("<{mean}"),
            (Censored::Above, _) => format!("≥{mean}"),
            (Censored::Both, _) => "censored at both ends".into(),
        }
    }

    /// Whether an end of the ladder hides the value of any seed.
    pub fn is_censored(&self) -> bool {
        self.censored != Censored::No
    }

    /// Whether any seed's ladder is not monotone.
    pub fn non_monotone(&self) -> bool {
        self.seeds.iter().any(|seed| seed.non_monotone)
    }
}

/// Distinct values from the smallest up.
fn ascending(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// A seed's rates, ascending, and whether each passes.
fn rungs(seed: u64, runs: &[&Summary], objective: Objective) -> Vec<(f64, bool)> {
    let own = runs.iter().filter(|run| run.seed == seed);
    let mut rungs: Vec<(f64, bool)> = own.filter_map(|run| Some((run.qps?, objective.met_by(run)))).collect();
    rungs.sort_by(|a, b| a.0.total_cmp(&b.0));
    rungs.dedup_by(|later, first| later.0 == first.0);
    rungs
}

fn seed_capacity(seed: u64, rungs: &[(f64, bool)]) -> SeedCapacity {
    let count = rungs.iter().take_while(|(_, passed)| *passed).count();
    let censored = match count {
        0 => Censored::Below,
        count if count == rungs.len() => Censored::Above,
        _ => Censored::No,
    };
    SeedCapacity {
        seed,
        qps: count.checked_sub(1).map(|last| rungs[last].0),
        fails_qps: rungs.get(count).map(|(qps, _)| *qps),
        censored,
        non_monotone: rungs[count..].iter().any(|(_, passed)| *passed),
    }
}

fn censored(seeds: &[SeedCapacity]) -> Censored {
    let any = |censored| seeds.iter().any(|seed| seed.censored == censored);
    match (any(Censored::Below), any(Censored::Above)) {
        (false, false) => Censored::No,
        (true, false) => Censored::Below,
        (false, true) => Censored::Above,
        (true, true) => Censored::Both,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Aggregator;
    use crate::events::Header;
    use proptest::prelude::*;

    fn run(seed: u64, qps: f64, p99: f64, failed: u64) -> Summary {
        let mut summary = Aggregator::new(&Header::default()).summary(true);
        (summary.seed, summary.qps) = (seed, Some(qps));
        (summary.ttft_s.count, summary.ttft_s.p99) = (100, p99);
        (summary.requests.completed, summary.requests.failed) = (100 - failed, failed);
        summary
    }

    fn ladder(p99s: &[&[f64]]) -> Vec<Summary> {
        let rates = [30.0, 60.0, 100.0];
        let seeds = p99s.iter().enumerate();
        seeds
            .flat_map(|(seed, p99s)| {
                rates.iter().zip(*p99s).map(move |(&qps, &p99)| run(seed as u64, qps, p99, 0))
            })
            .collect()
    }

    fn capacity(runs: &[Summary], ladder_qps: &[f64]) -> Capacity {
        Capacity::of("x", &runs.iter().collect::<Vec<_>>(), Objective::ttft(2.0), ladder_qps)
            .expect("a ladder")
    }

    fn of(p99s: &[&[f64]]) -> Capacity {
        capacity(&ladder(p99s), &[])
    }

    #[test]
    fn the_highest_rung_whose_lower_rungs_all_pass() {
        let c = of(&[&[1.0, 1.5, 3.0], &[1.0, 2.0, 2.1], &[0.5, 2.5, 3.0]]);
        assert_eq!(c.seeds.iter().map(|s| s.qps).collect::<Vec<_>>(), [Some(60.0), Some(60.0), Some(30.0)]);
        assert_eq!((c.mean_qps.mean, c.censored, c.non_monotone()), (50.0, Censored::No, false));
        assert!(c.quoted().starts_with("50 ± 43"), "{}", c.quoted());
    }

    #[test]
    fn ends_are_censored_and_so_are_their_means() {
        assert_eq!(of(&[&[3.0, 3.0, 3.0]]).quoted(), "<30");
        assert_eq!(of(&[&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]]).quoted(), "≥100");
        assert_eq!(of(&[&[1.0, 1.0, 1.0], &[1.0, 3.0, 3.0]]).quoted(), "≥65");
        assert_eq!(of(&[&[3.0, 3.0, 3.0], &[1.0, 1.0, 1.0]]).quoted(), "censored at both ends");
    }

    #[test]
    fn a_rung_above_a_failed_one_is_flagged() {
        let c = of(&[&[1.0, 3.0, 1.0]]);
        assert_eq!((c.seeds[0].qps, c.non_monotone(), c.censored), (Some(30.0), true, Censored::No));
        assert!(of(&[&[3.0, 1.0, 1.0]]).non_monotone());
    }

    #[test]
    fn failures_fail_a_rung() {
        let bound = Objective::ttft(2.0);
        assert!(bound.met_by(&run(0, 30.0, 2.0, 5)));
        assert!(!bound.met_by(&run(0, 30.0, 2.0, 6)));
        assert!(!bound.met_by(&Summary { ttft_s: Default::default(), ..run(0, 30.0, 0.0, 0) }));
        assert!(Capacity::of("x", &[&run(0, 30.0, 1.0, 0)], bound, &[]).is_none());
    }

    #[test]
    fn other_latencies_have_bounds_of_their_own() {
        let mut one = run(0, 30.0, 9.0, 0);
        one.e2e_s.count = 100;
        one.e2e_s.p99 = 10.0;
        let bound = |metric, p99_s| Objective { metric, p99_s }.met_by(&one);
        assert!(bound(Latency::E2e, 10.0) && !bound(Latency::E2e, 9.9));
        assert!(bound(Latency::Tpot, 0.01), "single tokens have no TPOT");
    }

    #[test]
    fn refined_rungs_count_for_their_seed_alone() {
        let mut runs = ladder(&[&[1.0, 1.0, 3.0], &[1.0, 3.0, 3.0]]);
        runs.extend([run(0, 80.0, 1.5, 0), run(0, 90.0, 2.5, 0), run(1, 45.0, 2.2, 0)]);
        let c = capacity(&runs, &[30.0, 60.0, 100.0]);
        assert_eq!(c.seeds.iter().map(|s| s.qps).collect::<Vec<_>>(), [Some(80.0), Some(30.0)]);
        assert_eq!(c.seeds.iter().map(|s| s.fails_qps).collect::<Vec<_>>(), [Some(90.0), Some(45.0)]);
        assert_eq!(c.ladder_qps, [30.0, 60.0, 100.0]);
    }

    proptest! {
        /// The definition, word for word, against the code.
        #[test]
        fn agrees_with_the_definition(p99s in proptest::collection::vec(proptest::bool::ANY, 2..9)) {
            let runs: Vec<Summary> = p99s.iter().enumerate()
                .map(|(n, passes)| run(7, 10.0 * (n + 1) as f64, if *passes { 1.0 } else { 3.0 }, 0)).rev().collect();
            let seed = capacity(&runs, &[]).seeds[0];
            let best = (1..=p99s.len()).rev().find(|&n| p99s[..n].iter().all(|passes| *passes));
            prop_assert_eq!(seed.qps, best.map(|n| 10.0 * n as f64));
            let first = p99s.iter().position(|passes| !passes);
            let doubtful = first.is_some_and(|first| p99s[first..].iter().any(|passes| *passes));
            prop_assert_eq!(seed.non_monotone, doubtful);
            let end = match (first, p99s[0]) {
                (None, _) => Censored::Above,
                (_, false) => Censored::Below,
                _ => Censored::No,
            };
            prop_assert_eq!(seed.censored, end);
        }
    }
}
