//! What one step feeds.

use crate::EngineError;
use crate::recycle::recycle;

/// One sequence's rows of a packed step.
#[derive(Clone, Copy, Debug)]
pub struct SeqSlice<'a> {
    /// The first row of this sequence in the packed step.
    pub q_start: usize,
    /// Rows fed in this step, at least one.
    pub q_len: usize,
    /// Length of the sequence in the pool, this step's rows included.
    pub kv_len: usize,
    /// The block table: position `p` lives in slot `p % block_tokens` of block `blocks[p / block_tokens]`.
    pub blocks: &'a [u32],
}

impl SeqSlice<'_> {
    /// The position of the first row fed.
    pub fn start(&self) -> usize {
        self.kv_len - self.q_len
    }
}

/// A packed, ragged step: prefill chunks and decodes together.
#[derive(Clone, Debug, Default)]
pub struct Step<'a> {
    /// Token ids of all rows.
    pub tokens: Vec<u32>,
    /// The sequences, their rows adjacent and in order. Decodes first lets a backend batch them.
    pub seqs: Vec<SeqSlice<'a>>,
    /// Rows whose logits are wanted, in the order wanted.
    pub logit_rows: Vec<u32>,
}

impl<'a> Step<'a> {
    /// The empty step with this one's buffers.
    #[must_use]
    pub fn recycled<'b>(mut self) -> Step<'b> {
        self.tokens.clear();
        self.logit_rows.clear();
        Step { tokens: self.tokens, seqs: recycle(self.seqs), logit_rows: self.logit_rows }
    }

    /// Appends a sequence: `tokens` are fed so that it ends `kv_len` tokens long. With `emits`, the logits of its last
    /// row are wanted.
    pub fn push(&mut self, tokens: &[u32], kv_len: usize, blocks: &'a [u32], emits: bool) {
        let q_start = self.tokens.len();
        self.tokens.extend_from_slice(tokens);
        self.seqs.push(SeqSlice { q_start, q_len: tokens.len(), kv_len, blocks });
        if emits {
            self.logit_rows.push(self.tokens.len() as u32 - 1);
        }
    }

    /// The position of every row in its sequence.
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.seqs.iter().flat_map(|seq| seq.start()..seq.kv_len)
    }

    /// The pool slot of every row, `block × block_tokens + offset`.
    pub fn slots(&self, block_tokens: usize) -> impl Iterator<Item = usize> + '_ {
        self.seqs.iter().flat_map(move |seq| {
            (seq.start()..seq.kv_len)
                .map(move |p| seq.blocks[p / block_tokens] as usize * block_tokens + p % block_tokens)
        })
    }

    /// Checks that the step is well formed for a pool of `blocks` blocks, a vocabulary and a context.
    ///
    /// # Errors
    /// What is out of range, in words: a mistake of whoever built the step.
    pub fn check(
        &self,
        blocks: usize,
        block_tokens: usize,
        vocab: usize,
        context: usize,
    ) -> Result<(), EngineError> {
        let bad = |what: String| Err(EngineError::Config(format!("malformed step: {what}")));
        let mut next_row = 0;
        for (i, seq) in self.seqs.iter().enumerate() {
            if seq.q_len == 0 || seq.q_len > seq.kv_len || seq.q_start != next_row {
                return bad(format!("sequence {i} has {} rows of {}", seq.q_len, seq.kv_len));
            }
            if seq.kv_len > context {
                return bad(format!("sequence {i} has {} tokens, context is {context}", seq.kv_len));
            }
            let used = seq.kv_len.div_ceil(block_tokens);
            if seq.blocks.len() < used {
                return bad(format!("sequence {i} names {} blocks, needs {used}", seq.blocks.len()));
            }
            if let Some(block) = seq.blocks[..used].iter().find(|&&block| block as usize >= blocks) {
                return bad(format!("sequence {i} names block {block} of a pool of {blocks}"));
            }
            next_row += seq.q_len;
        }
        if next_row != self.tokens.len() || next_row == 0 {
            return bad(format!("{} tokens for {next_row} rows", self.tokens.len()));
        }
        if let Some(token) = self.tokens.iter().find(|&&token| token as usize >= vocab) {
            return bad(format!("token {token} of a vocabulary of {vocab}"));
        }
        match self.logit_rows.iter().find(|&&row| row as usize >= next_row) {
            Some(row) => bad(format!("logits of row {row} of {next_row}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_their_positions_and_slots() {
        let (a, b) = ([3, 1], [0, 2, 5]);
        let mut step = Step::default();
        step.push(&[7], 6, &a, true);
        step.push(&[1, 2, 3], 10, &b, false);
        assert_eq!(step.positions().collect::<Vec<_>>(), [5, 7, 8, 9]);
        assert_eq!(step.slots(4).collect::<Vec<_>>(), [5, 11, 20, 21]);
        assert_eq!(step.logit_rows, [0]);
        assert!(step.check(6, 4, 8, 10).is_ok());
    }

    #[test]
    fn malformed_steps_are_refused_in_words() {
        let table = [0, 1];
        let step = |tokens: &[u32], kv_len: usize| {
            let mut step = Step::default();
            step.push(tokens, kv_len, &table, true);
            step
        };
        for (bad, expect) in [
            (step(&[], 3), "0 rows"),
            (step(&[1, 1], 1), "2 rows of 1"),
            (step(&[1], 9), "names 2 blocks, needs 3"),
            (step(&[1], 30), "context is 16"),
            (step(&[9], 1), "token 9"),
            (Step::default(), "0 tokens"),
        ] {
            let error = bad.check(2, 4, 8, 16).expect_err("refused").to_string();
            assert!(error.contains(expect), "{error}");
        }
        let error = step(&[1], 5).check(1, 4, 8, 16).expect_err("refused").to_string();
        assert!(error.contains("block 1 of a pool of 1"), "{error}");
    }
}
