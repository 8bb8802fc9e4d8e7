//! What a pool is made of, kept from one run to the next.
//!
//! A suite makes hundreds of short runs on a thread, each with as many pools as its fleet has shards. What they grow into is given
//! back to be used again: growing anew would copy every node several times and touch fresh memory each time.

use super::index::Index;
use super::lru::RunList;
use super::node::Node;
use super::private::Tail;
use std::cell::RefCell;

/// Pools of which a thread keeps the parts, at most.
const KEPT: usize = 128;

thread_local! {
    static LEFT: RefCell<Vec<Parts>> = const { RefCell::new(Vec::new()) };
}

/// The parts that grow with use.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    pub(super) nodes: Vec<Node>,
    /// Nodes that can be used again.
    pub(super) spare: Vec<u32>,
    /// Nodes by their first block.
    pub(super) index: Index,
    pub(super) lru: RunList,
    /// What the runs that are tails hold, by the number of the run.
    pub(super) tails: Vec<Tail>,
    /// Cached runs that eviction spares; empty without protection.
    pub(super) spared: RunList,
}

impl Parts {
    /// Empty ones, of a pool that is no more where there is one.
    pub(super) fn take() -> Parts {
        let mut parts = LEFT.try_with(|left| left.borrow_mut().pop()).ok().flatten().unwrap_or_default();
        parts.index.clear();
        parts.lru.clear();
        parts.spared.clear();
        parts.spare.clear();
        // In order from the first one on, so that neighbours in time are neighbours in memory.
        parts.spare.extend((0..parts.nodes.len() as u32).rev());
        parts
    }

    /// Leaves the parts of a pool that is no more to the next one.
    pub(super) fn leave(self) {
        // A thread that ends keeps nothing.
        let _ = LEFT.try_with(|left| {
            let mut left = left.borrow_mut();
            if left.len() < KEPT {
                left.push(self);
            }
        });
    }
}
