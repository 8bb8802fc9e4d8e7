//! Admission by tokens and placement in one: every shard has a pool of KV tokens of its own.
//!
//! Keys are taken by decreasing value density (hit tokens won per second and KV token, which is the rate of a copy) and each
//! goes to the least-loaded shards that have room for its prefix; a key without enough of them is skipped. That order is also
//! that of LPT. A second try takes keys by decreasing value, and the choice that wins more stands: small dense prefixes spread
//! over all shards can keep out large ones that win more. This packs several knapsacks at once, so no part of the optimum is
//! guaranteed; the fractional bound says how far it can be. Cost O(n · R).

use super::admission::{Admitted, Parcel, TokenBudget, fractional_bound, parcels};
use super::lpt::{Loads, Placed};
use super::order::Ranked;
use super::{Admission, Demand, Fleet, Placement, PlanConfig, PlanError, refine};
use crate::table::ShardSet;
use cr_trace::ShardId;

/// What prefixes take and shards have; nothing and no end where tokens do not decide.
#[derive(Clone, Copy)]
pub(super) struct Pools<'a> {
    prefixes: Option<&'a [u64]>,
    /// Of a shard of speed 1.
    kv_tokens: f64,
}

impl<'a> Pools<'a> {
    pub(super) fn unbounded() -> Pools<'static> {
        Pools { prefixes: None, kv_tokens: f64::INFINITY }
    }

    pub(super) fn of(demand: &Demand<'a>, config: &PlanConfig) -> Pools<'a> {
        match config.admission {
            Admission::Slots => Pools::unbounded(),
            Admission::Tokens { kv_tokens } => Pools { prefixes: demand.prefix_tokens, kv_tokens },
        }
    }

    /// The KV tokens of each shard.
    pub(super) fn room(&self, fleet: &Fleet) -> Vec<f64> {
        // A shard that is down has nothing, also where there is no end.
        fleet.speeds().iter().map(|&speed| if speed > 0.0 { speed * self.kv_tokens } else { 0.0 }).collect()
    }

    /// The KV tokens of one copy of a key.
    pub(super) fn size(&self, key: u32) -> f64 {
        self.prefixes.map_or(0.0, |prefixes| prefixes[key as usize] as f64)
    }
}

/// Parcels and the shards of each.
struct Packed {
    places: Vec<(Parcel, ShardSet)>,
    won: f64,
}

/// Admits and places.
pub(super) fn pack(
    ranked: Vec<Ranked>,
    demand: &Demand<'_>,
    config: &PlanConfig,
    kv_tokens: f64,
) -> Result<(Admitted, Placed), PlanError> {
    let fleet = &config.fleet;
    let total = demand.other_rate + ranked.iter().map(|item| item.rate).sum::<f64>();
    let pools = Pools { prefixes: demand.prefix_tokens, kv_tokens };
    let mut parcels = parcels(ranked, demand, config)?;
    let budget = fleet.total_speed() * kv_tokens;
    let bound = fractional_bound(&parcels, budget);
    let mut packed = greedy(&parcels, demand, fleet, &pools);
    if packed.places.len() < parcels.len() {
        parcels.sort_by(|a, b| b.value.total_cmp(&a.value));
        let other = greedy(&parcels, demand, fleet, &pools);
        if other.won > packed.won {
            packed = other;
        }
    }
    let mut places = packed.places;
    places.sort_by(|(a, _), (b, _)| {
        let weights = (demand.weight(a.item.key), demand.weight(b.item.key));
        weights.1.total_cmp(&weights.0).then(a.item.key.cmp(&b.item.key))
    });
    let admitted_rate: f64 = places.iter().map(|(parcel, _)| parcel.item.rate).sum();
    let used = places.iter().map(|(parcel, _)| parcel.size).sum();
    let mut admitted = Admitted {
        keys: places.iter().map(|(parcel, _)| parcel.item).collect(),
        copies: places.iter().map(|(parcel, _)| parcel.copies).collect(),
        admitted_rate,
        cold_rate: (total - admitted_rate).max(0.0),
        cold_weight: 0.0,
        tokens: Some(TokenBudget { budget, used, won: packed.won, bound }),
    };
    admitted.weigh(demand);
    let mut loads = Loads::cold(fleet, admitted.cold_weight);
    let mut members = Vec::new();
    for (item, (_, shards)) in admitted.keys.iter().zip(&places) {
        shards.iter().for_each(|shard| loads.add(shard.0, item.rate / shards.len() as f64));
        members.extend_from_slice(shards);
    }
    let placed = Placed { members, loads: loads.into_inner() };
    Ok(match config.placement {
        Placement::LptRefine => {
            let refined = refine::refine(placed, &admitted, fleet, &pools);
            (admitted, refined)
        }
        _ => (admitted, placed),
    })
}

