//! Requests that quote others: who has another one's turn or answer in its prompt.
//!
//! As long as nobody does, what a request alone has is kept apart in the pool ([`Pool::keep_private`]).

use super::Shard;
use crate::pool::Pool;
use cr_trace::Request;

impl<P: Pool> Shard<P> {
    /// Before a request is opened: where it may ask for another one's turn or answer, everything can be found from now on.
    pub(super) fn look_for_quotes(&mut self, request: &Request) {
        if self.answers_are_asked && !self.defers {
            return;
        }
        let outline = request.prompt.outline();
        self.answers_are_asked |= outline.has_answers();
        if !self.defers {
            return;
        }
        if self.newest < Some(request.id) && !outline.quotes_others(request.id.0) {
            self.newest = Some(request.id);
            return;
        }
        self.defers = false;
        self.forget_sums();
        self.pool.expose();
        self.running.iter_mut().for_each(|sequence| sequence.expose(&mut self.pool));
    }
}
