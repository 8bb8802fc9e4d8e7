//! The ledger: checks every run against what must hold whatever the fleet, the policy and the faults.
//!
//! It is told which requests are offered and reads the events, and knows nothing of how they came about:
//!
//! * every offered request finishes or fails exactly once, and nothing else does;
//! * cached ≤ prompt tokens, arrival ≤ scheduling ≤ first token ≤ last token, and the last token is when the event says;
//! * a shard is busy no longer than the run has lasted, uses no more blocks than it has, and its counters never run back.
//!
//! Memory grows with the requests in flight, not with the run.

mod open;

use cr_report::events::{Event, Fail, Finish, ShardState, Shards};
use cr_trace::RequestId;
use open::OpenIds;

/// Rounding of times in events, in seconds, for every second of run time.
const ROUNDING: f64 = 1e-9;

/// A law that a run broke: a defect of the program, never of its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ledger does not balance, which is a defect of this program: {0}")]
pub struct Violation(String);

/// What is offered and not ended, and the counters as they were last seen.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    open: OpenIds,
    shards: Vec<ShardState>,
}

fn law(holds: bool, what: impl FnOnce() -> String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(Violation(what())) }
}

impl Ledger {
    /// A request is offered: it arrives, or waits for its predecessor. False where one of its id is in flight already.
    #[must_use]
    pub(crate) fn offered(&mut self, id: RequestId) -> bool {
        self.open.insert(id.0)
    }

    /// Reads one event.
    pub(crate) fn event(&mut self, event: &Event) -> Result<(), Violation> {
        match event {
            Event::Finish(finish) => self.finish(finish),
            Event::Fail(fail) => self.fail(fail),
            Event::Shards(snapshot) => self.snapshot(snapshot),
            _ => Ok(()),
        }
    }

    /// Nothing is left open at the end of the run.
    pub(crate) fn close(&self) -> Result<(), Violation> {
        match self.open.first() {
            None => Ok(()),
            Some(id) => Err(Violation(format!("request {id} was offered and never ended"))),
        }
    }

    fn end(&mut self, id: RequestId) -> Result<(), Violation> {
        law(self.open.remove(id.0), || format!("request {id} ended without being in flight: served twice?"))
    }

    fn finish(&mut self, finish: &Finish) -> Result<(), Violation> {
        let Finish { id, t_s, arrival_s, queue_s, ttft_s, e2e_s, .. } = *finish;
        self.end(id)?;
        let (cached, prompt) = (finish.cached_tokens, finish.prompt_tokens);
        law(cached <= prompt, || format!("request {id} found {cached} of {prompt} prompt tokens cached"))?;
        let slack = ROUNDING * t_s.max(1.0);
        let ordered = 0.0 <= queue_s && queue_s <= ttft_s + slack && ttft_s <= e2e_s + slack;
        law(ordered, || {
            format!(
                "request {id} was scheduled {queue_s} s, had its first token {ttft_s} s and its last {e2e_s} s after its arrival"
            )
        })?;
        law((arrival_s + e2e_s - t_s).abs() <= slack, || {
            format!("request {id} arrived at {arrival_s} s and took {e2e_s} s, but finished at {t_s} s")
        })
    }

    fn fail(&mut self, fail: &Fail) -> Result<(), Violation> {
        let Fail { id, t_s, arrival_s, .. } = *fail;
        self.end(id)?;
        law(arrival_s.is_none_or(|at_s| at_s <= t_s + ROUNDING * t_s.max(1.0)), || {
            format!("request {id} failed at {t_s} s, before it arrived")
        })
    }

    fn snapshot(&mut self, snapshot: &Shards) -> Result<(), Violation> {
        let t_s = snapshot.t_s;
        for state in &snapshot.shards {
            let ShardState { shard, busy_s, kv_used_blocks: used, kv_total_blocks: blocks, .. } = *state;
            law(busy_s <= t_s + ROUNDING * t_s.max(1.0), || {
                format!("shard {shard} was busy for {busy_s} s within {t_s} s")
            })?;
            law(used <= blocks && state.kv_protected_blocks <= used, || {
                format!(
                    "shard {shard} uses {used} of {blocks} blocks, {} of them protected",
                    state.kv_protected_blocks
                )
            })?;
            law(state.cached_tokens <= state.prompt_tokens, || {
                format!("shard {shard} found more cached than was asked for")
            })?;
            if let Some(before) = self.shards.get(shard.index()) {
                law(
                    counters(before).iter().zip(counters(state)).all(|(before, now)| *before <= now),
                    || format!("a counter of shard {shard} ran back by {t_s} s"),
                )?;
            }
        }
        self.shards.clone_from(&snapshot.shards);
        Ok(())
    }
}

/// What only ever grows.
fn counters(state: &ShardState) -> [u64; 8] {
    [
        state.requests,
        state.prompt_tokens,
        state.cached_tokens,
        state.computed_tokens,
        state.output_tokens,
        state.recomputed_tokens,
        state.evicted_blocks,
        state.preemptions,
    ]
}

#[cfg(test)]
mod tests;
