//! Outputs that a run can do without: what it measures is told elsewhere as well.

use super::EventSink;
use cr_report::events::Event;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What became of the outputs of a run that can be done without. Copies know the same.
#[derive(Clone, Debug, Default)]
pub struct Losses(Arc<Mutex<Option<io::Error>>>);

impl Losses {
    /// A sink whose failure is noted here and ends nothing: a disk that fills up must not take along what hours have measured.
    pub fn spare<S: EventSink>(&self, sink: S) -> Spared<S> {
        Spared { sink, failures: Failures::Noted(self.clone()), failed: false }
    }

    /// Why the first of them failed, if one did; asked for once.
    pub fn first(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, error: io::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Which failures of a sink end nothing.
#[derive(Debug)]
enum Failures {
    /// That its reader has gone, which is nobody's loss.
    ReaderGone,
    /// Every one; it is noted.
    Noted(Losses),
}

/// A sink that a run can do without: from its failure on it is handed nothing.
#[derive(Debug)]
pub struct Spared<S> {
    sink: S,
    failures: Failures,
    failed: bool,
}

impl<S: EventSink> Spared<S> {
    /// The sink of a reader that may go away: once its pipe is closed, the run goes on without it.
    pub fn for_reader(sink: S) -> Spared<S> {
        Spared { sink, failures: Failures::ReaderGone, failed: false }
    }

    fn unless_failed(&mut self, act: impl FnOnce(&mut S) -> io::Result<()>) -> io::Result<()> {
        if self.failed {
            return Ok(());
        }
        let Err(error) = act(&mut self.sink) else { return Ok(()) };
        match (&self.failures, error.kind()) {
            (Failures::Noted(losses), _) => losses.note(error),
            (Failures::ReaderGone, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
            (Failures::ReaderGone, _) => return Err(error),
        }
        self.failed = true;
        Ok(())
    }
}

impl<S: EventSink> EventSink for Spared<S> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.unless_failed(|sink| sink.event(event))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed(S::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cr_report::events::Shards;

    /// Takes one event.
    struct Small(u32);

    impl EventSink for Small {
        fn event(&mut self, _event: &Event) -> io::Result<()> {
            self.0 += 1;
            if self.0 == 1 { Ok(()) } else { Err(io::Error::other(format!("full at {}", self.0))) }
        }
    }

    #[test]
    fn what_fails_is_told_once_and_ends_nothing() {
        let losses = Losses::default();
        let (mut sink, mut other) = (losses.spare(Small(0)), losses.spare(Small(6)));
        let event = Event::Shards(Shards { t_s: 1.0, shards: Vec::new(), window_start: false });
        sink.event(&event).expect("is taken");
        assert!(losses.first().is_none());
        for _ in 0..3 {
            sink.event(&event).expect("ends nothing");
            sink.flush().expect("ends nothing");
            other.event(&event).expect("ends nothing");
        }
        assert_eq!(losses.first().expect("one failed").to_string(), "full at 2");
        assert_eq!(sink.sink.0, 2, "it was handed nothing more");
        assert!(losses.first().is_none());
    }

    #[test]
    fn a_reader_may_leave_and_nothing_else() {
        struct Fails(io::ErrorKind);
        impl EventSink for Fails {
            fn event(&mut self, _event: &Event) -> io::Result<()> {
                Err(self.0.into())
            }
        }
        let event = Event::Shards(Shards { t_s: 1.0, shards: Vec::new(), window_start: false });
        let told = |kind| Spared::for_reader(Fails(kind)).event(&event).map_err(|error| error.kind());
        assert_eq!(told(io::ErrorKind::BrokenPipe), Ok(()));
        assert_eq!(told(io::ErrorKind::StorageFull), Err(io::ErrorKind::StorageFull));
    }
}
