//! A trace that comes through a pipe, read on a thread of its own: an idle pipe must not hold up an interruption.

use cr_cli::signals::Interrupt;
use cr_trace::{Request, TraceError, TraceReader};
use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Requests that are read before they are asked for.
const AHEAD: usize = 1_024;

/// How long an interruption may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);

type Item = Result<Request, TraceError>;

/// The requests of a trace, file or pipe; after an interruption there are none.
pub(crate) enum Requests<R> {
    File(Box<TraceReader<R>>),
    Pipe(Receiver<Item>, Interrupt),
}

impl<R: BufRead + Send + 'static> Requests<R> {
    /// Reads files as they are asked for and pipes ahead.
    pub(crate) fn new(trace: TraceReader<R>, is_file: bool, interrupt: &Interrupt) -> Requests<R> {
        if is_file {
            return Requests::File(Box::new(trace));
        }
        let (sender, receiver) = sync_channel(AHEAD);
        // The thread ends with the trace, with the run, or with the process, whichever comes first.
        std::thread::spawn(move || trace.into_iter().all(|item| sender.send(item).is_ok()));
        Requests::Pipe(receiver, interrupt.clone())
    }
}

impl<R: BufRead> Iterator for Requests<R> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        match self {
            Requests::File(trace) => trace.next(),
            Requests::Pipe(items, interrupt) => loop {
                match items.recv_timeout(LOOK_EVERY) {
                    Ok(item) => return Some(item),
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) if interrupt.is_set() => return None,
                    Err(RecvTimeoutError::Timeout) => {}
                }
            },
        }
    }
}
