//! Win, tie or lose: what the paired seeds say of a policy against the baseline.

use crate::bounds::Hidden;
use crate::capacity::Capacity;
use crate::format::{plus_minus, rate, seconds_plus_minus};
use crate::record::Record;
use crate::result::Aggregate;
use crate::stats::Difference;

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Better than the baseline beyond noise.
    Win,
    /// No difference beyond noise.
    Tie,
    /// Worse than the baseline beyond noise.
    Lose,
    /// The runs do not say.
    Open,
}

impl Outcome {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Win => "win",
            Outcome::Tie => "tie",
            Outcome::Lose => "lose",
            Outcome::Open => "no verdict",
        }
    }
}

/// An outcome and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What the comparison came to.
    pub outcome: Outcome,
    /// Why, without a full stop.
    pub reason: String,
}

/// The verdict on a record's candidate: by capacity where there is one, otherwise by the p99 at the rate of comparison. None without a
/// candidate or a baseline.
pub fn of_record(record: &Record) -> Option<Verdict> {
    let (candidate, baseline) =
        record.candidate().zip(record.baseline()).filter(|(one, other)| one != other)?;
    let capacity = |policy| record.capacity(policy, record.objective()?);
    if let Some((own, other)) = capacity(candidate).zip(capacity(baseline)) {
        return Some(judge_capacity(own, other));
    }
    let at = record.reference_rate();
    Some(judge(record.cell(candidate, at)?, record.cell(baseline, at)?))
}

/// Judges a policy by the p99 of TTFT at one rate.
///
/// * Both saturated: no verdict. One saturated: it loses.
/// * Otherwise the mean of the paired differences over seeds: a win below zero, a loss above, and a tie where its 95 % confidence
///   interval holds zero. Fewer than two paired seeds give no verdict.
pub fn judge(policy: &Aggregate, baseline: &Aggregate) -> Verdict {
    let open = |reason: String| Verdict { outcome: Outcome::Open, reason };
    let of = |cell: &Aggregate| format!("{} of {} runs", cell.saturated_runs, cell.seeds.len());
    match (policy.saturated(), baseline.saturated()) {
        (true, true) => return open(format!("both {} and {} are saturated", policy.policy, baseline.policy)),
        (false, true) => {
            let reason =
                format!("{} is saturated in {}, {} is not", baseline.policy, of(baseline), policy.policy);
            return Verdict { outcome: Outcome::Win, reason };
        }
        (true, false) => {
            let reason =
                format!("{} is saturated in {}, {} is not", policy.policy, of(policy), baseline.policy);
            return Verdict { outcome: Outcome::Lose, reason };
        }
        (false, false) => {}
    }
    let Some(difference) = policy.against_baseline.get("ttft_p99_s") else {
        return open(format!("{} and {} share no seed", policy.policy, baseline.policy));
    };
    let Some(half) = difference.ci95 else {
        return open("one paired seed has no confidence interval".into());
    };
    let change = format!(
        "p99 TTFT differs from {}'s by {} ({} paired seeds, 95 % CI)",
        baseline.policy,
        seconds_plus_minus(difference.mean, Some(half)),
        difference.n
    );
    let outcome = match difference.within_noise {
        true => Outcome::Tie,
        false if difference.mean < 0.0 => Outcome::Win,
        false => Outcome::Lose,
    };
    let reason = if outcome == Outcome::Tie { format!("{change}, which is within noise") } else { change };
    Verdict { outcome, reason }
}

/// Judges a policy by its capacity: a win where the mean of the paired differences over seeds is above zero beyond noise, a loss where it is
/// below. A seed beyond an end of the ladder counts as that end, so the difference of a censored policy is a bound: a win that may in truth
/// be less, a loss that may be more, and a tie that may be either, give no verdict. Nor do fewer than two paired seeds.
pub fn judge_capacity(policy: &Capacity, baseline: &Capacity) -> Verdict {
    let difference = Difference::of(&policy.pairs(baseline));
    let reason = format!(
        "capacity at {} is {} QPS, {}'s is {} ({} paired seeds, 95 % CI)",
        policy.objective().text(),
        policy.quoted(),
        baseline.policy,
        baseline.quoted(),
        difference.n
    );
    let hidden = Hidden::of(policy, baseline);
    let counted = match difference.ci95 {
        None => Outcome::Open,
        Some(_) if difference.within_noise => Outcome::Tie,
        Some(_) if difference.mean > 0.0 => Outcome::Win,
        Some(_) => Outcome::Lose,
    };
    let outcome = match counted {
        Outcome::Win if hidden.less => Outcome::Open,
        Outcome::Lose if hidden.greater => Outcome::Open,
        Outcome::Tie if !hidden.nothing() => Outcome::Open,
        as_counted => as_counted,
    };
    let change = plus_minus(difference.mean, difference.ci95, rate);
    match outcome {
        Outcome::Tie => {
            Verdict { outcome, reason: format!("{reason}; the difference of {change} is within noise") }
        }
        Outcome::Open if counted != Outcome::Open => Verdict {
            outcome,
            reason: format!("{reason}; the rates that were run end before the difference shows"),
        },
        _ => Verdict { outcome, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{Censored, SeedCapacity};
    use crate::objective::Latency;
    use crate::stats::Estimate;

    /// A capacity on the rungs 30, 60, 100, 500; a seed's value is none below them.
    fn capacity(policy: &str, values: [Option<f64>; 3], censored: Censored) -> Capacity {
        let seed = |(seed, qps)| SeedCapacity { seed, qps, fails_qps: None, censored, non_monotone: false };
        let counted = values.map(|value| value.unwrap_or(30.0));
        Capacity {
            policy: policy.into(),
            variant: None,
            metric: Latency::Ttft,
            p99_s: 2.0,
            ladder_qps: vec![30.0, 60.0, 100.0, 500.0],
            seeds: (0..).zip(values).map(seed).collect(),
            mean_qps: Estimate::of(&counted),
            censored,
        }
    }

    #[test]
    fn the_ends_of_a_ladder_hide_what_they_hide() {
        let below = capacity("flat", [None; 3], Censored::Below);
        let lowest = capacity("sticky", [Some(30.0); 3], Censored::No);
        let some = capacity("chwbl", [Some(60.0), Some(60.0), Some(61.0)], Censored::No);
        let beyond = capacity("cacheroute", [Some(500.0); 3], Censored::Above);
        let outcome = |policy: &Capacity, baseline: &Capacity| judge_capacity(policy, baseline).outcome;
        // Known values, and bounds that can only widen the difference.
        assert_eq!(outcome(&some, &lowest), Outcome::Win);
        assert_eq!(outcome(&lowest, &some), Outcome::Lose);
        assert_eq!(outcome(&beyond, &some), Outcome::Win);
        assert_eq!(outcome(&beyond, &below), Outcome::Win);
        assert_eq!(outcome(&some, &below), Outcome::Win);
        assert_eq!(outcome(&below, &some), Outcome::Lose);
        assert_eq!(outcome(&some, &beyond), Outcome::Lose);
        // All counted alike, and in truth one may be better.
        assert_eq!(outcome(&lowest, &below), Outcome::Open);
        assert_eq!(outcome(&below, &lowest), Outcome::Open);
        assert_eq!(outcome(&below, &below), Outcome::Open);
        assert_eq!(outcome(&beyond, &beyond), Outcome::Open);
        assert_eq!(outcome(&lowest, &lowest), Outcome::Tie);
        let reason = judge_capacity(&lowest, &below).reason;
        assert!(reason.ends_with("; the rates that were run end before the difference shows"), "{reason}");
    }
}
