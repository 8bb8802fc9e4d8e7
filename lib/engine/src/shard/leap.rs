//! Uneventful steps, taken in one leap.
//!
//! A step is uneventful if the next one feeds the same sequences as many tokens each: nobody joins, nobody finishes or has
//! its first token, no time runs out and no block is missing. So every decoding sequence feeds one token, and at most one
//! prompt is computed, in chunks that take all that is left of the budget. Contexts then grow by a constant from step to
//! step and durations, linear in them, too: their sum has a closed form. Time is whole picoseconds, so a leap ends exactly
//! where single steps would have.
//!
//! A leap ends with the first step whose end matters. It is cut short where something comes in between
//! ([`Shard::interrupt_leap`], [`Shard::cut_leap`]), and caught up with where somebody looks ([`Shard::catch_up`]).

use super::Shard;
use super::schedule::Survey;
use super::sequence::Sequence;
use crate::pool::Pool;
use cr_trace::{ContentId, Request, Time};

/// Steps in a row, of which the first one is in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leap {
    /// When the first one started.
    start: Time,
    /// How long the first one takes.
    first: Time,
    /// How much longer each takes than the one before it.
    growth: Time,
    /// How many there are, at least one; only the last one's end matters.
    steps: u32,
    /// The budget is spent: nobody can join.
    full: bool,
}

impl Leap {
    /// A single step.
    pub(super) fn single(start: Time, duration: Time) -> Leap {
        Leap { start, first: duration, growth: Time::ZERO, steps: 1, full: false }
    }

    /// How long the first `steps` steps take: n·first + growth·n(n − 1)/2.
    #[inline]
    fn lasting(&self, steps: u32) -> Time {
        let n = u64::from(steps);
        let pairs = n * n.saturating_sub(1) / 2;
        Time(n.saturating_mul(self.first.0).saturating_add(self.growth.0.saturating_mul(pairs)))
    }

    /// About how many steps last for so long: the root of n·first + growth·n(n − 1)/2 = span.
    fn about(&self, span: Time) -> u32 {
        let (span, growth) = (span.0 as f64, self.growth.0 as f64);
        let first = (self.first.0 as f64 - growth / 2.0).max(1.0);
        // The form of the root that also holds without growth. A float to integer cast saturates.
        (2.0 * span / (first + (first * first + 2.0 * growth * span).sqrt())) as u32
    }

    /// How many steps there are.
    pub(super) fn steps(&self) -> u32 {
        self.steps
    }

    /// How long all steps take.
    pub(super) fn duration(&self) -> Time {
        self.lasting(self.steps)
    }

    /// How many steps there are up to the first that ends at `limit` or later, or all of them.
    #[inline]
    fn count_to(&self, limit: Time) -> u32 {
        let span = limit.since(self.start);
        // Mostly the instant lies beyond all of them.
        if self.steps == 1 || self.lasting(self.steps - 1) < span {
            return self.steps;
        }
        // Times are whole, so a guess is made good exactly.
        let mut before = self.about(span).min(self.steps - 1);
        while before > 0 && self.lasting(before) >= span {
            before -= 1;
        }
        while self.lasting(before + 1) < span {
            before += 1;
        }
        before + 1
    }

    /// Time spent in the steps up to `now`.
    pub(super) fn busy(&self, now: Time) -> Time {
        now.since(self.start).min(self.duration())
    }
}

