//! The planner: Algorithm 1 of the CacheRoute paper, off the request path.
//!
//! 1. Copies: `k_b = max(1, ⌈λ_b / q_cap⌉)`, clamped to the shards that are up; the clamped count is charged.
//! 2. Admission by decreasing rate while `Σ k_b ≤ C = R·W`; a key that does not fit is *skipped*, a later smaller one
//!    may still fit.
//! 3. Placement by longest processing time first (LPT): every shard starts with its share of the cold tail; admitted
//!    keys in the same order take the `k_b` least-loaded distinct shards, each charged `λ_b / k_b`.
//!
//! Ties: input order for equal rates, lowest shard id for equal loads. Cost O(n + Σ k_b log R): rates are radix-sorted.
//! Graham's bound on LPT does not carry over (split jobs, distinct shards) and is not claimed. The planner plans, it
//! does not reserve: traffic of the cold tail can evict an admitted prefix.
//!
//! Keys are positions in the caller's list of rates; [`Plan::to_table`] gives them their names.

mod admission;
mod board;
mod check;
mod churn;
mod config;
mod demand;
mod lpt;
mod order;
mod place;
mod plan;
mod pools;
mod refine;
mod replan;
pub mod sensitivity;
#[cfg(test)]
mod tests;
mod tournament;

pub use admission::TokenBudget;
pub use check::{TableCheck, check};
pub use churn::{Change, TableDiff};
pub use config::{Admission, Fleet, Placement, PlanConfig, PlanError};
pub use demand::{Demand, work_of};
pub use plan::{Plan, TableOptions, plan_table};
pub use replan::{ChurnLimits, ReplanReport, replan};

/// Tables of fewer keys than this carry their rates unless told otherwise.
pub const RATES_BELOW_KEYS: usize = 100_000;

/// The copies of a key: `max(1, ⌈rate / qcap⌉)`, at most `shards`. `qcap` must be above 0 and `shards` at least 1.
pub fn copies(rate: f64, qcap: f64, shards: u32) -> u32 {
    // A float to integer cast saturates, so an enormous quotient clamps like any other.
    ((rate / qcap).ceil() as u32).clamp(1, shards)
}

/// Plans where the prefixes of keys with these rates (requests per second) should be kept.
///
/// A zero rate is never admitted and counts nowhere. Rates need no order and may be many: ten million take about a
/// second.
///
/// # Errors
/// A rate that is negative, NaN or infinite, rates whose sum is infinite, or a configuration that no plan can have.
pub fn plan(rates: &[f64], config: &PlanConfig) -> Result<Plan, PlanError> {
    plan_demand(&Demand::of_rates(rates), config)
}

/// Plans for keys of which more is known than their rates.
///
/// # Errors
/// As [`plan`]; also where the configuration needs what the demand does not tell.
pub fn plan_demand(demand: &Demand<'_>, config: &PlanConfig) -> Result<Plan, PlanError> {
    config.check()?;
    demand.check()?;
    let ranked = order::by_decreasing_rate(demand.rates)?;
    let mut admitted = match (config.admission, config.placement) {
        (Admission::Slots, _) => admission::by_slots(ranked, demand, config),
        (Admission::Tokens { kv_tokens }, Placement::Lpt | Placement::LptRefine) => {
            let (admitted, placed) = pools::pack(ranked, demand, config, kv_tokens)?;
            return Ok(Plan::new(config, demand, admitted, placed));
        }
        // The other placements are there to compare with, and look at no pool.
        (Admission::Tokens { kv_tokens }, _) => admission::by_tokens(ranked, demand, config, kv_tokens)?,
    };
    admitted.weigh(demand);
    let placed = place::place(&admitted, demand, config)?;
    Ok(Plan::new(config, demand, admitted, placed))
}

/// How uneven loads are: the highest load / capacity over Σ load / Σ capacity, 1 where all is zero. Shards of equal
/// capacity: max / mean. A capacity of 0 marks a shard that is down.
pub fn imbalance(loads: &[f64], capacities: &[f64]) -> f64 {
    let even = loads.iter().sum::<f64>() / capacities.iter().sum::<f64>();
    let up = loads.iter().zip(capacities).filter(|(_, capacity)| **capacity > 0.0);
    let highest = up.map(|(load, capacity)| load / capacity).fold(0.0, f64::max);
    if even > 0.0 { highest / even } else { 1.0 }
}
