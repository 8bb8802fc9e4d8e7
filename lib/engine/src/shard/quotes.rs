//! Requests that quote others: who has another one's turn or answer in its prompt.
//!
//! As long as nobody does, what a request alone has is kept apart in the pool ([`Pool::keep_private`]).

use super::Shard;
use crate::pool::Pool;
use cr_trace::{Request, Scope};

/// What a prompt has of other requests.
#[derive(Clone, Copy, Debug, Default)]
struct Quotes {
    /// It has the answer to one.
    answers: bool,
    /// It has one's turn or answer.
    others: bool,
}

impl Quotes {
    fn of(request: &Request) -> Quotes {
        let mut quotes = Quotes::default();
        for segment in &request.prompt {
            match segment.content().as_str().as_bytes() {
                [b'a', b':', ..] => quotes = Quotes { answers: true, others: true },
                [b'u', b':', ..] => {
                    quotes.others |= segment.content().request_number() != Some(request.id.0);
                }
                _ => {}
            }
        }
        quotes
    }
}

/// Whether a prompt has the answer to another request.
pub(super) fn has_answers(request: &Request) -> bool {
    request.prompt.iter().any(|segment| segment.content().scope() == Some(Scope::Answer))
}

impl<P: Pool> Shard<P> {
    /// Before a request is opened: where it may ask for another one's turn or answer, everything can be found from now on.
    pub(super) fn look_for_quotes(&mut self, request: &Request) {
        if self.answers_are_asked && !self.defers {
            return;
        }
        let quotes = Quotes::of(request);
        self.answers_are_asked |= quotes.answers;
        if !self.defers {
            return;
        }
        if self.newest < Some(request.id) && !quotes.others {
            self.newest = Some(request.id);
            return;
        }
        self.defers = false;
        self.forget_sums();
        self.pool.expose();
        self.running.iter_mut().for_each(|sequence| sequence.expose(&mut self.pool));
    }
}