impl<P: Pool> Shard<P> {
    /// The step that was planned, and the uneventful ones that follow it.
    pub(super) fn leap_from(&mut self, start: Time, duration: Time, survey: &Survey) -> Leap {
        let work = &survey.work;
        let single = Leap::single(start, duration);
        let full = work.decode_seqs + work.prefill_tokens == u64::from(self.config.token_budget);
        if !self.leaps || self.pace != 1.0 || !(full || (work.prefill_tokens == 0 && self.queue_stays())) {
            return single;
        }
        let Some(cost) = &self.timed else { return single };
        let growth = cost.growth(work);
        let steps = self.steps_alike(survey);
        let mut leap = Leap { steps, growth, full, ..single };
        if let Some(expiry) = self.expiry() {
            // A step that starts at that time or later looks who is late.
            leap.steps = leap.count_to(expiry);
        }
        if leap.steps > 1 {
            leap.steps = self.steps_with_room(leap.steps, survey);
        }
        // Times beyond all clocks are left to single steps.
        if leap.duration().0 > u64::MAX / 4 { single } else { leap }
    }

    /// How many steps feed the same sequences as many tokens as the one that was planned, and end nothing but the last.
    fn steps_alike(&self, survey: &Survey) -> u32 {
        let Some(at) = survey.prompt else { return survey.first_done };
        let sequence = &self.running[at];
        if u64::from(sequence.in_step) < survey.work.prefill_tokens || self.is_answered(&sequence.request) {
            // Two prompts, or one that has what others are about to publish.
            return 1;
        }
        survey.first_done.min((sequence.known() - sequence.computed) / sequence.in_step)
    }

    /// Whether nobody who waits could join before a sequence leaves, though the budget is not spent.
    fn queue_stays(&self) -> bool {
        let Some(head) = self.waiting.front() else { return true };
        // The head was refused: the batch is full, or blocks are missing. Meanwhile there are only ever fewer, unless one
        // that runs publishes what the head asks for.
        self.running.len() >= self.config.max_running as usize || !self.is_answered(head.request())
    }

    /// Whether a prompt has, or goes on with, the answer that a running sequence is decoding.
    fn is_answered(&self, request: &Request) -> bool {
        let answer = |id: &ContentId| request.prompt.iter().any(|segment| segment.content() == id);
        self.answers_are_asked
            && request.prompt.outline().has_answers()
            && self.running.iter().any(|s| {
                s.generated > 0 && s.request.id != request.id && answer(&ContentId::answer(s.request.id))
            })
    }

