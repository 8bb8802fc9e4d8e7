//! The start of a step: who computes what.

use super::sequence::Sequence;
use super::waiting::Waiting;
use super::{Departed, Shard};
use crate::backend::{Batch, BatchSeq};
use crate::pool::Pool;
use cr_cost::StepWork;
use cr_trace::Time;

impl<P: Pool> Shard<P> {
    /// Gives up requests whose time is up: they could not finish in time any more.
    #[inline]
    pub(super) fn expire(&mut self, now: Time, departed: &mut Vec<Departed>) {
        // Mostly nobody is late.
        if self.running_expiry <= now {
            self.expire_running(now, departed);
        }
        if self.waiting_expiry <= now {
            self.expire_waiting(now, departed);
        }
    }

    fn expire_running(&mut self, now: Time, departed: &mut Vec<Departed>) {
        let mut at = 0;
        while at < self.running.len() {
            if self.config.deadline(self.running[at].arrival) > now {
                at += 1;
                continue;
            }
            let mut sequence = self.take_out(at);
            sequence.release(&mut self.pool);
            self.depart(sequence, now, false, departed);
        }
        self.steady.look_for_first_done();
        let earliest = self.running.iter().map(|sequence| sequence.arrival).min();
        self.running_expiry = earliest.map_or(Time::MAX, |arrival| self.config.deadline(arrival));
    }

    fn expire_waiting(&mut self, now: Time, departed: &mut Vec<Departed>) {
        let config = self.config;
        let late = |one: &Waiting<P::Held>| config.deadline(one.arrival()) <= now;
        if !self.queue_in_order && self.waiting.iter().any(late) {
            let (gone, kept): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(late);
            self.waiting = kept.into();
            gone.into_iter().for_each(|one| self.turn_away(one, now, departed));
        }
        while self.queue_in_order
            && let Some(one) = self.waiting.pop_front_if(|one| late(one))
        {
            self.turn_away(one, now, departed);
        }
        let looked_at = if self.queue_in_order { self.waiting.len().min(1) } else { self.waiting.len() };
        let earliest = self.waiting.range(..looked_at).map(Waiting::arrival).min();
        self.waiting_expiry = earliest.map_or(Time::MAX, |arrival| self.config.deadline(arrival));
    }

    /// Decides for every sequence how many tokens it feeds (`in_step`), and sums up what the step does.
    pub(super) fn plan_step(&mut self, now: Time) -> Survey {
        let mut survey = Survey { work: StepWork::default(), first_done: u32::MAX, prompt: None };
        let mut budget = self.config.token_budget;
        let decoding = match self.plan_together(&mut survey) {
            Some(decoding) => {
                budget -= decoding as u32;
                decoding
            }
            None => self.plan_decodes(&mut budget, &mut survey),
        };
        // Prompts are computed in the order of the batch, so those that decode come first.
        for (at, sequence) in self.running.iter_mut().enumerate().skip(decoding) {
            debug_assert!(!sequence.decodes);
            sequence.in_step = budget.min(sequence.known() - sequence.computed);
            budget -= sequence.in_step;
            survey.add_prompt(at, sequence);
        }
        self.admit_waiting(now, budget, &mut survey);
        survey
    }

    /// Makes room for one token of every decoding sequence, preempting from the end of the batch where it must. Says how many
    /// decode.
    fn plan_decodes(&mut self, budget: &mut u32, survey: &mut Survey) -> usize {
        let (mut position, mut decoding) = (0, 0);
        while position < self.running.len() {
            let sequence = &mut *self.running[position].state;
            sequence.in_step = 0;
            sequence.decodes = sequence.is_decoding();
            if sequence.decodes && *budget > 0 {
                if !sequence.grow(&mut self.pool, sequence.known()) {
                    // The last one gives way, which may be this one itself; then this position is tried again.
                    self.preempt_last();
                    continue;
                }
                sequence.in_step = 1;
                *budget -= 1;
                survey.work.add_decode(u64::from(sequence.computed));
                survey.first_done = survey.first_done.min(sequence.output_tokens - sequence.generated);
            }
            decoding += usize::from(sequence.decodes);
            position += 1;
        }
        decoding
    }

