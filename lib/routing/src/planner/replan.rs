//! Replanning that keeps what it can: every moved prefix has to be computed anew on its new shard.
//!
//! A plain replan after a small drift moves nearly everything, because LPT cares for loads and not for history. This one
//! starts from the previous table and makes only changes that pay, under a bound on churn, in this order:
//!
//! 1. what is forced: keys that are no longer asked for, shards that are down or gone, the least wanted keys where the
//!    budget of copies has shrunk, and the smallest shares of a shard whose pool of KV tokens they overfill;
//! 2. places that the plain plan wants and the table lacks (copies of keys over `q_cap`, new keys), by decreasing rate, in
//!    exchange for places that it no longer wants; at most half of the bound, so that balance gets its share;
//! 3. moves and exchanges that lower the highest load most, until it is about that of the plain plan;
//! 4. the rest of 2.

use super::board::Board;
use super::churn::{TableDiff, churn};
use super::pools::Pools;
use super::{Demand, Plan, PlanConfig, PlanError, TableOptions};
use crate::rates::KeyRates;
use crate::table::{RoutingTable, ShardSet};
use cr_trace::ShardId;

/// Balance is good enough at this many times the plain plan's imbalance.
const NEAR_PLAIN: f64 = 1.01;

/// What moves may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChurnLimits {
    /// Bound on 1 − Jaccard of the (key, shard) pairs, from 0 to 1. Forced changes may exceed it.
    pub max_churn: Option<f64>,
    /// A move must lower the highest load by this much (in requests per second, or seconds of prefill per second where
    /// work is balanced) for every token that has to be computed anew; one token where prefixes are not known.
    pub move_cost: Option<f64>,
}

/// What a replan did.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplanReport {
    /// Against the previous table.
    pub diff: TableDiff,
    /// Of the previous places under the new rates, after forced changes.
    pub imbalance_before: f64,
    /// Of the new table.
    pub imbalance_after: f64,
    /// Of the plain plan, which owes nothing to the past.
    pub imbalance_plain: f64,
    /// How much the plain plan would have moved.
    pub churn_plain: f64,
}

/// Plans anew from a previous table.
///
/// # Errors
/// As [`super::plan_demand`].
pub fn replan(
    previous: &RoutingTable,
    rates: &KeyRates,
    demand: &Demand<'_>,
    config: &PlanConfig,
    limits: &ChurnLimits,
    options: &TableOptions,
) -> Result<(RoutingTable, ReplanReport), PlanError> {
    let plain = super::plan_demand(demand, config)?;
    let plain_imbalance = plain.work_imbalance().unwrap_or_else(|| plain.imbalance());
    let mut state = Replan::start(previous, rates, demand, config, &plain);
    let imbalance_before = state.board.imbalance();
    let max_churn = limits.max_churn.unwrap_or(1.0);
    state.fill(max_churn / 2.0);
    state.balance(max_churn, limits, plain_imbalance * NEAR_PLAIN, demand);
    state.fill(max_churn);
    let plan = Plan::of_places(config, demand, state.places());
    let report_imbalance = plan.work_imbalance().unwrap_or_else(|| plan.imbalance());
    let plain = plain.to_table(rates.keys(), options)?;
    let table = plan.into_table(rates, options)?;
    let mut diff = TableDiff::between(previous, &table);
    if let Some(prefixes) = rates.prefix_tokens() {
        // The table may leave them out; the rates know.
        diff.rewarm_tokens = Some(rewarm_tokens(previous, &table, rates, prefixes));
    }
    let report = ReplanReport {
        diff,
        imbalance_before,
        imbalance_after: report_imbalance,
        imbalance_plain: plain_imbalance,
        churn_plain: TableDiff::between(previous, &plain).churn(),
    };
    Ok((table, report))
}

/// Σ prefix over the pairs that only the new table has.
fn rewarm_tokens(previous: &RoutingTable, table: &RoutingTable, rates: &KeyRates, prefixes: &[u64]) -> u64 {
    let new_pairs = |key: &str| {
        let before = previous.shards_of(key).unwrap_or_default();
        table.shards_of(key).unwrap_or_default().iter().filter(|shard| !before.contains(shard)).count() as u64
    };
    rates.keys().iter().zip(prefixes).map(|(key, prefix)| new_pairs(key) * prefix).sum()
}

