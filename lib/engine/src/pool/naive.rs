//! The honest pool: content spelt out token by token, every question answered by a search through all blocks.

use super::{Pool, PoolUsage};
use cr_trace::{ContentId, Request};

/// One token of a sequence, by content and offset.
type Token = (ContentId, u32);

#[derive(Clone, Debug, Default)]
struct NaiveBlock {
    references: u32,
    /// The whole leading sequence up to the end of this block; empty where the block cannot be found.
    prefix: Vec<Token>,
    last_use: u64,
    in_use: bool,
    admitted: bool,
    spared: bool,
}

pub(super) struct NaivePool {
    block_tokens: usize,
    blocks: Vec<NaiveBlock>,
    releases: u64,
    evicted: u64,
    evicted_admitted: u64,
    protects: bool,
    /// How often protection was lifted.
    lifted: u32,
}

pub(super) struct NaiveHeld {
    tokens: Vec<Token>,
    request: Request,
    admitted: bool,
    /// How often protection had been lifted when it was opened.
    lifted: u32,
    blocks: Vec<u32>,
}

impl NaiveHeld {
    /// The leading tokens of the sequence, decoded ones included.
    fn prefix(&mut self, tokens: usize) -> Vec<Token> {
        let prompt = self.request.prompt_tokens() as usize;
        while self.tokens.len() < tokens {
            let offset = (self.tokens.len() - prompt) as u32;
            self.tokens.push((ContentId::answer(self.request.id), offset));
        }
        self.tokens[..tokens].to_vec()
    }
}

impl NaivePool {
    fn mark(&mut self, block: u32, held: &NaiveHeld) {
        let record = &mut self.blocks[block as usize];
        record.admitted |= held.admitted;
        record.spared |= held.admitted && self.protects && held.lifted == self.lifted;
    }

    fn find(&self, prefix: &[Token]) -> Option<u32> {
        self.blocks.iter().position(|b| b.in_use && b.prefix == prefix).map(|i| i as u32)
    }

    fn unreferenced(&self) -> usize {
        self.blocks.iter().filter(|b| b.references == 0).count()
    }

    fn take(&mut self) -> u32 {
        let index = match self.blocks.iter().position(|b| !b.in_use) {
            Some(index) => index,
            None => {
                let (index, victim) = self
                    .blocks
                    .iter()
                    .enumerate()
                    .filter(|(_, b)| b.references == 0)
                    .min_by_key(|(_, b)| (b.spared, b.last_use, std::cmp::Reverse(b.prefix.len())))
                    .expect("the caller checked");
                self.evicted += 1;
                self.evicted_admitted += u64::from(victim.admitted);
                index
            }
        };
        self.blocks[index] = NaiveBlock { references: 1, in_use: true, ..NaiveBlock::default() };
        index as u32
    }
}

impl Pool for NaivePool {
    type Held = NaiveHeld;

    fn new(blocks: u32, block_tokens: u32) -> NaivePool {
        NaivePool {
            block_tokens: block_tokens as usize,
            blocks: vec![NaiveBlock::default(); blocks as usize],
            releases: 0,
            evicted: 0,
            evicted_admitted: 0,
            protects: false,
            lifted: 0,
        }
    }

    fn open(&self, request: &Request, admitted: bool) -> NaiveHeld {
        let tokens =
            request.prompt.iter().flat_map(|s| (0..s.tokens()).map(|i| (s.content().clone(), i))).collect();
        NaiveHeld { tokens, request: request.clone(), admitted, lifted: self.lifted, blocks: Vec::new() }
    }

    fn admit(&mut self, held: &mut NaiveHeld, tokens: u32, most_cached: u32) -> Option<u32> {
        let mut found = Vec::new();
        while found.len() < most_cached as usize {
            let end = (found.len() + 1) * self.block_tokens;
            if end > held.tokens.len() {
                break;
            }
            match self.find(&held.prefix(end)) {
                Some(block) => found.push(block),
                None => break,
            }
        }
        let fresh = (tokens as usize).div_ceil(self.block_tokens).saturating_sub(found.len());
        let idle = found.iter().filter(|&&b| self.blocks[b as usize].references == 0).count();
        if fresh + idle > self.unreferenced() {
            return None;
        }
        for &block in &found {
            self.blocks[block as usize].references += 1;
            self.mark(block, held);
        }
        held.blocks = found;
        let cached = held.blocks.len() as u32;
        for _ in 0..fresh {
            let block = self.take();
            held.blocks.push(block);
        }
        Some(cached)
    }

    fn grow(&mut self, held: &mut NaiveHeld, tokens: u32) -> bool {
        let fresh = self.lacks(held, tokens);
        if fresh > self.available() {
            return false;
        }
        for _ in 0..fresh {
            let block = self.take();
            held.blocks.push(block);
        }
        true
    }

    fn lacks(&self, held: &NaiveHeld, tokens: u32) -> u32 {
        (tokens as usize).div_ceil(self.block_tokens).saturating_sub(held.blocks.len()) as u32
    }

    fn available(&self) -> u32 {
        self.unreferenced() as u32
    }

    fn publish(&mut self, held: &mut NaiveHeld, computed: u32) {
        for position in 0..computed as usize / self.block_tokens {
            let prefix = held.prefix((position + 1) * self.block_tokens);
            let mine = held.blocks[position];
            match self.find(&prefix) {
                Some(first) if first != mine => {
                    self.blocks[mine as usize] = NaiveBlock::default();
                    self.blocks[first as usize].references += 1;
                    held.blocks[position] = first;
                }
                _ => self.blocks[mine as usize].prefix = prefix,
            }
            self.mark(held.blocks[position], held);
        }
    }

    fn release(&mut self, held: &mut NaiveHeld) {
        self.releases += 1;
        for block in held.blocks.drain(..) {
            let record = &mut self.blocks[block as usize];
            record.references -= 1;
            record.last_use = self.releases;
            if record.references == 0 && record.prefix.is_empty() {
                *record = NaiveBlock::default();
            }
        }
    }

    fn table<'a>(&self, held: &'a NaiveHeld) -> &'a [u32] {
        &held.blocks
    }

    fn usage(&self) -> PoolUsage {
        let count = |f: fn(&NaiveBlock) -> bool| self.blocks.iter().filter(|b| f(b)).count() as u32;
        PoolUsage {
            referenced: count(|b| b.references > 0),
            cached: count(|b| b.references == 0 && b.in_use),
            free: count(|b| !b.in_use),
            evicted: self.evicted,
            evicted_admitted: self.evicted_admitted,
            protected: count(|b| b.in_use && b.spared),
        }
    }

    fn clear(&mut self) {
        for block in &mut self.blocks {
            if block.references == 0 {
                *block = NaiveBlock::default();
            }
        }
    }

    fn protect_admitted(&mut self) {
        self.protects = true;
    }

    fn lift_protection(&mut self) {
        self.lifted += 1;
        self.blocks.iter_mut().for_each(|block| block.spared = false);
    }
}
