//! A placement that can be changed: who is where, and what moves would lower the highest load.

use crate::table::ShardSet;
use cr_trace::ShardId;

/// The least-loaded shards that a search looks at as targets; others are worse, and looking at all of a thousand shards
/// buys nothing.
const TARGETS: usize = 8;

/// An improvement smaller than this part of the load is rounding.
const LEAST_GAIN: f64 = 1e-9;

/// One copy of an item on a shard.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    share: f64,
    item: u32,
}

/// A placement of items on shards. Loads compare by load / speed.
#[derive(Clone, Debug)]
pub(super) struct Board {
    speeds: Vec<f64>,
    loads: Vec<f64>,
    /// What each shard holds, by decreasing share.
    held: Vec<Vec<Held>>,
    /// Where each item is, ascending.
    places: Vec<ShardSet>,
    weights: Vec<f64>,
    /// KV tokens that a copy of each item takes.
    sizes: Vec<f64>,
    /// KV tokens that are left on each shard; infinite where they do not count.
    room: Vec<f64>,
}

/// A change of the placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    from: usize,
    to: usize,
    /// The item that goes.
    item: u32,
    /// The item that comes in exchange.
    back: Option<u32>,
    /// By how much the higher of the two relative loads falls.
    gain: f64,
}

impl Step {
    /// Which item goes from where to where.
    pub(super) fn transfers(&self) -> impl Iterator<Item = (u32, ShardId, ShardId)> {
        let (from, to) = (ShardId(self.from as u32), ShardId(self.to as u32));
        [Some((self.item, from, to)), self.back.map(|item| (item, to, from))].into_iter().flatten()
    }

    /// The fall of the highest relative load.
    pub(super) fn gain(&self) -> f64 {
        self.gain
    }
}

impl Board {
    /// Shards of these speeds with these loads beside the items.
    pub(super) fn new(speeds: &[f64], base: Vec<f64>) -> Board {
        Board {
            speeds: speeds.to_vec(),
            held: vec![Vec::new(); base.len()],
            loads: base,
            places: Vec::new(),
            weights: Vec::new(),
            sizes: Vec::new(),
            room: vec![f64::INFINITY; speeds.len()],
        }
    }

    /// Bounds the KV tokens of what each shard holds.
    pub(super) fn with_room(mut self, room: Vec<f64>) -> Board {
        self.room = room;
        self
    }

    /// Adds an item of this weight, split evenly, and of this many KV tokens a copy, on these distinct shards. Returns its
    /// number, from 0.
    pub(super) fn add(&mut self, weight: f64, size: f64, shards: ShardSet) -> u32 {
        let item = self.places.len() as u32;
        self.places.push(ShardSet::new());
        self.weights.push(weight);
        self.sizes.push(size);
        self.set(item, shards);
        item
    }

    /// Puts an item on other distinct shards, split evenly; on none to take it out.
    pub(super) fn set(&mut self, item: u32, mut shards: ShardSet) {
        let old = std::mem::take(&mut self.places[item as usize]);
        let old_share = self.weights[item as usize] / old.len().max(1) as f64;
        for shard in &old {
            self.remove(shard.index(), Held { share: old_share, item });
        }
        shards.sort_unstable();
        let share = self.weights[item as usize] / shards.len().max(1) as f64;
        for shard in &shards {
            self.insert(shard.index(), Held { share, item });
        }
        self.places[item as usize] = shards;
    }

    fn position(&self, shard: usize, held: Held) -> Result<usize, usize> {
        self.held[shard]
            .binary_search_by(|other| held.share.total_cmp(&other.share).then(other.item.cmp(&held.item)))
    }

    fn insert(&mut self, shard: usize, held: Held) {
        let at = self.position(shard, held).unwrap_or_else(|at| at);
        self.held[shard].insert(at, held);
        self.loads[shard] += held.share;
        self.room[shard] -= self.sizes[held.item as usize];
    }

    fn remove(&mut self, shard: usize, held: Held) {
        if let Ok(at) = self.position(shard, held) {
            self.held[shard].remove(at);
            self.loads[shard] -= held.share;
            self.room[shard] += self.sizes[held.item as usize];
        }
    }

    /// Where an item is, ascending.
    pub(super) fn places(&self, item: u32) -> &ShardSet {
        &self.places[item as usize]
    }

    /// The load of each shard.
    pub(super) fn loads(&self) -> &[f64] {
        &self.loads
    }

    /// Load / speed; infinite where the shard is down.
    pub(super) fn relative(&self, shard: usize) -> f64 {
        if self.speeds[shard] > 0.0 { self.loads[shard] / self.speeds[shard] } else { f64::INFINITY }
    }

    /// The shards that are up, the least loaded first.
    pub(super) fn idlest(&self) -> Vec<usize> {
        let mut up: Vec<usize> = (0..self.loads.len()).filter(|&shard| self.speeds[shard] > 0.0).collect();
        up.sort_by(|&a, &b| self.relative(a).total_cmp(&self.relative(b)).then(a.cmp(&b)));
        up
    }

