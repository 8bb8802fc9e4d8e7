//! The queue's receiving end as buffered input: where nothing waits in it, the input "ends for now".

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::Message;

/// What came besides bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Signal {
    /// A new stream follows.
    Restart(&'static str),
    /// All that there is of a file so far was handed on.
    Dry,
    /// Why nothing comes.
    Note(String),
    /// Reading failed.
    Failed(String),
    /// Nothing follows.
    End,
}

/// What the tap and its owner share.
#[derive(Debug)]
pub struct Line {
    receiver: Receiver<Message>,
    signal: RefCell<Option<Signal>>,
    patience: Cell<Duration>,
}

impl Line {
    /// Around a queue.
    pub fn new(receiver: Receiver<Message>) -> Rc<Line> {
        Rc::new(Line { receiver, signal: RefCell::new(None), patience: Cell::new(Duration::ZERO) })
    }

    /// How long the tap waits for bytes before it says that there are none; returns how long it did so far.
    pub fn set_patience(&self, patience: Duration) -> Duration {
        self.patience.replace(patience)
    }

    /// Takes what came besides bytes.
    pub fn take_signal(&self) -> Option<Signal> {
        self.signal.borrow_mut().take()
    }

    fn next(&self) -> Option<Vec<u8>> {
        // A signal stops the flow until it is taken.
        if self.signal.borrow().is_some() {
            return None;
        }
        let signal = match self.receiver.recv_timeout(self.patience.get()) {
            Ok(Message::Bytes(bytes)) => return Some(bytes),
            Err(RecvTimeoutError::Timeout) => return None,
            Ok(Message::Restart(why)) => Signal::Restart(why),
            Ok(Message::Dry) => Signal::Dry,
            Ok(Message::Note(note)) => Signal::Note(note),
            Ok(Message::Failed(what)) => Signal::Failed(what),
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => Signal::End,
        };
        *self.signal.borrow_mut() = Some(signal);
        None
    }
}

/// Buffered input from the queue.
#[derive(Debug)]
pub struct Tap {
    line: Rc<Line>,
    chunk: Vec<u8>,
    taken: usize,
    /// Whether the last byte handed out ended a line.
    ended_line: bool,
}

impl Tap {
    /// A tap on a line; one at a time.
    pub fn new(line: &Rc<Line>) -> Tap {
        Tap { line: Rc::clone(line), chunk: Vec::new(), taken: 0, ended_line: true }
    }
}

impl BufRead for Tap {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.taken == self.chunk.len() {
            (self.chunk, self.taken) = (self.line.next().unwrap_or_default(), 0);
            // The last line of an input may lack its newline and is a line all the same.
            let over = *self.line.signal.borrow() == Some(Signal::End);
            if self.chunk.is_empty() && over && !self.ended_line {
                self.chunk.push(b'\n');
            }
            if let Some(last) = self.chunk.last() {
                self.ended_line = *last == b'\n';
            }
        }
        Ok(&self.chunk[self.taken..])
    }

    fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.chunk.len());
    }
}

impl Read for Tap {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let here = self.fill_buf()?;
        let n = here.len().min(out.len());
        out[..n].copy_from_slice(&here[..n]);
        self.consume(n);
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn it_ends_for_now_goes_on_and_ends_the_last_line() {
        let (sender, receiver) = sync_channel(8);
        let line = Line::new(receiver);
        let mut tap = Tap::new(&line);
        let mut text = String::new();
        let mut drain = |tap: &mut Tap| {
            text.clear();
            tap.read_to_string(&mut text).expect("never fails");
            text.clone()
        };
        assert_eq!(drain(&mut tap), "");
        for bytes in ["a\n", "b"] {
            sender.send(Message::Bytes(bytes.into())).expect("sent");
        }
        assert_eq!(drain(&mut tap), "a\nb");
        sender.send(Message::End).expect("sent");
        assert_eq!(drain(&mut tap), "\n");
        assert_eq!(drain(&mut tap), "");
        assert_eq!(line.take_signal(), Some(Signal::End));
    }
}