    fn preempt_last(&mut self) {
        let Some(mut sequence) = self.running.pop() else { return };
        // It will come back and look for what it has computed.
        sequence.expose(&mut self.pool);
        sequence.release(&mut self.pool);
        sequence.computed = 0;
        sequence.in_step = 0;
        sequence.decodes = false;
        sequence.preemptions += 1;
        self.totals.preemptions += 1;
        self.queue_in_order &= self.waiting.front().is_none_or(|front| sequence.arrival <= front.arrival());
        self.waiting_expiry = self.waiting_expiry.min(self.config.deadline(sequence.arrival));
        self.waiting.push_front(Waiting::Seen(sequence));
    }

    /// Hints to the processor: whose turn it is next. The one after that is fetched first, as its outline is found through it.
    #[inline]
    fn next_approach(&self) {
        if let Some(next) = self.waiting.front() {
            next.request().prompt.outline_approaches();
        }
        if let Some(later) = self.waiting.get(1) {
            later.request().approaches();
        }
    }

    /// Lets waiting sequences join while the budget, the batch and the pool have room.
    fn admit_waiting(&mut self, now: Time, mut budget: u32, survey: &mut Survey) {
        while budget > 0 && self.running.len() < self.config.max_running as usize {
            let Some(first) = self.waiting.pop_front() else { return };
            self.next_approach();
            let mut sequence = first.sequence(&self.pool, &mut self.left);
            let known = sequence.known();
            // One token is always computed, so that there are logits to decode from.
            let most_cached = (known - 1) / self.config.block_tokens;
            let Some(found) = sequence.admit(&mut self.pool, most_cached) else {
                self.waiting.push_front(Waiting::Seen(sequence));
                return;
            };
            let found_tokens = found * self.config.block_tokens;
            if sequence.scheduled_at.is_none() {
                sequence.scheduled_at = Some(now);
                sequence.cached = found_tokens;
                sequence.reached = found_tokens;
                self.pending_tokens -= u64::from(found_tokens);
                self.totals.prompt_tokens += u64::from(sequence.prompt_tokens);
                self.totals.cached_tokens += u64::from(found_tokens);
            }
            sequence.computed = found_tokens;
            sequence.in_step = budget.min(known - found_tokens);
            budget -= sequence.in_step;
            survey.add_prompt(self.running.len(), &sequence);
            self.running_expiry = self.running_expiry.min(self.config.deadline(sequence.arrival));
            self.running.push(sequence);
        }
    }
}

/// What the planned step does.
pub(super) struct Survey {
    pub(super) work: StepWork,
    /// Steps until the first decoding sequence is done; `u32::MAX` where none decodes.
    pub(super) first_done: u32,
    /// The place of the last sequence whose prompt is computed.
    pub(super) prompt: Option<usize>,
}

impl Survey {
    /// The sequence at this place, which does not decode, feeds what was planned for it.
    fn add_prompt<H>(&mut self, at: usize, sequence: &Sequence<H>) {
        if sequence.in_step > 0 {
            self.work.add_prefill(u64::from(sequence.in_step), u64::from(sequence.computed));
            self.prompt = Some(at);
        }
    }
}

/// The planned step as its backend sees it: decodes first, then prefill chunks. `seqs` is an empty buffer.
pub(super) fn batch<'a, P: Pool>(
    running: &'a [Sequence<P::Held>],
    work: StepWork,
    pool: &P,
    seqs: Vec<BatchSeq<'a>>,
) -> Batch<'a> {
    let mut batch = Batch { seqs, work };
    for decoding in [true, false] {
        for sequence in running {
            if sequence.in_step == 0 || sequence.decodes != decoding {
                continue;
            }
            let (start, tokens) = (sequence.computed, sequence.in_step);
            batch.seqs.push(BatchSeq {
                request: &sequence.request,
                start,
                tokens,
                blocks: pool.table(&sequence.held),
                emits: start + tokens == sequence.known(),
            });
        }
    }
    batch
}
