//! Memory: the allocator's habits, and what KV pools may take.

use crate::EngineError;
use crate::model::{Inspection, KvSpec};
use candle_core::Device;

/// The share of the free memory that weights and pools may take together.
const SHARE: f64 = 0.9;

/// The blocks of a shard where none are asked for and memory allows.
const DEFAULT_BLOCKS: u64 = 4096;

/// Fewer tokens than this in a shard are no use as a default.
const LEAST_DEFAULT_TOKENS: u64 = 1024;

/// What the KV pools of a fleet may take on one device: planned before anything is allocated.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    kv: KvSpec,
    block_tokens: u32,
    shards: u32,
    weights: u64,
    free: u64,
}

impl MemoryPlan {
    /// For a model that is not loaded yet; `None` where the system does not tell its free memory.
    pub fn before_load(
        inspection: &Inspection,
        device: &Device,
        shards: u32,
        block_tokens: u32,
    ) -> Option<MemoryPlan> {
        let free = free_bytes(device)?;
        let weights = inspection.weight_bytes;
        Some(MemoryPlan { kv: inspection.kv, block_tokens, shards: shards.max(1), weights, free })
    }

    /// For a model whose weights are in memory already.
    pub fn after_load(kv: KvSpec, device: &Device, shards: u32, block_tokens: u32) -> Option<MemoryPlan> {
        let free = free_bytes(device)?;
        Some(MemoryPlan { kv, block_tokens, shards: shards.max(1), weights: 0, free })
    }

    /// Bytes of one block over all layers.
    pub fn block_bytes(&self) -> u64 {
        self.kv.pool_bytes(1, self.block_tokens as usize).max(1)
    }

    /// Blocks a shard that fit.
    pub fn blocks_that_fit(&self) -> u64 {
        self.room() / self.block_bytes() / u64::from(self.shards)
    }

    /// Bytes for pools.
    fn room(&self) -> u64 {
        ((self.free as f64 * SHARE) as u64).saturating_sub(self.weights)
    }

    /// The blocks of every shard where none were asked for: 4096, or what fits.
    ///
    /// # Errors
    /// Less than a thousand tokens a shard would fit.
    pub fn default_blocks(&self) -> Result<u32, EngineError> {
        let blocks = self.blocks_that_fit().min(DEFAULT_BLOCKS);
        if blocks * u64::from(self.block_tokens) < LEAST_DEFAULT_TOKENS {
            return Err(self.refusal(DEFAULT_BLOCKS));
        }
        Ok(blocks as u32)
    }

    /// Whether pools of `blocks` blocks fit.
    ///
    /// # Errors
    /// They do not; the message says what would.
    pub fn check(&self, blocks: u32) -> Result<(), EngineError> {
        if u64::from(blocks) <= self.blocks_that_fit() {
            Ok(())
        } else {
            Err(self.refusal(u64::from(blocks)))
        }
    }

    fn refusal(&self, blocks: u64) -> EngineError {
        let (shards, block_bytes) = (u64::from(self.shards), self.block_bytes());
        let wanted = gib(u128::from(shards) * u128::from(blocks) * u128::from(block_bytes));
        let weights = match self.weights {
            0 => String::new(),
            bytes => format!(" beside {} of weights", gib(bytes.into())),
        };
        let (free, fit) = (gib(self.free.into()), self.blocks_that_fit());
        let alone = self.room() / block_bytes / blocks.max(1);
        let instead = match fit {
            0 => format!("at most {alone} shards of {blocks} blocks fit"),
            fit => {
                format!("--kv-blocks {fit} fits {shards} shards, and {alone} shards fit with {blocks} blocks")
            }
        };
        EngineError::Config(format!(
            "KV pools of {shards} shards × {blocks} blocks × {block_bytes} bytes are {wanted}{weights}, and {free} are free: {instead}"
        ))
    }
}

fn gib(bytes: u128) -> String {
    const MIB: u128 = 1 << 20;
    if bytes < 1024 * MIB {
        format!("{} MiB", bytes.div_ceil(MIB))
    } else {
        format!("{:.1} GiB", bytes as f64 / (1024.0 * MIB as f64))
    }
}

/// Memory that can still be taken on a device; `None` where it does not tell.
pub fn free_bytes(device: &Device) -> Option<u64> {
    #[cfg(feature = "cuda")]
    if device.is_cuda() {
        return candle_core::cuda_backend::cudarc::driver::result::mem_get_info()
            .ok()
            .map(|(free, _)| free as u64);
    }
    // Apple's GPUs share the memory of the system.
    let _ = device;
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    let limit = system.cgroup_limits().map(|limits| limits.free_memory);
    let free = system.available_memory();
    Some(limit.map_or(free, |limit| limit.min(free))).filter(|&bytes| bytes > 0)
}

/// Makes glibc keep memory that is freed, up to 62 MiB, instead of handing it back to the system at once.
///
/// The activations of a prefill are megabytes that every layer allocates and frees. By default each round goes back to the
/// system and is faulted in again page by page. glibc keeps twice the size of the largest mapped block that was freed so
/// far, counting blocks up to 32 MiB, so freeing one teaches it. Other allocators have their own rules, and lose nothing.
pub(super) fn keep_freed_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(31 << 20)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::DType;

    /// Blocks of 98,304 bytes; 10 GiB free, of which 9 may be used.
    fn plan(shards: u32, weights: u64) -> MemoryPlan {
        let kv = KvSpec { layers: 6, kv_heads: 2, head_dim: 64, dtype: DType::F32 };
        MemoryPlan { kv, block_tokens: 16, shards, weights, free: 10 << 30 }
    }

    #[test]
    fn the_default_is_4096_blocks_or_what_fits() {
        assert_eq!(plan(4, 0).default_blocks().expect("fits"), 4096);
        let blocks = plan(100, 0).default_blocks().expect("fewer fit");
        assert_eq!(blocks, 983);
        assert!(plan(100, 0).check(blocks).is_ok() && plan(100, 0).check(blocks + 1).is_err());
        assert_eq!(plan(100, 5 << 30).default_blocks().expect("fewer fit"), 436);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let error = plan(65_536, 0).default_blocks().expect_err("too many").to_string();
        let expect = "65536 shards × 4096 blocks × 98304 bytes are 24576.0 GiB, and 10.0 GiB are free: --kv-blocks 1 fits";
        assert!(error.contains(expect) && error.contains("24 shards fit with 4096 blocks"), "{error}");
        let error = plan(30, 32 << 20).check(4096).expect_err("too large").to_string();
        assert!(
            error.contains("beside 32 MiB of weights") && error.contains("--kv-blocks 3265 fits 30 shards"),
            "{error}"
        );
        assert!(
            plan(200_000, 0)
                .check(1)
                .expect_err("no room")
                .to_string()
                .contains("98304 shards of 1 blocks fit")
        );
    }

    #[test]
    fn this_machine_tells_its_free_memory() {
        assert!(free_bytes(&Device::Cpu).is_some_and(|bytes| bytes > 1 << 20));
    }
}
