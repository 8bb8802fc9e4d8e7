//! The end of a step: what was computed becomes visible.

use super::sequence::Sequence;
use super::waiting::{Newcomer, Waiting};
use super::{Departed, Shard};
use crate::pool::Pool;
use cr_trace::{Request, Time};
use std::iter::once_with;

impl<P: Pool> Shard<P> {
    /// Publishes what so many equal steps computed, hands out their tokens and lets finished requests go.
    pub(super) fn complete_steps(&mut self, steps: u32, now: Time, departed: &mut Vec<Departed>) {
        let together = self.pass_together(steps, false).unwrap_or(0);
        // One that was preempted decodes again as soon as all but its last token are computed.
        let mut decodes_again = false;
        let (mut any_done, mut decoded, mut joined) = (self.some_are_done(), 0, together..together);
        let Shard { running, pool, totals, pending_tokens, defers, .. } = self;
        for sequence in running[together..].iter_mut().map(|one| &mut *one.state) {
            let fed = std::mem::take(&mut sequence.in_step);
            if fed == 0 {
                continue;
            }
            if sequence.decodes {
                sequence.decode(steps);
                decoded += u64::from(steps);
                any_done |= sequence.is_done();
                // Before the blocks that come to be full are published, there must be so many.
                sequence.grow(pool, sequence.computed);
                if !*defers {
                    sequence.publish(pool);
                }
                continue;
            }
            sequence.advance(sequence.computed + steps * fed, totals);
            sequence.publish(pool);
            if sequence.computed == sequence.known() {
                if sequence.first_token_at.is_none() {
                    *pending_tokens -= sequence.pending();
                    sequence.first_token_at = Some(now);
                }
                sequence.generated += 1;
                decoded += 1;
                joined.end += 1;
                any_done |= sequence.is_done();
            } else {
                decodes_again |= sequence.is_decoding();
            }
        }
        self.totals.output_tokens += decoded;
        joined.for_each(|at| self.joins_together(at));
        if decodes_again {
            self.forget_sums();
        }
        // One that is done with its first token ends the sums.
        if any_done && !self.let_go_together(now, departed) {
            self.let_go(now, departed);
        }
    }

    /// Takes finished requests out of the batch.
    fn let_go(&mut self, now: Time, departed: &mut Vec<Departed>) {
        let mut at = 0;
        while at < self.running.len() {
            if !self.running[at].is_done() {
                at += 1;
                continue;
            }
            let sequence = self.running.remove(at);
            self.finish(sequence, now, departed);
        }
    }

    /// One that has all its tokens lets go of its blocks and leaves.
    pub(super) fn finish(
        &mut self,
        mut sequence: Sequence<P::Held>,
        now: Time,
        departed: &mut Vec<Departed>,
    ) {
        sequence.release(&mut self.pool);
        let in_time = now <= self.config.deadline(sequence.arrival);
        self.totals.requests += u64::from(in_time);
        self.depart(sequence, now, in_time, departed);
    }

    /// One that waits leaves without having all its tokens.
    pub(super) fn turn_away(&mut self, one: Waiting<P::Held>, now: Time, departed: &mut Vec<Departed>) {
        let Newcomer { request, prompt_tokens, arrival, admitted } = match one {
            Waiting::New(newcomer) => newcomer,
            Waiting::Seen(sequence) => return self.depart(sequence, now, false, departed),
        };
        self.pending_tokens -= u64::from(prompt_tokens);
        self.forget(&request);
        departed.extend(once_with(|| Departed {
            request,
            admitted,
            arrival,
            scheduled_at: None,
            first_token_at: None,
            left_at: now,
            prompt_tokens,
            cached_tokens: 0,
            output_tokens: 0,
            preemptions: 0,
            finished: false,
        }));
    }

    /// A backend that computes nothing remembers nothing.
    fn forget(&mut self, request: &Request) {
        if self.timed.is_none() {
            self.backend.forget(request);
        }
    }

    /// Writes down how a request left.
    pub(super) fn depart(
        &mut self,
        sequence: Sequence<P::Held>,
        now: Time,
        finished: bool,
        departed: &mut Vec<Departed>,
    ) {
        self.pending_tokens -= sequence.pending();
        let Sequence { request, state } = sequence;
        self.forget(&request);
        // Made in its place: what was just written in parts is not copied as a whole.
        departed.extend(once_with(|| Departed {
            admitted: state.admitted,
            arrival: state.arrival,
            scheduled_at: state.scheduled_at,
            first_token_at: state.first_token_at,
            left_at: now,
            prompt_tokens: state.prompt_tokens,
            cached_tokens: state.cached,
            output_tokens: state.generated,
            preemptions: state.preemptions,
            finished,
            request,
        }));
        self.left.push(state);
    }
}
