//! Placement by longest processing time first.

use super::admission::Admitted;
use super::config::Fleet;
use super::tournament::Tournament;
use cr_trace::ShardId;

/// Where the admitted keys are, in plan order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    /// The shards of all keys, one key after the other, ascending within each.
    pub(super) members: Vec<ShardId>,
    /// The planned rate of each shard, cold tail included.
    pub(super) loads: Vec<f64>,
}

/// Places keys of decreasing rate on the least-loaded shards.
///
/// Shards are compared by load / speed. Each starts with its share of the cold tail, in proportion to its speed; one
/// that is down takes nothing.
pub(super) fn place(admitted: &Admitted, fleet: &Fleet) -> Placed {
    let total = fleet.total_speed();
    let mut loads: Vec<f64> = fleet.speeds().iter().map(|speed| admitted.cold_rate * speed / total).collect();
    let per_speed: Vec<f64> = fleet.speeds().iter().map(|speed| 1.0 / speed).collect();
    let relative: Vec<f64> = loads
        .iter()
        .zip(&per_speed)
        .map(|(load, per)| if per.is_finite() { load * per } else { f64::INFINITY })
        .collect();
    let mut tree = Tournament::new(&relative);
    let copies: usize = admitted.copies.iter().map(|&k| k as usize).sum();
    let mut members = Vec::with_capacity(copies);
    for (item, &k) in admitted.keys.iter().zip(&admitted.copies) {
        let share = item.rate / f64::from(k);
        let first = members.len();
        for _ in 0..k {
            let shard = tree.winner();
            loads[shard as usize] += share;
            members.push(ShardId(shard));
            if k == 1 {
                tree.set(shard, tree.load(shard) + share * per_speed[shard as usize]);
            } else {
                // Out of the contest until this key has all its shards, so that they are distinct.
                tree.set(shard, f64::INFINITY);
            }
        }
        if k > 1 {
            members[first..].sort_unstable();
            for &shard in &members[first..] {
                tree.set(shard.0, loads[shard.index()] * per_speed[shard.index()]);
            }
        }
    }
    Placed { members, loads }
}
