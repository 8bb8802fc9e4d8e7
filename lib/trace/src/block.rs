//! Chained hashes of fixed-size KV blocks.
//!
//! Block *i* covers tokens `[B·i, B·(i+1))` of the whole sequence. Its hash chains its parent's hash over its `B`
//! (content id, offset) pairs, so equal hashes mean equal leading tokens. The pairs are fed as maximal runs
//! (content, first offset, length), which is the same information in canonical form: a segment starts at offset 0,
//! so a run never continues across a segment border. Hashes are 64 bits wide: shorter chains once gave a peer false hits.

use crate::content::Segment;
use twox_hash::XxHash3_64;

/// The hash of a full block and of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub u64);

impl BlockHash {
    /// The parent of every first block.
    pub const ROOT: BlockHash = BlockHash(0x6361_6368_6572_6f75); // "cacherou"

    /// The hash of the block that follows this one and holds the given runs of (content hash, first offset, length).
    fn child(self, runs: &[[u64; 2]]) -> BlockHash {
        let mut bytes = [0u8; 256];
        if runs.len() <= 16 {
            for (slot, run) in bytes.chunks_exact_mut(16).zip(runs) {
                slot[..8].copy_from_slice(&run[0].to_le_bytes());
                slot[8..].copy_from_slice(&run[1].to_le_bytes());
            }
            return BlockHash(XxHash3_64::oneshot_with_seed(self.0, &bytes[..runs.len() * 16]));
        }
        let bytes: Vec<u8> = runs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        BlockHash(XxHash3_64::oneshot_with_seed(self.0, &bytes))
    }
}

/// Builds the hash chain of a sequence as segments are appended; the open block at the end has no hash yet.
#[derive(Clone, Debug)]
pub struct BlockChain {
    block_tokens: u32,
    /// Runs of the open block: content hash, and first offset and length packed as `offset << 32 | length`.
    open: Vec<[u64; 2]>,
    open_tokens: u32,
    last: BlockHash,
}

impl BlockChain {
    /// An empty sequence cut into blocks of `block_tokens` tokens (at least one).
    pub fn new(block_tokens: u32) -> BlockChain {
        BlockChain {
            block_tokens: block_tokens.max(1),
            open: Vec::new(),
            open_tokens: 0,
            last: BlockHash::ROOT,
        }
    }

    /// Appends `tokens` tokens of the content hashed to `content`, from `offset`; pushes the hashes of the blocks that
    /// this fills onto `out`.
    ///
    /// Appending one content in several calls with consecutive offsets is the same as appending it in one.
    pub fn append(&mut self, content: u64, offset: u32, tokens: u32, out: &mut Vec<BlockHash>) {
        let (mut offset, mut left) = (offset, tokens);
        while left > 0 {
            let here = left.min(self.block_tokens - self.open_tokens);
            match self.open.last_mut() {
                Some(run)
                    if run[0] == content && (run[1] >> 32) + (run[1] & 0xffff_ffff) == u64::from(offset) =>
                {
                    run[1] += u64::from(here);
                }
                _ => self.open.push([content, u64::from(offset) << 32 | u64::from(here)]),
            }
            self.open_tokens += here;
            offset += here;
            left -= here;
            if self.open_tokens == self.block_tokens {
                self.last = self.last.child(&self.open);
                out.push(self.last);
                self.open.clear();
                self.open_tokens = 0;
            }
        }
    }

    /// The hash of the open block at the end, were it closed now; `None` where the sequence ends on a border.
    ///
    /// It equals no full block's hash: its runs hold fewer tokens than a block.
    pub fn tail(&self) -> Option<BlockHash> {
        (self.open_tokens > 0).then(|| self.last.child(&self.open))
    }

    /// Appends whole segments.
    pub fn append_prompt(&mut self, prompt: &[Segment], out: &mut Vec<BlockHash>) {
        for segment in prompt {
            self.append(segment.content().hash64(), 0, segment.tokens(), out);
        }
    }
}

/// The hashes of the full blocks of a prompt.
pub fn prompt_blocks(prompt: &[Segment], block_tokens: u32) -> Vec<BlockHash> {
    let mut out = Vec::new();
    BlockChain::new(block_tokens).append_prompt(prompt, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prompt;
    use crate::content::{ContentId, shared_tokens};
    use proptest::prelude::*;

    fn arbitrary_prompt() -> impl Strategy<Value = Prompt> {
        proptest::collection::vec((0u8..3, 1u32..40), 1..6).prop_map(|parts| {
            parts.into_iter().map(|(id, tokens)| Segment(ContentId::key(&id.to_string()), tokens)).collect()
        })
    }

    proptest! {
        /// Equal leading block hashes say exactly what the token-level definition says.
        #[test]
        fn shared_blocks_are_the_full_blocks_of_shared_tokens(
            a in arbitrary_prompt(), b in arbitrary_prompt(), block_tokens in 1u32..20,
        ) {
            let (x, y) = (prompt_blocks(&a, block_tokens), prompt_blocks(&b, block_tokens));
            let shared = x.iter().zip(&y).take_while(|(p, q)| p == q).count() as u64;
            prop_assert_eq!(shared, shared_tokens(&a, &b) / u64::from(block_tokens));
        }

        #[test]
        fn appending_piecewise_changes_nothing(prompt in arbitrary_prompt(), block_tokens in 1u32..20) {
            let mut pieces = Vec::new();
            let mut chain = BlockChain::new(block_tokens);
            for segment in &prompt {
                for offset in 0..segment.tokens() {
                    chain.append(segment.content().hash64(), offset, 1, &mut pieces);
                }
            }
            prop_assert_eq!(pieces, prompt_blocks(&prompt, block_tokens));
        }
    }
}
