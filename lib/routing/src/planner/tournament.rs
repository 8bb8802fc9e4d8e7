//! The least-loaded shard, again and again: trees of matches between shards.
//!
//! Two forms of one idea (Knuth, *The Art of Computer Programming* 3, 5.4.1). A [`WinnerTree`] can change any shard's
//! load; a [`LoserTree`] only that of the present winner, and needs half the work for it.

use std::hint::select_unpredictable;

/// A load and its shard in one number that orders by load, then by shard: the bits of a float that is not negative order
/// as the float does.
fn pack(load: f64, shard: u32) -> u128 {
    u128::from(load.to_bits()) << 32 | u128::from(shard)
}

/// Nobody: loses every match.
const NOBODY: u128 = u128::MAX;

/// The entries of all leaves, padded to a power of two; an infinite load takes its shard out.
fn leaves(loads: &[f64]) -> impl Iterator<Item = u128> + '_ {
    let width = loads.len().next_power_of_two();
    let entries = loads.iter().enumerate().map(|(shard, &load)| pack(load, shard as u32));
    entries.chain(std::iter::repeat_n(NOBODY, width - loads.len()))
}

/// Every inner node holds the winner of its two children.
#[derive(Clone, Debug)]
pub(super) struct WinnerTree {
    /// Leaves at `width..2·width`; node n has the children 2n and 2n + 1.
    nodes: Vec<u128>,
    width: usize,
}

impl WinnerTree {
    /// A tree of these loads.
    pub(super) fn new(loads: &[f64]) -> WinnerTree {
        let width = loads.len().next_power_of_two();
        let mut nodes = vec![NOBODY; width];
        nodes.extend(leaves(loads));
        for node in (1..width).rev() {
            nodes[node] = nodes[2 * node].min(nodes[2 * node + 1]);
        }
        WinnerTree { nodes, width }
    }

    /// The shard of the least load, the lowest id among equals.
    pub(super) fn winner(&self) -> u32 {
        self.nodes[1] as u32
    }

    /// Changes the load of a shard; an infinite one takes it out.
    pub(super) fn set(&mut self, shard: u32, load: f64) {
        let mut node = self.width + shard as usize;
        self.nodes[node] = pack(load, shard);
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].min(self.nodes[2 * node + 1]);
        }
    }
}

/// Every inner node holds the loser of its match; the winner of all stands apart.
#[derive(Clone, Debug)]
pub(super) struct LoserTree {
    losers: Vec<u128>,
    winner: u128,
    width: usize,
}

impl LoserTree {
    /// A tree of these loads.
    pub(super) fn new(loads: &[f64]) -> LoserTree {
        let WinnerTree { nodes, width } = WinnerTree::new(loads);
        let losers = (0..width)
            .map(|node| if node == 0 { NOBODY } else { nodes[2 * node].max(nodes[2 * node + 1]) })
            .collect();
        LoserTree { losers, winner: nodes[1], width }
    }

    /// The shard of the least load, the lowest id among equals.
    pub(super) fn winner(&self) -> u32 {
        self.winner as u32
    }

    /// Changes the load of the winner, and finds the next one.
    pub(super) fn replace_winner(&mut self, load: f64) {
        let shard = self.winner();
        let mut entry = pack(load, shard);
        let mut node = (self.width + shard as usize) / 2;
        while node > 0 {
            let other = self.losers[node];
            // Who wins is as good as random: a branch would be foretold wrongly at every second level.
            let changes = other < entry;
            self.losers[node] = select_unpredictable(changes, entry, other);
            entry = select_unpredictable(changes, other, entry);
            node /= 2;
        }
        self.winner = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(loads: &[f64]) -> u32 {
        (0..loads.len()).min_by(|&a, &b| loads[a].total_cmp(&loads[b])).expect("has shards") as u32
    }

    proptest! {
        #[test]
        fn the_winner_is_the_naive_minimum(
            loads in proptest::collection::vec(0u32..5, 1..40),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..5), 0..60),
        ) {
            let mut loads: Vec<f64> = loads.into_iter().map(f64::from).collect();
            let mut tree = WinnerTree::new(&loads);
            prop_assert_eq!(tree.winner(), naive(&loads));
            for (at, load) in changes {
                let at = at.index(loads.len());
                loads[at] = f64::from(load);
                tree.set(at as u32, loads[at]);
                prop_assert_eq!(tree.winner(), naive(&loads));
            }
            let mut tree = LoserTree::new(&loads);
            for add in 0..40 {
                let winner = tree.winner();
                prop_assert_eq!(winner, naive(&loads));
                loads[winner as usize] += f64::from(add % 3);
                tree.replace_winner(loads[winner as usize]);
            }
        }
    }
}
