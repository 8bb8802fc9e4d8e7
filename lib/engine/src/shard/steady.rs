//! The decoding sequences of a batch, taken together.
//!
//! Every decoding sequence feeds one token a step, whatever the others do, and they are the first ones of the batch: prompts are
//! computed in the batch's order, and whoever joins goes to its end. So what a step needs to know of them is a few sums, and
//! a step changes these sums by constants: nobody has to be looked at one by one until somebody has all its tokens, has its
//! first one, or runs out of time.
//!
//! Blocks, too: a decoding sequence has just as many as its tokens fill, so it needs another one exactly when its number of
//! tokens is a multiple of a block's. How many are at which remainder is counted; steps turn the remainders.
//!
//! What is not written down in the sequences themselves is how many steps they have taken together ([`Shard::write_down`]); one
//! that joins is written as if it had taken them, too, and one that leaves takes its part out of the sums.
//! Where a block is missing, and where blocks of answers are published as they are decoded, sequences are stepped one by one.

use super::schedule::Survey;
use super::sequence::Sequence;
use super::{Departed, Shard};
use crate::pool::Pool;
use cr_trace::Time;

/// Larger blocks are not counted by remainders.
const MOST_BLOCK_TOKENS: u32 = 4096;

/// Sums over the decoding sequences.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    /// Whether these sums hold.
    on: bool,
    /// Of every sequence that decodes, the first ones of the batch, in its order: at which number of steps `ahead` it has all its tokens.
    done_at: Vec<u32>,
    /// Their computed tokens.
    context: u64,
    /// Steps until the first of them has all its tokens.
    first_done: u32,
    /// Steps that all have taken and that are not written down in them, counted around the end of the numbers.
    ahead: u32,
    /// Whether they are part of a step in progress.
    in_step: bool,
    /// Whether they have room for the token that it feeds.
    granted: bool,
    /// How many have which remainder of computed tokens by a block's, in a ring.
    remainders: Vec<u32>,
    /// Which places of the ring anybody is at, a bit each.
    taken: Vec<u64>,
    /// Where in the ring those without a remainder are: each step takes it back by one.
    border: usize,
}

impl Steady {
    /// No sums, and none wanted where `block_tokens` are too many.
    pub(super) fn new(block_tokens: u32) -> Steady {
        let counted = if block_tokens <= MOST_BLOCK_TOKENS { block_tokens } else { 0 };
        let remainders = vec![0; counted as usize];
        Steady { taken: vec![0; remainders.len().div_ceil(64)], remainders, ..Steady::default() }
    }

    fn is_possible(&self) -> bool {
        !self.remainders.is_empty()
    }

    /// Looks at the whole batch, in which everything is written down. The sums do not hold where a sequence has room to spare: one that
    /// was preempted and is computed again but for its last token.
    fn count<H>(&mut self, running: &mut [Sequence<H>]) {
        self.remainders.fill(0);
        self.taken.fill(0);
        self.done_at.clear();
        (self.on, self.context, self.first_done) = (true, 0, u32::MAX);
        (self.ahead, self.in_step, self.granted, self.border) = (0, false, false, 0);
        for sequence in running {
            if sequence.is_decoding() {
                self.join(sequence);
                self.on &= !sequence.has_spare_block(self.remainders.len() as u32);
            } else {
                (sequence.in_step, sequence.decodes) = (0, false);
            }
        }
    }

    /// The sequence after the last one that decodes does so, too, from now on. Everything is written down.
    fn join<H>(&mut self, sequence: &Sequence<H>) {
        self.add(sequence.computed, sequence.output_tokens - sequence.generated);
    }

    /// One more decodes, with so many computed tokens, and so many steps until it has all its tokens.
    fn add(&mut self, computed: u32, left: u32) {
        self.first_done = if self.done_at.is_empty() { left } else { self.first_done.min(left) };
        self.done_at.push(self.ahead.wrapping_add(left));
        self.context += u64::from(computed);
        let at = self.place_of(computed);
        self.remainders[at] += 1;
        self.taken[at / 64] |= 1 << (at % 64);
    }

    /// The one at this place, with so many computed tokens, decodes no more.
    fn leave(&mut self, at: usize, computed: u32) {
        self.done_at.remove(at);
        self.context -= u64::from(computed);
        let at = self.place_of(computed);
        self.remainders[at] -= 1;
        if self.remainders[at] == 0 {
            self.taken[at / 64] &= !(1 << (at % 64));
        }
    }

    /// The first one from this place on that has all its tokens after so many steps more.
    fn done_after(&self, steps: u32, from: usize) -> Option<usize> {
        let done_at = self.ahead.wrapping_add(steps);
        self.done_at[from..].iter().position(|&at| at == done_at).map(|further| from + further)
    }

