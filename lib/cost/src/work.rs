//! What one step does, in the terms that cost depends on.

/// The work of one step, summed over its sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepWork {
    /// Computed prompt tokens.
    pub prefill_tokens: u64,
    /// Tokens of context that the prefill chunks start from, summed over chunks.
    pub prefill_ctx_tokens: u64,
    /// Σ over chunks of computed tokens × context tokens.
    pub prefill_pairs: u64,
    /// Sequences that decode one token.
    pub decode_seqs: u64,
    /// Tokens of context that the decoding sequences attend to, summed.
    pub decode_ctx_tokens: u64,
}

impl StepWork {
    /// Whether the step does nothing.
    pub fn is_empty(&self) -> bool {
        self.prefill_tokens == 0 && self.decode_seqs == 0
    }

    /// Adds a prefill chunk of `new` tokens that starts from `ctx` tokens of context.
    pub fn add_prefill(&mut self, new: u64, ctx: u64) {
        self.prefill_tokens += new;
        self.prefill_ctx_tokens += ctx;
        self.prefill_pairs += new * ctx;
    }

    /// Adds one decoding sequence that attends to `ctx` tokens, the fed one not counted.
    pub fn add_decode(&mut self, ctx: u64) {
        self.decode_seqs += 1;
        self.decode_ctx_tokens += ctx;
    }
}
