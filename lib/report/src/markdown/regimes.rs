//! The regime map in words: how many regions, the published regimes, and what could have been foretold.

use super::escape;
use crate::format::{percent, ratio};
use crate::record::Record;
use crate::regimes::{foresight, nearest, spots};
use crate::verdict::Outcome;
use std::fmt::{Result, Write};

/// Nothing without a map.
pub(super) fn write(out: &mut String, record: &Record) -> Result {
    let Some(map) = &record.file.design.map else { return Ok(()) };
    let spots = spots(record);
    let count = |outcome: Outcome| spots.iter().filter(|spot| spot.outcome == outcome).count();
    writeln!(
        out,
        "## Regimes\n\n{} wins in {} of {} places, ties in {}, loses in {}.\n",
        escape(record.candidate().unwrap_or_default()),
        count(Outcome::Win),
        spots.len(),
        count(Outcome::Tie),
        count(Outcome::Lose),
    )?;
    if !map.places.is_empty() {
        writeln!(out, "Published regimes, placed where both served hits are nearest:\n")?;
        writeln!(
            out,
            "| regime | hits, published | placed at | hits there | ratio there | published | here |"
        )?;
        writeln!(out, "|---|---|---|---|---:|---|---|")?;
        for place in &map.places {
            let Some(spot) = nearest(&spots, place) else { continue };
            let (baseline, candidate) = spot.hits.unwrap_or_default();
            let value = spot.ratio.map(|r| format!("{}{}", if spot.bound { "bound " } else { "" }, ratio(r)));
            writeln!(
                out,
                "| {} | {} → {} | {} | {} → {} | {} | {} | {} |",
                escape(&place.name),
                percent(place.baseline_hit),
                percent(place.candidate_hit),
                escape(&spot.label),
                percent(baseline),
                percent(candidate),
                value.unwrap_or_default(),
                escape(&place.published),
                spot.outcome.word(),
            )?;
        }
        writeln!(out)?;
    }
    let Some(foresight) = foresight(&spots) else { return Ok(()) };
    let rule = match foresight.win_from_gap.is_finite() {
        true => format!("*win from a gap of {} on*", percent(foresight.win_from_gap)),
        false => "*never a win*".into(),
    };
    writeln!(
        out,
        "Foretold from the requests alone (`cr-gen stats`): the gap between the prompt tokens that a shard's cache would find with each key's requests sent to one shard \
         and with requests sent anywhere. Over {} places its rank correlation with the ratio is {:.2}; the best rule, {rule}, is right about a win in {} of them.\n",
        foresight.spots,
        foresight.rank_correlation,
        percent(foresight.right)
    )
}
