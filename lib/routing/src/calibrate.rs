//! From measurements to the planner's two inputs: `qcap` from the knee of a load ladder, `warm_slots` from pool size and
//! prefix lengths.

mod ladder;

pub use ladder::read_ladder;

use cr_trace::stats::{mean_ci95, median};
use std::collections::BTreeMap;

/// One measured rung: an offered load and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Which repetition (a seed); rungs of one repetition form a ladder.
    pub run: u64,
    /// Offered requests per second.
    pub qps: f64,
    /// The 99th percentile of TTFT, in seconds.
    pub p99_s: f64,
    /// Failed part of the requests, from 0 to 1.
    pub failed: f64,
    /// Latencies of it mean nothing.
    pub saturated: bool,
}

/// The failures that a passing rung may have.
pub const MAX_FAILED: f64 = 0.05;

/// A capacity, and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// The bound on p99, in seconds: as asked for, or found as the knee of the curve.
    pub slo_s: f64,
    /// Whether the bound was found and not asked for.
    pub found: bool,
    /// Mean over repetitions of the highest passing rung, in requests per second. A repetition in which none passes counts as its lowest.
    pub qps: f64,
    /// Half-width of the 95 % confidence interval over repetitions (Student t); `None` for fewer than two.
    pub ci: Option<f64>,
    /// The lowest failing rung above it, on average: the truth lies between `qps` and this. `None` where no rung failed.
    pub next_qps: Option<f64>,
    /// Repetitions where no rung passed: the capacity is below the ladder.
    pub below: usize,
    /// Repetitions where none failed: it is above.
    pub above: usize,
    /// Repetitions.
    pub runs: usize,
}

/// Why there is no knee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKnee {
    /// Nothing measured.
    #[error("there are no measurements")]
    Empty,
    /// Too little to see a shape.
    #[error("{rungs} loads are too few to find a knee; measure at least 3, or name a bound with --slo")]
    TooFew {
        /// Different loads.
        rungs: usize,
    },
}

/// The capacity of what was measured: the highest rung whose lower rungs all keep p99 within the bound and failures within
/// 5 %.
///
/// Without a bound, it is the p99 at the knee of the curve of medians over repetitions: the rung farthest below the chord
/// from first to last, both axes scaled to 1 (Satopää et al., *Finding a "Kneedle" in a Haystack*, 2011).
///
/// # Errors
/// No rungs, or too few to find a knee.
pub fn knee(rungs: &[Rung], slo_s: Option<f64>) -> Result<Knee, NoKnee> {
    if rungs.is_empty() {
        return Err(NoKnee::Empty);
    }
    let bound = match slo_s {
        Some(slo_s) => slo_s,
        None => p99_at_knee(rungs)?,
    };
    let mut ladders: BTreeMap<u64, Vec<Rung>> = BTreeMap::new();
    rungs.iter().for_each(|rung| ladders.entry(rung.run).or_default().push(*rung));
    let (mut passing, mut failing, mut below, mut above) = (Vec::new(), Vec::new(), 0, 0);
    for ladder in ladders.values_mut() {
        ladder.sort_by(|a, b| a.qps.total_cmp(&b.qps));
        let passed = ladder
            .iter()
            .take_while(|rung| rung.p99_s <= bound && rung.failed <= MAX_FAILED && !rung.saturated)
            .count();
        below += usize::from(passed == 0);
        above += usize::from(passed == ladder.len());
        passing.push(ladder[passed.saturating_sub(1)].qps);
        failing.extend(ladder.get(passed).map(|rung| rung.qps));
    }
    let (qps, ci) = mean_ci95(&passing);
    Ok(Knee {
        slo_s: bound,
        found: slo_s.is_none(),
        qps,
        ci,
        next_qps: (!failing.is_empty()).then(|| mean_ci95(&failing).0),
        below,
        above,
        runs: ladders.len(),
    })
}

fn p99_at_knee(rungs: &[Rung]) -> Result<f64, NoKnee> {
    let mut by_load: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for rung in rungs {
        // Non-negative floats order as their bits.
        by_load.entry(rung.qps.to_bits()).or_default().push(rung.p99_s);
    }
    let curve: Vec<(f64, f64)> =
        by_load.into_iter().map(|(bits, p99)| (f64::from_bits(bits), median(p99).unwrap_or(0.0))).collect();
    let (&[first, ..], &[.., last]) = (curve.as_slice(), curve.as_slice()) else { return Err(NoKnee::Empty) };
    if curve.len() < 3 {
        return Err(NoKnee::TooFew { rungs: curve.len() });
    }
    let low = curve.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let scale = |(qps, p99): (f64, f64)| {
        ((qps - first.0) / (last.0 - first.0), (p99 - low) / (high - low).max(f64::MIN_POSITIVE))
    };
    let distance = |point: (f64, f64)| {
        let (x, y) = scale(point);
        x - y
    };
    let knee = curve.iter().copied().max_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    Ok(knee.map_or(high, |(_, p99)| p99))
}

