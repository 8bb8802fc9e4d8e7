//! The control loop: a new plan every interval, from the rates of an earlier one.
//!
//! Interval 0 begins with the run, or behind the head that `--plan-from` learns from; interval i begins i · T later. The table
//! that holds in interval i is planned from the rates of interval i − 1 − k alone, where k is the *staleness* (0 unless asked
//! for): the newest rates that a real control loop could have are those of k = 0. Until there are such rates the table that
//! the run started with stays. *Fresh* plans interval i from the rates of interval i itself, by looking ahead in the
//! trace (at its own times, also in a closed loop): an oracle, whose loss is what rewarming alone costs. So
//! stale − fresh is the price of old rates, fresh − static tables that of moving prefixes.
//!
//! Shards that are down when a plan is made get no keys, unless all are. An interval without requests changes nothing.

use crate::learn::{Learner, Learnt, PlanFor};
use cr_routing::RoutingTable;
use cr_routing::planner::{ChurnLimits, Fleet, PlanError};
use cr_routing::rates::RateEstimator;
use cr_trace::number::plain;
use cr_trace::{Request, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The shortest control interval: below it a run plans and does nothing else.
const SHORTEST_S: f64 = 1e-3;

/// How to replan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replan {
    /// The control interval T, in seconds; above 0.
    pub interval_s: f64,
    /// How many intervals older than the last one the rates are.
    #[serde(default)]
    pub stale: u32,
    /// Plan each interval from its own requests: an oracle.
    #[serde(default)]
    pub fresh: bool,
    /// Bound on the churn of each new table, from 0 to 1; a plain plan, which owes nothing to the past, where absent.
    #[serde(default)]
    pub max_churn: Option<f64>,
    /// Count with decay instead of by interval: a count halves every so many requests.
    #[serde(default)]
    pub half_life: Option<f64>,
    /// As of [`crate::PlanFrom`].
    #[serde(default)]
    pub qcap: Option<f64>,
    /// As of [`crate::PlanFrom`].
    #[serde(default)]
    pub warm_slots: Option<f64>,
}

impl Replan {
    /// What cannot be meant, in words.
    pub fn fault(&self) -> Option<String> {
        let Replan { interval_s, half_life, max_churn, .. } = *self;
        if !(SHORTEST_S..=Time::MAX_S).contains(&interval_s) {
            let interval_s = plain(interval_s);
            return Some(format!(
                "the control interval is {interval_s} s; it lies between a millisecond and 173 days"
            ));
        }
        if self.fresh && self.stale > 0 {
            return Some("a plan is either fresh or stale; leave out one of the two".into());
        }
        if self.fresh && half_life.is_some() {
            return Some("a fresh plan counts its own interval; leave out the half-life".into());
        }
        if max_churn.is_some_and(|churn| !(0.0..=1.0).contains(&churn)) {
            return Some("max_churn is a share between 0 and 1".into());
        }
        half_life
            .filter(|n| !(n.is_finite() && *n > 0.0))
            .map(|n| format!("half_life is {n} requests; it is above 0"))
    }

    /// The length of an interval.
    pub(crate) fn interval(&self) -> Time {
        Time::from_s(self.interval_s)
    }
}

/// The fleet as a plan sees it.
pub(crate) struct Planned<'a> {
    pub(crate) fleet: Fleet,
    pub(crate) kv_tokens: u64,
    pub(crate) table: Option<&'a RoutingTable>,
}

/// Counts intervals and plans at their ends.
pub(crate) struct Control {
    options: Replan,
    /// Where the interval in progress began.
    began: Time,
    counted: Learner,
    decayed: Option<RateEstimator>,
    /// The rates of the last k + 1 intervals, oldest first.
    past: VecDeque<Option<Learnt>>,
}

impl Control {
    /// A loop whose interval 0 begins at `began`.
    pub(crate) fn new(options: Replan, began: Time) -> Control {
        let decayed = options.half_life.and_then(|half_life| RateEstimator::new(half_life, None));
        Control { options, began, counted: Learner::default(), decayed, past: VecDeque::new() }
    }

    /// When the interval in progress ends.
    pub(crate) fn ends_at(&self) -> Time {
        self.began + self.options.interval()
    }

    /// The length of an interval.
    pub(crate) fn interval(&self) -> Time {
        self.options.interval()
    }

    /// Whether plans are made from the requests they are for.
    pub(crate) fn is_fresh(&self) -> bool {
        self.options.fresh
    }

    /// Counts a request of the interval in progress.
    pub(crate) fn record(&mut self, request: &Request) {
        if self.options.fresh {
            return;
        }
        self.counted.record(request);
        if let Some(decayed) = &mut self.decayed {
            decayed.record(&request.key);
        }
    }

    /// Begins the next interval, and plans it where there are rates to plan from. `own` are the requests of that interval, for
    /// a fresh plan.
    pub(crate) fn next<'r>(
        &mut self,
        own: impl Iterator<Item = &'r Request>,
        planned: &Planned<'_>,
    ) -> Result<Option<RoutingTable>, PlanError> {
        self.close();
        self.began = self.ends_at();
        self.plan(own, planned)
    }

    /// The plan of the interval in progress.
    pub(crate) fn plan<'r>(
        &self,
        own: impl Iterator<Item = &'r Request>,
        planned: &Planned<'_>,
    ) -> Result<Option<RoutingTable>, PlanError> {
        let fresh;
        let learnt = if self.options.fresh {
            let mut learner = Learner::default();
            own.for_each(|request| learner.record(request));
            fresh = self.finish(learner);
            fresh.as_ref()
        } else if self.past.len() > self.options.stale as usize {
            self.past.front().and_then(Option::as_ref)
        } else {
            None
        };
        let Some(learnt) = learnt.filter(|_| planned.fleet.up() > 0) else { return Ok(None) };
        let limits = |max_churn| ChurnLimits { max_churn: Some(max_churn), move_cost: None };
        let plan = PlanFor {
            fleet: planned.fleet.clone(),
            kv_tokens: planned.kv_tokens,
            qcap: self.options.qcap,
            warm_slots: self.options.warm_slots,
            from_s: self.began.as_s(),
            in_sample: self.options.fresh,
            previous: planned.table.zip(self.options.max_churn.map(limits)),
        };
        learnt.plan(plan).map(Some)
    }

    /// Puts the counts of the interval in progress behind the others.
    fn close(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        let qps = counted.requests() as f64 / self.options.interval_s;
        let mut learnt = self.finish(counted);
        if let (Some(learnt), Some(decayed)) = (&mut learnt, &self.decayed) {
            learnt.rates = decayed.rates(qps);
        }
        if self.past.len() > self.options.stale as usize {
            self.past.pop_front();
        }
        self.past.push_back(learnt);
    }

    fn finish(&self, counted: Learner) -> Option<Learnt> {
        counted.finish(Some(self.options.interval_s)).ok()
    }
}
