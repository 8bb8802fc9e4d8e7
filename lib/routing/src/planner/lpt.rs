//! Placement by longest processing time first.

use super::admission::Admitted;
use super::config::Fleet;
use super::tournament::{LoserTree, WinnerTree};
use cr_trace::ShardId;

/// Where the admitted keys are, in plan order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    /// The shards of all keys, one key after the other, ascending within each.
    pub(super) members: Vec<ShardId>,
    /// The planned load of each shard, cold tail included.
    pub(super) loads: Vec<f64>,
}

/// Loads, and how they compare: by load / speed. A shard that is down is infinitely loaded.
pub(super) struct Loads {
    loads: Vec<f64>,
    per_speed: Vec<f64>,
}

impl Loads {
    /// Every shard with its share of the cold tail, in proportion to its speed.
    pub(super) fn cold(fleet: &Fleet, cold_weight: f64) -> Loads {
        let total = fleet.total_speed();
        let loads = fleet.speeds().iter().map(|speed| cold_weight * speed / total).collect();
        Loads { loads, per_speed: fleet.speeds().iter().map(|speed| 1.0 / speed).collect() }
    }

    pub(super) fn add(&mut self, shard: u32, rate: f64) {
        self.loads[shard as usize] += rate;
    }

    pub(super) fn into_inner(self) -> Vec<f64> {
        self.loads
    }

    fn relative(&self, shard: u32) -> f64 {
        let per_speed = self.per_speed[shard as usize];
        if per_speed.is_finite() { self.loads[shard as usize] * per_speed } else { f64::INFINITY }
    }

    fn all_relative(&self) -> Vec<f64> {
        (0..self.loads.len() as u32).map(|shard| self.relative(shard)).collect()
    }
}

/// Places keys of decreasing weight on the least-loaded shards.
pub(super) fn place(admitted: &Admitted, fleet: &Fleet) -> Placed {
    let mut loads = Loads::cold(fleet, admitted.cold_weight);
    let total: usize = admitted.copies.iter().map(|&k| k as usize).sum();
    let mut members = Vec::with_capacity(total);
    // Copies fall with the rate: the hot head of several copies comes first, then a long tail of one copy each.
    let head = admitted.copies.iter().rposition(|&k| k > 1).map_or(0, |last| last + 1);
    let mut tree = WinnerTree::new(&loads.all_relative());
    for (item, &k) in admitted.keys.iter().zip(&admitted.copies).take(head) {
        let first = members.len();
        for _ in 0..k {
            let shard = tree.winner();
            loads.add(shard, item.rate / f64::from(k));
            members.push(ShardId(shard));
            // Out of the contest until this key has all its shards, so that they are distinct.
            tree.set(shard, f64::INFINITY);
        }
        members[first..].sort_unstable();
        for &shard in &members[first..] {
            tree.set(shard.0, loads.relative(shard.0));
        }
    }
    let mut tree = LoserTree::new(&loads.all_relative());
    members.extend(admitted.keys[head..].iter().map(|item| {
        let shard = tree.winner();
        loads.add(shard, item.rate);
        tree.replace_winner(loads.relative(shard));
        ShardId(shard)
    }));
    Placed { members, loads: loads.loads }
}
