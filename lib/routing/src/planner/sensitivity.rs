//! How a plan changes where its two measured inputs are wrong.

use super::{Demand, PlanConfig, PlanError, plan_demand};

/// The errors looked at: each input alone, times these.
pub const FACTORS: [f64; 4] = [0.75, 0.9, 1.1, 1.25];

/// A measured input of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Neither: the plan as asked for.
    AsGiven,
    /// The ceiling of one key on one shard.
    Qcap,
    /// The prefixes that a shard keeps.
    WarmSlots,
}

/// One plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which input is off.
    pub input: Input,
    /// By which factor.
    pub factor: f64,
    /// The planned imbalance.
    pub imbalance: f64,
    /// The admitted part of the rate.
    pub warm_share: f64,
    /// Admitted keys.
    pub admitted_keys: usize,
    /// Copies of all admitted keys.
    pub copies: usize,
}

/// Plans as given, and with each input off by each factor of [`FACTORS`].
///
/// # Errors
/// As [`plan_demand`].
pub fn sensitivity(demand: &Demand<'_>, config: &PlanConfig) -> Result<Vec<Point>, PlanError> {
    let point = |input: Input, factor: f64| {
        let mut config = config.clone();
        match input {
            Input::AsGiven => {}
            Input::Qcap => config.qcap *= factor,
            Input::WarmSlots => config.scale_budget(factor),
        }
        let plan = plan_demand(demand, &config)?;
        let total = plan.admitted_rate() + plan.cold_rate();
        Ok(Point {
            input,
            factor,
            imbalance: plan.imbalance(),
            warm_share: if total > 0.0 { plan.admitted_rate() / total } else { 0.0 },
            admitted_keys: plan.placements().len(),
            copies: plan.placements().map(|(_, shards)| shards.len()).sum(),
        })
    };
    let off = [Input::Qcap, Input::WarmSlots]
        .into_iter()
        .flat_map(|input| FACTORS.into_iter().map(move |factor| (input, factor)));
    std::iter::once((Input::AsGiven, 1.0)).chain(off).map(|(input, factor)| point(input, factor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_slots_warm_more_and_a_lower_ceiling_copies_more() {
        let rates: Vec<f64> = (1..=100).map(|rank| 100.0 / f64::from(rank)).collect();
        let points =
            sensitivity(&Demand::of_rates(&rates), &PlanConfig::new(4, 20.0, 10.0)).expect("is valid");
        assert_eq!(points.len(), 9);
        let at =
            |input, factor| points.iter().find(|p| p.input == input && p.factor == factor).expect("is there");
        let given = at(Input::AsGiven, 1.0);
        assert!(at(Input::WarmSlots, 0.75).warm_share < given.warm_share);
        assert!(at(Input::WarmSlots, 1.25).warm_share > given.warm_share);
        assert!(at(Input::WarmSlots, 1.25).copies == 50 && given.copies == 40);
        assert!(
            at(Input::Qcap, 0.75).admitted_keys < given.admitted_keys,
            "more copies leave room for fewer keys"
        );
    }
}
