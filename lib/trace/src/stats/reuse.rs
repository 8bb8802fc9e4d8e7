//! How much of the prompts a cache without limits would find, by each definition in use.

use super::tree::{PrefixMatch, PrefixTree};
use crate::{ContentId, Request};
use serde::Serialize;
use twox_hash::XxHash3_64;

/// Distinct segments that each tree remembers at least, those used last: what fills a hash table of 2^21 places. The two trees
/// take some 250 MB then. A segment that comes back later than that counts as new, and the report says so.
const REMEMBERED: usize = (1 << 21) / 8 * 7;

/// Counts reuse, request by request, in order of arrival.
///
/// Every earlier request is taken to have finished, so these are the most that any cache can find.
#[derive(Debug)]
pub struct Reuse {
    block_tokens: u64,
    /// Prompts, and the KV of their answers as an engine keeps it.
    common: PrefixTree,
    /// Prompts, apart for each key.
    by_key: PrefixTree,
    requests: u64,
    input_tokens: u64,
    input_blocks: u64,
    shared_tokens: u64,
    block_hits: u64,
    block_hit_tokens: u64,
    ratio_sum: f64,
    key_hit_tokens: u64,
    engine_tokens: u64,
    shared_segments: u64,
    deepest: u32,
    /// The present prompt as (content hash, tokens).
    hashed: Vec<(u64, u32)>,
}

/// Shares of the prompts that an unlimited cache finds, each between 0 and 1.
///
/// With m the number of a prompt's leading blocks seen before (a last block that is not full counts if the very same
/// prompt was seen), p its tokens and B the block size:
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseReport {
    /// B.
    pub block_tokens: u64,
    /// Σ m / Σ ⌈p/B⌉.
    pub by_blocks: f64,
    /// Σ min(m·B, p) / Σ p.
    pub by_tokens: f64,
    /// The mean over requests of min(m·B, p) / p.
    pub request_mean: f64,
    /// Σ min(full blocks seen before, ⌊(p−1)/B⌋)·B / Σ p, where answers are cached too: what the engine's own count
    /// (served hit) could reach.
    pub engine: f64,
    /// Leading tokens seen before / Σ p, ignoring block borders.
    pub exact_tokens: f64,
    /// As `by_tokens`, had every key a cache of its own: what strict affinity could reach.
    pub by_tokens_per_key: f64,
    /// `by_tokens_per_key` / `by_tokens`: how much of the reuse happens among requests of one key.
    pub within_keys: f64,
    /// Distinct segments under distinct prefixes, answers included: the size of the tree of all sequences.
    pub tree_nodes: u64,
    /// Leading segments that a prompt shares with an earlier one, on average: how deep the tree is shared.
    pub shared_segments_mean: f64,
    /// The most of them.
    pub shared_segments_max: u32,
    /// Every distinct segment was remembered. Otherwise reuse is a lower bound: what comes back only after
    /// `remembered_segments` others counts as new.
    pub complete: bool,
    /// How many distinct segments are remembered at least, the last ones used.
    pub remembered_segments: u64,
}

impl Reuse {
    /// Counts in blocks of `block_tokens` tokens (at least one).
    pub fn new(block_tokens: u32) -> Reuse {
        Reuse {
            block_tokens: u64::from(block_tokens.max(1)),
            common: PrefixTree::new(REMEMBERED),
            by_key: PrefixTree::new(REMEMBERED),
            requests: 0,
            input_tokens: 0,
            input_blocks: 0,
            shared_tokens: 0,
            block_hits: 0,
            block_hit_tokens: 0,
            ratio_sum: 0.0,
            key_hit_tokens: 0,
            engine_tokens: 0,
            shared_segments: 0,
            deepest: 0,
            hashed: Vec::new(),
        }
    }

    /// Takes in one request, and says what it shares with those before it.
    pub fn observe(&mut self, request: &Request) -> PrefixMatch {
        let input = request.prompt_tokens();
        if input == 0 {
            return PrefixMatch::default();
        }
        let block = self.block_tokens;
        // Blocks seen before: the full ones within the shared tokens, or all of them in a prompt seen before.
        let blocks = |found: PrefixMatch| {
            if found.whole { input.div_ceil(block) } else { found.tokens / block }
        };
        // The last decoded token is never fed, so its KV is never made.
        let answer = (ContentId::answer(request.id).hash64(), request.output_tokens.saturating_sub(1));
        self.hashed.clear();
        self.hashed
            .extend(request.prompt.iter().map(|segment| (segment.content().hash64(), segment.tokens())));
        let common = self.common.insert(0, &self.hashed, Some(answer));
        let own = self.by_key.insert(XxHash3_64::oneshot(request.key.as_bytes()), &self.hashed, None);

        let hit_tokens = (blocks(common) * block).min(input);
        self.requests += 1;
        self.input_tokens += input;
        self.input_blocks += input.div_ceil(block);
        self.shared_tokens += common.tokens;
        self.block_hits += blocks(common);
        self.block_hit_tokens += hit_tokens;
        self.ratio_sum += hit_tokens as f64 / input as f64;
        self.key_hit_tokens += (blocks(own) * block).min(input);
        self.engine_tokens += (common.sequence_tokens / block).min((input - 1) / block) * block;
        self.shared_segments += u64::from(common.segments);
        self.deepest = self.deepest.max(common.segments);
        common
    }

