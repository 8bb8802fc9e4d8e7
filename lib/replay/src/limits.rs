//! What is too large to be meant: told before memory is asked for that no machine has.

use crate::run::RunSpec;
use cr_engine::ShardConfig;

/// More routers than this are a slip of the keyboard.
pub const MAX_ROUTERS: u32 = 1_024;

/// Shards that all routers watch together.
const MAX_WATCHED: u64 = 1 << 20;

/// Points on the hash rings of all routers together: 4 GB.
const MAX_POINTS: u64 = 1 << 27;

/// Seconds that all routers' `preble` remembers of all shards together: 2 GB.
const MAX_REMEMBERED_S: u64 = 1 << 27;

/// Blocks of a fleet whose pools keep each by itself: 6 GB.
const MAX_BLOCKS: u64 = 1 << 27;

/// What is too large about the routers of a fleet of so many shards.
pub(crate) fn of_routers(spec: &RunSpec, shards: u32) -> Option<String> {
    let routers = spec.routers;
    if !(1..=MAX_ROUTERS).contains(&routers) {
        return Some(format!("{routers} routers; there are 1 to {MAX_ROUTERS}"));
    }
    let watched = u64::from(routers) * u64::from(shards);
    let (points, window_s) = (watched * u64::from(spec.vnodes), spec.tuning.preble.window_s);
    let remembered_s = if spec.header.policy == "preble" { watched * u64::from(window_s) } else { 0 };
    if watched > MAX_WATCHED {
        return Some(format!("{routers} routers of {shards} shards each; at most {MAX_WATCHED} in all"));
    }
    if points > MAX_POINTS {
        return Some(format!(
            "{} virtual nodes for {shards} shards on {routers} rings (--routers); at most {MAX_POINTS} in all",
            spec.vnodes
        ));
    }
    (remembered_s > MAX_REMEMBERED_S).then(|| {
        format!("preble remembers {window_s} s of {shards} shards, {routers} times (--routers); at most {MAX_REMEMBERED_S} s in all")
    })
}

/// What is too large about a fleet whose pools keep every block by itself.
pub fn of_blocks(shards: u32, config: &ShardConfig) -> Option<String> {
    let blocks = config.kv_blocks;
    (u64::from(shards) * u64::from(blocks) > MAX_BLOCKS).then(|| {
        format!("{blocks} KV blocks for {shards} shards, each kept by itself; at most {MAX_BLOCKS} in all; --engine sim keeps runs of blocks")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_could_hold_is_told() {
        let spec = |routers, policy: &str| {
            let mut spec = RunSpec { routers, ..RunSpec::default() };
            spec.header.policy = policy.into();
            spec
        };
        let told = |spec: RunSpec, shards| of_routers(&spec, shards).unwrap_or_default();
        assert_eq!(told(spec(1, "preble"), 65_536), "");
        assert_eq!(told(spec(1_024, "flat"), 30), "");
        assert_eq!(told(spec(0, "flat"), 30), "0 routers; there are 1 to 1024");
        assert_eq!(
            told(spec(1_024, "flat"), 16_384),
            "1024 routers of 16384 shards each; at most 1048576 in all"
        );
        let rings = RunSpec { vnodes: 16_000, ..spec(64, "sticky") };
        assert!(told(rings, 1_024).starts_with("16000 virtual nodes for 1024 shards on 64 rings"));
        assert!(
            told(spec(1_024, "preble"), 1_024)
                .starts_with("preble remembers 180 s of 1024 shards, 1024 times")
        );
        let pool = |kv_blocks| ShardConfig { kv_blocks, ..ShardConfig::default() };
        assert_eq!(of_blocks(1_000, &pool(100_000)), None);
        assert!(
            of_blocks(65_536, &pool(100_000))
                .expect("is too large")
                .starts_with("100000 KV blocks for 65536 shards")
        );
    }
}
