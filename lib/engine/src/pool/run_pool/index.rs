//! Nodes by their first block.
//!
//! A fleet has an index for every shard, and each is asked a few times a request: so that all of them stay in a processor's caches
//! together, an index holds nothing but numbers of nodes. What a number stands for is looked up in the node itself, which whoever
//! asks wants to see anyway.

use super::node::Node;
use cr_trace::tokens::mix64;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Numbers of nodes, found by the name of the stretch that a node begins with and by its first block.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    nodes: HashTable<u32>,
}

/// The hash of what names a block: its stretch and its number.
#[inline]
fn hash_of(name: u64, block: u32) -> u64 {
    mix64(name.wrapping_add(u64::from(block) << 32))
}

impl Index {
    /// Forgets all nodes.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
    }

    /// The node that begins with this block.
    #[inline]
    pub(super) fn find(&self, nodes: &[Node], name: u64, block: u32) -> Option<u32> {
        self.nodes.find(hash_of(name, block), |&node| nodes[node as usize].begins_with(name, block)).copied()
    }

    /// Enters a node that begins with this block; of several, the last one entered is found.
    #[inline]
    pub(super) fn insert(&mut self, nodes: &[Node], node: u32, name: u64, block: u32) {
        let begins = |&node: &u32| nodes[node as usize].begins_with(name, block);
        let hash_again = |&node: &u32| {
            let node = &nodes[node as usize];
            node.name().map_or(0, |name| hash_of(name, node.first))
        };
        match self.nodes.entry(hash_of(name, block), begins, hash_again) {
            Entry::Occupied(mut entry) => *entry.get_mut() = node,
            Entry::Vacant(entry) => {
                entry.insert(node);
            }
        }
    }

    /// Takes out a node that begins with this block, if it is the one that is found.
    #[inline]
    pub(super) fn remove(&mut self, node: u32, name: u64, block: u32) {
        if let Ok(entry) = self.nodes.find_entry(hash_of(name, block), |&entered| entered == node) {
            entry.remove();
        }
    }
}