/// Places the parcels in their order, each on the least-loaded shards that have room, ties to the lowest id.
fn greedy(parcels: &[Parcel], demand: &Demand<'_>, fleet: &Fleet, pools: &Pools<'_>) -> Packed {
    let speeds = fleet.speeds();
    let mut room = pools.room(fleet);
    let mut relative = vec![0.0f64; speeds.len()];
    let mut packed = Packed { places: Vec::new(), won: 0.0 };
    let mut free: Vec<u32> = Vec::new();
    for parcel in parcels {
        let size = pools.size(parcel.item.key);
        let copies = parcel.copies as usize;
        free.clear();
        free.extend(
            (0..speeds.len() as u32)
                .filter(|&shard| speeds[shard as usize] > 0.0 && room[shard as usize] >= size),
        );
        if free.len() < copies {
            continue;
        }
        let by_load =
            |a: &u32, b: &u32| relative[*a as usize].total_cmp(&relative[*b as usize]).then(a.cmp(b));
        if copies < free.len() {
            free.select_nth_unstable_by(copies - 1, by_load);
        }
        let mut shards: ShardSet = free[..copies].iter().map(|&shard| ShardId(shard)).collect();
        shards.sort_unstable();
        let share = demand.weight(parcel.item.key) / copies as f64;
        for shard in &shards {
            room[shard.index()] -= size;
            relative[shard.index()] += share / speeds[shard.index()];
        }
        packed.won += parcel.value;
        packed.places.push((*parcel, shards));
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::super::plan_demand;
    use super::*;
    use proptest::prelude::*;

    /// The most that any choice of keys and places wins: every key is left out, or on any set of shards of its copies.
    fn optimum(parcels: &[(f64, f64, usize)], room: &mut [f64]) -> f64 {
        let Some((&(value, size, copies), rest)) = parcels.split_first() else { return 0.0 };
        let mut best = optimum(rest, room);
        for set in 0u32..1 << room.len() {
            let members: Vec<usize> = (0..room.len()).filter(|shard| set >> shard & 1 == 1).collect();
            if members.len() == copies && members.iter().all(|&shard| room[shard] >= size) {
                members.iter().for_each(|&shard| room[shard] -= size);
                best = best.max(value + optimum(rest, room));
                members.iter().for_each(|&shard| room[shard] += size);
            }
        }
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Against every choice: no pool is overfilled, the bound holds, and what is won is never far from the optimum.
        #[test]
        fn every_pool_holds_what_it_is_given(
            keys in proptest::collection::vec((1u32..50, 1u64..40), 0..6),
            speeds in proptest::collection::vec(prop_oneof![Just(1.0), Just(0.5), Just(2.0)], 1..4),
            kv_tokens in 0.0..60.0f64,
            refine in any::<bool>(),
        ) {
            let rates: Vec<f64> = keys.iter().map(|&(rate, _)| f64::from(rate)).collect();
            let prefixes: Vec<u64> = keys.iter().map(|&(_, prefix)| prefix).collect();
            let mut config = PlanConfig::for_fleet(Fleet::with_speeds(speeds.clone()), 30.0, 0.0);
            config.admission = Admission::Tokens { kv_tokens };
            config.placement = if refine { Placement::LptRefine } else { Placement::Lpt };
            let demand = Demand { prefix_tokens: Some(&prefixes), ..Demand::of_rates(&rates) };
            let plan = plan_demand(&demand, &config).expect("is valid");
            let mut room: Vec<f64> = speeds.iter().map(|speed| speed * kv_tokens).collect();
            let parcels: Vec<(f64, f64, usize)> = keys
                .iter()
                .map(|&(rate, prefix)| {
                    let copies = super::super::copies(f64::from(rate), 30.0, speeds.len() as u32) as usize;
                    (f64::from(rate) * prefix as f64, prefix as f64, copies)
                })
                .collect();
            let best = optimum(&parcels, &mut room);
            for (key, shards) in plan.placements() {
                prop_assert_eq!(shards.len(), parcels[key].2);
                shards.iter().for_each(|shard| room[shard.index()] -= prefixes[key] as f64);
            }
            prop_assert!(room.iter().all(|&room| room >= -1e-9), "{room:?}");
            let tokens = plan.tokens().expect("are counted");
            prop_assert!(tokens.won <= best + 1e-9 && tokens.bound >= best - 1e-9);
            prop_assert!(tokens.won >= best / 3.0 - 1e-9, "{tokens:?} against {best}");
            let planned: f64 = plan.loads().iter().sum();
            prop_assert!((planned - rates.iter().sum::<f64>()).abs() < 1e-9);
        }
    }

    /// A tiny dense prefix on each shard would keep both large ones out, which win far more.
    #[test]
    fn small_dense_prefixes_do_not_keep_large_ones_out() {
        let (rates, prefixes) = ([10.0, 10.0, 9.0, 9.0], [1, 1, 100, 100]);
        let mut config = PlanConfig::new(2, 100.0, 0.0);
        config.admission = Admission::Tokens { kv_tokens: 100.0 };
        let demand = Demand { prefix_tokens: Some(&prefixes), ..Demand::of_rates(&rates) };
        let plan = plan_demand(&demand, &config).expect("is valid");
        let keys: Vec<usize> = plan.placements().map(|(key, _)| key).collect();
        assert_eq!(keys, [2, 3]);
    }
}
