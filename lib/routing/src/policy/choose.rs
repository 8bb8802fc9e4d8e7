//! Choices that several policies share. Every tie is broken at random from the policy's stream.

use crate::view::FleetView;
use cr_trace::{ShardId, Stream};
use rand::RngExt;

/// Draws before a random search for a shard that is up gives way to a count of them.
const TRIES: u32 = 16;

/// Power of two choices: two distinct shards that are up, at random; the less loaded one. The only one where just one
/// is up; `None` where none is.
///
/// Source: Mitzenmacher, *The Power of Two Choices in Randomized Load Balancing*, 2001.
pub(crate) fn two_choices(view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
    let first = random_up(view, None, rng)?;
    match random_up(view, Some(first), rng) {
        Some(second) => less_loaded([first, second].into_iter(), view, rng),
        None => Some(first),
    }
}

/// The less loaded of these shards that are up, ties at random; `None` where none is up.
pub(crate) fn less_loaded(
    candidates: impl Iterator<Item = ShardId>,
    view: &FleetView<'_>,
    rng: &mut Stream,
) -> Option<ShardId> {
    least_by(candidates.filter(|&id| view.shard(id).up), |id| view.shard(id).load, rng)
}

/// The same of a planned set: most keys have one shard, and then there is nothing to compare.
pub(crate) fn of_set(shards: &[ShardId], view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
    match shards {
        [only] => view.shard(*only).up.then_some(*only),
        several => less_loaded(several.iter().copied(), view, rng),
    }
}

/// The candidate of the least cost, ties at random (each tied one with the same chance).
pub(crate) fn least_by<C: PartialOrd>(
    candidates: impl Iterator<Item = ShardId>,
    cost: impl Fn(ShardId) -> C,
    rng: &mut Stream,
) -> Option<ShardId> {
    let mut best: Option<(ShardId, C)> = None;
    let mut tied = 1u32;
    for id in candidates {
        let here = cost(id);
        match &best {
            Some((_, least)) if here > *least => {}
            Some((_, least)) if here == *least => {
                // Reservoir sampling: the n-th tied candidate replaces the one held with chance 1/n.
                tied += 1;
                if rng.random_range(0..tied) == 0 {
                    best = Some((id, here));
                }
            }
            _ => {
                tied = 1;
                best = Some((id, here));
            }
        }
    }
    best.map(|(id, _)| id)
}

/// A shard that is up, each with the same chance, other than `except`.
fn random_up(view: &FleetView<'_>, except: Option<ShardId>, rng: &mut Stream) -> Option<ShardId> {
    let shards = u32::try_from(view.len()).ok().filter(|&n| n > 0)?;
    let fits = |id: ShardId| view.shard(id).up && Some(id) != except;
    // Nearly always the fleet is up: a draw that is refused and repeated costs less than counting a thousand shards.
    for _ in 0..TRIES {
        let id = ShardId(rng.random_range(0..shards));
        if fits(id) {
            return Some(id);
        }
    }
    let up = view.up().filter(|&id| fits(id)).count();
    if up == 0 {
        return None;
    }
    let nth = rng.random_range(0..up as u32) as usize;
    view.up().filter(|&id| fits(id)).nth(nth)
}
