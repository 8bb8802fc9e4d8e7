//! Where events come from: a thread that reads bytes and hands them on through a bounded queue.
//!
//! The queue is drained by the thread of [`crate::ingest`], never by the one that draws, so a frozen picture or a slow
//! terminal holds nobody up.

pub mod file;
pub mod socket;
pub mod stream;
pub mod tap;
pub mod wait;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes of one message at most.
pub const CHUNK_BYTES: usize = 256 * 1024;
/// Messages that may wait: together at most 8 MiB.
const QUEUE: usize = 32;

/// An input as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// What is piped in.
    Stdin,
    /// A file, finished or growing.
    File(PathBuf),
    /// A Unix socket that a run listens on.
    Socket(PathBuf),
}

impl Input {
    /// `-` is stdin, everything else a path.
    pub fn parse(text: &str) -> Input {
        if text == "-" { Input::Stdin } else { Input::File(text.into()) }
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        match self {
            Input::Stdin => "<stdin>".into(),
            Input::File(path) | Input::Socket(path) => path.display().to_string(),
        }
    }

    /// Whether it can be read again.
    pub fn is_file(&self) -> bool {
        matches!(self, Input::File(_))
    }
}

/// Whether the end of a file is the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// What is there is read, then it is over.
    Once,
    /// At the end of the file, or before there is one or anybody listens at the socket, wait for more.
    Growing,
}

/// What the reading thread has to say.
#[derive(Debug)]
pub enum Message {
    /// Bytes, not empty.
    Bytes(Vec<u8>),
    /// The file was replaced or cut; what follows is a new stream. With the reason in words.
    Restart(&'static str),
    /// The file was read to its present end.
    Dry,
    /// Why nothing comes, in words.
    Note(String),
    /// Reading failed, in one sentence.
    Failed(String),
    /// Nothing follows.
    End,
}

/// Tells threads that nobody listens any more.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on threads end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they should.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The sending end; a send fails once the receiver is gone.
pub type Sender = SyncSender<Message>;

/// Starts reading `input` on a thread of its own.
pub fn spawn(input: Input, follow: Follow, stop: Stop) -> Receiver<Message> {
    let (sender, receiver) = sync_channel(QUEUE);
    thread::spawn(move || {
        match input {
            Input::Stdin => stream::read(std::io::stdin(), "<stdin>", &sender),
            Input::File(path) => file::read(&path, follow, &stop, &sender),
            Input::Socket(path) => socket::read(&path, follow, &stop, &sender),
        };
    });
    receiver
}
