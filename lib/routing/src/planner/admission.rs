//! Who gets a place: admission under the budget of copies or of KV tokens.

use super::order::Ranked;
use super::{Demand, PlanConfig, PlanError};

/// The admitted keys in plan order, each with its copies, and what is left cold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Admitted {
    /// Key and weight, decreasing.
    pub(super) keys: Vec<Ranked>,
    /// Copies of each; same order.
    pub(super) copies: Vec<u32>,
    /// Σ rate of the admitted keys.
    pub(super) admitted_rate: f64,
    /// Σ rate of the others.
    pub(super) cold_rate: f64,
    /// Σ weight of the others.
    pub(super) cold_weight: f64,
    /// Where tokens decided.
    pub(super) tokens: Option<TokenBudget>,
}

/// How well a budget of KV tokens is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenBudget {
    /// KV tokens that the fleet can keep.
    pub budget: f64,
    /// KV tokens of the admitted copies.
    pub used: f64,
    /// Hit tokens won per second: Σ rate · prefix of the admitted keys.
    pub won: f64,
    /// What no choice of keys can exceed: the same sum where the last key may be taken in part. The optimum lies between
    /// `won` and this (Dantzig's bound on the knapsack).
    pub bound: f64,
}

impl Admitted {
    /// Turns from rates to weights, where the demand tells other ones: order and cold tail.
    pub(super) fn weigh(&mut self, demand: &Demand<'_>) {
        self.cold_weight = self.cold_rate;
        if demand.work.is_none() && self.tokens.is_none() {
            return;
        }
        let mut both: Vec<(Ranked, u32)> = self
            .keys
            .iter()
            .zip(&self.copies)
            .map(|(item, &copies)| (Ranked { rate: demand.weight(item.key), ..*item }, copies))
            .collect();
        both.sort_by(|a, b| b.0.rate.total_cmp(&a.0.rate).then(a.0.key.cmp(&b.0.key)));
        (self.keys, self.copies) = both.into_iter().unzip();
        if let Some(work) = demand.work {
            let admitted: f64 = self.keys.iter().map(|item| item.rate).sum();
            let all: f64 =
                work.iter().zip(demand.rates).filter(|(_, rate)| **rate > 0.0).map(|(work, _)| work).sum();
            self.cold_weight = (all - admitted).max(0.0);
        }
    }
}

/// The copies of a key: enough for its rate, and for its work where that is told and bounded.
fn copies_of(item: &Ranked, demand: &Demand<'_>, config: &PlanConfig, up: u32) -> u32 {
    let by_rate = if item.rate <= config.qcap { 1 } else { super::copies(item.rate, config.qcap, up) };
    match (demand.work, config.work_cap) {
        (Some(work), Some(cap)) => by_rate.max(super::copies(work[item.key as usize], cap, up)),
        _ => by_rate,
    }
}

/// Admits in decreasing rate while the copies fit `C = R·W`; a key that does not fit is skipped.
pub(super) fn by_slots(mut ranked: Vec<Ranked>, demand: &Demand<'_>, config: &PlanConfig) -> Admitted {
    let (capacity, up) = (config.capacity(), config.fleet.up());
    let (mut admitted_rate, mut cold_rate) = (0.0, demand.other_rate);
    let mut copies = Vec::with_capacity(capacity.min(ranked.len() as f64) as usize);
    let mut used = 0u64;
    ranked.retain(|item| {
        let k = copies_of(item, demand, config, up);
        let fits = (used + u64::from(k)) as f64 <= capacity;
        if fits {
            used += u64::from(k);
            copies.push(k);
            admitted_rate += item.rate;
        } else {
            cold_rate += item.rate;
        }
        fits
    });
    Admitted { keys: ranked, copies, admitted_rate, cold_rate, ..Admitted::default() }
}

/// A key as a thing to pack: what it wins and what it takes.
#[derive(Clone, Copy)]
pub(super) struct Parcel {
    pub(super) item: Ranked,
    pub(super) copies: u32,
    /// Hit tokens per second.
    pub(super) value: f64,
    /// KV tokens of all copies.
    pub(super) size: f64,
}

/// The keys with a prefix, by decreasing hit tokens per second and KV token.
pub(super) fn parcels(
    ranked: Vec<Ranked>,
    demand: &Demand<'_>,
    config: &PlanConfig,
) -> Result<Vec<Parcel>, PlanError> {
    let prefixes = demand.prefix_tokens.ok_or(PlanError::NoPrefixTokens)?;
    let mut parcels: Vec<Parcel> = ranked
        .into_iter()
        .filter(|item| prefixes[item.key as usize] > 0)
        .map(|item| {
            let prefix = prefixes[item.key as usize] as f64;
            let copies = copies_of(&item, demand, config, config.fleet.up());
            Parcel { item, copies, value: item.rate * prefix, size: f64::from(copies) * prefix }
        })
        .collect();
    // The prefix cancels: density is rate / copies. Stable, so equal ones stay in order of rate.
    let density = |parcel: &Parcel| parcel.item.rate / f64::from(parcel.copies);
    parcels.sort_by(|a, b| density(b).total_cmp(&density(a)));
    Ok(parcels)
}

