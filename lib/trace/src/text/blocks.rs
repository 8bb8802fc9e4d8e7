//! Tokens as hash blocks.

use crate::{ContentId, Segment};
use twox_hash::XxHash3_64;

/// A block of tokens under everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBlock {
    /// The chained hash, of 63 bits: readers of hash blocks may be signed.
    pub id: u64,
    /// At least one.
    pub tokens: u32,
}

impl TokenBlock {
    /// As a segment `b:ID`.
    pub fn segment(self) -> Segment {
        Segment(ContentId::block(self.id), self.tokens)
    }
}

/// Cuts a conversation's tokens into blocks whose ids chain everything before them.
///
/// Equal ids mean equal leading tokens, so prompts share the blocks of their common text, whoever they belong to. Each text
/// starts a block of its own, so that the turns of a conversation are cut alike however often they are repeated.
#[derive(Clone, Debug)]
pub struct TokenChain {
    block_tokens: usize,
    last: u64,
}

impl TokenChain {
    /// The start of a conversation, in blocks of `block_tokens` tokens (at least one).
    pub fn new(block_tokens: u32) -> TokenChain {
        TokenChain { block_tokens: block_tokens.max(1) as usize, last: 0 }
    }

    /// The blocks of a text that is asked, the last one as far as the text goes.
    pub fn ask(&mut self, tokens: &[u32]) -> Vec<TokenBlock> {
        tokens
            .chunks(self.block_tokens)
            .map(|block| {
                self.chain(block);
                TokenBlock { id: self.last, tokens: block.len() as u32 }
            })
            .collect()
    }

    /// Goes on after an answer: what follows another answer is another content.
    pub fn answer(&mut self, tokens: &[u32]) {
        self.chain(tokens);
    }

    fn chain(&mut self, tokens: &[u32]) {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
        self.last = XxHash3_64::oneshot_with_seed(self.last, &bytes) >> 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prompt;
    use crate::content::shared_tokens;
    use proptest::prelude::*;

    proptest! {
        /// What two prompts share is their common leading tokens, to the block.
        #[test]
        fn blocks_are_shared_as_tokens_are(
            a in proptest::collection::vec(0u32..2, 1..40), b in proptest::collection::vec(0u32..2, 1..40), block in 1u32..9,
        ) {
            let prompt = |tokens: &[u32]| -> Prompt {
                TokenChain::new(block).ask(tokens).into_iter().map(TokenBlock::segment).collect()
            };
            let (x, y) = (prompt(&a), prompt(&b));
            let common = a.iter().zip(&b).take_while(|(p, q)| p == q).count() as u64;
            let shared = shared_tokens(&x, &y);
            let whole = if a == b { common } else { common / u64::from(block) * u64::from(block) };
            prop_assert_eq!(shared, whole);
            prop_assert_eq!(crate::content::prompt_tokens(&x), a.len() as u64);
        }
    }

    #[test]
    fn another_answer_is_another_history() {
        let after = |answer: &[u32]| {
            let mut chain = TokenChain::new(4);
            let first = chain.ask(&[1, 2, 3, 4, 5]);
            chain.answer(answer);
            (first, chain.ask(&[9, 9]))
        };
        assert_eq!(after(&[7]), after(&[7]));
        assert_eq!(after(&[7]).0, after(&[8]).0);
        assert_ne!(after(&[7]).1, after(&[8]).1);
    }
}
