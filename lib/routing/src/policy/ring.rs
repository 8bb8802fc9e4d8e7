//! A consistent-hash ring.
//!
//! Each shard owns `vnodes` points, the xxh3-64 of the text `shard/vnode`; a key belongs to the first point at or after
//! the xxh3-64 of its text, going round. Points that collide are ordered by shard id.
//! Source: Karger et al., *Consistent Hashing and Random Trees*, 1997.

use cr_trace::ShardId;
use std::io::Write as _;
use twox_hash::XxHash3_64;

/// Points a shard, where nothing else is asked for.
pub const DEFAULT_VNODES: u32 = 100;

/// The points of all shards, in order of hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    hashes: Vec<u64>,
    /// Whose point it is; same order.
    owners: Vec<ShardId>,
}

impl Ring {
    /// A ring of `shards` shards with `vnodes` points each.
    pub fn new(shards: u32, vnodes: u32) -> Ring {
        let mut points: Vec<(u64, ShardId)> = (0..shards)
            .flat_map(|shard| (0..vnodes).map(move |vnode| (point(shard, vnode), ShardId(shard))))
            .collect();
        points.sort_unstable();
        Ring {
            hashes: points.iter().map(|&(hash, _)| hash).collect(),
            owners: points.iter().map(|&(_, shard)| shard).collect(),
        }
    }

    /// The owners of the points from the key's position on, once round. A shard comes once for each of its points.
    pub fn clockwise(&self, key: &str) -> impl Iterator<Item = ShardId> + '_ {
        let hash = XxHash3_64::oneshot(key.as_bytes());
        let start = self.hashes.partition_point(|&point| point < hash);
        let (before, after) = self.owners.split_at(start);
        after.iter().chain(before).copied()
    }
}

/// The hash of one point.
fn point(shard: u32, vnode: u32) -> u64 {
    let mut text = [0u8; 24];
    let mut rest = &mut text[..];
    // Two u32 and a slash are 21 characters at most, so the write cannot fail.
    let _ = write!(rest, "{shard}/{vnode}");
    let unused = rest.len();
    XxHash3_64::oneshot(&text[..text.len() - unused])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_keys_hash_as_text() {
        assert_eq!(point(3, 17), XxHash3_64::oneshot(b"3/17"));
        assert_eq!(point(u32::MAX, u32::MAX), XxHash3_64::oneshot(b"4294967295/4294967295"));
    }

    #[test]
    fn clockwise_is_the_naive_walk() {
        let (shards, vnodes) = (7, 5);
        let ring = Ring::new(shards, vnodes);
        for key in (0..200).map(|n| format!("k{n}")) {
            let hash = XxHash3_64::oneshot(key.as_bytes());
            // The distance going round from the key to a point, and then the shard id.
            let mut naive: Vec<(u64, u32)> = (0..shards)
                .flat_map(|shard| (0..vnodes).map(move |vnode| (shard, vnode)))
                .map(|(shard, vnode)| {
                    (XxHash3_64::oneshot(format!("{shard}/{vnode}").as_bytes()).wrapping_sub(hash), shard)
                })
                .collect();
            naive.sort_unstable();
            let walk: Vec<u32> = ring.clockwise(&key).map(|shard| shard.0).collect();
            assert_eq!(walk, naive.into_iter().map(|(_, shard)| shard).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_ring_has_no_owner() {
        assert_eq!(Ring::new(0, 100).clockwise("k").next(), None);
    }
}
