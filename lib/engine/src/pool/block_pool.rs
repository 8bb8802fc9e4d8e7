//! The engine's pool: one record a block.

use super::lru::LruList;
use super::{Pool, PoolUsage};
use cr_trace::block::{BlockChain, BlockHash};
use cr_trace::{ContentId, Request, RequestId};
use rustc_hash::{FxBuildHasher, FxHashMap};

/// One block of the pool.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    references: u32,
    /// The hash under which the block can be found; none while it is being filled.
    hash: Option<BlockHash>,
    admitted: bool,
    /// Spared by eviction while anything else can go.
    spared: bool,
    /// When it was last let go, in blocks let go.
    last_use: u64,
}

/// The blocks of one sequence and the hashes of its content.
#[derive(Clone, Debug)]
pub struct HeldBlocks {
    blocks: Vec<u32>,
    /// How many leading blocks can be found.
    published: usize,
    request: RequestId,
    admitted: bool,
    /// The pool's protection when this was opened: one that has been lifted since spares nothing.
    protection: u32,
    chain: BlockChain,
    hashes: Vec<BlockHash>,
    /// Tokens fed to `chain`: the prompt, then decoded tokens as they fill blocks.
    chained_tokens: u32,
    prompt_tokens: u32,
    /// Blocks at the end of its answer: room that is reserved, so that decoding allocates nothing.
    final_blocks: u32,
}

impl HeldBlocks {
    /// Extends the hashes over decoded tokens, whose content is the answer to the request.
    fn chain_to(&mut self, tokens: u32) {
        if tokens > self.chained_tokens {
            let answer = ContentId::answer(self.request).hash64();
            let offset = self.chained_tokens - self.prompt_tokens;
            self.chain.append(answer, offset, tokens - self.chained_tokens, &mut self.hashes);
            self.chained_tokens = tokens;
        }
    }
}

/// A pool with one record a block: the engine's pool, and the oracle of faster ones.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_tokens: u32,
    blocks: Vec<Block>,
    free: Vec<u32>,
    cached: LruList,
    /// Cached blocks that eviction spares; empty without protection.
    spared: LruList,
    /// Which protection is in force, counted from 1; 0 where nothing is protected.
    protection: u32,
    /// Blocks marked as spared, referenced or cached.
    protected: u32,
    /// Blocks let go so far.
    uses: u64,
    index: FxHashMap<BlockHash, u32>,
    evicted: u64,
    evicted_admitted: u64,
}

impl BlockPool {
    /// The list that a cached block is in.
    fn list_of(&mut self, block: u32) -> &mut LruList {
        if self.blocks[block as usize].spared { &mut self.spared } else { &mut self.cached }
    }

    /// Notes that a sequence has computed or used a block that it holds.
    fn mark(&mut self, block: u32, held: &HeldBlocks) {
        let record = &mut self.blocks[block as usize];
        record.admitted |= held.admitted;
        if held.admitted && self.protection > 0 && held.protection == self.protection && !record.spared {
            record.spared = true;
            self.protected += 1;
        }
    }

    /// Takes an empty block, evicting where none is free. The caller has checked [`BlockPool::available`].
    fn take(&mut self) -> Option<u32> {
        let block = self.free.pop().or_else(|| self.evict())?;
        self.blocks[block as usize] = Block { references: 1, ..Block::default() };
        Some(block)
    }

    /// Adds a reference to a block that can be found.
    fn reference(&mut self, block: u32) {
        if self.blocks[block as usize].references == 0 {
            self.list_of(block).remove(block);
        }
        self.blocks[block as usize].references += 1;
    }

    fn evict(&mut self) -> Option<u32> {
        let block = self.cached.pop_oldest().or_else(|| self.spared.pop_oldest())?;
        let record = self.blocks[block as usize];
        self.protected -= u32::from(record.spared);
        if let Some(hash) = record.hash {
            self.index.remove(&hash);
        }
        self.evicted += 1;
        self.evicted_admitted += u64::from(record.admitted);
        Some(block)
    }

    /// The cached or referenced blocks that hold the leading hashes, at most `most`.
    fn find<'a>(&'a self, hashes: &'a [BlockHash], most: u32) -> impl Iterator<Item = u32> + 'a {
        hashes.iter().take(most as usize).map_while(|hash| self.index.get(hash).copied())
    }

    fn blocks_for(&self, tokens: u32) -> u32 {
        tokens.div_ceil(self.block_tokens)
    }
}

impl Pool for BlockPool {
    type Held = HeldBlocks;

    fn new(blocks: u32, block_tokens: u32) -> BlockPool {
        BlockPool {
            block_tokens,
            blocks: vec![Block::default(); blocks as usize],
            free: (0..blocks).rev().collect(),
            cached: LruList::new(blocks),
            spared: LruList::new(0),
            protection: 0,
            protected: 0,
            uses: 0,
            // Room for as many again, so that what was removed leaves room without the table growing.
            index: FxHashMap::with_capacity_and_hasher(2 * blocks as usize, FxBuildHasher),
            evicted: 0,
            evicted_admitted: 0,
        }
    }

