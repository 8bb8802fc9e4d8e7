//! A sink whose reader may be slow: events queue up, and a thread of its own writes them.
//!
//! For the wall clock, where waiting for a reader would distort what is measured. Snapshots (`shards`) are dropped first, once too
//! many events wait, and counted; nothing else ever is. What was dropped is told as the warning `snapshots-dropped` before the
//! summary, and the last snapshot is always kept, for it holds the totals.

use crate::sink::EventSink;
use cr_report::events::{Event, Warning};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Waiting events beyond which snapshots are dropped.
const MOST_WAITING: usize = 4_096;

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    /// The writer has taken an event and not written it yet.
    writing: bool,
    flush: bool,
    closed: bool,
    error: Option<io::Error>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module's page.
pub struct Decoupled {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    most_waiting: usize,
    dropped: u64,
    /// The last snapshot, where it was dropped.
    last_dropped: Option<Event>,
}

impl Decoupled {
    /// Hands events to `sink` on a thread of its own.
    pub fn new(sink: impl EventSink + Send + 'static) -> Decoupled {
        Decoupled::holding(sink, MOST_WAITING)
    }

    fn holding(sink: impl EventSink + Send + 'static, most_waiting: usize) -> Decoupled {
        let shared = Arc::new(Shared::default());
        let there = Arc::clone(&shared);
        let writer = std::thread::spawn(move || write(&there, sink));
        Decoupled { shared, writer: Some(writer), most_waiting, dropped: 0, last_dropped: None }
    }

    /// Snapshots dropped so far.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The writer's thread.
fn write(shared: &Shared, mut sink: impl EventSink) {
    loop {
        let mut queue = shared.lock();
        while queue.events.is_empty() && !queue.flush && !queue.closed {
            queue = shared.wait(queue);
        }
        let Some(event) = queue.events.pop_front() else {
            let (flush, closed) = (std::mem::take(&mut queue.flush), queue.closed);
            // Whoever waits for the flush waits until it is done.
            queue.writing = true;
            drop(queue);
            let result = if flush || closed { sink.flush() } else { Ok(()) };
            note(shared, result);
            if closed {
                return;
            }
            continue;
        };
        queue.writing = true;
        drop(queue);
        let result = sink.event(&event);
        note(shared, result);
    }
}

/// An event has been written, or could not be.
fn note(shared: &Shared, result: io::Result<()>) {
    let mut queue = shared.lock();
    queue.writing = false;
    if let Err(error) = result
        && queue.error.is_none()
    {
        queue.error = Some(error);
    }
    drop(queue);
    shared.changed.notify_all();
}

impl EventSink for Decoupled {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.error.take() {
            return Err(error);
        }
        match event {
            Event::Shards(snapshot) if queue.events.len() >= self.most_waiting && !snapshot.window_start => {
                self.dropped += 1;
                self.last_dropped = Some(event.clone());
                return Ok(());
            }
            Event::Shards(_) => self.last_dropped = None,
            Event::Summary(summary) => {
                queue.events.extend(self.last_dropped.take());
                if self.dropped > 0 {
                    let detail = format!("{} shards events: the reader is too slow", self.dropped);
                    let (t_s, name) = (summary.window.to_s, "snapshots-dropped".into());
                    queue.events.push_back(Event::Warning(Warning { t_s, name, detail }));
                }
            }
            _ => {}
        }
        queue.events.push_back(event.clone());
        drop(queue);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until everything is written: for the end of a run.
    fn flush(&mut self) -> io::Result<()> {
        let mut queue = self.shared.lock();
        queue.flush = true;
        self.shared.changed.notify_all();
        while queue.error.is_none() && (queue.flush || queue.writing || !queue.events.is_empty()) {
            queue = self.shared.wait(queue);
        }
        queue.error.take().map_or(Ok(()), Err)
    }
}

impl Drop for Decoupled {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has said so itself.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_report::events::{Fault, Shards};
    use cr_trace::ShardId;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    /// A reader that takes an event when the test lets it.
    struct Gate(Receiver<()>, Arc<Mutex<Vec<Event>>>);

    impl EventSink for Gate {
        fn event(&mut self, event: &Event) -> io::Result<()> {
            let _ = self.0.recv();
            self.1.lock().expect("is whole").push(event.clone());
            Ok(())
        }
    }

    fn gate() -> (SyncSender<()>, Gate, Arc<Mutex<Vec<Event>>>) {
        let (open, gate) = sync_channel(1_000);
        let read = Arc::new(Mutex::new(Vec::new()));
        (open, Gate(gate, Arc::clone(&read)), read)
    }

    fn snapshot(t_s: f64) -> Event {
        Event::Shards(Shards { t_s, shards: Vec::new(), window_start: false })
    }

    fn other(t_s: f64) -> Event {
        Event::Fault(Fault { t_s, shard: ShardId(0), kind: "down".into(), rerouted: 0 })
    }

    #[test]
    fn a_slow_reader_loses_snapshots_first_and_is_told() {
        let (open, gate, read) = gate();
        let mut sink = Decoupled::holding(gate, 4);
        for n in 0..20 {
            sink.event(&other(f64::from(n))).expect("is taken");
            sink.event(&snapshot(f64::from(n))).expect("is taken");
        }
        let dropped = sink.dropped();
        assert!(dropped >= 15, "{dropped}");
        let summary = cr_report::aggregate::Aggregator::new(&Default::default()).summary(true);
        sink.event(&Event::Summary(Box::new(summary))).expect("is taken");
        // The reader goes away, so nothing holds it up any more.
        drop(open);
        sink.flush().expect("is written");
        let read = read.lock().expect("is whole");
        let others: Vec<f64> =
            read.iter().filter(|e| matches!(e, Event::Fault(_))).filter_map(Event::t_s).collect();
        assert_eq!(others, (0..20).map(f64::from).collect::<Vec<_>>(), "all, and in order");
        let last: Vec<&Event> = read.iter().rev().take(3).collect();
        assert!(matches!(last[0], Event::Summary(_)));
        assert!(
            matches!(last[1], Event::Warning(w) if w.name == "snapshots-dropped" && w.detail.starts_with(&dropped.to_string()))
        );
        assert_eq!(last[2], &snapshot(19.0), "the last snapshot is kept");
    }

    /// A disk that turns out to be full when it is flushed, slowly.
    #[test]
    fn an_error_of_the_flush_comes_back() {
        struct Full;
        impl EventSink for Full {
            fn event(&mut self, _event: &Event) -> io::Result<()> {
                Ok(())
            }
            fn flush(&mut self) -> io::Result<()> {
                std::thread::sleep(std::time::Duration::from_millis(20));
                Err(io::Error::other("the disk is full"))
            }
        }
        for _ in 0..10 {
            let mut sink = Decoupled::new(Full);
            sink.event(&other(0.0)).expect("is taken");
            assert_eq!(sink.flush().expect_err("fails").to_string(), "the disk is full");
        }
    }

    #[test]
    fn an_error_of_the_reader_comes_back() {
        struct Full;
        impl EventSink for Full {
            fn event(&mut self, _event: &Event) -> io::Result<()> {
                Err(io::Error::other("the disk is full"))
            }
        }
        let mut sink = Decoupled::new(Full);
        sink.event(&other(0.0)).expect("is taken");
        assert_eq!(sink.flush().expect_err("fails").to_string(), "the disk is full");
    }
}
