//! One request inside a shard.

use super::ShardTotals;
use cr_trace::{Request, Time};
use std::sync::Arc;

/// A request being served: what is known of it, what it holds, how far it is.
pub(super) struct Sequence<H> {
    pub(super) request: Arc<Request>,
    pub(super) arrival: Time,
    pub(super) admitted: bool,
    pub(super) prompt_tokens: u32,
    pub(super) held: H,
    /// Tokens whose KV is in the pool, counted from the start.
    pub(super) computed: u32,
    /// The most that `computed` ever was: what lies below is computed again after a preemption.
    pub(super) reached: u32,
    /// Tokens decoded.
    pub(super) generated: u32,
    /// Tokens fed by the step in progress.
    pub(super) in_step: u32,
    /// Prompt tokens found in the pool at first scheduling.
    pub(super) cached: u32,
    pub(super) scheduled_at: Option<Time>,
    pub(super) first_token_at: Option<Time>,
    pub(super) preemptions: u32,
}

impl<H> Sequence<H> {
    pub(super) fn new(request: Arc<Request>, arrival: Time, admitted: bool, held: H) -> Sequence<H> {
        Sequence {
            prompt_tokens: request.prompt_tokens() as u32,
            request,
            arrival,
            admitted,
            held,
            computed: 0,
            reached: 0,
            generated: 0,
            in_step: 0,
            cached: 0,
            scheduled_at: None,
            first_token_at: None,
            preemptions: 0,
        }
    }

    /// Tokens that are known: the prompt and what was decoded.
    pub(super) fn known(&self) -> u32 {
        self.prompt_tokens + self.generated
    }

    /// Whether the next step feeds just the token decoded last.
    pub(super) fn is_decoding(&self) -> bool {
        self.generated > 0 && self.computed + 1 == self.known()
    }

    /// Prompt tokens a router would count as still to be prefilled.
    pub(super) fn pending(&self) -> u64 {
        match (self.first_token_at, self.scheduled_at) {
            (Some(_), _) => 0,
            (None, Some(_)) => u64::from(self.prompt_tokens - self.cached),
            (None, None) => u64::from(self.prompt_tokens),
        }
    }

    /// Tokens up to `to` have been computed: for the first time, or again.
    pub(super) fn advance(&mut self, to: u32, totals: &mut ShardTotals) {
        let from = self.computed;
        let anew = to.min(self.reached).saturating_sub(from);
        let prompt_from = from.max(self.reached).min(self.prompt_tokens);
        totals.recomputed_tokens += u64::from(anew);
        totals.computed_tokens += u64::from(to.min(self.prompt_tokens).saturating_sub(prompt_from));
        self.computed = to;
        self.reached = self.reached.max(to);
    }
}
