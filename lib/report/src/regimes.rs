//! Where a policy wins, ties and loses as two parameters move: the regime map, its published places, and what a cheap statistic foretells.

use crate::record::Record;
use crate::verdict::{Outcome, of_record};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which axes make the map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// The axis from left to right.
    pub x: String,
    /// The axis from bottom to top.
    pub y: String,
    /// Regimes that were published, placed by their hit rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
}

/// A published regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The baseline's served hit, a share.
    pub baseline_hit: f64,
    /// The candidate's.
    pub candidate_hit: f64,
    /// What was published of it: `win`, `tie` or `lose`.
    pub published: String,
}

/// What an analysis of the requests alone foretells for a variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foretold {
    /// Share of prompt tokens that a shard's cache would find with requests sent anywhere.
    pub spread: f64,
    /// With each key's requests sent to one shard.
    pub pinned: f64,
}

/// One cell of the map.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The variant.
    pub label: String,
    /// Its point on every axis.
    pub at: BTreeMap<String, String>,
    /// The candidate's capacity / the baseline's; the baseline's p99 / the candidate's without a ladder. None where neither is known.
    pub ratio: Option<f64>,
    /// Whether the ratio is only a bound.
    pub bound: bool,
    /// The verdict.
    pub outcome: Outcome,
    /// Served hits of baseline and candidate at the rate of comparison.
    pub hits: Option<(f64, f64)>,
    /// What was foretold.
    pub foretold: Option<Foretold>,
}

/// Every variant as a cell of the map.
pub fn spots(record: &Record) -> Vec<Spot> {
    record
        .file
        .design
        .variants
        .iter()
        .map(|variant| {
            let part = record.of_variant(&variant.label);
            let (ratio, bound) = ratio(&part).map_or((None, false), |(ratio, bound)| (Some(ratio), bound));
            let hit = |policy: Option<&str>| {
                Some(part.cell(policy?, part.reference_rate())?.metric("served_hit").mean)
            };
            Spot {
                label: variant.label.clone(),
                at: variant.at.clone(),
                ratio,
                bound,
                outcome: of_record(&part).map_or(Outcome::Open, |verdict| verdict.outcome),
                hits: hit(part.baseline()).zip(hit(part.candidate())),
                foretold: variant.foretold,
            }
        })
        .collect()
}

/// The candidate over the baseline, and whether that is only a bound.
pub fn ratio(part: &Record) -> Option<(f64, bool)> {
    let (candidate, baseline) = part.candidate().zip(part.baseline())?;
    let capacity = |policy| part.capacity(policy, part.objective()?).filter(|own| own.mean_qps.n > 0);
    if let Some((own, other)) = capacity(candidate).zip(capacity(baseline)) {
        return Some((own.mean_qps.mean / other.mean_qps.mean, own.is_censored() || other.is_censored()));
    }
    let at = part.reference_rate();
    let p99 = |policy| {
        part.cell(policy, at).filter(|cell| !cell.saturated()).map(|cell| cell.metric("ttft_p99_s").mean)
    };
    let (own, other) = p99(candidate).zip(p99(baseline))?;
    (own > 0.0).then_some((other / own, false))
}

/// The spot whose hits are nearest to a published regime's.
pub fn nearest<'a>(spots: &'a [Spot], place: &Place) -> Option<&'a Spot> {
    let distance = |spot: &&Spot| {
        spot.hits.map_or(f64::INFINITY, |(baseline, candidate)| {
            (baseline - place.baseline_hit).hypot(candidate - place.candidate_hit)
        })
    };
    spots.iter().filter(|spot| spot.hits.is_some()).min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// How well the foretold gap (pinned − spread) tells the regions apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foresight {
    /// Spots that have both a foretold gap and a ratio.
    pub spots: usize,
    /// Spearman's rank correlation of the gap with the ratio.
    pub rank_correlation: f64,
    /// The gap from which on a win is foretold, chosen to be right most often.
    pub win_from_gap: f64,
    /// The share of spots in which it is then right about win or no win.
    pub right: f64,
}

/// None for fewer than three spots.
pub fn foresight(spots: &[Spot]) -> Option<Foresight> {
    let known: Vec<(f64, f64, bool)> = spots
        .iter()
        .filter_map(|spot| {
            let foretold = spot.foretold?;
            Some((foretold.pinned - foretold.spread, spot.ratio?, spot.outcome == Outcome::Win))
        })
        .collect();
    if known.len() < 3 {
        return None;
    }
    let gaps: Vec<f64> = known.iter().map(|known| known.0).collect();
    let ratios: Vec<f64> = known.iter().map(|known| known.1).collect();
    let right = |from: f64| known.iter().filter(|(gap, _, win)| (*gap >= from) == *win).count();
    let mut bounds = gaps.clone();
    bounds.push(f64::INFINITY);
    bounds.sort_by(f64::total_cmp);
    let best = bounds.into_iter().rev().max_by_key(|&from| right(from))?;
    Some(Foresight {
        spots: known.len(),
        rank_correlation: pearson(&ranks(&gaps), &ranks(&ratios)),
        win_from_gap: best,
        right: right(best) as f64 / known.len() as f64,
    })
}

/// Ranks from 1; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

fn pearson(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let sum =
        |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(x, y)| f(x - mean_a, y - mean_b)).sum::<f64>();
    let (xy, xx, yy) = (sum(&|x, y| x * y), sum(&|x, _| x * x), sum(&|_, y| y * y));
    if xx > 0.0 && yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(gap: f64, ratio: f64) -> Spot {
        Spot {
            label: String::new(),
            at: BTreeMap::new(),
            ratio: Some(ratio),
            bound: false,
            outcome: if ratio > 1.1 { Outcome::Win } else { Outcome::Lose },
            hits: Some((0.1, 0.1 + gap)),
            foretold: Some(Foretold { spread: 0.1, pinned: 0.1 + gap }),
        }
    }

    #[test]
    fn a_gap_that_orders_the_ratios_foretells_all() {
        let spots: Vec<Spot> =
            [(0.0, 0.8), (0.1, 0.9), (0.3, 1.4), (0.5, 3.0)].map(|(gap, ratio)| spot(gap, ratio)).into();
        let foresight = foresight(&spots).expect("four spots");
        assert!((foresight.rank_correlation - 1.0).abs() < 1e-12);
        assert!((foresight.win_from_gap - 0.3).abs() < 1e-12 && foresight.right == 1.0);
        let place =
            Place { name: "x".into(), baseline_hit: 0.1, candidate_hit: 0.45, published: "win".into() };
        assert_eq!(nearest(&spots, &place).and_then(|spot| spot.ratio), Some(1.4));
    }

    #[test]
    fn a_gap_that_says_nothing_is_told_to() {
        let spots: Vec<Spot> =
            [(0.2, 0.8), (0.2, 3.0), (0.2, 0.9)].map(|(gap, ratio)| spot(gap, ratio)).into();
        let foresight = foresight(&spots).expect("three spots");
        assert_eq!(foresight.rank_correlation, 0.0);
        assert!((foresight.right - 2.0 / 3.0).abs() < 1e-12 && foresight.win_from_gap.is_infinite());
        assert!(super::foresight(&spots[..2]).is_none());
    }
}
