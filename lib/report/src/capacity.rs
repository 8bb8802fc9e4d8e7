//! Capacity under a service level objective: how much a policy carries.

use crate::aggregate::MAX_FAILED_SHARE;
use crate::format::rate;
use crate::result::failed_share;
use crate::stats::Estimate;
use crate::summary::Summary;
use serde::{Deserialize, Serialize};

/// One policy's capacity on a ladder of rates, in requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The policy.
    pub policy: String,
    /// The bound on the p99 of TTFT, in seconds.
    pub slo_ttft_p99_s: f64,
    /// The ladder's rates, ascending.
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

/// Whether a run meets the objective: p99 of TTFT within the bound, and at most 5 % of the requests failed. A run in which nothing
/// finished does not.
pub fn passes(summary: &Summary, slo_ttft_p99_s: f64) -> bool {
    summary.ttft_s.count > 0
        && summary.ttft_s.p99 <= slo_ttft_p99_s
        && failed_share(summary) <= MAX_FAILED_SHARE
}

impl Capacity {
    /// From the runs of one policy; `None` where fewer than two rates were run. A seed counts only with a run at every rate.
    pub fn of(policy: &str, runs: &[&Summary], slo_ttft_p99_s: f64) -> Option<Capacity> {
        let mut ladder_qps: Vec<f64> = runs.iter().filter_map(|run| run.qps).collect();
        ladder_qps.sort_by(f64::total_cmp);
        ladder_qps.dedup();
        let (&lowest, &highest) = (ladder_qps.first()?, ladder_qps.get(1..)?.last()?);
        let mut names: Vec<u64> = Vec::new();
        for run in runs {
            if !names.contains(&run.seed) {
                names.push(run.seed);
            }
        }
        let rung = |seed: u64, qps: f64| {
            let run = runs.iter().find(|run| run.seed == seed && run.qps == Some(qps))?;
            Some(passes(run, slo_ttft_p99_s))
        };
        let seeds: Vec<SeedCapacity> = names
            .into_iter()
            .filter_map(|seed| {
                let passed: Option<Vec<bool>> = ladder_qps.iter().map(|&qps| rung(seed, qps)).collect();
                Some(seed_capacity(seed, &ladder_qps, &passed?))
            })
            .collect();
        let values: Vec<f64> =
            seeds.iter().map(|seed| seed.qps.unwrap_or(lowest).clamp(lowest, highest)).collect();
        let any = |censored| seeds.iter().any(|seed| seed.censored == censored);
        let censored = match (any(Censored::Below), any(Censored::Above)) {
            (false, false) => Censored::No,
            (true, false) => Censored::Below,
            (false, true) => Censored::Above,
            (true, true) => Censored::Both,
        };
        let mean_qps = Estimate::of(&values);
        Some(Capacity { policy: policy.into(), slo_ttft_p99_s, ladder_qps, seeds, mean_qps, censored })
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

    /// Whether any seed's ladder is not monotone.
    pub fn non_monotone(&self) -> bool {
        self.seeds.iter().any(|seed| seed.non_monotone)
    }
}

fn seed_capacity(seed: u64, ladder_qps: &[f64], passed: &[bool]) -> SeedCapacity {
    let count = passed.iter().take_while(|&&passed| passed).count();
    let censored = match count {
        0 => Censored::Below,
        count if count == ladder_qps.len() => Censored::Above,
        _ => Censored::No,
    };
    let qps = count.checked_sub(1).map(|last| ladder_qps[last]);
    SeedCapacity { seed, qps, censored, non_monotone: passed[count..].iter().any(|&passed| passed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Aggregator;
    use crate::events::Header;

    fn run(seed: u64, qps: f64, p99: f64, failed: u64) -> Summary {
        let mut summary = Aggregator::new(&Header::default()).summary(true);
        (summary.seed, summary.qps) = (seed, Some(qps));
        (summary.ttft_s.count, summary.ttft_s.p99) = (100, p99);
        (summary.requests.completed, summary.requests.failed) = (100 - failed, failed);
        summary
    }

    fn of(p99s: &[&[f64]]) -> Capacity {
        let rates = [30.0, 60.0, 100.0];
        let runs: Vec<Summary> = p99s
            .iter()
            .enumerate()
            .flat_map(|(seed, p99s)| {
                rates.iter().zip(*p99s).map(move |(&qps, &p99)| run(seed as u64, qps, p99, 0))
            })
            .collect();
        Capacity::of("x", &runs.iter().collect::<Vec<_>>(), 2.0).expect("a ladder")
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
        assert!(passes(&run(0, 30.0, 2.0, 5), 2.0));
        assert!(!passes(&run(0, 30.0, 2.0, 6), 2.0));
        assert!(!passes(&Summary { ttft_s: Default::default(), ..run(0, 30.0, 0.0, 0) }, 2.0));
        assert!(Capacity::of("x", &[&run(0, 30.0, 1.0, 0)], 2.0).is_none());
    }
}
