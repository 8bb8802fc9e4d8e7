//! `lru-oracle`: global residency, as the single-process module's own baseline has it. An oracle, not a policy to deploy.
//!
//! Rule: a key goes back to the shard where it was last sent, for as long as that shard would still hold it; any other key to
//! the least loaded shard. Residency is a list of each shard's keys by last use, of which the oldest go once the prompts
//! last sent of all its keys exceed the shard's KV tokens. Blind to load, like `sticky`, but with places that follow the
//! traffic. It is an oracle because one list, never late, covers the whole fleet: a process that is itself all shards has
//! that, a router does not. It never reads a pool. Source: the `lru` of VeloxQuant-MLX's routing benchmark (a move of a key
//! counts there as no miss; here it is computed anew).

use super::{Policy, choose};
use crate::view::FleetView;
use cr_trace::{Key, Request, ShardId, Stream};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Where a key is, and what it takes there.
#[derive(Clone, Copy, Debug)]
struct Resident {
    shard: ShardId,
    tokens: u64,
    /// When it was last sent, in dispatches.
    stamp: u64,
}

/// One shard's keys by last use, and their tokens.
#[derive(Clone, Debug, Default)]
struct Residents {
    by_stamp: BTreeMap<u64, Key>,
    tokens: u64,
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct LruOracle {
    kv_tokens: u64,
    keys: FxHashMap<Key, Resident>,
    shards: Vec<Residents>,
    clock: u64,
}

impl LruOracle {
    /// For this many shards that hold `kv_tokens` tokens each.
    pub fn new(shards: u32, kv_tokens: u64) -> LruOracle {
        LruOracle {
            kv_tokens,
            keys: FxHashMap::default(),
            shards: vec![Residents::default(); shards as usize],
            clock: 0,
        }
    }

    fn leave(&mut self, key: &str) {
        let Some(resident) = self.keys.remove(key) else { return };
        if let Some(residents) = self.shards.get_mut(resident.shard.index()) {
            residents.by_stamp.remove(&resident.stamp);
            residents.tokens -= resident.tokens;
        }
    }

    fn settle(&mut self, key: &Key, shard: ShardId, tokens: u64) {
        self.leave(key);
        self.clock += 1;
        let Some(residents) = self.shards.get_mut(shard.index()) else { return };
        residents.by_stamp.insert(self.clock, key.clone());
        residents.tokens += tokens;
        self.keys.insert(key.clone(), Resident { shard, tokens, stamp: self.clock });
        while self.shards[shard.index()].tokens > self.kv_tokens {
            let Some((_, oldest)) = self.shards[shard.index()].by_stamp.first_key_value() else { break };
            let oldest = oldest.clone();
            self.leave(&oldest);
        }
    }
}

impl Policy for LruOracle {
    fn name(&self) -> &'static str {
        "lru-oracle"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let resident = self.keys.get(&request.key).map(|resident| resident.shard);
        let chosen = resident
            .filter(|&shard| view.shard(shard).up)
            .or_else(|| choose::less_loaded(view.up(), view, rng))?;
        self.settle(&request.key, chosen, request.prompt_tokens());
        Some(chosen)
    }

    fn on_fault(&mut self, shard: ShardId, up: bool) {
        if up {
            return;
        }
        let Some(residents) = self.shards.get_mut(shard.index()) else { return };
        for key in std::mem::take(residents).by_stamp.into_values() {
            self.keys.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{idle, request, view};
    use super::*;
    use cr_trace::stream;
    use proptest::prelude::*;

    proptest! {
        /// A list of (key, shard), searched from end to end, says the same.
        #[test]
        fn residency_is_the_naive_list(keys in proptest::collection::vec((0u8..9, 0u32..3), 1..80), slots in 1u64..4) {
            // Every prompt is 64 tokens, so a shard holds `slots` keys.
            let mut policy = LruOracle::new(3, slots * 64);
            let mut naive: Vec<(u8, ShardId)> = Vec::new();
            let mut rng = stream(1, "policy");
            for (id, (key, free)) in keys.into_iter().enumerate() {
                let mut fleet = idle(3);
                fleet.iter_mut().enumerate().for_each(|(n, shard)| shard.load = u32::from(n as u32 != free));
                let at = naive.iter().position(|(other, _)| *other == key);
                let expect = at.map_or(ShardId(free), |at| naive.remove(at).1);
                naive.push((key, expect));
                if naive.iter().filter(|(_, shard)| *shard == expect).count() as u64 > slots {
                    let oldest = naive.iter().position(|(_, shard)| *shard == expect).expect("there are some");
                    naive.remove(oldest);
                }
                let chosen = policy.route(&request(id as u64, &format!("k{key}")), &view(&fleet), &mut rng);
                prop_assert_eq!(chosen, Some(expect));
                prop_assert_eq!(policy.keys.len(), naive.len());
            }
        }
    }

    #[test]
    fn a_dead_shard_holds_nothing() {
        let mut policy = LruOracle::new(2, 1_000);
        let mut rng = stream(1, "policy");
        let mut fleet = idle(2);
        fleet[1].load = 1;
        let mut go =
            |policy: &mut LruOracle, fleet: &[_]| policy.route(&request(0, "k"), &view(fleet), &mut rng);
        assert_eq!(go(&mut policy, &fleet), Some(ShardId(0)));
        fleet[0].load = 9;
        assert_eq!(go(&mut policy, &fleet), Some(ShardId(0)), "blind to load");
        policy.on_fault(ShardId(0), false);
        assert!(policy.keys.is_empty() && policy.shards[0].tokens == 0);
        assert_eq!(go(&mut policy, &fleet), Some(ShardId(1)));
    }
}
