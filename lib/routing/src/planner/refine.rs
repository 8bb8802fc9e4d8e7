//! Local search after LPT: moves, and exchanges where no move helps, until the highest load falls no further.

use super::Fleet;
use super::admission::Admitted;
use super::board::Board;
use super::lpt::{Loads, Placed};
use super::pools::Pools;

/// Steps at most: each lowers the highest load, so this only bounds the time where the gains have become tiny.
const STEPS: usize = 10_000;

/// Improves a placement; never worsens it, and overfills no pool.
pub(super) fn refine(placed: Placed, admitted: &Admitted, fleet: &Fleet, pools: &Pools<'_>) -> Placed {
    let cold = Loads::cold(fleet, admitted.cold_weight).into_inner();
    let mut board = Board::new(fleet.speeds(), cold).with_room(pools.room(fleet));
    let mut start = 0;
    for (item, &k) in admitted.keys.iter().zip(&admitted.copies) {
        let end = start + k as usize;
        board.add(item.rate, pools.size(item.key), placed.members[start..end].into());
        start = end;
    }
    let mut stepped = false;
    for _ in 0..STEPS {
        let Some(step) = board.best_step(true) else { break };
        board.apply(&step);
        stepped = true;
    }
    if !stepped {
        return placed;
    }
    let members =
        (0..admitted.keys.len() as u32).flat_map(|item| board.places(item).iter().copied()).collect();
    Placed { members, loads: board.loads().to_vec() }
}

#[cfg(test)]
mod tests {
    use super::super::{Fleet, Placement, PlanConfig, plan};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn never_worse_than_lpt_and_still_a_placement(
            rates in proptest::collection::vec(prop_oneof![(1u32..9).prop_map(f64::from), 0.1..60.0f64], 0..40),
            speeds in proptest::collection::vec(prop_oneof![Just(1.0), Just(0.5), Just(0.0), Just(2.0)], 1..7),
            slots in 0.0..9.0f64,
        ) {
            prop_assume!(speeds.iter().any(|&speed| speed > 0.0));
            let mut config = PlanConfig::for_fleet(Fleet::with_speeds(speeds.clone()), 20.0, slots);
            let lpt = plan(&rates, &config).expect("is valid");
            config.placement = Placement::LptRefine;
            let refined = plan(&rates, &config).expect("is valid");
            prop_assert!(refined.imbalance() <= lpt.imbalance() + 1e-12);
            prop_assert_eq!(refined.placements().len(), lpt.placements().len());
            let mut loads: Vec<f64> = {
                let total: f64 = speeds.iter().sum();
                speeds.iter().map(|speed| refined.cold_rate() * speed / total).collect()
            };
            for ((key, shards), (other, before)) in refined.placements().zip(lpt.placements()) {
                prop_assert_eq!((key, shards.len()), (other, before.len()));
                prop_assert!(shards.is_sorted_by(|a, b| a < b));
                for shard in shards {
                    prop_assert!(speeds[shard.index()] > 0.0);
                    loads[shard.index()] += rates[key] / shards.len() as f64;
                }
            }
            for (load, expect) in refined.loads().iter().zip(&loads) {
                prop_assert!((load - expect).abs() <= 1e-9 * expect.max(1.0));
            }
        }
    }

    /// LPT's textbook loss: 3, 3, 2, 2, 2 on two shards is 7 against 5; an exchange finds 6 against 6.
    #[test]
    fn finds_what_lpt_misses() {
        let rates = [3.0, 3.0, 2.0, 2.0, 2.0];
        let mut config = PlanConfig::new(2, 100.0, 10.0);
        let lpt = plan(&rates, &config).expect("is valid").imbalance();
        config.placement = Placement::LptRefine;
        let refined = plan(&rates, &config).expect("is valid").imbalance();
        assert!(lpt > 1.16 && (refined - 1.0).abs() < 1e-12, "{lpt} {refined}");
    }
}
