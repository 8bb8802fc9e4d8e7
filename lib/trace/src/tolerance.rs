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
}

/// How far a reader is: what it puts up with, and whether it has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    pub(crate) tolerance: Tolerance,
    done: bool,
}

impl Patience {
    pub(crate) fn new(tolerance: Tolerance) -> Patience {
        Patience { tolerance, done: false }
    }
}

/// A reader of rows that skips bad ones as long as its patience lasts, and ends after the first error beyond that.
pub(crate) trait Rows {
    type Row;

    /// The next row, good or bad; `None` at the end.
    fn read(&mut self) -> Result<Option<Self::Row>, TraceError>;

    fn patience(&mut self) -> &mut Patience;

    /// The next row that is good, or bad beyond tolerance: what `Iterator::next` gives.
    fn next_row(&mut self) -> Option<Result<Self::Row, TraceError>> {
        if self.patience().done {
            return None;
        }
        loop {
            let row = self.read();
            match row {
                Err(error) if self.patience().tolerance.forgives(&error) => {}
                row => {
                    self.patience().done = !matches!(row, Ok(Some(_)));
                    return row.transpose();
                }
            }
        }
    }
}
