//! How requests end: finished, failed, cancelled, interrupted. Each once.

use super::Desk;
use crate::ReplayError;
use crate::arrivals::Arrival;
use crate::narrator::{Failure, Gone};
use crate::serving::Serving;
use cr_engine::{Departed, Rejection};
use cr_report::events::{Detail, FailReason};
use cr_routing::policy::Departure;
use cr_trace::{Request, RequestId, ShardId, Time, TraceError};
use std::sync::Arc;

impl<S: Serving, I: Iterator<Item = Result<Arc<Request>, TraceError>>> Desk<'_, S, I> {
    /// A request that has arrived can be served nowhere.
    pub(super) fn fail(
        &mut self,
        request: &Request,
        (at, ordinal): (Time, u64),
        failure: Failure,
    ) -> Result<(), ReplayError> {
        let gone = Gone { request, arrival: Some(at), ordinal, retries: self.retries(request.id) };
        self.narrator.fail(gone, self.now, failure)?;
        self.arrivals.ended(request.id, self.now, false);
        self.cancel()
    }

    /// Tells of requests that will never arrive because their predecessor failed.
    pub(super) fn cancel(&mut self) -> Result<(), ReplayError> {
        while let Some((arrival, at)) = self.arrivals.next_cancelled() {
            let detail = match arrival.request.after {
                Some(predecessor) => format!("request {predecessor} failed at {} s", at.as_s()).into(),
                None => Detail::default(),
            };
            let failure = Failure { shard: None, reason: FailReason::PredecessorFailed, detail };
            self.narrator.fail(never_arrived(&arrival), self.now, failure)?;
            self.arrivals.ended(arrival.request.id, self.now, false);
        }
        Ok(())
    }

    /// Tells of the requests that have left a shard.
    pub(crate) fn see_off(&mut self, shard: ShardId, departed: &[Departed]) -> Result<(), ReplayError> {
        self.observe(shard);
        for departed in departed {
            if departed.finished {
                self.finish(shard, departed)?;
            } else {
                let waited_s = departed.left_at.since(departed.arrival).as_s();
                let detail = Detail::NotFinishedAfter(waited_s);
                let failure = Failure { shard: Some(shard), reason: FailReason::Timeout, detail };
                self.lose(shard, departed, failure)?;
            }
        }
        self.cancel()
    }

    /// How often a request that ends was sent again.
    fn retries(&mut self, id: RequestId) -> u32 {
        u32::from(!self.retried.is_empty() && self.retried.remove(&id))
    }

    fn finish(&mut self, shard: ShardId, departed: &Departed) -> Result<(), ReplayError> {
        let id = departed.request.id;
        let (ordinal, retries) = (self.arrivals.ordinal(id), self.retries(id));
        self.narrator.finish(departed, shard, ordinal, retries)?;
        self.routers.finished(ordinal, &departure(departed, shard));
        self.arrivals.ended(id, self.now, true);
        Ok(())
    }

    /// A request leaves a shard for good without an answer.
    pub(super) fn lose(
        &mut self,
        shard: ShardId,
        departed: &Departed,
        failure: Failure,
    ) -> Result<(), ReplayError> {
        self.tell_lost(shard, departed, failure)?;
        self.arrivals.ended(departed.request.id, self.now, false);
        Ok(())
    }

    fn tell_lost(
        &mut self,
        shard: ShardId,
        departed: &Departed,
        failure: Failure,
    ) -> Result<(), ReplayError> {
        let id = departed.request.id;
        let (ordinal, retries) = (self.arrivals.ordinal(id), self.retries(id));
        let gone = Gone { request: &departed.request, arrival: Some(departed.arrival), ordinal, retries };
        self.narrator.fail(gone, self.now, failure)?;
        self.routers.finished(ordinal, &departure(departed, shard));
        Ok(())
    }

    /// Fails what was still on a shard when the run was stopped. Who waits for it was stopped as well: it is told at the end.
    pub(crate) fn interrupt(&mut self, shard: ShardId, departed: Vec<Departed>) -> Result<(), ReplayError> {
        departed.iter().try_for_each(|gone| self.tell_lost(shard, gone, interrupted(Some(shard))))
    }
}

/// One that waits for another request, or to be released.
pub(super) fn never_arrived(arrival: &Arrival) -> Gone<'_> {
    Gone { request: &arrival.request, arrival: None, ordinal: arrival.ordinal, retries: 0 }
}

fn departure(departed: &Departed, shard: ShardId) -> Departure<'_> {
    let output_tokens = departed.output_tokens;
    Departure {
        request: &departed.request,
        shard,
        at: departed.left_at,
        output_tokens,
        finished: departed.finished,
    }
}

pub(super) fn interrupted(shard: Option<ShardId>) -> Failure {
    Failure { shard, reason: FailReason::Interrupted, detail: "the run was stopped".into() }
}

/// A rejection as the events tell it.
pub(super) fn explain(rejection: &Rejection) -> (FailReason, Detail) {
    match rejection {
        Rejection::PromptTooLong { tokens, context } => {
            let detail = format!("{tokens} tokens of prompt and output, context is {context}");
            (FailReason::PromptTooLong, detail.into())
        }
        Rejection::PoolTooSmall { blocks, pool } => {
            (FailReason::PoolTooSmall, format!("{blocks} KV blocks needed, the pool has {pool}").into())
        }
    }
}