    /// Some have left: looks for the one that is done first.
    pub(super) fn look_for_first_done(&mut self) {
        let left = self.done_at.iter().map(|done_at| done_at.wrapping_sub(self.ahead));
        self.first_done = left.min().unwrap_or(u32::MAX);
    }

    /// The place in the ring of those with so many computed tokens.
    #[inline]
    fn place_of(&self, computed: u32) -> usize {
        let block_tokens = self.remainders.len();
        // The remainder of a small number by a small one, which has a faster instruction.
        let at = self.border + (computed % block_tokens as u32) as usize;
        if at >= block_tokens { at - block_tokens } else { at }
    }

    /// The place in the ring of those that lack `tokens` tokens to a whole block.
    fn lacking(&self, tokens: u32) -> usize {
        let mut back = tokens as usize;
        if back >= self.remainders.len() {
            back %= self.remainders.len();
        }
        if back <= self.border { self.border - back } else { self.border + self.remainders.len() - back }
    }

    /// How many of them need a block for their next token.
    fn at_border(&self) -> u32 {
        self.remainders[self.border]
    }

    /// How many blocks they need for `tokens` tokens more, the first `granted` of which have room.
    fn blocks(&self, granted: u32, tokens: u32) -> u32 {
        let block_tokens = self.remainders.len() as u32;
        let left = tokens.saturating_sub(granted);
        let (mut blocks, mut left) = (0, left);
        if left >= block_tokens {
            blocks = left / block_tokens * self.done_at.len() as u32;
            left %= block_tokens;
        }
        // From the place of those that lack so many tokens backwards, around the ring.
        let (end, left) = (self.lacking(granted) + 1, left as usize);
        if left <= end {
            return blocks + self.count_at(end - left, end);
        }
        blocks
            + self.count_at(0, end)
            + self.count_at(block_tokens as usize + end - left, block_tokens as usize)
    }