    /// The most steps, up to `most`, that the pool has room for and in which nobody publishes what is there already.
    fn steps_with_room(&mut self, most: u32, survey: &Survey) -> u32 {
        let mut steps = most;
        let available = self.pool.available();
        // Everybody has room for what is known, so this is the most that can be missing.
        let bound = self.running.len() as u64 * u64::from((steps - 1) / self.config.block_tokens + 1);
        if bound > u64::from(available) {
            self.write_down();
        }
        let Shard { pool, running, defers, .. } = self;
        let lacks =
            |steps: u32| -> u32 { running.iter().map(|s| s.lacks(pool, s.known() + steps - 1)).sum() };
        if bound > u64::from(available) && lacks(steps) > available {
            // The first step has its room, so one is always enough.
            let (mut low, mut high) = (1, steps);
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                if lacks(middle) <= available { low = middle } else { high = middle }
            }
            steps = low;
        }
        let meets = |s: &mut Sequence<P::Held>| {
            let s = &mut *s.state;
            s.in_step > 0 && pool.meets(&mut s.held, s.computed + s.in_step * steps)
        };
        // Nobody but itself knows of an answer that is not published, and there is one prompt at most.
        let meets = match (*defers, survey.prompt) {
            (true, None) => false,
            (true, Some(at)) => meets(&mut running[at]),
            (false, _) => running.iter_mut().any(meets),
        };
        if meets { 1 } else { steps }
    }

    /// A request was put into the queue at `now`: a leap that it could join ends with the step in progress. Returns the new end,
    /// or `None` where it is the old one.
    pub fn interrupt_leap(&mut self, now: Time) -> Option<Time> {
        let full = self.running.len() >= self.config.max_running as usize;
        let spent = self.step.is_some_and(|leap| leap.full);
        // Whoever waits behind a head that cannot join does not join either.
        if self.waiting.len() == 1 && !full && !spent {
            return self.cut_leap(now);
        }
        // One that comes from a shard that died may be late already; steps that have begun are not undone.
        let until = self.expiry()?.max(now);
        self.shorten(|leap| leap.count_to(until))
    }

    /// Makes the leap end with the step that is in progress at `now`; one that ends just then counts as the one in
    /// progress. Returns the new end, or `None` where it is the old one.
    pub fn cut_leap(&mut self, now: Time) -> Option<Time> {
        self.shorten(|leap| leap.count_to(now))
    }

    fn shorten(&mut self, to: impl FnOnce(&Leap) -> u32) -> Option<Time> {
        let leap = self.step.as_mut().filter(|leap| leap.steps > 1)?;
        let steps = to(leap);
        (steps < leap.steps).then(|| {
            leap.steps = steps;
            leap.start + leap.duration()
        })
    }

    /// Brings totals, sequences and pool up to `now`, within a leap. `started`: whether a step that starts at `now` has started.
    pub fn catch_up(&mut self, now: Time, started: bool) {
        let Some(leap) = self.step.filter(|leap| leap.steps > 1) else { return };
        let ended = leap.count_to(now + Time(1)) - 1;
        if ended > 0 {
            let at_border = leap.start + leap.lasting(ended) == now;
            self.pass(ended, started || !at_border);
        }
    }

    /// Ends the first steps of a leap, all but the last at most. `goes_on`: the next one has started.
    pub(super) fn pass(&mut self, steps: u32, goes_on: bool) {
        let Some(leap) = self.step.as_mut().filter(|_| steps > 0) else { return };
        self.totals.busy += leap.lasting(steps);
        *leap = Leap {
            start: leap.start + leap.lasting(steps),
            first: leap.first + Time(leap.growth.0 * u64::from(steps)),
            steps: leap.steps - steps,
            ..*leap
        };
        self.totals.steps += u64::from(steps);
        let together = self.pass_together(steps, goes_on).unwrap_or(0);
        let Shard { running, pool, totals, defers, .. } = self;
        let states = running[together..].iter_mut().map(|one| &mut *one.state);
        for sequence in states.filter(|sequence| sequence.in_step > 0) {
            if sequence.decodes {
                sequence.decode(steps);
                totals.output_tokens += u64::from(steps);
                // Before the blocks that come to be full are published, there must be so many.
                sequence.grow(pool, sequence.computed + u32::from(goes_on));
                if !*defers {
                    sequence.publish(pool);
                }
            } else {
                sequence.advance(sequence.computed + steps * sequence.in_step, totals);
                // Whoever could look for it joins after the last step.
                if !*defers {
                    sequence.publish(pool);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Steps counted one by one.
        #[test]
        fn steps_are_counted_to_an_instant(
            (start, first, growth) in (0u64..1_000, 1u64..1_000_000_000, prop_oneof![Just(0), 0u64..10, 0u64..100_000_000]),
            steps in 1u32..400,
            (near, off) in (0u32..420, 0u64..3),
        ) {
            let leap = Leap { growth: Time(growth), steps, ..Leap::single(Time(start), Time(first)) };
            let limit = Time((leap.start + leap.lasting(near)).0.saturating_sub(1) + off);
            let naive = (1..steps).find(|&n| leap.start + leap.lasting(n) >= limit).unwrap_or(steps);
            prop_assert_eq!(leap.count_to(limit), naive);
        }

        #[test]
        fn durations_are_sums(first in any::<u64>(), growth in any::<u64>(), steps in any::<u32>()) {
            let leap = Leap { growth: Time(growth), steps, ..Leap::single(Time::ZERO, Time(first)) };
            let n = u128::from(steps);
            let sum = n * u128::from(first) + u128::from(growth) * (n * n.saturating_sub(1) / 2);
            prop_assert_eq!(leap.duration(), Time(u64::try_from(sum).unwrap_or(u64::MAX)));
        }
    }
}
