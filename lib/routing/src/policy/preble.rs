//! `preble`: exploit a cached prefix where more is cached than missed, else explore by cost (E2).
//!
//! Rule: let the longest match of the prompt over all shards that are up be c tokens of p. If c > p − c, take the cheapest
//! among the holders of that match; if that one is overloaded, take the least loaded instead. Otherwise take the shard of the
//! least L + M + P, where for each shard
//!
//! * L = Σ over its requests of the last 3 minutes of prefill(missed) + decode(average output),
//! * M = Σ over what it would evict of prefill(it) × its hit rate (times sent / requests of the last 3 minutes),
//! * P = prefill(missed here).
//!
//! Load is L. Overloaded is, by [`Redirect`], the most loaded shard above 1.5 × the least (as Preble rebalances: the default), any shard
//! above 1.5 × the least, or any above 1.5 × the mean (a load cap); CacheRoute's paper states the factor and not the rule. costs are seconds of the cost model, the decode of a token its marginal cost beside other sequences; the
//! average output is 45 tokens until requests have finished. Ties at random. Prefixes are those of the router's own index.
//! Source: Preble, arXiv 2407.00023. A lone hot prefix is served by few shards until the 1.5 rule redirects it.

use super::index::PrefixIndex;
use super::{Departure, Policy, PolicyTuning, choose};
use crate::view::FleetView;
use cr_cost::{CostModel, StepWork};
use cr_trace::{Request, ShardId, Stream, Time};
use serde::{Deserialize, Serialize};

/// When the holder of a prefix gives its request to the least loaded shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Redirect {
    /// It is the most loaded of all, and its load is above the ratio times the least.
    #[default]
    Heaviest,
    /// Its load is above the ratio times the least.
    OverLeast,
    /// Its load is above the ratio times the mean.
    OverMean,
}

/// What the papers leave open of `preble`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrebleTuning {
    /// The history that loads look back on, in whole seconds from 1 to an hour; kept second by second.
    pub window_s: u32,
    /// The ratio of loads above which a holder gives way.
    pub load_ratio: f64,
    /// To what that ratio is held.
    pub redirect: Redirect,
}

impl Default for PrebleTuning {
    /// Three minutes, 1.5, and only the most loaded gives way.
    fn default() -> PrebleTuning {
        PrebleTuning { window_s: 180, load_ratio: 1.5, redirect: Redirect::Heaviest }
    }
}

/// A longer history is a slip of the keyboard: one hour.
pub(super) const MAX_WINDOW_S: u32 = 3_600;

/// Output tokens of a request, until some have finished.
const DEFAULT_OUTPUT: f64 = 45.0;

/// Sums over the window, second by second: memory does not grow with the requests.
#[derive(Clone, Debug)]
struct Recent {
    seconds: Vec<(f64, u32)>,
    /// The second that was last written or aged to.
    last: u64,
    cost_s: f64,
    requests: u32,
}

impl Recent {
    fn new(window_s: u32) -> Recent {
        Recent { seconds: vec![(0.0, 0); window_s.max(1) as usize], last: 0, cost_s: 0.0, requests: 0 }
    }

    /// Nothing, from this second on.
    fn clear(&mut self, second: u64) {
        self.seconds.fill((0.0, 0));
        (self.last, self.cost_s, self.requests) = (second, 0.0, 0);
    }

    /// Forgets what is older than the window, `second` seconds after the start.
    fn age(&mut self, second: u64) {
        if second <= self.last {
            return;
        }
        let window_s = self.seconds.len();
        if second - self.last >= window_s as u64 {
            self.clear(second);
            return;
        }
        for gone in self.last + 1..=second {
            let (cost_s, requests) = std::mem::take(&mut self.seconds[gone as usize % window_s]);
            self.cost_s -= cost_s;
            self.requests -= requests;
        }
        self.last = second;
        if self.requests == 0 {
            // Nothing left: rounding must not pile up.
            self.cost_s = 0.0;
        }
    }

    fn add(&mut self, cost_s: f64) {
        let window_s = self.seconds.len();
        let slot = &mut self.seconds[self.last as usize % window_s];
        slot.0 += cost_s;
        slot.1 += 1;
        self.cost_s += cost_s;
        self.requests += 1;
    }
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Preble {
    cost: CostModel,
    tuning: PrebleTuning,
    index: PrefixIndex,
    recent: Vec<Recent>,
    now: Time,
    /// The second that all of `recent` are aged to.
    aged: u64,
    finished: u64,
    output_tokens: u64,
    matched: Vec<u32>,
}

impl Preble {
    /// For this many shards.
    pub fn new(shards: u32, tuning: &PolicyTuning) -> Preble {
        Preble {
            cost: tuning.cost.clone(),
            tuning: tuning.preble,
            index: PrefixIndex::new(shards, tuning.kv_tokens),
            recent: vec![Recent::new(tuning.preble.window_s); shards as usize],
            now: Time::ZERO,
            aged: 0,
            finished: 0,
            output_tokens: 0,
            matched: Vec::new(),
        }
    }

