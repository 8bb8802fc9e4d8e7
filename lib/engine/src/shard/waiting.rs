//! The queue of a shard: who waits to join the batch.

use super::sequence::{Sequence, State};
use crate::pool::Pool;
use cr_trace::{Request, Time};
use std::sync::Arc;

/// One that waits. Under overload most never get further, so what a batch needs to know of it is found out when it is its turn.
pub(super) enum Waiting<H> {
    /// It has just come.
    New(Newcomer),
    /// It was the first in the queue and refused, or had joined and was preempted.
    Seen(Sequence<H>),
}

/// A request as it was put into the queue.
#[derive(Clone, Debug)]
pub(super) struct Newcomer {
    pub(super) request: Arc<Request>,
    pub(super) prompt_tokens: u32,
    pub(super) arrival: Time,
    /// Whether its key was in the plan when it was routed.
    pub(super) admitted: bool,
}

impl<H> Waiting<H> {
    /// When it arrived.
    #[inline]
    pub(super) fn arrival(&self) -> Time {
        match self {
            Waiting::New(newcomer) => newcomer.arrival,
            Waiting::Seen(sequence) => sequence.arrival,
        }
    }

    /// What it is.
    pub(super) fn request(&self) -> &Arc<Request> {
        match self {
            Waiting::New(newcomer) => &newcomer.request,
            Waiting::Seen(sequence) => &sequence.request,
        }
    }

    /// As what it joins the batch of a shard with this pool; `left` are the boxes of those that have left.
    #[inline]
    pub(super) fn sequence<P: Pool<Held = H>>(self, pool: &P, left: &mut Vec<Box<State<H>>>) -> Sequence<H> {
        let newcomer = match self {
            Waiting::New(newcomer) => newcomer,
            Waiting::Seen(sequence) => return sequence,
        };
        let state = match left.pop() {
            Some(mut state) => {
                pool.reopen(&mut state.held, &newcomer.request, newcomer.admitted);
                state.renew(&newcomer);
                state
            }
            None => Box::new(State::of(&newcomer, pool.open(&newcomer.request, newcomer.admitted))),
        };
        Sequence { request: newcomer.request, state }
    }
}
