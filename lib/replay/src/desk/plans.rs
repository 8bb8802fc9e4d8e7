//! Plans: from the head of the trace, of an interval, or given.

use super::Desk;
use crate::ReplayError;
use crate::arrivals::Arrival;
use crate::control::{Control, Planned};
use crate::learn::{Learner, PlanFor, PlanFrom};
use crate::serving::Serving;
use cr_report::events::Event;
use cr_routing::RoutingTable;
use cr_routing::planner::Fleet as PlannedFleet;
use cr_trace::{Request, Time, TraceError};
use std::sync::Arc;

impl<S: Serving, I: Iterator<Item = Result<Arc<Request>, TraceError>>> Desk<'_, S, I> {
    /// Counts a request for the plans to come, and plans from the head of the trace when that has passed.
    pub(super) fn learn(&mut self, arrival: &Arrival) -> Result<(), ReplayError> {
        if arrival.ordinal < self.head_requests {
            if let Some((learner, _)) = &mut self.learner {
                learner.record(&arrival.request);
            }
            return Ok(());
        }
        if let Some((learner, options)) = self.learner.take() {
            self.plan_head(learner, &options)?;
        }
        if let Some(control) = &mut self.control {
            control.record(&arrival.request);
        }
        Ok(())
    }

    /// The plan from the head of the trace; the control loop begins with it.
    fn plan_head(&mut self, learner: Learner, options: &PlanFrom) -> Result<(), ReplayError> {
        self.control = self.spec.replan.map(|replan| Control::new(replan, self.now));
        if self.control.as_ref().is_some_and(Control::is_fresh) {
            return self.plan_interval(false);
        }
        let learnt = learner.finish(None).map_err(ReplayError::Plan)?;
        let plan = PlanFor {
            fleet: self.planned_fleet(),
            kv_tokens: self.fleet.kv_tokens(),
            qcap: options.qcap,
            warm_slots: options.warm_slots,
            from_s: self.now.as_s(),
            in_sample: false,
            previous: None,
        };
        let table = learnt.plan(plan).map_err(|e| ReplayError::Plan(e.to_string()))?;
        self.install(Arc::new(table))
    }

    /// The shards as the planner sees them: all alike, but for those that are down. Where all are, the plan is for when they return.
    fn planned_fleet(&self) -> PlannedFleet {
        let views = self.fleet.views();
        let none_up = views.iter().all(|view| !view.up);
        PlannedFleet::with_speeds(views.iter().map(|view| f64::from(u8::from(view.up || none_up))).collect())
    }

    /// Plans an interval of the control loop: the next one, or the one that has just begun.
    pub(super) fn plan_interval(&mut self, next: bool) -> Result<(), ReplayError> {
        let fleet = self.planned_fleet();
        let Some(control) = &mut self.control else { return Ok(()) };
        let table = self.routers.table().cloned();
        let planned = Planned { fleet, kv_tokens: self.fleet.kv_tokens(), table: table.as_deref() };
        let ends = control.ends_at() + if next { control.interval() } else { Time::ZERO };
        let ahead = control.is_fresh().then(|| self.arrivals.look_ahead(ends)).into_iter().flatten();
        let table = if next { control.next(ahead, &planned) } else { control.plan(ahead, &planned) };
        match table.map_err(|e| ReplayError::Plan(e.to_string()))? {
            Some(table) => self.install(Arc::new(table)),
            None => Ok(()),
        }
    }

    pub(super) fn install(&mut self, table: Arc<RoutingTable>) -> Result<(), ReplayError> {
        let plan = self.routers.install(table, self.now);
        self.fleet.lift_protection(self.now);
        self.narrator.event(Event::Plan(plan))
    }
}