    fn prefill_s(&self, new: u64, ctx: u64) -> f64 {
        self.cost.prefill(new, ctx).as_s()
    }

    /// The decode of an average answer after a prompt of this length.
    fn decode_s(&self, prompt: u64) -> f64 {
        let tokens = if self.finished == 0 {
            DEFAULT_OUTPUT
        } else {
            self.output_tokens as f64 / self.finished as f64
        };
        let mut work = StepWork::default();
        let base = self.cost.step(&work);
        work.add_decode(prompt);
        self.cost.step(&work).since(base).as_s() * tokens
    }

    fn load_s(&self, shard: ShardId) -> f64 {
        self.recent.get(shard.index()).map_or(0.0, |recent| recent.cost_s)
    }

    /// L + M + P of a shard that holds `cached` tokens of a prompt.
    fn cost_s(&self, shard: ShardId, prompt: u64, cached: u64) -> f64 {
        let missed = prompt - cached;
        let requests = f64::from(self.recent.get(shard.index()).map_or(0, |recent| recent.requests).max(1));
        let evicted: f64 = self
            .index
            .would_forget(shard, missed)
            .map(|gone| {
                self.prefill_s(u64::from(gone.tokens), 0) * (f64::from(gone.hits) / requests).min(1.0)
            })
            .sum();
        self.load_s(shard) + evicted + self.prefill_s(missed, cached)
    }

    /// The shard to serve a prompt, given what each holds of it.
    fn decide(
        &self,
        prompt: u64,
        matched: &[u32],
        view: &FleetView<'_>,
        rng: &mut Stream,
    ) -> Option<ShardId> {
        let up = || matched.iter().zip(view.shards).zip(0..).filter(|((_, shard), _)| shard.up);
        let cached = |shard: ShardId| u64::from(matched.get(shard.index()).copied().unwrap_or(0));
        let cost = |shard: ShardId| self.cost_s(shard, prompt, cached(shard));
        let &longest = up().map(|((matched, _), _)| matched).max()?;
        if u64::from(longest) <= prompt - u64::from(longest) {
            return choose::least_by(view.up(), cost, rng);
        }
        let holders = up().filter(|((matched, _), _)| **matched == longest);
        let holder = choose::least_by(holders.map(|(_, shard)| ShardId(shard)), cost, rng)?;
        if self.overloaded(holder, view) {
            return choose::least_by(view.up(), |shard| self.load_s(shard), rng);
        }
        Some(holder)
    }

    /// Whether a holder gives way.
    fn overloaded(&self, holder: ShardId, view: &FleetView<'_>) -> bool {
        let up = || self.recent.iter().zip(view.shards).filter(|(_, shard)| shard.up);
        let loads = || up().map(|(recent, _)| recent.cost_s);
        let (load, ratio) = (self.load_s(holder), self.tuning.load_ratio);
        let least = || loads().fold(f64::INFINITY, f64::min);
        match self.tuning.redirect {
            Redirect::Heaviest => load > ratio * least() && load == loads().fold(0.0, f64::max),
            Redirect::OverLeast => load > ratio * least(),
            Redirect::OverMean => load * loads().count() as f64 > ratio * loads().sum::<f64>(),
        }
    }
}

impl Policy for Preble {
    fn name(&self) -> &'static str {
        "preble"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let mut matched = std::mem::take(&mut self.matched);
        let outline = request.prompt.outline();
        self.index.matches(request, &mut matched);
        let prompt = outline.tokens();
        let second = self.now.as_s() as u64;
        if second > self.aged {
            self.recent.iter_mut().for_each(|recent| recent.age(second));
            self.aged = second;
        }
        let chosen = self.decide(prompt, &matched, view, rng);
        if let Some(shard) = chosen {
            let cached = u64::from(matched.get(shard.index()).copied().unwrap_or(0));
            let spent = self.prefill_s(prompt - cached, cached) + self.decode_s(prompt);
            if let Some(recent) = self.recent.get_mut(shard.index()) {
                recent.add(spent);
            }
            self.index.insert(request, shard);
        }
        self.matched = matched;
        chosen
    }

    fn on_arrival(&mut self, _request: &Request, now: Time) {
        self.now = self.now.max(now);
    }