/// Warm slots, and how sure they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slots {
    /// KV tokens of a shard / the mean prefix of the keys that would be kept.
    pub warm_slots: f64,
    /// The same with the 90th and with the 10th percentile of prefixes: few long ones, many short ones.
    pub range: (f64, f64),
    /// The mean prefix, weighted by rate, in tokens.
    pub mean_prefix: f64,
    /// Keys with a prefix.
    pub keys: usize,
}

/// The prefixes that `kv_tokens` tokens hold, given each key's prefix and how often it is asked for. `None` where no key
/// has a prefix.
///
/// Hot keys are kept, so prefixes are weighted by rate. `reserve` is the part of the pool that running requests take.
pub fn warm_slots(kv_tokens: f64, reserve: f64, prefixes: &[u64], rates: &[f64]) -> Option<Slots> {
    let mut keys: Vec<(u64, f64)> = prefixes
        .iter()
        .copied()
        .zip(rates.iter().copied())
        .filter(|&(prefix, rate)| prefix > 0 && rate > 0.0)
        .collect();
    let total: f64 = keys.iter().map(|(_, rate)| rate).sum();
    if keys.is_empty() {
        return None;
    }
    keys.sort_by_key(|&(prefix, _)| prefix);
    let quantile = |q: f64| {
        let mut sum = 0.0;
        let at = keys.iter().find(|(_, rate)| {
            sum += rate;
            sum >= q * total
        });
        at.or(keys.last()).map_or(1.0, |&(prefix, _)| prefix as f64)
    };
    let mean_prefix = keys.iter().map(|&(prefix, rate)| prefix as f64 * rate).sum::<f64>() / total;
    let free = kv_tokens * (1.0 - reserve);
    Some(Slots {
        warm_slots: free / mean_prefix,
        range: (free / quantile(0.9), free / quantile(0.1)),
        mean_prefix,
        keys: keys.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(run: u64, qps: f64, p99_s: f64) -> Rung {
        Rung { run, qps, p99_s, failed: 0.0, saturated: false }
    }

    #[test]
    fn the_highest_rung_below_the_first_failure() {
        let mut rungs = Vec::new();
        for (run, top) in [(1, 60.0), (2, 80.0), (3, 60.0)] {
            for qps in [20.0, 40.0, 60.0, 80.0, 100.0] {
                rungs.push(rung(run, qps, if qps <= top { 0.5 } else { 4.0 }));
            }
        }
        let knee = knee(&rungs, Some(2.0)).expect("is there");
        assert!(
            (knee.qps - 200.0 / 3.0).abs() < 1e-9
                && (knee.next_qps.expect("fails") - 260.0 / 3.0).abs() < 1e-9
        );
        // t(2) = 4.303 on a standard deviation of 11.547.
        assert!((knee.ci.expect("has runs") - 28.68).abs() < 0.05, "{knee:?}");
        assert_eq!((knee.below, knee.above, knee.runs, knee.found), (0, 0, 3, false));
    }

    #[test]
    fn a_later_pass_does_not_heal_a_failure_and_saturation_fails() {
        let ladder = [rung(1, 10.0, 1.0), rung(1, 20.0, 3.0), rung(1, 30.0, 1.0)];
        assert_eq!(knee(&ladder, Some(2.0)).expect("is there").qps, 10.0);
        let mut ladder = [rung(1, 10.0, 1.0), rung(1, 20.0, 1.0)];
        ladder[1].saturated = true;
        assert_eq!(knee(&ladder, Some(2.0)).expect("is there").qps, 10.0);
        let all_fail = knee(&[rung(1, 10.0, 9.0)], Some(2.0)).expect("is there");
        assert_eq!((all_fail.below, all_fail.above, all_fail.qps), (1, 0, 10.0));
        let none_fails = knee(&[rung(1, 10.0, 1.0)], Some(2.0)).expect("is there");
        assert_eq!((none_fails.below, none_fails.above, none_fails.qps), (0, 1, 10.0));
    }

    #[test]
    fn the_knee_of_a_hockey_stick() {
        let curve = [(10.0, 0.1), (20.0, 0.11), (30.0, 0.12), (40.0, 0.2), (50.0, 2.0), (60.0, 6.0)];
        let rungs: Vec<Rung> = curve.iter().map(|&(qps, p99)| rung(1, qps, p99)).collect();
        let found = knee(&rungs, None).expect("is there");
        assert_eq!((found.qps, found.slo_s, found.found), (40.0, 0.2, true));
        assert_eq!(knee(&rungs[..2], None), Err(NoKnee::TooFew { rungs: 2 }));
        assert_eq!(knee(&[], Some(1.0)), Err(NoKnee::Empty));
    }

    #[test]
    fn slots_are_tokens_over_hot_prefixes() {
        let slots = warm_slots(10_000.0, 0.2, &[100, 300, 0], &[3.0, 1.0, 50.0]).expect("has prefixes");
        assert_eq!((slots.mean_prefix, slots.keys), (150.0, 2));
        assert!((slots.warm_slots - 8_000.0 / 150.0).abs() < 1e-9);
        assert_eq!(slots.range, (8_000.0 / 300.0, 80.0));
        assert_eq!(warm_slots(10.0, 0.0, &[0], &[1.0]), None);
    }
}
