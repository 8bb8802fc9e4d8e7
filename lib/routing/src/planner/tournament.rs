//! The least-loaded shard, again and again: a winner tree over all shards.
//!
//! Every inner node holds the winner of its two children, so changing one load costs log₂ R comparisons without a
//! search. A left child holds lower ids and wins ties, so ids need no comparing.

/// Loads of shards 0..R, with the least one at the root.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    /// Leaves at `width..2·width`; node n has the children 2n and 2n + 1. Padding is infinite and never wins.
    nodes: Vec<Node>,
    width: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    load: f64,
    shard: u32,
}

impl Tournament {
    /// A tree of these loads. An infinite load takes its shard out.
    pub(super) fn new(loads: &[f64]) -> Tournament {
        let width = loads.len().next_power_of_two();
        let mut nodes = vec![Node { load: f64::INFINITY, shard: 0 }; 2 * width];
        for (shard, node) in nodes[width..].iter_mut().enumerate() {
            *node = Node { load: loads.get(shard).copied().unwrap_or(f64::INFINITY), shard: shard as u32 };
        }
        let mut tree = Tournament { nodes, width };
        for node in (1..width).rev() {
            tree.play(node);
        }
        tree
    }

    /// The shard of the least load, the lowest id among equals.
    pub(super) fn winner(&self) -> u32 {
        self.nodes[1].shard
    }

    /// The load of a shard.
    pub(super) fn load(&self, shard: u32) -> f64 {
        self.nodes[self.width + shard as usize].load
    }

    /// Changes the load of a shard; an infinite one takes it out.
    pub(super) fn set(&mut self, shard: u32, load: f64) {
        let mut node = self.width + shard as usize;
        self.nodes[node].load = load;
        while node > 1 {
            node /= 2;
            self.play(node);
        }
    }

    fn play(&mut self, node: usize) {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        self.nodes[node] = if right.load < left.load { right } else { left };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_winner_is_the_naive_minimum(
            loads in proptest::collection::vec(0u32..5, 1..40),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u32..5), 0..60),
        ) {
            let mut loads: Vec<f64> = loads.into_iter().map(f64::from).collect();
            let mut tree = Tournament::new(&loads);
            for (at, load) in changes {
                let at = at.index(loads.len());
                loads[at] = f64::from(load);
                tree.set(at as u32, loads[at]);
                let naive = (0..loads.len()).min_by(|&a, &b| loads[a].total_cmp(&loads[b])).expect("has shards");
                prop_assert_eq!(tree.winner() as usize, naive);
            }
        }
    }
}
