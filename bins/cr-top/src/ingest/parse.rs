//! From bytes to batches of events.

use cr_report::events::Event;
use cr_report::reader::{EventReader, ReadError};
use std::rc::Rc;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use super::{Limit, Step};
use crate::source::tap::{Line, Signal, Tap};
use crate::source::{Input, Stop};

/// Events of one batch at most.
const BATCH: usize = 1024;
/// How long to wait for bytes before looking whether to stop.
const PATIENCE: Duration = Duration::from_millis(30);
/// How long to wait before looking whether the limit has moved.
const LIMIT_POLL: Duration = Duration::from_millis(10);

/// Nobody listens any more, or nothing is left to do.
struct Done;

pub(super) struct Parser {
    name: String,
    /// A file says when all that there is of it was read, a pipe does not.
    is_file: bool,
    limit: Limit,
    /// Runs of the stream that the limit does not hold for: all of them pass.
    before: u64,
    sender: SyncSender<Step>,
    batch: Vec<Event>,
    /// An event beyond the limit.
    held: Option<Event>,
    /// Runs that have begun.
    runs: u64,
}

impl Parser {
    pub(super) fn new(input: &Input, limit: Limit, before: u64, sender: SyncSender<Step>) -> Parser {
        let (name, is_file) = (input.name(), input.is_file());
        Parser { name, is_file, limit, before, sender, batch: Vec::new(), held: None, runs: 0 }
    }

    /// Parses until the input ends, is unusable, or nobody listens.
    pub(super) fn run(mut self, line: &Rc<Line>, stop: &Stop) {
        let mut reader = EventReader::growing(Tap::new(line), &self.name);
        while !stop.is_set() {
            if self.turn(&mut reader, line).is_err() {
                return;
            }
        }
    }

    fn turn(&mut self, reader: &mut EventReader<Tap>, line: &Rc<Line>) -> Result<(), Done> {
        if let Some(event) = self.held.take() {
            return self.retry(event);
        }
        match reader.next_event() {
            // While events flow nothing is waited for; once they stop, what has come is handed on before waiting for more.
            Ok(Some(event)) => {
                line.set_patience(Duration::ZERO);
                self.take(event)
            }
            Err(error) => self.bad(&error),
            Ok(None) => {
                self.flush()?;
                let waited = line.set_patience(PATIENCE) == PATIENCE;
                match line.take_signal() {
                    Some(Signal::Dry) if self.runs > 0 => self.send(Step::Reached),
                    // At once this may only mean that reading is slower than parsing.
                    None if self.runs > 0 && waited && !self.is_file => self.send(Step::Reached),
                    Some(Signal::Dry) | None => Ok(()),
                    Some(Signal::Restart(why)) => {
                        *reader = EventReader::growing(Tap::new(line), &self.name);
                        self.runs = 0;
                        self.send(Step::Restart(why))
                    }
                    Some(Signal::Note(note)) => self.send(Step::Note(note)),
                    Some(Signal::Failed(what)) => self.fail(what),
                    Some(Signal::End) => self.end(),
                }
            }
        }
    }

    /// Puts an event into the batch.
    fn take(&mut self, event: Event) -> Result<(), Done> {
        self.runs += u64::from(matches!(event, Event::Header(_)));
        if self.is_beyond(&event) {
            self.held = Some(event);
            return Ok(());
        }
        self.batch.push(event);
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn is_beyond(&self, event: &Event) -> bool {
        self.runs > self.before && event.t_s().is_some_and(|t_s| t_s > self.limit.get())
    }

    /// Takes a held event once the limit has passed it.
    fn retry(&mut self, event: Event) -> Result<(), Done> {
        if !self.is_beyond(&event) {
            self.batch.push(event);
            return Ok(());
        }
        self.held = Some(event);
        self.flush()?;
        self.send(Step::Reached)?;
        thread::sleep(LIMIT_POLL);
        Ok(())
    }

    /// A line that is no event: counted, unless nothing valid came before it.
    fn bad(&mut self, error: &ReadError) -> Result<(), Done> {
        self.flush()?;
        if self.runs > 0 {
            return self.send(Step::BadLine(error.to_string()));
        }
        self.fail(format!("{error}; is this the output of cr-serve run?"))
    }

    /// Nothing follows. An input without any event is of no use.
    fn end(&mut self) -> Result<(), Done> {
        if self.runs == 0 {
            let hint = "pipe cr-serve run into cr-top, or name a file of events";
            return self.fail(format!("{}: no events, the input is empty; {hint}", self.name));
        }
        self.send(Step::End)?;
        Err(Done)
    }

    fn fail(&mut self, what: String) -> Result<(), Done> {
        self.flush()?;
        self.send(Step::Fault(what))?;
        Err(Done)
    }

    fn flush(&mut self) -> Result<(), Done> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        self.send(Step::Events(batch))
    }

    fn send(&self, step: Step) -> Result<(), Done> {
        self.sender.send(step).map_err(|_| Done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Until;
    use super::*;
    use crate::source::Message;
    use cr_report::events::{Header, SCHEMA};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::mpsc::sync_channel;

    /// What is handed on of an input whose bytes cease for a while, before and after it says that there are no more.
    fn steps(input: Input) -> [Vec<Step>; 2] {
        let ((bytes, receiver), (sender, steps)) = (sync_channel(8), sync_channel(8));
        let stop = Stop::default();
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let limit = Limit(Arc::new(AtomicU64::new(Until::END.t_s.to_bits())));
            Parser::new(&input, limit, 0, sender).run(&Line::new(receiver), &stopped);
        });
        let header = Header { schema: SCHEMA.into(), shards: 1, block_tokens: 16, ..Header::default() };
        let header = serde_json::to_string(&Event::Header(header)).expect("JSON") + "\n";
        bytes.send(Message::Bytes(header.into())).expect("sent");
        thread::sleep(PATIENCE * 4);
        let before = steps.try_iter().collect();
        bytes.send(Message::Dry).expect("sent");
        thread::sleep(PATIENCE * 4);
        let after = steps.try_iter().collect();
        stop.set();
        thread.join().expect("ended");
        [before, after]
    }

    #[test]
    fn a_file_whose_reader_is_slow_is_not_read_to_its_end() {
        let [before, after] = steps(Input::File("run.ndjson".into()));
        assert!(matches!(before[..], [Step::Events(_)]), "{before:?}");
        assert!(matches!(after[..], [Step::Reached]), "{after:?}");
        // Of a pipe nothing better is known than that nothing comes.
        let [before, _] = steps(Input::Stdin);
        assert!(matches!(before[..], [Step::Events(_), Step::Reached, ..]), "{before:?}");
    }
}