/// One key on the board: of the previous table, of the plain plan, or of both.
struct Item<'a> {
    key: u32,
    /// Its shards in the previous table.
    before: &'a [ShardId],
    /// Copies that the plain plan gives it; 0 where it does not admit it.
    wanted: usize,
}

struct Replan<'a> {
    board: Board,
    /// In order of decreasing rate.
    items: Vec<Item<'a>>,
    capacity: f64,
    pairs_before: u64,
    pairs: u64,
    kept: u64,
    /// Items that may have to give way, the next one at the end: surplus copies last, since they go first.
    victims: Vec<u32>,
}

impl<'a> Replan<'a> {
    /// The previous places under the new rates, forced changes made.
    fn start(
        previous: &'a RoutingTable,
        rates: &'a KeyRates,
        demand: &Demand<'_>,
        config: &PlanConfig,
        plain: &Plan,
    ) -> Replan<'a> {
        let mut wanted = vec![0usize; demand.rates.len()];
        plain.placements().for_each(|(key, shards)| wanted[key] = shards.len());
        let mut items: Vec<Item<'a>> = (0..demand.rates.len())
            .filter(|&key| demand.rates[key] > 0.0)
            .map(|key| Item {
                key: key as u32,
                before: previous.shards_of(&rates.keys()[key]).unwrap_or_default(),
                wanted: wanted[key],
            })
            .filter(|item| item.wanted > 0 || !item.before.is_empty())
            .collect();
        items.sort_by(|a, b| demand.rates[b.key as usize].total_cmp(&demand.rates[a.key as usize]));
        let speeds = config.fleet.speeds();
        let lives = |shard: &&ShardId| speeds.get(shard.index()).is_some_and(|&speed| speed > 0.0);
        let pools = Pools::of(demand, config);
        let mut board = Board::new(speeds, plain.cold_loads()).with_room(pools.room(&config.fleet));
        for item in &items {
            let before = item.before.iter().filter(lives).copied().collect();
            board.add(demand.weight(item.key), pools.size(item.key), before);
        }
        let pairs = (0..items.len() as u32).map(|item| board.places(item).len() as u64).sum();
        let pairs_before = previous.places().map(|(_, shards)| shards.len() as u64).sum();
        let mut state = Replan {
            board,
            items,
            capacity: plain.copies_allowed(),
            pairs_before,
            pairs,
            kept: pairs,
            victims: Vec::new(),
        };
        (0..speeds.len()).for_each(|shard| state.relieve(shard));
        state.victims = state.find_victims();
        while state.pairs as f64 > state.capacity && state.evict_one() {}
        state
    }

    /// Takes the smallest shares off a shard whose pool they overfill: prefixes have grown, or the pool has shrunk.
    fn relieve(&mut self, shard: usize) {
        while let Some(item) = self.board.overflow(shard) {
            let (gone, mut shards) = (ShardId(shard as u32), self.board.places(item).clone());
            shards.retain(|at| *at != gone);
            self.pairs -= 1;
            self.kept -= u64::from(self.items[item as usize].before.contains(&gone));
            self.board.set(item, shards);
        }
    }

    /// Unwanted keys by increasing rate, then surplus copies: popped from the end. Then, for a budget that shrank below
    /// what is wanted, nothing: wanted places fit the budget by themselves.
    fn find_victims(&self) -> Vec<u32> {
        let surplus = |&item: &u32| {
            let item_ref = &self.items[item as usize];
            item_ref.wanted > 0 && self.board.places(item).len() > item_ref.wanted
        };
        let unwanted =
            |&item: &u32| self.items[item as usize].wanted == 0 && !self.board.places(item).is_empty();
        let all = || 0..self.items.len() as u32;
        // Items fall in rate, so the last unwanted one is the first to go.
        all().filter(unwanted).chain(all().filter(surplus)).collect()
    }

    /// Takes one place away from the next victim; false where nobody has to give way.
    fn evict_one(&mut self) -> bool {
        let Some(&victim) = self.victims.last() else { return false };
        let wanted = self.items[victim as usize].wanted;
        let mut shards = self.board.places(victim).clone();
        // The copy on the most loaded shard goes.
        let most = (0..shards.len()).max_by(|&a, &b| {
            self.board.relative(shards[a].index()).total_cmp(&self.board.relative(shards[b].index()))
        });
        let Some(most) = most else { return false };
        let gone = shards.remove(most);
        if shards.len() <= wanted {
            self.victims.pop();
        }
        self.pairs -= 1;
        self.kept -= u64::from(self.items[victim as usize].before.contains(&gone));
        self.board.set(victim, shards);
        true
    }

    fn churn_after(&self, pairs: u64, kept: u64) -> f64 {
        churn(self.pairs_before, pairs, kept)
    }

    /// Gives wanted places, by decreasing rate, while the churn stays within the bound.
    fn fill(&mut self, max_churn: f64) {
        for item in 0..self.items.len() as u32 {
            let lacking = self.items[item as usize].wanted.saturating_sub(self.board.places(item).len());
            for _ in 0..lacking {
                let evictions = u64::from((self.pairs + 1) as f64 > self.capacity);
                // The worst case: the place given up was one that is kept so far.
                if self.churn_after(self.pairs + 1 - evictions, self.kept - evictions.min(self.kept))
                    > max_churn
                {
                    return;
                }
                if evictions > 0 && !self.evict_one() {
                    return;
                }
                self.give_one(item);
            }
        }
    }

    /// Puts one more copy on the least-loaded shard that has none and has room for it.
    fn give_one(&mut self, item: u32) {
        let mut shards: ShardSet = self.board.places(item).clone();
        let free =
            |shard: &&usize| !shards.iter().any(|at| at.index() == **shard) && self.board.fits(item, **shard);
        let Some(&shard) = self.board.idlest().iter().find(free) else { return };
        let shard = ShardId(shard as u32);
        self.pairs += 1;
        self.kept += u64::from(self.items[item as usize].before.contains(&shard));
        shards.push(shard);
        self.board.set(item, shards);
    }

    /// Lowers the highest load while it pays and the churn stays within the bound.
    fn balance(&mut self, max_churn: f64, limits: &ChurnLimits, enough: f64, demand: &Demand<'_>) {
        while self.board.imbalance() > enough {
            let Some(step) = self.board.best_step(true) else { return };
            let mut kept = self.kept as i64;
            let mut tokens = 0;
            for (item, from, to) in step.transfers() {
                let before = self.items[item as usize].before;
                kept += i64::from(before.contains(&to)) - i64::from(before.contains(&from));
                tokens +=
                    demand.prefix_tokens.map_or(1, |all| all[self.items[item as usize].key as usize].max(1));
            }
            let kept = kept.max(0) as u64;
            let pays = limits.move_cost.is_none_or(|cost| step.gain() >= cost * tokens as f64);
            if !pays || self.churn_after(self.pairs, kept) > max_churn {
                return;
            }
            self.kept = kept;
            self.board.apply(&step);
        }
    }

    /// Keys and their shards, by decreasing rate.
    fn places(&self) -> Vec<(u32, ShardSet)> {
        (0..self.items.len() as u32)
            .map(|item| (self.items[item as usize].key, self.board.places(item).clone()))
            .filter(|(_, shards)| !shards.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Fleet, plan_table};
    use super::*;
    use cr_trace::{Key, stream};
    use proptest::prelude::*;
    use rand_distr::{Distribution, LogNormal};

    fn named(rates: &[f64]) -> KeyRates {
        rates.iter().enumerate().map(|(n, &rate)| (Key::from(format!("k{n}")), rate)).collect()
    }

    fn replanned(
        previous: &RoutingTable,
        rates: &KeyRates,
        config: &PlanConfig,
        limits: ChurnLimits,
    ) -> (RoutingTable, ReplanReport) {
        replan(previous, rates, &Demand::of_keys(rates), config, &limits, &TableOptions::default())
            .expect("is valid")
    }

    /// The paper's drift: rates walk by a lognormal factor of σ 0.3. A plain replan moves nearly everything.
    #[test]
    fn a_lognormal_walk_is_followed_with_little_churn() {
        let keys = 10_000;
        let mut rng = stream(42, "test");
        let draw = LogNormal::new(0.0, 1.648).expect("is a distribution");
        let walk = LogNormal::new(0.0, 0.3).expect("is a distribution");
        let before: Vec<f64> = (0..keys).map(|_| draw.sample(&mut rng)).collect();
        let after: Vec<f64> = before.iter().map(|rate| rate * walk.sample(&mut rng)).collect();
        for warm_slots in [1_000.0, 20.0] {
            let config = PlanConfig::new(30, 100.0, warm_slots);
            let options = TableOptions::default();
            let previous = plan_table(&named(&before), &config, &options).expect("is valid");
            let limits = ChurnLimits { max_churn: Some(0.05), ..ChurnLimits::default() };
            let (table, report) = replanned(&previous, &named(&after), &config, limits);
            assert!(report.churn_plain > 0.9, "{report:?}");
            assert!(report.diff.churn() <= 0.05, "churn {}", report.diff.churn());
            assert!(
                report.imbalance_after <= 1.05 * report.imbalance_plain
                    && report.imbalance_after <= report.imbalance_before,
                "{} -> {}, plain {}",
                report.imbalance_before,
                report.imbalance_after,
                report.imbalance_plain
            );
            assert!(table.admitted_keys() as f64 <= config.capacity());
        }
    }

    #[test]
    fn without_a_bound_it_still_keeps_what_need_not_move() {
        let config = PlanConfig::new(4, 10.0, 20.0);
        let rates = named(&[8.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        let previous = plan_table(&rates, &config, &TableOptions::default()).expect("is valid");
        let (table, report) = replanned(&previous, &rates, &config, ChurnLimits::default());
        assert_eq!((table, report.diff.churn()), (previous, 0.0));
    }

    #[test]
    fn a_dead_shard_is_left_and_a_new_whale_gets_its_copies() {
        let mut rates = vec![5.0; 12];
        let config = PlanConfig::new(3, 10.0, 20.0);
        let previous = plan_table(&named(&rates), &config, &TableOptions::default()).expect("is valid");
        rates[7] = 25.0;
        let config = PlanConfig::for_fleet(Fleet::with_speeds(vec![1.0, 0.0, 1.0]), 10.0, 20.0);
        let (table, _) = replanned(&previous, &named(&rates), &config, ChurnLimits::default());
        assert_eq!(table.admitted_keys(), 12);
        assert!(table.places().all(|(_, shards)| !shards.contains(&ShardId(1))));
        assert_eq!(table.shards_of("k7"), Some([ShardId(0), ShardId(2)].as_slice()));
    }

    #[test]
    fn a_move_that_costs_more_than_it_brings_is_not_made() {
        let config = PlanConfig::new(2, 100.0, 20.0);
        let previous =
            plan_table(&named(&[4.0, 4.0, 1.0, 1.0]), &config, &TableOptions::default()).expect("is valid");
        let drifted = named(&[6.0, 4.0, 2.0, 1.0]);
        let (_, free) = replanned(&previous, &drifted, &config, ChurnLimits::default());
        assert!(free.diff.churn() > 0.0 && free.imbalance_after < free.imbalance_before);
        let dear = ChurnLimits { move_cost: Some(100.0), ..ChurnLimits::default() };
        let (table, kept) = replanned(&previous, &drifted, &config, dear);
        assert_eq!(kept.diff.churn(), 0.0);
        assert!(table.places().eq(previous.places()));
    }

    proptest! {
        #[test]
        fn a_replan_is_a_valid_plan_within_its_bound(
            before in proptest::collection::vec(0u32..40, 1..40),
            after in proptest::collection::vec(0u32..40, 1..40),
            shards in 1u32..6,
            slots in 0.0..8.0f64,
            max_churn in 0.0..1.0f64,
        ) {
            let as_rates = |list: &[u32]| named(&list.iter().map(|&n| f64::from(n)).collect::<Vec<_>>());
            let config = PlanConfig::new(shards, 15.0, slots);
            let previous = plan_table(&as_rates(&before), &config, &TableOptions::default()).expect("is valid");
            let rates = as_rates(&after);
            let limits = ChurnLimits { max_churn: Some(max_churn), move_cost: None };
            let (table, report) = replanned(&previous, &rates, &config, limits);
            let pairs: usize = table.places().map(|(_, shards)| shards.len()).sum();
            prop_assert!(pairs as f64 <= config.capacity());
            for (key, _) in table.places() {
                let at: usize = key[1..].parse().expect("is a number");
                prop_assert!(rates.rates()[at] > 0.0);
            }
            // Forced: keys no longer asked for.
            let alive = |key: &str| key[1..].parse().is_ok_and(|at: usize| rates.rates().get(at).is_some_and(|&rate| rate > 0.0));
            let forced = previous.places().any(|(key, _)| !alive(key));
            prop_assert!(forced || report.diff.churn() <= max_churn + 1e-12, "{report:?}");
            let total: f64 = rates.rates().iter().sum();
            let planned: f64 = table.meta().expected_load.iter().sum();
            prop_assert!((planned - total).abs() <= 1e-9 * total.max(1.0));
        }
    }
}
