//! Faults: a shard dies, returns, slows down or restarts, and what was on it goes elsewhere.

use super::Desk;
use crate::ReplayError;
use crate::arrivals::Arrival;
use crate::faults::FaultKind;
use crate::health::Change;
use crate::narrator::Failure;
use crate::serving::Serving;
use cr_engine::Departed;
use cr_report::events::{Event, FailReason, Fault as FaultEvent};
use cr_trace::{Request, ShardId, TraceError};
use std::sync::Arc;

impl<S: Serving, I: Iterator<Item = Result<Arc<Request>, TraceError>>> Desk<'_, S, I> {
    /// A fault begins or ends.
    pub(super) fn fault(
        &mut self,
        shard: ShardId,
        kind: FaultKind,
        change: Change,
    ) -> Result<(), ReplayError> {
        match (kind, change) {
            (_, Change::Dies) => {
                self.fleet.set_up(shard, false);
                self.routers.fault(shard, false);
                self.evacuate(shard, "down")
            }
            (_, Change::Returns) => {
                self.fleet.set_up(shard, true);
                self.observe(shard);
                self.routers.fault(shard, true);
                self.tell_fault(shard, "up", 0)
            }
            (_, Change::Paces(pace)) => {
                self.fleet.set_pace(shard, self.now, pace);
                self.tell_fault(shard, if pace == 1.0 { "paced" } else { "slow" }, 0)
            }
            (FaultKind::Cold, Change::Nothing) if !self.health.is_down(shard) => {
                self.routers.fault(shard, false);
                self.routers.fault(shard, true);
                self.evacuate(shard, "cold")
            }
            _ => Ok(()),
        }
    }

    /// Takes everything off a shard and sends it elsewhere.
    fn evacuate(&mut self, shard: ShardId, kind: &'static str) -> Result<(), ReplayError> {
        match self.fleet.evacuate(shard, self.now, kind) {
            Some(departed) => self.evacuated(shard, departed, kind),
            None => Ok(()),
        }
    }

    /// What was on a shard that died is sent elsewhere, once.
    pub(crate) fn evacuated(
        &mut self,
        shard: ShardId,
        departed: Vec<Departed>,
        kind: &'static str,
    ) -> Result<(), ReplayError> {
        self.observe(shard);
        let (again, lost): (Vec<_>, Vec<_>) =
            departed.into_iter().partition(|departed| !self.retried.contains(&departed.request.id));
        self.tell_fault(shard, kind, again.len() as u64)?;
        for departed in lost {
            let detail = "the shard that it was sent to again died as well".into();
            self.lose(
                shard,
                &departed,
                Failure { shard: Some(shard), reason: FailReason::ShardDown, detail },
            )?;
        }
        for departed in again {
            let id = departed.request.id;
            self.retried.insert(id);
            let ordinal = self.arrivals.ordinal(id);
            self.send(Arrival { request: departed.request, at: departed.arrival, ordinal })?;
        }
        self.cancel()
    }

    fn tell_fault(&mut self, shard: ShardId, kind: &str, rerouted: u64) -> Result<(), ReplayError> {
        let event = FaultEvent { t_s: self.now.as_s(), shard, kind: kind.into(), rerouted };
        self.narrator.event(Event::Fault(event))
    }
}
