//! Tells what happens: events out, and the summary that follows from them.

use crate::ReplayError;
use crate::ledger::Ledger;
use crate::serving::Serving;
use crate::sink::EventSink;
use cr_engine::Departed;
use cr_report::aggregate::Aggregator;
use cr_report::events::{Detail, Event, Fail, FailReason, Finish, Header, SHARDS_EVERY_S, Warning};
use cr_report::summary::Summary;
use cr_trace::{Request, RequestId, ShardId, Time};

/// Why and where a request ended without an answer.
pub(crate) struct Failure {
    pub(crate) shard: Option<ShardId>,
    pub(crate) reason: FailReason,
    pub(crate) detail: Detail,
}

/// A request that ends without an answer.
#[derive(Clone, Copy)]
pub(crate) struct Gone<'a> {
    pub(crate) request: &'a Request,
    /// When it arrived; none where it never did.
    pub(crate) arrival: Option<Time>,
    /// Its place in the trace.
    pub(crate) ordinal: u64,
    /// How often it was sent again.
    pub(crate) retries: u32,
}

/// An idle fleet is told of every so often, once it has been idle for as long.
const QUIET: Time = Time(60_000_000_000_000);

/// Writes the events of one run and follows them.
pub(crate) struct Narrator<'a> {
    sink: &'a mut dyn EventSink,
    /// Something becomes of snapshots.
    snapshots_are_read: bool,
    /// Sums up the events; none where the sink does it on its own thread.
    aggregator: Option<Box<Aggregator>>,
    ledger: Ledger,
    warmup: Time,
    /// Requests of the trace before this place are not measured: they feed the plan, or let its caches settle.
    plan_requests: u64,
    next_snapshot: Time,
    /// When something last happened.
    seen: Time,
    /// When the measured window starts, once that is known; taken when it was told.
    window_start: Option<Time>,
    /// The window starts with a request that has not arrived yet.
    awaits_window: bool,
    finished: u64,
    finished_admitted: u64,
}

