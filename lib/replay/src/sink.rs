//! Where the events of a run go.

mod spared;
mod threaded;

pub use spared::{Losses, Spared};
pub use threaded::Threaded;

use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, line};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Takes the events of a run, in order.
pub trait EventSink {
    /// Takes one event.
    ///
    /// # Errors
    /// What the output says; the run stops there.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Takes one event for good: a sink that keeps events need not copy it.
    ///
    /// # Errors
    /// As [`EventSink::event`].
    fn take(&mut self, event: Event) -> io::Result<()> {
        self.event(&event)
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// What the output says.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether anything becomes of snapshots (`shards`): where nothing does, a run tells only those that its own sums need.
    fn reads_snapshots(&self) -> bool {
        true
    }

    /// Follows the run with this aggregator from the next event on, where the sink has a thread of its own to do that on;
    /// otherwise the aggregator comes straight back.
    fn follow(&mut self, aggregator: Box<Aggregator>) -> Option<Box<Aggregator>> {
        Some(aggregator)
    }

    /// The aggregator that it followed the run with, up to the last event taken; it follows no longer.
    ///
    /// # Errors
    /// What the output says.
    fn followed(&mut self) -> io::Result<Option<Box<Aggregator>>> {
        Ok(None)
    }
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }

    fn reads_snapshots(&self) -> bool {
        false
    }
}

/// One JSON object a line. Flushed often enough for somebody to watch.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
    line: Vec<u8>,
    flushed: Instant,
}

const FLUSH_EVERY: Duration = Duration::from_millis(100);

impl<W: Write> JsonLines<W> {
    /// Lines to `out`, which should be buffered.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out, line: Vec::with_capacity(4096), flushed: Instant::now() }
    }
}

impl<W: Write> EventSink for JsonLines<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.line.clear();
        line::append(&mut self.line, event)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        if self.flushed.elapsed() > FLUSH_EVERY {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        self.out.flush()
    }
}

impl<S: EventSink + ?Sized> EventSink for Box<S> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        (**self).event(event)
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        (**self).take(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn reads_snapshots(&self) -> bool {
        (**self).reads_snapshots()
    }

    fn follow(&mut self, aggregator: Box<Aggregator>) -> Option<Box<Aggregator>> {
        (**self).follow(aggregator)
    }

    fn followed(&mut self) -> io::Result<Option<Box<Aggregator>>> {
        (**self).followed()
    }
}

/// Every event to all of several sinks, in their order; the last one need not copy it.
#[derive(Default)]
pub struct Tee(pub Vec<Box<dyn EventSink>>);

impl EventSink for Tee {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|sink| sink.event(event))
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        match self.0.split_last_mut() {
            Some((last, others)) => {
                others.iter_mut().try_for_each(|sink| sink.event(&event))?;
                last.take(event)
            }
            None => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.iter_mut().try_for_each(|sink| sink.flush())
    }

    fn reads_snapshots(&self) -> bool {
        self.0.iter().any(|sink| sink.reads_snapshots())
    }

    fn follow(&mut self, aggregator: Box<Aggregator>) -> Option<Box<Aggregator>> {
        self.0.iter_mut().try_fold(aggregator, |aggregator, sink| sink.follow(aggregator))
    }

    fn followed(&mut self) -> io::Result<Option<Box<Aggregator>>> {
        self.0.iter_mut().find_map(|sink| sink.followed().transpose()).transpose()
    }
}
