//! A sink that works on a thread of its own, so that writing events down costs the run next to nothing.
//!
//! Events are handed over in batches through a bounded queue. A slow reader therefore still holds the run up (no byte may
//! differ under the virtual clock), and memory does not grow. Who has the events can as well sum them up: the aggregator of
//! the run moves to this thread, which makes up for the handing over.

use super::EventSink;
use cr_report::aggregate::Aggregator;
use cr_report::events::{Event, Finish};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Events of one batch at most.
const BATCH: usize = 256;
/// Batches that may wait: some megabytes, to bridge the moments in which a disk is busy.
const QUEUE: usize = 64;
/// A thread that has had nothing to do for so long asks for what there is: at the next event it gets it.
const PATIENCE: Duration = Duration::from_millis(50);

/// An event on its way. Nearly all are finished requests, so the largest kinds do not make the others as large.
#[derive(Debug)]
enum Item {
    Finish(Finish),
    Other(Box<Event>),
}

impl Item {
    fn new(event: Event) -> Item {
        match event {
            Event::Finish(finish) => Item::Finish(finish),
            other => Item::Other(Box::new(other)),
        }
    }

    fn into_event(self) -> Event {
        match self {
            Item::Finish(finish) => Event::Finish(finish),
            Item::Other(event) => *event,
        }
    }
}

enum Work {
    Events(Vec<Item>),
    /// Flush, then answer.
    Flush(SyncSender<()>),
    /// Sum up what comes from now on.
    Follow(Box<Aggregator>),
    /// Hand the sums back.
    Followed(SyncSender<Option<Box<Aggregator>>>),
}

/// Runs a sink on a thread of its own. An error of the sink is told at a later event, at the latest at [`EventSink::flush`].
#[derive(Debug)]
pub struct Threaded {
    batch: Vec<Item>,
    /// Emptied batches that come back.
    spare: Receiver<Vec<Item>>,
    /// The thread waits for something to do.
    hungry: Arc<AtomicBool>,
    /// `None` once the sink has failed.
    sender: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    failed: Option<io::ErrorKind>,
}

impl Threaded {
    /// Starts the thread.
    pub fn new(sink: impl EventSink + Send + 'static) -> Threaded {
        let (sender, receiver) = sync_channel(QUEUE);
        let (used, spare) = sync_channel(QUEUE);
        let hungry = Arc::new(AtomicBool::new(false));
        let asks = Arc::clone(&hungry);
        let thread = std::thread::spawn(move || work(sink, &Queue { receiver, used, asks }));
        Threaded {
            batch: Vec::with_capacity(BATCH),
            spare,
            hungry,
            sender: Some(sender),
            thread: Some(thread),
            failed: None,
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.hungry.store(false, Ordering::Relaxed);
        if self.batch.is_empty() {
            return self.standing();
        }
        let empty = self.spare.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
        let batch = std::mem::replace(&mut self.batch, empty);
        self.send(Work::Events(batch))
    }

    fn send(&mut self, work: Work) -> io::Result<()> {
        match &self.sender {
            Some(sender) if sender.send(work).is_ok() => Ok(()),
            _ => self.fail(),
        }
    }

    /// Hands over what there is and waits for the answer to a question.
    fn ask<T>(&mut self, question: impl FnOnce(SyncSender<T>) -> Work) -> io::Result<T>
    where
        T: Default,
    {
        self.hand_over()?;
        let (sender, answer) = sync_channel(1);
        self.send(question(sender))?;
        match answer.recv() {
            Ok(answer) => Ok(answer),
            Err(_) => self.fail().map(|()| T::default()),
        }
    }

    /// The thread has ended early: its error, and its kind from then on.
    fn fail(&mut self) -> io::Result<()> {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let error = match thread.join() {
                Ok(Err(error)) => error,
                Ok(Ok(())) | Err(_) => io::Error::other("the thread that writes events has ended"),
            };
            self.failed = Some(error.kind());
            return Err(error);
        }
        self.standing()
    }

