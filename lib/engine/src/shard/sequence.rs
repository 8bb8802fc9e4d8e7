//! One request inside a shard.

use super::ShardTotals;
use super::waiting::Newcomer;
use crate::pool::Pool;
use cr_trace::{Request, Time};
use prefetch_index::prefetch_index;
use std::ops::{Deref, DerefMut};
use std::slice::from_ref;
use std::sync::Arc;

/// A request being served. A batch is shifted whenever one leaves it, so what there is to say of each lies elsewhere.
pub(super) struct Sequence<H> {
    pub(super) request: Arc<Request>,
    pub(super) state: Box<State<H>>,
}

impl<H> Deref for Sequence<H> {
    type Target = State<H>;
    #[inline]
    fn deref(&self) -> &State<H> {
        &self.state
    }
}

impl<H> DerefMut for Sequence<H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut State<H> {
        &mut self.state
    }
}

/// Bytes of a cache line, as they mostly are.
const LINE: usize = 64;

/// What is known of a request being served, what it holds, how far it is. Begins with a cache line, so that it lies in as few as it can.
#[repr(C, align(64))]
pub(super) struct State<H> {
    pub(super) arrival: Time,
    pub(super) scheduled_at: Option<Time>,
    pub(super) first_token_at: Option<Time>,
    pub(super) prompt_tokens: u32,
    /// Tokens to decode.
    pub(super) output_tokens: u32,
    /// Tokens that the blocks held have room for, as far as the pool tells.
    room: u32,
    /// Computed tokens from which there is something to publish, as far as the pool tells.
    publishes_at: u32,
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
    pub(super) preemptions: u32,
    /// The step in progress feeds just the token decoded last.
    pub(super) decodes: bool,
    /// Whether its key was in the plan when it was routed.
    pub(super) admitted: bool,
    /// What it holds of the pool; how much, only [`State::release`] tells.
    pub(super) held: H,
}

impl<H> State<H> {
    /// Nothing of it is computed, and nothing held.
    pub(super) fn of(newcomer: &Newcomer, held: H) -> State<H> {
        State {
            arrival: newcomer.arrival,
            admitted: newcomer.admitted,
            prompt_tokens: newcomer.prompt_tokens,
            output_tokens: newcomer.request.output_tokens,
            room: 0,
            publishes_at: 0,
            computed: 0,
            reached: 0,
            generated: 0,
            in_step: 0,
            decodes: false,
            cached: 0,
            scheduled_at: None,
            first_token_at: None,
            preemptions: 0,
            held,
        }
    }

    /// As [`State::of`], with what is held already, in the place of one that has left.
    #[inline]
    pub(super) fn renew(&mut self, newcomer: &Newcomer) {
        (self.arrival, self.admitted) = (newcomer.arrival, newcomer.admitted);
        (self.prompt_tokens, self.output_tokens) = (newcomer.prompt_tokens, newcomer.request.output_tokens);
        (self.room, self.publishes_at, self.cached, self.preemptions) = (0, 0, 0, 0);
        (self.computed, self.reached, self.generated, self.in_step) = (0, 0, 0, 0);
        (self.decodes, self.scheduled_at, self.first_token_at) = (false, None, None);
    }

    /// A hint to the processor: all of this is about to be looked at.
    #[inline]
    pub(super) fn approaches(&self) {
        for line in 0..size_of::<State<H>>() / LINE {
            prefetch_index(from_ref(&self.arrival), line * LINE / size_of::<Time>());
        }
    }

    /// Tokens that are known: the prompt and what was decoded.
    #[inline]
    pub(super) fn known(&self) -> u32 {
        self.prompt_tokens + self.generated
    }

    /// Whether the next step feeds just the token decoded last.
    #[inline]
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

    /// Whether it has all its tokens.
    pub(super) fn is_done(&self) -> bool {
        self.generated == self.output_tokens
    }

    /// Makes room for `tokens` tokens; see [`Pool::grow`].
    #[inline]
    pub(super) fn grow<P: Pool<Held = H>>(&mut self, pool: &mut P, tokens: u32) -> bool {
        if tokens <= self.room {
            return true;
        }
        match pool.widen(&mut self.held, self.room, tokens) {
            Some(room) => {
                self.room = room;
                true
            }
            None => false,
        }
    }

    /// How many blocks are missing for `tokens` tokens.
    #[inline]
    pub(super) fn lacks<P: Pool<Held = H>>(&self, pool: &P, tokens: u32) -> u32 {
        if tokens <= self.room { 0 } else { pool.lacks_beyond(&self.held, self.room, tokens) }
    }

    /// Makes what has been computed findable; see [`Pool::publish`].
    #[inline]
    pub(super) fn publish<P: Pool<Held = H>>(&mut self, pool: &mut P) {
        if self.computed >= self.publishes_at {
            pool.publish(&mut self.held, self.computed);
            self.publishes_at = pool.publishes_at(&self.held);
        }
    }

    /// Takes up what the pool has of its first tokens, and room for the others; see [`Pool::admit`].
    pub(super) fn admit<P: Pool<Held = H>>(&mut self, pool: &mut P, most_cached: u32) -> Option<u32> {
        let known = self.known();
        let found = pool.admit(&mut self.held, known, most_cached)?;
        self.room = pool.room(&self.held);
        self.publishes_at = pool.publishes_at(&self.held);
        Some(found)
    }

    /// Publishes all that has been computed, also what was to be kept apart.
    pub(super) fn expose<P: Pool<Held = H>>(&mut self, pool: &mut P) {
        pool.disclose(&mut self.held);
        self.publishes_at = 0;
        self.publish(pool);
    }

    /// Publishes what has been computed and lets go of everything.
    pub(super) fn release<P: Pool<Held = H>>(&mut self, pool: &mut P) {
        pool.settle(&mut self.held, self.room, self.computed);
        self.publish(pool);
        pool.release(&mut self.held);
        (self.room, self.publishes_at) = (0, u32::MAX);
    }

    /// Whether it has a block that none of the tokens computed is in.
    pub(super) fn has_spare_block(&self, block_tokens: u32) -> bool {
        self.room.saturating_sub(self.computed) >= block_tokens
    }

    /// It has blocks for the tokens that are computed and `granted` more, and none beyond.
    pub(super) fn has_room(&mut self, granted: u32, block_tokens: u32) {
        self.room = (self.computed + granted).div_ceil(block_tokens).saturating_mul(block_tokens);
    }

    /// So many tokens more have been decoded, one a step, and fed but for the last one.
    #[inline]
    pub(super) fn decode(&mut self, tokens: u32) {
        self.computed = self.computed.wrapping_add(tokens);
        self.generated = self.generated.wrapping_add(tokens);
        // Whatever was computed again after a preemption was computed before decoding went on.
        debug_assert!(self.reached <= self.computed);
        self.reached = self.computed;
    }

    /// Writes it as it was so many decoded tokens ago, even if it was not there yet; [`State::decode`] makes up for it.
    #[inline]
    pub(super) fn take_back(&mut self, tokens: u32) {
        self.computed = self.computed.wrapping_sub(tokens);
        self.generated = self.generated.wrapping_sub(tokens);
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
