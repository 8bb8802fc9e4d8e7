//! Hints to the processor: a request is about to be looked at.
//!
//! A simulated suite serves more requests than a processor's caches hold, and does little with each: it would mostly wait for memory.
//! Whoever knows what comes next says so some requests ahead. A hint changes no result.

use crate::Request;
use prefetch_index::prefetch_index;
use std::slice::from_ref;

/// The cache line that this begins in is wanted soon.
#[inline]
pub(crate) fn wanted<T>(what: &T) {
    prefetch_index(from_ref(what), 0);
}

impl Request {
    /// What routing and serving look at is wanted soon, but for the outline of its prompt.
    #[inline]
    pub fn approaches(&self) {
        wanted(self);
        wanted(&self.id);
        wanted(&self.key);
        wanted(&self.tenant);
        wanted(&self.prompt);
        wanted(&self.output_tokens);
    }
}