    /// What was counted.
    pub fn report(&self) -> ReuseReport {
        let of = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        ReuseReport {
            block_tokens: self.block_tokens,
            by_blocks: of(self.block_hits, self.input_blocks),
            by_tokens: of(self.block_hit_tokens, self.input_tokens),
            request_mean: self.ratio_sum / self.requests.max(1) as f64,
            engine: of(self.engine_tokens, self.input_tokens),
            exact_tokens: of(self.shared_tokens, self.input_tokens),
            by_tokens_per_key: of(self.key_hit_tokens, self.input_tokens),
            within_keys: of(self.key_hit_tokens, self.block_hit_tokens),
            tree_nodes: self.common.inserted(),
            shared_segments_mean: self.shared_segments as f64 / self.requests.max(1) as f64,
            shared_segments_max: self.deepest,
            complete: !self.common.forgets() && !self.by_key.forgets(),
            remembered_segments: REMEMBERED as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockChain, BlockHash};
    use crate::{RequestId, Segment};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn request(id: u64, key: u8, parts: &[(u8, u32)], output_tokens: u32) -> Request {
        let content = |id: u8| {
            if id < 9 { ContentId::block(id.into()) } else { ContentId::answer(RequestId(u64::from(id) - 9)) }
        };
        Request {
            id: RequestId(id),
            t_s: 0.0,
            key: compact_str::format_compact!("k{key}"),
            tenant: None,
            session: None,
            turn: None,
            after: None,
            think_s: None,
            prompt: parts.iter().map(|&(id, tokens)| Segment(content(id), tokens)).collect(),
            output_tokens,
        }
    }

    /// The hashes of a prompt's blocks, the last one included though it may not be full; then of the whole sequence's full ones.
    fn blocks(request: &Request, block_tokens: u32) -> (Vec<BlockHash>, Vec<BlockHash>) {
        let mut chain = BlockChain::new(block_tokens);
        let mut prompt = Vec::new();
        chain.append_prompt(&request.prompt, &mut prompt);
        let mut sequence = prompt.clone();
        prompt.extend(chain.tail());
        let answer = ContentId::answer(request.id).hash64();
        chain.append(answer, 0, request.output_tokens - 1, &mut sequence);
        (prompt, sequence)
    }

    proptest! {
        /// The oracle keeps plain sets of block hashes.
        #[test]
        fn the_tree_counts_what_sets_of_blocks_count(
            rows in proptest::collection::vec(
                (0u8..3, proptest::collection::vec((0u8..14, 1u32..9), 1..5), 1u32..9), 1..40,
            ),
            block_tokens in 1u32..7,
        ) {
            let block = u64::from(block_tokens);
            let mut reuse = Reuse::new(block_tokens);
            let (mut prompts, mut sequences, mut by_key) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
            let (mut total, mut total_blocks, mut hits, mut hit_tokens, mut own_tokens, mut engine) = (0, 0, 0, 0, 0, 0);
            for (id, (key, parts, output)) in rows.iter().enumerate() {
                let request = request(id as u64, *key, parts, *output);
                reuse.observe(&request);
                let input = request.prompt_tokens();
                let (prompt, sequence) = blocks(&request, block_tokens);
                let m = prompt.iter().take_while(|hash| prompts.contains(*hash)).count() as u64;
                let own = prompt.iter().take_while(|hash| by_key.contains(&(*key, **hash))).count() as u64;
                let full = sequence.iter().take_while(|hash| sequences.contains(*hash)).count() as u64;
                total += input;
                total_blocks += prompt.len() as u64;
                hits += m;
                hit_tokens += (m * block).min(input);
                own_tokens += (own * block).min(input);
                engine += full.min((input - 1) / block) * block;
                by_key.extend(prompt.iter().map(|&hash| (*key, hash)));
                prompts.extend(prompt);
                sequences.extend(sequence);
            }
            let report = reuse.report();
            prop_assert_eq!(report.by_blocks, hits as f64 / total_blocks as f64);
            prop_assert_eq!(report.by_tokens, hit_tokens as f64 / total as f64);
            prop_assert_eq!(report.by_tokens_per_key, own_tokens as f64 / total as f64);
            prop_assert_eq!(report.engine, engine as f64 / total as f64);
        }
    }

    /// The contract's worked example: B finds 48 of its 58 tokens, A nothing.
    #[test]
    fn the_worked_example() {
        let mut reuse = Reuse::new(16);
        reuse.observe(&request(0, 1, &[(0, 32), (1, 16), (2, 10)], 3));
        reuse.observe(&request(1, 1, &[(0, 32), (1, 16), (3, 10)], 1));
        let report = reuse.report();
        assert_eq!((report.engine, report.by_blocks), (48.0 / 116.0, 3.0 / 8.0));
        assert_eq!((report.by_tokens, report.request_mean), (48.0 / 116.0, 24.0 / 58.0));
    }
}