impl<'a> Narrator<'a> {
    pub(crate) fn new(header: Header, sink: &'a mut dyn EventSink) -> Result<Narrator<'a>, ReplayError> {
        let aggregator = Box::new(Aggregator::new(&header));
        let warmup = Time::from_s(header.warmup_s);
        let plan_requests = header.plan_requests;
        sink.take(Event::Header(header))?;
        let snapshots_are_read = sink.reads_snapshots();
        let aggregator = sink.follow(aggregator);
        Ok(Narrator {
            sink,
            snapshots_are_read,
            aggregator,
            ledger: Ledger::default(),
            warmup,
            plan_requests,
            next_snapshot: Time::from_s(SHARDS_EVERY_S),
            seen: Time::ZERO,
            window_start: (plan_requests == 0 && warmup > Time::ZERO).then_some(warmup),
            awaits_window: plan_requests > 0,
            finished: 0,
            finished_admitted: 0,
        })
    }

    pub(crate) fn event(&mut self, event: Event) -> Result<(), ReplayError> {
        let balance = self.ledger.event(&event);
        match &mut self.aggregator {
            Some(aggregator) => {
                aggregator.observe(&event);
                self.sink.event(&event)?;
            }
            // A sink that sums up by itself keeps events.
            None => self.sink.take(event)?,
        }
        Ok(balance?)
    }

    /// The trace offers a request.
    pub(crate) fn offered(&mut self, id: RequestId) -> Result<(), ReplayError> {
        if self.ledger.offered(id) {
            return Ok(());
        }
        Err(ReplayError::Config(format!(
            "request {id} comes again while it is still being served; ids are unique"
        )))
    }

    /// Something happens at `time`, if no snapshot is due before, as mostly none is; says whether it does.
    #[inline]
    pub(crate) fn pass(&mut self, time: Time) -> bool {
        let quiet = time <= self.next_snapshot && self.window_start.is_none();
        if quiet {
            self.seen = time;
        }
        quiet
    }

    /// Tells every snapshot that is due before `time`, when the next thing happens.
    pub(crate) fn snapshots_before(
        &mut self,
        time: Time,
        fleet: &mut impl Serving,
    ) -> Result<(), ReplayError> {
        loop {
            let due = self.next_snapshot;
            match self.window_start {
                // Before the snapshot of the same instant, so that nothing of the window is missed.
                Some(start) if start < time && start <= due => {
                    self.window_start = None;
                    self.event(Event::Shards(fleet.snapshot(start, true, true)))?;
                }
                _ if due < time => {
                    self.snapshot(due, fleet)?;
                    self.next_snapshot = self.snapshot_after(due, time, fleet.is_idle());
                }
                _ => {
                    self.seen = time;
                    return Ok(());
                }
            }
        }
    }

    /// The snapshot that is due. To look at every shard takes its time: where nobody reads what they have done so far, only their queues
    /// are told, unless it is time to sum it up.
    fn snapshot(&mut self, due: Time, fleet: &mut impl Serving) -> Result<(), ReplayError> {
        if let (false, Some(aggregator)) = (self.snapshots_are_read, &mut self.aggregator)
            && !aggregator.needs_counters(due.as_s())
            && let Some(longest) = fleet.longest_queue()
        {
            aggregator.observe_queues(due.as_s(), longest);
            return Ok(());
        }
        self.event(Event::Shards(fleet.snapshot(due, true, false)))
    }

    /// When the snapshot after the one at `due` comes, where nothing happens before `time`. A fleet that has been idle for a
    /// minute is told of once a minute: a week of silence must not fill a disk.
    fn snapshot_after(&self, due: Time, time: Time, idle: bool) -> Time {
        let every = Time::from_s(SHARDS_EVERY_S);
        if !idle || due.since(self.seen) < QUIET {
            return due + every;
        }
        let awake = Time(time.0.div_ceil(every.0) * every.0);
        (due + QUIET).min(awake).max(due + every)
    }

    /// A request arrives: with the first one that is to be measured the window starts, or at the end of the warm-up where
    /// that is later.
    pub(crate) fn arrival(
        &mut self,
        ordinal: u64,
        now: Time,
        fleet: &mut impl Serving,
    ) -> Result<(), ReplayError> {
        if !self.awaits_window || ordinal < self.plan_requests {
            return Ok(());
        }
        self.awaits_window = false;
        if now < self.warmup {
            self.window_start = Some(self.warmup);
            return Ok(());
        }
        self.event(Event::Shards(fleet.snapshot(now, false, true)))
    }

    fn measures(&self, ordinal: u64, now: Time) -> bool {
        ordinal >= self.plan_requests && now >= self.warmup
    }

    /// A request has all its tokens.
    pub(crate) fn finish(
        &mut self,
        departed: &Departed,
        shard: ShardId,
        ordinal: u64,
        retries: u32,
    ) -> Result<(), ReplayError> {
        let request = &departed.request;
        let arrival = departed.arrival;
        let (end, first) = (departed.left_at, departed.first_token_at.unwrap_or(departed.left_at));
        let scheduled = departed.scheduled_at.unwrap_or(first);
        let cached = u64::from(departed.cached_tokens);
        self.finished += 1;
        self.finished_admitted += u64::from(departed.admitted);
        self.event(Event::Finish(Finish {
            t_s: end.as_s(),
            id: request.id,
            key: request.key.clone(),
            tenant: request.tenant().clone(),
            shard,
            admitted: departed.admitted,
            arrival_s: arrival.as_s(),
            queue_s: scheduled.since(arrival).as_s(),
            ttft_s: first.since(arrival).as_s(),
            tpot_s: (departed.output_tokens > 1)
                .then(|| end.since(first).as_s() / f64::from(departed.output_tokens - 1)),
            e2e_s: end.since(arrival).as_s(),
            prompt_tokens: u64::from(departed.prompt_tokens),
            cached_tokens: cached,
            cached_by_scope: request.prompt.outline().tokens_by_scope(cached).into(),
            output_tokens: u64::from(departed.output_tokens),
            retries,
            preemptions: departed.preemptions,
            measured: self.measures(ordinal, end),
        }))
    }

    /// A request ends at `now` without an answer.
    pub(crate) fn fail(&mut self, gone: Gone<'_>, now: Time, failure: Failure) -> Result<(), ReplayError> {
        self.event(Event::Fail(Fail {
            t_s: now.as_s(),
            id: gone.request.id,
            key: gone.request.key.clone(),
            shard: failure.shard,
            reason: failure.reason,
            detail: failure.detail,
            arrival_s: gone.arrival.map(Time::as_s),
            retries: gone.retries,
            measured: self.measures(gone.ordinal, now),
        }))
    }

    /// A named warning.
    pub(crate) fn warn(&mut self, now: Time, name: &str, detail: String) -> Result<(), ReplayError> {
        self.event(Event::Warning(Warning { t_s: now.as_s(), name: name.into(), detail }))
    }

    /// How many requests have finished, and how many of those were of admitted keys.
    pub(crate) fn finished(&self) -> (u64, u64) {
        (self.finished, self.finished_admitted)
    }

    /// The last snapshot and the summary.
    pub(crate) fn end(
        mut self,
        now: Time,
        fleet: &mut impl Serving,
        complete: bool,
    ) -> Result<(Summary, Aggregator), ReplayError> {
        self.event(Event::Shards(fleet.snapshot(now, true, false)))?;
        self.ledger.close()?;
        let aggregator = match self.aggregator.take() {
            Some(aggregator) => aggregator,
            None => self.sink.followed()?.ok_or_else(|| {
                std::io::Error::other("the thread that writes events has not kept its sums")
            })?,
        };
        let summary = aggregator.summary(complete);
        self.sink.take(Event::Summary(Box::new(summary.clone())))?;
        self.sink.flush()?;
        Ok((summary, *aggregator))
    }
}
