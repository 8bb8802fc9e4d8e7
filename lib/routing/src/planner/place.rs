//! Where admitted keys go: the paper's rule, and others to compare it with.

use super::admission::Admitted;
use super::lpt::{Loads, Placed};
use super::pools::Pools;
use super::{Demand, Fleet, Placement, PlanConfig, PlanError, lpt, refine};
use crate::policy::{DEFAULT_VNODES, Ring};
use cr_trace::{ShardId, stream};
use rand::RngExt;

pub(super) fn place(
    admitted: &Admitted,
    demand: &Demand<'_>,
    config: &PlanConfig,
) -> Result<Placed, PlanError> {
    let fleet = &config.fleet;
    match config.placement {
        Placement::Lpt => Ok(lpt::place(admitted, fleet)),
        Placement::LptRefine => {
            Ok(refine::refine(lpt::place(admitted, fleet), admitted, fleet, &Pools::unbounded()))
        }
        Placement::Random { seed } => Ok(random(admitted, fleet, seed)),
        Placement::Hash => hash(admitted, demand, fleet),
        Placement::RoundRobin => Ok(round_robin(admitted, fleet)),
    }
}

/// The shards that are up.
fn up(fleet: &Fleet) -> Vec<ShardId> {
    let speeds = fleet.speeds().iter().enumerate();
    speeds.filter(|(_, speed)| **speed > 0.0).map(|(shard, _)| ShardId(shard as u32)).collect()
}

/// Places each key on the shards that `choose` names for it: distinct and as many as asked for.
fn by(admitted: &Admitted, fleet: &Fleet, mut choose: impl FnMut(u32, usize, &mut Vec<ShardId>)) -> Placed {
    let mut loads = Loads::cold(fleet, admitted.cold_weight);
    let mut members = Vec::new();
    let mut chosen = Vec::new();
    for (item, &k) in admitted.keys.iter().zip(&admitted.copies) {
        chosen.clear();
        choose(item.key, k as usize, &mut chosen);
        chosen.sort_unstable();
        for &shard in &chosen {
            loads.add(shard.0, item.rate / f64::from(k));
        }
        members.extend_from_slice(&chosen);
    }
    Placed { members, loads: loads.into_inner() }
}

fn random(admitted: &Admitted, fleet: &Fleet, seed: u64) -> Placed {
    let mut rng = stream(seed, "placement");
    let mut shards = up(fleet);
    by(admitted, fleet, |_, k, chosen| {
        // The first k steps of a shuffle: k distinct shards, each set with the same chance.
        for n in 0..k {
            let other = rng.random_range(n as u32..shards.len() as u32) as usize;
            shards.swap(n, other);
        }
        chosen.extend_from_slice(&shards[..k]);
    })
}

fn hash(admitted: &Admitted, demand: &Demand<'_>, fleet: &Fleet) -> Result<Placed, PlanError> {
    let keys = demand.keys.ok_or(PlanError::NoNames)?;
    let ring = Ring::new(fleet.shards(), DEFAULT_VNODES);
    Ok(by(admitted, fleet, |key, k, chosen| {
        for shard in ring.clockwise(&keys[key as usize]) {
            if chosen.len() == k {
                break;
            }
            if fleet.speeds()[shard.index()] > 0.0 && !chosen.contains(&shard) {
                chosen.push(shard);
            }
        }
    }))
}

fn round_robin(admitted: &Admitted, fleet: &Fleet) -> Placed {
    let shards = up(fleet);
    let mut next = 0;
    by(admitted, fleet, |_, k, chosen| {
        chosen.extend((0..k).map(|n| shards[(next + n) % shards.len()]));
        next = (next + k) % shards.len();
    })
}