    fn on_finish(&mut self, departure: &Departure<'_>) {
        // What ran out of time says nothing of how long answers are.
        if departure.finished {
            self.finished += 1;
            self.output_tokens += u64::from(departure.output_tokens);
        }
    }

    fn on_fault(&mut self, shard: ShardId, up: bool) {
        if !up {
            self.index.clear(shard);
            if let Some(recent) = self.recent.get_mut(shard.index()) {
                recent.clear(recent.last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle, view};
    use super::*;
    use cr_trace::stream;

    fn preble(loads: &[f64]) -> Preble {
        let mut policy = Preble::new(loads.len() as u32, &PolicyTuning::default());
        for (recent, &load) in policy.recent.iter_mut().zip(loads) {
            recent.add(load);
        }
        policy
    }

    fn decide(policy: &Preble, prompt: u64, matched: &[u32]) -> u32 {
        let fleet = idle(matched.len() as u32);
        policy.decide(prompt, matched, &view(&fleet), &mut stream(1, "policy")).expect("all are up").0
    }

    /// The rule table: what is cached where, how loaded each shard is, and who serves.
    #[test]
    fn the_rule_table() {
        // More cached than missed: the holder, though another is less loaded.
        assert_eq!(decide(&preble(&[1.4, 1.0, 1.0]), 100, &[60, 0, 0]), 0);
        // Among holders of the longest match the cheapest.
        assert_eq!(decide(&preble(&[1.2, 1.1, 1.0]), 100, &[60, 60, 0]), 1);
        // The longest match counts, not the cheapest of all matches.
        assert_eq!(decide(&preble(&[1.2, 1.0, 1.0]), 100, &[61, 60, 0]), 0);
        // Above 1.5 times the least load the most loaded gives way.
        assert_eq!(decide(&preble(&[1.6, 1.2, 1.0]), 100, &[60, 0, 0]), 2);
        // A holder that is not the most loaded keeps its requests whatever the imbalance.
        assert_eq!(decide(&preble(&[1.6, 9.0, 1.0]), 100, &[60, 0, 0]), 0);
        // No more cached than missed: by cost, where load outweighs a small match.
        assert_eq!(decide(&preble(&[1.4, 1.0, 1.2]), 100, &[50, 0, 0]), 1);
        // And where a match outweighs a small difference of load (2,000 tokens are some 0.16 s).
        assert_eq!(decide(&preble(&[1.1, 1.0, 1.0]), 5_000, &[2_000, 0, 0]), 0);
    }

    #[test]
    fn answers_that_were_cut_off_are_no_average() {
        let (mut policy, request) = (preble(&[0.0]), super::super::tests::request(1, "k"));
        let usual = policy.decode_s(100);
        let left = |output_tokens, finished| Departure {
            request: &request,
            shard: ShardId(0),
            at: Time::ZERO,
            output_tokens,
            finished,
        };
        policy.on_finish(&left(3, false));
        assert_eq!(policy.decode_s(100), usual);
        policy.on_finish(&left(90, true));
        assert!((policy.decode_s(100) / usual - 90.0 / DEFAULT_OUTPUT).abs() < 1e-9);
    }

    #[test]
    fn who_gives_way_is_a_choice() {
        let with = |redirect, loads: &[f64]| {
            let mut policy = preble(loads);
            policy.tuning.redirect = redirect;
            decide(&policy, 100, &[60, 0, 0])
        };
        // The holder is neither the most loaded nor above 1.5 times the mean, but 1.6 times the least.
        let loads = [1.6, 9.0, 1.0];
        assert_eq!(with(Redirect::Heaviest, &loads), 0);
        assert_eq!(with(Redirect::OverLeast, &loads), 2);
        assert_eq!(with(Redirect::OverMean, &loads), 0);
        // Above 1.5 times the mean of 2.
        assert_eq!(with(Redirect::OverMean, &[3.2, 1.8, 1.0]), 2);
        assert_eq!(with(Redirect::OverMean, &[2.9, 2.1, 1.0]), 0);
    }

    #[test]
    fn loads_are_forgotten_after_three_minutes() {
        let mut recent = Recent::new(PrebleTuning::default().window_s);
        recent.age(10);
        recent.add(2.0);
        recent.age(100);
        recent.add(1.0);
        recent.age(189);
        assert_eq!((recent.cost_s, recent.requests), (3.0, 2));
        recent.age(190);
        assert_eq!((recent.cost_s, recent.requests), (1.0, 1));
        recent.age(1_000);
        assert_eq!((recent.cost_s, recent.requests), (0.0, 0));
    }
}
