//! Which request arrives next: the trace's own order, and the closed loop.
//!
//! A request with `after` is released at max(t_s, finish of its predecessor + think_s); if its predecessor fails it
//! never arrives. Memory holds the requests in flight or waiting for one, and the ends of about the last million requests: a
//! predecessor that ended before those counts as finished long ago.

mod known;

use cr_trace::{Request, RequestId, Time, TraceError};
use known::{Fate, Known};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// A request that arrives.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) request: Arc<Request>,
    /// The intended arrival, or the release in a closed loop.
    pub(crate) at: Time,
    /// Its place in the trace, from 0.
    pub(crate) ordinal: u64,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Arrival) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Arrival) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Earliest is greatest, for the heap; equal times in the order of the trace.
impl Ord for Arrival {
    fn cmp(&self, other: &Arrival) -> Ordering {
        (other.at, other.ordinal).cmp(&(self.at, self.ordinal))
    }
}

/// How a request ended, for those that wait for it.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Time,
    finished: bool,
}

/// What became of the request whose turn it was.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// A request that the trace offers for the first time.
    pub(crate) offered: Option<RequestId>,
    /// A request that arrives; none where the one whose turn it was has to wait for its predecessor, or is cancelled.
    pub(crate) arrival: Option<Arrival>,
}

/// Merges the trace with the releases of the closed loop.
pub(crate) struct Arrivals<I> {
    trace: I,
    /// Requests that were read before their turn, in order.
    ahead: VecDeque<Arc<Request>>,
    /// What went wrong where reading ahead came to; told once those before it have had their turn.
    broken: Option<TraceError>,
    places: u64,
    head: Option<Arrival>,
    released: BinaryHeap<Arrival>,
    known: Known,
    waiting: FxHashMap<RequestId, Vec<Arrival>>,
    /// Requests that will never arrive because their predecessor failed, and when that was known.
    cancelled: Vec<(Arrival, Time)>,
}

impl<I: Iterator<Item = Result<Arc<Request>, TraceError>>> Arrivals<I> {
    pub(crate) fn new(trace: I) -> Arrivals<I> {
        Arrivals {
            trace,
            ahead: VecDeque::new(),
            broken: None,
            places: 0,
            head: None,
            released: BinaryHeap::new(),
            known: Known::default(),
            waiting: FxHashMap::default(),
            cancelled: Vec::new(),
        }
    }

    /// Reads the trace ahead and gives the requests that it has before `until`, by its own times, and whose turn has not come.
    pub(crate) fn look_ahead(&mut self, until: Time) -> impl Iterator<Item = &Request> {
        while self.broken.is_none() && self.ahead.back().is_none_or(|request| request.arrival() < until) {
            match self.trace.next() {
                Some(Ok(request)) => self.ahead.push_back(request),
                Some(Err(error)) => self.broken = Some(error),
                None => break,
            }
        }
        let head = self.head.as_ref().map(|arrival| &*arrival.request);
        head.into_iter()
            .chain(self.ahead.iter().map(|request| &**request))
            .take_while(move |request| request.arrival() < until)
    }

    /// The next request of the trace.
    fn read(&mut self) -> Result<Option<Arc<Request>>, TraceError> {
        match self.ahead.pop_front() {
            Some(request) => Ok(Some(request)),
            None => match self.broken.take() {
                Some(error) => Err(error),
                None => self.trace.next().transpose(),
            },
        }
    }

    /// When the next request arrives, reading the trace as far as needed; `None` when none is known of now.
    pub(crate) fn next_at(&mut self) -> Result<Option<Time>, TraceError> {
        if self.head.is_none()
            && let Some(request) = self.read()?
        {
            let at = request.arrival();
            self.head = Some(Arrival { request, at, ordinal: self.places });
            self.places += 1;
        }
        let (head, released) = (self.head.as_ref(), self.released.peek());
        Ok(match (head, released) {
            (Some(head), Some(released)) => Some(head.at.min(released.at)),
            (one, other) => one.or(other).map(|arrival| arrival.at),
        })
    }

    /// How many requests of the closed loop have been released and have not been taken.
    #[inline]
    pub(crate) fn released(&self) -> usize {
        self.released.len()
    }

    /// Takes the next request.
    pub(crate) fn take(&mut self) -> Taken {
        if self.head.is_none() || (!self.released.is_empty() && self.released.peek() > self.head.as_ref()) {
            return Taken { offered: None, arrival: self.released.pop() };
        }
        let Some(arrival) = self.head.take() else { return Taken::default() };
        Taken { offered: Some(arrival.request.id), arrival: self.follow_predecessor(arrival) }
    }

    /// A request of the trace, where it need not wait for another.
    fn follow_predecessor(&mut self, arrival: Arrival) -> Option<Arrival> {
        let Some(predecessor) = arrival.request.after else {
            self.known.live(arrival.request.id.0, arrival.ordinal);
            return Some(arrival);
        };
        let fate = self.known.fate(predecessor.0);
        self.known.live(arrival.request.id.0, arrival.ordinal);
        match fate {
            Fate::Ended { at, finished } => {
                self.follow(arrival, End { at, finished });
                None
            }
            Fate::Live(_) => {
                self.waiting.entry(predecessor).or_default().push(arrival);
                None
            }
            Fate::Unknown => Some(arrival),
        }
    }

    /// Releases or cancels a request whose predecessor has ended.
    fn follow(&mut self, mut arrival: Arrival, end: End) {
        if end.finished {
            let think = Time::from_s(arrival.request.think_s.unwrap_or(0.0));
            arrival.at = arrival.at.max(end.at + think);
            self.released.push(arrival);
        } else {
            self.cancelled.push((arrival, end.at));
        }
    }

    /// The place in the trace of a request that has not ended.
    pub(crate) fn ordinal(&self, id: RequestId) -> u64 {
        match self.known.fate(id.0) {
            Fate::Live(ordinal) => ordinal,
            _ => 0,
        }
    }

    /// A request has ended at `at`: those that wait for it are released or cancelled.
    pub(crate) fn ended(&mut self, id: RequestId, at: Time, finished: bool) {
        self.known.ended(id.0, at, finished);
        if self.waiting.is_empty() {
            return;
        }
        for arrival in self.waiting.remove(&id).unwrap_or_default() {
            self.follow(arrival, End { at, finished });
        }
    }

    /// A request that is cancelled, one at a time; reporting it as ended may cancel more.
    pub(crate) fn next_cancelled(&mut self) -> Option<(Arrival, Time)> {
        self.cancelled.pop()
    }

    /// Every request that still waits for another or for its release, in the order of the trace.
    pub(crate) fn drain_waiting(&mut self) -> Vec<Arrival> {
        let mut left: Vec<Arrival> =
            self.waiting.drain().flat_map(|(_, arrivals)| arrivals).chain(self.released.drain()).collect();
        left.sort_by_key(|arrival| arrival.ordinal);
        left
    }
}
