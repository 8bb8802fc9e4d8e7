//! Reading ahead on a thread of its own: parsing and what is done with the parsed overlap.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// Items that travel together, and how many such batches may wait: some hundred requests in all, so that what one thread has
/// written is still in a cache when the other reads it.
const BATCH: usize = 64;
const BATCHES: usize = 8;

/// The items of an iterator that runs on another thread, in order.
#[derive(Debug)]
pub struct ReadAhead<T> {
    batch: std::vec::IntoIter<T>,
    batches: Option<Receiver<Vec<T>>>,
    thread: Option<JoinHandle<()>>,
}

impl<T: Send + 'static> ReadAhead<T> {
    /// Starts to read. Where the system gives no thread, the iterator must be used by itself, and comes back.
    ///
    /// # Errors
    ///
    /// There is no thread to be had.
    pub fn new(items: impl Iterator<Item = T> + Send + 'static) -> std::io::Result<ReadAhead<T>> {
        let (send, batches) = sync_channel(BATCHES);
        let mut items = items;
        let read = move || {
            loop {
                let batch: Vec<T> = items.by_ref().take(BATCH).collect();
                // Nobody listens any more, or nothing is left.
                if batch.is_empty() || send.send(batch).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("read-ahead".into()).spawn(read)?;
        Ok(ReadAhead { batch: Vec::new().into_iter(), batches: Some(batches), thread: Some(thread) })
    }
}

impl<T> Iterator for ReadAhead<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(item) = self.batch.next() {
                return Some(item);
            }
            match self.batches.as_ref()?.recv() {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(_) => {
                    self.batches = None;
                    if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
                        std::panic::resume_unwind(panic);
                    }
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_come_in_order() {
        let ahead = ReadAhead::new(0..10_000u32).expect("has a thread");
        assert!(ahead.eq(0..10_000));
        assert_eq!(ReadAhead::new(std::iter::empty::<u32>()).expect("has a thread").next(), None);
    }

    #[test]
    fn an_endless_reader_stops_when_nobody_listens() {
        let mut ahead = ReadAhead::new(0u64..).expect("has a thread");
        assert_eq!(ahead.by_ref().take(3).collect::<Vec<_>>(), [0, 1, 2]);
        let thread = ahead.thread.take().expect("runs");
        drop(ahead);
        thread.join().expect("ends");
    }

    #[test]
    #[should_panic(expected = "in the reader")]
    fn a_panic_is_handed_on() {
        ReadAhead::new((0..5).inspect(|n| assert!(*n < 3, "in the reader")))
            .expect("has a thread")
            .for_each(drop);
    }
}
