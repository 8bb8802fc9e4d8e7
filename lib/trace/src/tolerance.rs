//! Putting up with a number of bad rows.

use crate::TraceError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bad rows a reader skips before it gives up. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Tolerance {
    allowed: u64,
    skipped: Arc<AtomicU64>,
}

impl Tolerance {
    /// Skips up to `allowed` rows; the default skips none.
    pub fn new(allowed: u64) -> Tolerance {
        Tolerance { allowed, skipped: Arc::default() }
    }

    /// How many rows were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Whether to go on after this error: it blames one row, and not too many were skipped before.
    pub fn forgives(&self, error: &TraceError) -> bool {
        let forgiven = matches!(error, TraceError::Line { .. }) && self.skipped() < self.allowed;
        if forgiven {
            self.skipped.fetch_add(1, Ordering::Relaxed);
        }
        forgiven
    }

    /// Reads until a row is good, or bad beyond tolerance.
    pub(crate) fn read<T>(
        &self,
        mut read: impl FnMut() -> Result<Option<T>, TraceError>,
    ) -> Option<Result<T, TraceError>> {
        loop {
            match read() {
                Err(error) if self.forgives(&error) => {}
                item => return item.transpose(),
            }
        }
    }
}
