//! The real backend: a Llama-style transformer on candle, over a paged KV pool.

/// One sequence's rows of a packed step.
#[derive(Clone, Debug)]
pub struct SeqSlice {
    /// The first row of this sequence in the packed step.
    pub q_start: usize,
    /// Rows fed in this step.
    pub q_len: usize,
    /// Length of the sequence in the pool, this step's rows included.
    pub kv_len: usize,
    /// The block table.
    pub blocks: Vec<u32>,
}

/// A packed, ragged step: prefill chunks and decodes together.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Token ids of all rows.
    pub tokens: Vec<u32>,
    /// The sequences, their rows adjacent and in order.
    pub seqs: Vec<SeqSlice>,
    /// Rows whose logits are wanted.
    pub logit_rows: Vec<u32>,
}