    /// How many are at the places `from..to` of the ring.
    fn count_at(&self, from: usize, to: usize) -> u32 {
        let mut count = 0;
        for word in from / 64..to.div_ceil(64) {
            let (skip, keep) = (from.saturating_sub(word * 64), (to - word * 64).min(64));
            let mut bits = self.taken[word] >> skip << skip & (u64::MAX >> (64 - keep));
            while bits != 0 {
                count += self.remainders[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
        }
        count
    }

    /// All have taken so many steps.
    fn pass(&mut self, steps: u32) {
        self.context += self.done_at.len() as u64 * u64::from(steps);
        self.first_done = self.first_done.saturating_sub(steps);
        self.ahead = self.ahead.wrapping_add(steps);
        self.border = self.lacking(steps);
    }
}

impl<P: Pool> Shard<P> {
    /// Plans the decodes of a step by sums, where that is possible and no block is missing; says how many decode.
    pub(super) fn plan_together(&mut self, survey: &mut Survey) -> Option<usize> {
        let Shard { steady, pool, running, .. } = self;
        if !self.leaps || !self.defers || !steady.is_possible() {
            return None;
        }
        if !steady.on {
            steady.count(running);
        }
        if !steady.on {
            return None;
        }
        let fresh = steady.at_border();
        if fresh > pool.available() {
            self.write_down();
            self.steady.on = false;
            return None;
        }
        pool.hand_out(fresh);
        (steady.in_step, steady.granted) = (true, true);
        let decoding = steady.done_at.len();
        survey.work.decode_seqs = decoding as u64;
        survey.work.decode_ctx_tokens = steady.context;
        survey.first_done = if decoding > 0 { steady.first_done } else { u32::MAX };
        Some(decoding)
    }

    /// Ends steps of the sequences that decode, by sums: gives their number. `goes_on`: the next step has begun, in the same leap.
    pub(super) fn pass_together(&mut self, steps: u32, goes_on: bool) -> Option<usize> {
        let Shard { steady, pool, totals, .. } = self;
        if !steady.on {
            return None;
        }
        pool.hand_out(steady.blocks(u32::from(steady.granted), steps + u32::from(goes_on)));
        steady.pass(steps);
        steady.granted = goes_on;
        let decoding = steady.done_at.len();
        totals.output_tokens += decoding as u64 * u64::from(steps);
        Some(decoding)
    }

    /// The step has ended: whether a sequence that decodes has all its tokens, as far as sums tell.
    pub(super) fn some_are_done(&mut self) -> bool {
        self.steady.in_step = false;
        self.steady.on && !self.steady.done_at.is_empty() && self.steady.first_done == 0
    }

    /// Takes those that have all their tokens out of the batch and out of the sums; false where there are no sums.
    pub(super) fn let_go_together(&mut self, now: Time, departed: &mut Vec<Departed>) -> bool {
        if !self.steady.on {
            return false;
        }
        let mut at = 0;
        while let Some(done) = self.steady.done_after(0, at) {
            let sequence = self.take_out(done);
            self.finish(sequence, now, departed);
            at = done;
        }
        self.steady.look_for_first_done();
        true
    }

    /// A hint to the processor: the sequence that has all its tokens first is about to be looked at.
    pub(super) fn first_done_approaches(&self) {
        if self.steady.on
            && let Some(place) = self.steady.done_after(self.steady.first_done, 0)
            && let Some(sequence) = self.running.get(place)
        {
            sequence.request.approaches();
            sequence.approaches();
        }
    }

    /// How many sequences the sums are of; the first ones of the batch.
    pub(super) fn decoding_together(&self) -> usize {
        if self.steady.on { self.steady.done_at.len() } else { 0 }
    }

    /// Takes a sequence out of the batch, and out of the sums if it decodes, between two steps.
    pub(super) fn take_out(&mut self, at: usize) -> Sequence<P::Held> {
        let mut sequence = self.running.remove(at);
        if at < self.decoding_together() {
            sequence.decode(self.steady.ahead);
            sequence.has_room(0, self.config.block_tokens);
            self.steady.leave(at, sequence.computed);
        }
        sequence
    }

    /// A prompt has been computed, and its sequence, the first one that did not decode, has its first token.
    pub(super) fn joins_together(&mut self, at: usize) {
        if !self.steady.on {
            return;
        }
        let sequence = &mut self.running[at];
        if sequence.is_done() {
            self.forget_sums();
        } else {
            self.steady.join(sequence);
            sequence.take_back(self.steady.ahead);
        }
    }

    /// Writes down in every sequence what it has computed, and looks at them one by one until the next step.
    pub(super) fn forget_sums(&mut self) {
        self.write_down();
        self.steady.on = false;
    }

    /// Writes down in every decoding sequence which tokens and which room it has.
    pub(super) fn write_down(&mut self) {
        let Shard { steady, running, config, .. } = self;
        if !steady.on {
            return;
        }
        let ahead = std::mem::take(&mut steady.ahead);
        steady.done_at.iter_mut().for_each(|at| *at = at.wrapping_sub(ahead));
        let (in_step, granted) = (u32::from(steady.in_step), u32::from(steady.granted));
        for sequence in &mut running[..steady.done_at.len()] {
            sequence.decode(ahead);
            sequence.has_room(granted, config.block_tokens);
            (sequence.in_step, sequence.decodes) = (in_step, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What a look at every sequence says.
        #[test]
        fn sums_are_those_of_the_sequences(
            block_tokens in prop_oneof![1u32..=70, 1u32..=600, Just(MOST_BLOCK_TOKENS)],
            script in proptest::collection::vec((0u32..500, 1u32..200, 0u32..2, proptest::option::of(0u32..300), any::<bool>()), 1..40),
        ) {
            let mut steady = Steady { first_done: u32::MAX, ..Steady::new(block_tokens) };
            let mut naive: Vec<(u32, u32)> = Vec::new();
            for (steps, left, granted, joins, leaves) in script {
                if let Some(computed) = joins {
                    steady.add(computed, left);
                    naive.push((computed, left));
                }
                if leaves && naive.len() > 1 {
                    // Never the one that is done first, whom the shard looks for itself.
                    let last = (0..naive.len()).max_by_key(|&at| naive[at].1).unwrap_or(0);
                    steady.leave(last, naive.remove(last).0);
                }
                let filled = |tokens: u32| -> u32 { naive.iter().map(|(computed, _)| (computed + tokens).div_ceil(block_tokens)).sum() };
                prop_assert_eq!(steady.at_border(), filled(1) - filled(0));
                prop_assert_eq!(steady.blocks(granted, steps), filled(steps.max(granted)) - filled(granted));
                steady.pass(steps);
                naive.iter_mut().for_each(|one| *one = (one.0 + steps, one.1.saturating_sub(steps)));
                prop_assert_eq!(steady.context, naive.iter().map(|one| u64::from(one.0)).sum::<u64>());
                prop_assert_eq!(steady.first_done, naive.iter().map(|one| one.1).min().unwrap_or(u32::MAX - steps));
                if naive.is_empty() {
                    steady.first_done = u32::MAX;
                }
            }
        }
    }
}
