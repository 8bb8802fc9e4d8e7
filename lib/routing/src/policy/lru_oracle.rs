//! `lru-oracle`: global residency, as the single-process module's own baseline has it. An oracle, not a policy to deploy.
//!
//! Rule: a key goes back to the shard where it was last sent, for as long as that shard would still hold it; any other key to
//! the least loaded shard. Residency is a list of each shard's keys by last use, of which the oldest go once the prompts
//! last sent of all its keys exceed the shard's KV tokens. Blind to load, like `sticky`, but with places that follow the
//! traffic. It is an oracle because one list, never late, covers the whole fleet: a process that is itself all shards has
//! that, a router does not. It never reads a pool. Source: the `lru` of VeloxQuant-MLX's routing benchmark (a move of a key
//! counts there as no miss; here it is computed anew).

use super::recency::Recency;
use super::{Policy, choose};
use crate::view::FleetView;
use cr_trace::{Key, Request, ShardId, Stream};
use rustc_hash::FxHashMap;

/// Where a key is.
#[derive(Clone, Copy, Debug)]
struct Resident {
    shard: ShardId,
    /// Its place among the shard's keys.
    place: u32,
}

/// What a shard holds.
#[derive(Clone, Debug)]
struct Held {
    key: Key,
    tokens: u64,
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct LruOracle {
    kv_tokens: u64,
    keys: FxHashMap<Key, Resident>,
    /// The keys of each shard, in the order in which they were last sent there.
    order: Recency<Held>,
    /// Tokens that each shard holds.
    tokens: Vec<u64>,
}

impl LruOracle {
    /// For this many shards that hold `kv_tokens` tokens each.
    pub fn new(shards: u32, kv_tokens: u64) -> LruOracle {
        LruOracle {
            kv_tokens,
            keys: FxHashMap::default(),
            order: Recency::new(shards),
            tokens: vec![0; shards as usize],
        }
    }

    /// A key was sent to a shard.
    fn settle(&mut self, key: &Key, resident: Option<Resident>, shard: ShardId, tokens: u64) {
        match resident {
            // By far the most: nothing is looked up or copied.
            Some(resident) if resident.shard == shard => {
                let held = self.order.renew(shard.0, resident.place);
                let before = std::mem::replace(&mut held.tokens, tokens);
                self.tokens[shard.index()] += tokens;
                self.tokens[shard.index()] -= before;
            }
            elsewhere => {
                if let Some(Resident { shard, place }) = elsewhere {
                    self.tokens[shard.index()] -= self.order.remove(shard.0, place).tokens;
                }
                let place = self.order.push(shard.0, Held { key: key.clone(), tokens });
                self.tokens[shard.index()] += tokens;
                self.keys.insert(key.clone(), Resident { shard, place });
            }
        }
        while self.tokens[shard.index()] > self.kv_tokens && self.forget_oldest(shard) {}
    }

    /// Forgets one key; false where there is none left.
    fn forget_oldest(&mut self, shard: ShardId) -> bool {
        let Some(held) = self.order.pop_oldest(shard.0) else { return false };
        self.tokens[shard.index()] -= held.tokens;
        self.keys.remove(&held.key);
        true
    }
}

impl Policy for LruOracle {
    fn name(&self) -> &'static str {
        "lru-oracle"
    }

    fn route(&mut self, request: &Request, view: &FleetView<'_>, rng: &mut Stream) -> Option<ShardId> {
        let resident = self.keys.get(&request.key).copied();
        let chosen = resident
            .map(|resident| resident.shard)
            .filter(|&shard| view.shard(shard).up)
            .or_else(|| choose::less_loaded(view.up(), view, rng))?;
        if chosen.index() < self.tokens.len() {
            self.settle(&request.key, resident, chosen, request.prompt_tokens());
        }
        Some(chosen)
    }

    fn on_fault(&mut self, shard: ShardId, up: bool) {
        if !up && shard.index() < self.tokens.len() {
            while self.forget_oldest(shard) {}
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
        assert!(policy.keys.is_empty() && policy.tokens[0] == 0);
        assert_eq!(go(&mut policy, &fleet), Some(ShardId(1)));
    }
}