    fn open(&self, request: &Request, admitted: bool) -> HeldBlocks {
        let prompt_tokens = request.prompt_tokens() as u32;
        let final_blocks = self.blocks_for(prompt_tokens.saturating_add(request.output_tokens));
        let mut hashes = Vec::with_capacity(final_blocks as usize);
        let mut chain = BlockChain::new(self.block_tokens);
        chain.append_prompt(&request.prompt, &mut hashes);
        HeldBlocks {
            blocks: Vec::new(),
            published: 0,
            request: request.id,
            admitted,
            protection: self.protection,
            chain,
            hashes,
            chained_tokens: prompt_tokens,
            prompt_tokens,
            final_blocks,
        }
    }

    fn admit(&mut self, held: &mut HeldBlocks, tokens: u32, most_cached: u32) -> Option<u32> {
        debug_assert!(held.blocks.is_empty(), "a sequence is admitted holding nothing");
        let (mut found, mut found_idle) = (0, 0);
        for block in self.find(&held.hashes, most_cached) {
            found += 1;
            found_idle += u32::from(self.blocks[block as usize].references == 0);
        }
        let fresh = self.blocks_for(tokens).saturating_sub(found);
        // Idle blocks that are found leave the evictable ones.
        if fresh > self.available() - found_idle {
            return None;
        }
        held.blocks.reserve(held.final_blocks.max(found + fresh) as usize);
        for position in 0..found as usize {
            let Some(&block) = self.index.get(&held.hashes[position]) else { break };
            self.reference(block);
            self.mark(block, held);
            held.blocks.push(block);
        }
        held.published = found as usize;
        for _ in 0..fresh {
            held.blocks.extend(self.take());
        }
        Some(found)
    }

    fn grow(&mut self, held: &mut HeldBlocks, tokens: u32) -> bool {
        let fresh = self.lacks(held, tokens);
        if fresh > self.available() {
            return false;
        }
        for _ in 0..fresh {
            held.blocks.extend(self.take());
        }
        true
    }

    fn lacks(&self, held: &HeldBlocks, tokens: u32) -> u32 {
        self.blocks_for(tokens).saturating_sub(held.blocks.len() as u32)
    }

    fn available(&self) -> u32 {
        self.free.len() as u32 + self.cached.len() + self.spared.len()
    }

    fn publish(&mut self, held: &mut HeldBlocks, computed: u32) {
        let full = (computed / self.block_tokens) as usize;
        if full > held.hashes.len() {
            held.chain_to(computed);
        }
        for position in held.published..full {
            let (block, hash) = (held.blocks[position], held.hashes[position]);
            let first = *self.index.entry(hash).or_insert(block);
            if first == block {
                self.blocks[block as usize].hash = Some(hash);
            } else {
                // Another sequence computed the same block at the same time and was first: one copy is enough.
                self.reference(first);
                self.blocks[block as usize].references = 0;
                self.free.push(block);
                held.blocks[position] = first;
            }
            self.mark(first, held);
        }
        held.published = held.published.max(full);
    }

    fn release(&mut self, held: &mut HeldBlocks) {
        // Deepest first, so that among blocks of one release the deepest is evicted first.
        while let Some(block) = held.blocks.pop() {
            let record = &mut self.blocks[block as usize];
            record.references -= 1;
            if record.references == 0 {
                self.uses += 1;
                record.last_use = self.uses;
                match record.hash {
                    Some(_) => self.list_of(block).push_newest(block),
                    None => self.free.push(block),
                }
            }
        }
        held.published = 0;
    }

    fn table<'a>(&self, held: &'a HeldBlocks) -> &'a [u32] {
        &held.blocks
    }

    fn usage(&self) -> PoolUsage {
        let (free, cached) = (self.free.len() as u32, self.cached.len() + self.spared.len());
        PoolUsage {
            referenced: self.blocks.len() as u32 - free - cached,
            cached,
            free,
            evicted: self.evicted,
            evicted_admitted: self.evicted_admitted,
            protected: self.protected,
        }
    }

    fn clear(&mut self) {
        while let Some(block) = self.cached.pop_oldest().or_else(|| self.spared.pop_oldest()) {
            let record = std::mem::take(&mut self.blocks[block as usize]);
            self.protected -= u32::from(record.spared);
            if let Some(hash) = record.hash {
                self.index.remove(&hash);
            }
            self.free.push(block);
        }
    }

    fn protect_admitted(&mut self) {
        if self.protection == 0 {
            self.protection = 1;
            self.spared = LruList::new(self.blocks.len() as u32);
        }
    }

    fn lift_protection(&mut self) {
        if self.protection == 0 {
            return;
        }
        self.protection += 1;
        self.protected = 0;
        self.blocks.iter_mut().for_each(|block| block.spared = false);
        // One list again, in order of last use.
        let mut all: Vec<u32> = std::iter::from_fn(|| self.cached.pop_oldest()).collect();
        all.extend(std::iter::from_fn(|| self.spared.pop_oldest()));
        all.sort_unstable_by_key(|&block| self.blocks[block as usize].last_use);
        all.into_iter().for_each(|block| self.cached.push_newest(block));
    }
}
