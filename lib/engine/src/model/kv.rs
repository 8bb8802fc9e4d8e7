//! The keys and values of one shard, in blocks.

use candle_core::{DType, Tensor};

/// What one token's keys and values take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvSpec {
    /// Layers, each with keys and values of its own.
    pub layers: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// The type stored.
    pub dtype: DType,
}

impl KvSpec {
    /// Bytes of one token's keys and values over all layers.
    pub fn bytes_per_token(&self) -> u64 {
        2 * (self.layers * self.kv_heads * self.head_dim * self.dtype.size_in_bytes()) as u64
    }

    /// Bytes of a pool of `blocks` blocks of `block_tokens` tokens.
    pub fn pool_bytes(&self, blocks: usize, block_tokens: usize) -> u64 {
        (blocks as u64).saturating_mul(block_tokens as u64).saturating_mul(self.bytes_per_token())
    }
}

/// The keys and values of one shard: a tensor each per layer, whose layout the attention backend that allocated it
/// chose. Starts zeroed, so that what lies behind a sequence's end is finite and masks to nothing.
#[derive(Debug)]
pub struct KvPool {
    /// Keys by layer.
    pub k: Vec<Tensor>,
    /// Values by layer.
    pub v: Vec<Tensor>,
    /// Number of blocks.
    pub blocks: usize,
    /// Tokens in a block.
    pub block_tokens: usize,
}