    /// How uneven the loads are, see [`super::imbalance`].
    pub(super) fn imbalance(&self) -> f64 {
        super::imbalance(&self.loads, &self.speeds)
    }

    /// The step that lowers the highest relative load most, among moves (and exchanges) between the most loaded shard
    /// and the least loaded ones; `None` where none lowers it.
    pub(super) fn best_step(&self, exchanges: bool) -> Option<Step> {
        let order = self.idlest();
        let (&from, others) = order.split_last()?;
        let targets = || others.iter().take(TARGETS).copied();
        let moves = targets().filter_map(|to| self.best_move(from, to));
        let best = moves.max_by(|a, b| a.gain.total_cmp(&b.gain));
        if best.is_some() || !exchanges {
            return best;
        }
        targets().filter_map(|to| self.best_exchange(from, to)).max_by(|a, b| a.gain.total_cmp(&b.gain))
    }

    /// Carries a step out.
    pub(super) fn apply(&mut self, step: &Step) {
        let other = |item: u32, out: usize, into: usize| -> ShardSet {
            let into = ShardId(into as u32);
            self.places[item as usize].iter().map(|&at| if at.index() == out { into } else { at }).collect()
        };
        let going = other(step.item, step.from, step.to);
        let coming = step.back.map(|item| (item, other(item, step.to, step.from)));
        self.set(step.item, going);
        if let Some((item, shards)) = coming {
            self.set(item, shards);
        }
    }

    /// The amount whose move from one shard to another makes them equal.
    fn ideal(&self, from: usize, to: usize) -> f64 {
        (self.relative(from) - self.relative(to)) / (1.0 / self.speeds[from] + 1.0 / self.speeds[to])
    }

    /// How far the higher load of the two falls when this amount moves; `None` where it does not.
    fn gain(&self, from: usize, to: usize, amount: f64) -> Option<f64> {
        let before = self.relative(from);
        let after = ((self.loads[from] - amount) / self.speeds[from])
            .max((self.loads[to] + amount) / self.speeds[to]);
        let gain = before - after;
        (gain > LEAST_GAIN * before).then_some(gain)
    }

    /// Whether a shard has room for one more copy of the item.
    pub(super) fn fits(&self, item: u32, shard: usize) -> bool {
        self.sizes[item as usize] <= self.room[shard]
    }

    /// Whether two shards have room for the one's item in exchange for the other's.
    fn fit_exchanged(&self, item: u32, to: usize, back: u32, from: usize) -> bool {
        let more = self.sizes[item as usize] - self.sizes[back as usize];
        more <= self.room[to] && -more <= self.room[from]
    }

    /// The item of the least share on a shard that holds more than it has room for.
    pub(super) fn overflow(&self, shard: usize) -> Option<u32> {
        // Sums of fractions of a pool may end a hair below zero.
        if self.room[shard] >= -1e-6 {
            return None;
        }
        self.held[shard].last().map(|held| held.item)
    }

    fn is_on(&self, item: u32, shard: usize) -> bool {
        self.places[item as usize].iter().any(|at| at.index() == shard)
    }

    fn best_move(&self, from: usize, to: usize) -> Option<Step> {
        let ideal = self.ideal(from, to);
        let held = &self.held[from];
        let split = held.partition_point(|copy| copy.share > ideal);
        // The nearest share on each side of the ideal that is not on the target already and fits there.
        let free = |copy: &&Held| !self.is_on(copy.item, to) && self.fits(copy.item, to);
        let larger = held[..split].iter().rev().find(free);
        let smaller = held[split..].iter().find(free);
        larger
            .into_iter()
            .chain(smaller)
            .filter_map(|copy| {
                let gain = self.gain(from, to, copy.share)?;
                Some(Step { from, to, item: copy.item, back: None, gain })
            })
            .max_by(|a, b| a.gain.total_cmp(&b.gain))
    }

    fn best_exchange(&self, from: usize, to: usize) -> Option<Step> {
        let ideal = self.ideal(from, to);
        let others = &self.held[to];
        let mut best: Option<Step> = None;
        let mut at = 0;
        for copy in &self.held[from] {
            if self.is_on(copy.item, to) {
                continue;
            }
            // Both lists fall, so the partner of the ideal difference only moves on.
            while at + 1 < others.len() && copy.share - others[at].share < ideal {
                at += 1;
            }
            for other in &others[at.saturating_sub(1)..(at + 1).min(others.len())] {
                if self.is_on(other.item, from) || !self.fit_exchanged(copy.item, to, other.item, from) {
                    continue;
                }
                if let Some(gain) = self.gain(from, to, copy.share - other.share)
                    && best.as_ref().is_none_or(|best| gain > best.gain)
                {
                    best = Some(Step { from, to, item: copy.item, back: Some(other.item), gain });
                }
            }
        }
        best
    }
}