/// Admits by hit tokens won per second and KV token kept, while the tokens fit the fleet's pools together ([`super::pools`]
/// looks at each); a key that does not fit is skipped. Where one key alone wins more than that, it goes first, so that at least half of the optimum is won.
///
/// The tokens that keys share (a common template) are counted for each of them. A key without a prefix wins nothing and
/// is never admitted.
pub(super) fn by_tokens(
    ranked: Vec<Ranked>,
    demand: &Demand<'_>,
    config: &PlanConfig,
    kv_tokens: f64,
) -> Result<Admitted, PlanError> {
    let budget = config.fleet.total_speed() * kv_tokens;
    let total = demand.other_rate + ranked.iter().map(|item| item.rate).sum::<f64>();
    let parcels = parcels(ranked, demand, config)?;
    let bound = fractional_bound(&parcels, budget);
    let mut packed = pack(&parcels, None, budget);
    let best = (0..parcels.len())
        .filter(|&at| parcels[at].size <= budget)
        .max_by(|&a, &b| parcels[a].value.total_cmp(&parcels[b].value).then(b.cmp(&a)));
    if let Some(best) = best
        && parcels[best].value > won(&parcels, &packed)
    {
        packed = pack(&parcels, Some(best), budget);
    }
    let won = won(&parcels, &packed);
    let used = packed.iter().map(|&at| parcels[at].size).sum();
    let admitted_rate: f64 = packed.iter().map(|&at| parcels[at].item.rate).sum();
    Ok(Admitted {
        keys: packed.iter().map(|&at| parcels[at].item).collect(),
        copies: packed.iter().map(|&at| parcels[at].copies).collect(),
        admitted_rate,
        cold_rate: (total - admitted_rate).max(0.0),
        cold_weight: 0.0,
        tokens: Some(TokenBudget { budget, used, won, bound }),
    })
}

/// The positions of what fits, `first` before all others.
fn pack(parcels: &[Parcel], first: Option<usize>, budget: f64) -> Vec<usize> {
    let mut used = 0.0;
    let mut fits = |&at: &usize| {
        let fits = used + parcels[at].size <= budget;
        used += if fits { parcels[at].size } else { 0.0 };
        fits
    };
    let others = (0..parcels.len()).filter(|&at| Some(at) != first);
    first.into_iter().chain(others).filter(|at| fits(at)).collect()
}

fn won(parcels: &[Parcel], packed: &[usize]) -> f64 {
    packed.iter().map(|&at| parcels[at].value).sum()
}

/// Parcels of decreasing density until the budget is spent, the last one in part.
pub(super) fn fractional_bound(parcels: &[Parcel], budget: f64) -> f64 {
    let (mut left, mut bound) = (budget, 0.0);
    for parcel in parcels {
        if parcel.size > left {
            return bound + parcel.value * left / parcel.size;
        }
        left -= parcel.size;
        bound += parcel.value;
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::super::{Admission, Demand, Placement, PlanConfig, plan_demand};
    use proptest::prelude::*;

    proptest! {
        /// Against every subset, where one pool is all there is: within half of the optimum, which the bound never undercuts.
        #[test]
        fn tokens_are_packed_well(
            keys in proptest::collection::vec((1u32..50, 0u64..40), 0..10),
            budget in 0u32..150,
        ) {
            let rates: Vec<f64> = keys.iter().map(|&(rate, _)| f64::from(rate)).collect();
            let prefixes: Vec<u64> = keys.iter().map(|&(_, prefix)| prefix).collect();
            let mut config = PlanConfig::new(3, 20.0, 0.0);
            config.admission = Admission::Tokens { kv_tokens: f64::from(budget) / 3.0 };
            config.placement = Placement::RoundRobin;
            let demand = Demand { prefix_tokens: Some(&prefixes), ..Demand::of_rates(&rates) };
            let plan = plan_demand(&demand, &config).expect("is valid");
            let tokens = plan.tokens().expect("are counted");
            let optimum = (0u32..1 << keys.len())
                .filter_map(|subset| {
                    let chosen = (0..keys.len()).filter(|at| subset >> at & 1 == 1);
                    let (mut value, mut size) = (0.0, 0.0);
                    for at in chosen {
                        let prefix = prefixes[at] as f64;
                        value += rates[at] * prefix;
                        size += f64::from(super::super::copies(rates[at], 20.0, 3)) * prefix;
                    }
                    (size <= tokens.budget).then_some(value)
                })
                .fold(0.0, f64::max);
            prop_assert!(tokens.used <= tokens.budget);
            prop_assert!(tokens.won <= optimum + 1e-9 && tokens.won >= optimum / 2.0 - 1e-9);
            prop_assert!(tokens.bound >= optimum - 1e-9, "{tokens:?} against {optimum}");
        }
    }

    #[test]
    fn tokens_need_prefixes() {
        let mut config = PlanConfig::new(1, 1.0, 1.0);
        config.admission = Admission::Tokens { kv_tokens: 1.0 };
        assert!(plan_demand(&Demand::of_rates(&[1.0]), &config).is_err());
    }
}