    /// An error that was told stays one.
    fn standing(&self) -> io::Result<()> {
        self.failed.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl EventSink for Threaded {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.take(event.clone())
    }

    fn take(&mut self, event: Event) -> io::Result<()> {
        self.batch.push(Item::new(event));
        if self.batch.len() >= BATCH || self.hungry.load(Ordering::Relaxed) {
            self.hand_over()?;
        }
        Ok(())
    }

    /// Returns once everything handed over so far is written.
    fn flush(&mut self) -> io::Result<()> {
        self.ask(Work::Flush)
    }

    fn follow(&mut self, aggregator: Box<Aggregator>) -> Option<Box<Aggregator>> {
        // A failure to hand over is told again at the next event.
        let _ = self.hand_over();
        match &self.sender {
            Some(sender) => match sender.send(Work::Follow(aggregator)) {
                Ok(()) => None,
                Err(SendError(Work::Follow(aggregator))) => Some(aggregator),
                Err(_) => None,
            },
            None => Some(aggregator),
        }
    }

    fn followed(&mut self) -> io::Result<Option<Box<Aggregator>>> {
        self.ask(Work::Followed)
    }
}

impl Drop for Threaded {
    /// Waits until everything is written. Errors can be told no more; whoever cares has flushed.
    fn drop(&mut self) {
        let _ = self.hand_over();
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's end of both queues.
struct Queue {
    receiver: Receiver<Work>,
    used: SyncSender<Vec<Item>>,
    asks: Arc<AtomicBool>,
}

impl Queue {
    /// The next thing to do; none where nothing comes any more.
    fn next(&self) -> Option<Work> {
        match self.receiver.recv_timeout(PATIENCE) {
            Ok(work) => Some(work),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.asks.store(true, Ordering::Relaxed);
                self.receiver.recv().ok()
            }
        }
    }
}

fn work(mut sink: impl EventSink, queue: &Queue) -> io::Result<()> {
    let mut follower: Option<Box<Aggregator>> = None;
    while let Some(work) = queue.next() {
        match work {
            Work::Events(mut items) => {
                for item in items.drain(..) {
                    let event = item.into_event();
                    if let Some(aggregator) = &mut follower {
                        aggregator.observe(&event);
                    }
                    sink.take(event)?;
                }
                // Where enough lie ready, this one goes.
                let _ = queue.used.try_send(items);
            }
            Work::Flush(done) => {
                sink.flush()?;
                // Whoever asked may be gone.
                let _ = done.send(());
            }
            Work::Follow(aggregator) => follower = Some(aggregator),
            Work::Followed(back) => {
                let _ = back.send(follower.take());
            }
        }
    }
    sink.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::{JsonLines, NoSink, Tee};
    use cr_report::events::{Header, Warning};
    use cr_trace::{RequestId, ShardId};
    use std::io::Write;
    use std::sync::Mutex;
    use std::time::Instant;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Takes so many bytes, then nobody reads any more.
    struct Closing(usize);

    impl Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.checked_sub(bytes.len()) {
                Some(left) => self.0 = left,
                None => return Err(io::ErrorKind::BrokenPipe.into()),
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn event(n: u32) -> Event {
        Event::Warning(Warning { t_s: f64::from(n), name: format!("w{n}"), detail: String::new() })
    }

    #[test]
    fn the_bytes_are_those_of_the_sink_itself() {
        let (direct, threaded) = (Shared::default(), Shared::default());
        let (mut a, mut b) =
            (JsonLines::new(direct.clone()), Threaded::new(JsonLines::new(threaded.clone())));
        for n in 0..10_000 {
            a.event(&event(n)).expect("is taken");
            b.event(&event(n)).expect("is taken");
        }
        a.flush().expect("is written");
        b.flush().expect("is written");
        assert_eq!(*direct.0.lock().expect("not poisoned"), *threaded.0.lock().expect("not poisoned"));
    }

    fn finish(n: u32) -> Event {
        let seconds = f64::from(n);
        Event::Finish(Finish {
            t_s: seconds,
            id: RequestId(u64::from(n)),
            key: "k".into(),
            tenant: format!("t{}", n % 7).into(),
            shard: ShardId(0),
            admitted: n.is_multiple_of(2),
            arrival_s: 0.0,
            queue_s: 0.0,
            ttft_s: seconds / 7.0,
            tpot_s: None,
            e2e_s: seconds,
            prompt_tokens: 100,
            cached_tokens: 50,
            cached_by_scope: Default::default(),
            output_tokens: 1,
            retries: 0,
            preemptions: 0,
            measured: true,
        })
    }

    #[test]
    fn the_run_is_summed_up_on_the_thread_as_without_one() {
        let header = Header { shards: 1, ..Header::default() };
        let mut direct = Aggregator::new(&header);
        let mut sinks =
            Tee(vec![Box::new(NoSink), Box::new(Threaded::new(NoSink)), Box::new(Threaded::new(NoSink))]);
        // What came before it follows does not count.
        sinks.take(finish(1)).expect("is taken");
        assert!(sinks.follow(Box::new(Aggregator::new(&header))).is_none(), "somebody follows");
        for n in 2..2_000 {
            direct.observe(&finish(n));
            sinks.take(finish(n)).expect("is taken");
        }
        let followed = sinks.followed().expect("goes well").expect("somebody followed");
        assert_eq!(followed.summary(true), direct.summary(true));
        assert!(sinks.followed().expect("goes well").is_none(), "it was handed back");
    }

    #[test]
    fn without_a_thread_nobody_follows() {
        let aggregator = Box::new(Aggregator::new(&Header::default()));
        let mut sinks = Tee(vec![Box::new(NoSink), Box::new(NoSink)]);
        let back = sinks.follow(aggregator).expect("comes back");
        // Nor where the thread has ended.
        let mut sink = Threaded::new(JsonLines::new(Closing(0)));
        sink.event(&event(1)).expect("is taken");
        sink.flush().expect_err("nobody reads");
        assert!(sink.follow(back).is_some());
        sink.followed().expect_err("it stays so");
    }

    /// However fast they came before.
    #[test]
    fn events_that_come_slowly_are_not_kept() {
        let out = Shared::default();
        let written = || out.0.lock().expect("not poisoned").iter().filter(|byte| **byte == b'\n').count();
        let mut sink = Threaded::new(JsonLines::new(out.clone()));
        (0..10).try_for_each(|n| sink.event(&event(n))).expect("are taken");
        std::thread::sleep(3 * PATIENCE);
        sink.event(&event(10)).expect("is taken");
        let begun = Instant::now();
        while written() < 11 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(written(), 11);
    }

    #[test]
    fn what_is_dropped_is_written_first() {
        let out = Shared::default();
        let mut sink = Threaded::new(JsonLines::new(out.clone()));
        sink.event(&event(1)).expect("is taken");
        drop(sink);
        assert_eq!(out.0.lock().expect("not poisoned").iter().filter(|byte| **byte == b'\n').count(), 1);
    }

    #[test]
    fn a_reader_that_leaves_is_told_and_stays_told() {
        let mut sink = Threaded::new(JsonLines::new(Closing(1000)));
        let told = (0..1_000_000).map(event).find_map(|event| sink.event(&event).err());
        assert_eq!(told.map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
        assert_eq!(sink.flush().map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
        let mut sink = Threaded::new(JsonLines::new(Closing(10)));
        sink.event(&event(1)).expect("is taken");
        assert_eq!(sink.flush().map_err(|error| error.kind()), Err(io::ErrorKind::BrokenPipe));
    }
}
