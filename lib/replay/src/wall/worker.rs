//! One shard on a thread of its own: takes orders, steps, reports.

use super::Zero;
use super::fleet::{News, What};
use crate::fleet::state;
use cr_engine::{BlockPool, Departed, Shard};
use cr_trace::{Request, ShardId, Time};
use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What the desk asks of a shard.
pub(super) enum Order {
    Enqueue {
        request: Arc<Request>,
        arrival: Time,
        admitted: bool,
    },
    /// Give everything back and forget what is cached; the word is that of the fault.
    Evacuate(&'static str),
    Pace(f64),
    LiftProtection,
    Stop,
}

impl Order {
    /// Whether a step in progress is worth no more.
    fn breaks_step(&self) -> bool {
        matches!(self, Order::Evacuate(_) | Order::Stop)
    }
}

/// Orders on their way to a shard.
#[derive(Default)]
pub(super) struct Inbox {
    orders: Mutex<VecDeque<Order>>,
    came: Condvar,
}

impl Inbox {
    pub(super) fn push(&self, order: Order) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push_back(order);
        self.came.notify_one();
    }

    fn pop(&self) -> Option<Order> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Waits until there is an order.
    fn wait(&self) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.came.wait_while(orders, |orders| orders.is_empty()));
    }

    /// Sleeps for as long as a step takes; false where an order breaks it off.
    fn sleep(&self, duration: Duration) -> bool {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let quiet = |orders: &mut VecDeque<Order>| !orders.iter().any(Order::breaks_step);
        match self.came.wait_timeout_while(orders, duration, quiet) {
            Ok((_, timeout)) => timeout.timed_out(),
            Err(_) => true,
        }
    }
}

/// A shard and its ways in and out.
pub(super) struct Worker {
    pub(super) id: ShardId,
    pub(super) shard: Shard<BlockPool>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) news: Sender<News>,
    pub(super) zero: Zero,
    /// Requests taken from the inbox so far.
    pub(super) taken: u64,
    /// The engine has failed: nothing is computed any more, but orders are still obeyed, so that no request is lost.
    pub(super) broken: bool,
}

impl Worker {
    /// Works until it is told to stop.
    pub(super) fn work(mut self, threads: Option<rayon::ThreadPool>) {
        loop {
            while let Some(order) = self.inbox.pop() {
                if !self.obey(order) {
                    return;
                }
            }
            if self.broken || !self.shard.has_work() {
                self.inbox.wait();
                continue;
            }
            let step = match &threads {
                Some(threads) => {
                    let worker = &mut self;
                    threads.install(move || worker.step())
                }
                None => self.step(),
            };
            if !step {
                return;
            }
        }
    }

    /// False where the work is over.
    fn obey(&mut self, order: Order) -> bool {
        match order {
            Order::Enqueue { request, arrival, admitted } => {
                self.taken += 1;
                // The desk has checked that it fits.
                let _ = self.shard.enqueue(request, arrival, admitted);
                true
            }
            Order::Pace(pace) => {
                self.shard.set_pace(pace);
                true
            }
            Order::LiftProtection => {
                self.shard.lift_protection();
                true
            }
            Order::Evacuate(kind) => self.give_up(What::Evacuated(kind)),
            Order::Stop => {
                self.give_up(What::Stopped);
                false
            }
        }
    }

    fn give_up(&mut self, what: What) -> bool {
        let mut departed = Vec::new();
        let now = self.zero.now();
        self.shard.abandon(now, &mut departed);
        self.tell(now, departed, what)
    }

    /// One step; false where the work is over.
    fn step(&mut self) -> bool {
        let mut departed = Vec::new();
        let start = self.zero.now();
        let duration = match self.shard.start_step(start, &mut departed) {
            Ok(Some(duration)) => duration,
            Ok(None) => return self.tell(start, departed, What::Stepped),
            Err(error) => {
                self.broken = true;
                return self.tell(self.zero.now(), departed, What::Failed(error));
            }
        };
        // A model has taken that time already, or most of it; a simulator takes it now.
        let end = start + duration;
        let left = end.since(self.zero.now());
        if left > Time::ZERO && !self.inbox.sleep(Duration::from_secs_f64(left.as_s())) {
            return self.tell(self.zero.now(), departed, What::Stepped);
        }
        let now = self.zero.now().max(end);
        self.shard.end_step(now, &mut departed);
        self.tell(now, departed, What::Stepped)
    }

    /// Reports; false where nobody listens any more.
    fn tell(&self, at: Time, departed: Vec<Departed>, what: What) -> bool {
        let state = state(self.id, &self.shard, true, at);
        let pending_tokens = self.shard.pending_tokens();
        let news = News { shard: self.id, at, taken: self.taken, pending_tokens, state, departed, what };
        self.news.send(news).is_ok()
    }
}
