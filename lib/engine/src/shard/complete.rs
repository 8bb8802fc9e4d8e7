//! The end of a step: what was computed becomes visible.

use super::sequence::Sequence;
use super::{Departed, Shard};
use crate::pool::Pool;
use cr_trace::Time;

impl<P: Pool> Shard<P> {
    /// Publishes what the step computed, hands out its tokens and lets finished requests go.
    pub(super) fn complete_step(&mut self, now: Time, departed: &mut Vec<Departed>) {
        let mut any_done = false;
        for sequence in &mut self.running {
            let fed = std::mem::take(&mut sequence.in_step);
            if fed == 0 {
                continue;
            }
            let to = sequence.computed + fed;
            sequence.advance(to, &mut self.totals);
            self.pool.publish(&mut sequence.held, to);
            if to == sequence.known() {
                if sequence.first_token_at.is_none() {
                    self.pending_tokens -= sequence.pending();
                    sequence.first_token_at = Some(now);
                }
                sequence.generated += 1;
                self.totals.output_tokens += 1;
                any_done |= sequence.generated == sequence.request.output_tokens;
            }
        }
        if any_done {
            self.let_go(now, departed);
        }
    }

    /// Takes finished requests out of the batch.
    fn let_go(&mut self, now: Time, departed: &mut Vec<Departed>) {
        let done =
            self.running.extract_if(.., |s| s.generated == s.request.output_tokens).collect::<Vec<_>>();
        for mut sequence in done {
            self.pool.release(&mut sequence.held);
            let in_time = self.config.timeout.is_none_or(|timeout| now <= sequence.arrival + timeout);
            self.totals.requests += u64::from(in_time);
            self.depart(sequence, now, in_time, departed);
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
        self.backend.forget(&sequence.request);
        departed.push(Departed {
            admitted: sequence.admitted,
            arrival: sequence.arrival,
            scheduled_at: sequence.scheduled_at,
            first_token_at: sequence.first_token_at,
            left_at: now,
            cached_tokens: sequence.cached,
            output_tokens: sequence.generated,
            preemptions: sequence.preemptions,
            finished,
            request: sequence.request,
        });
    }
}
