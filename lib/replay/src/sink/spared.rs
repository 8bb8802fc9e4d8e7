//! Outputs that a run can do without: what it measures is told elsewhere as well.

use super::EventSink;
use cr_report::events::Event;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// What became of the outputs of a run that can be done without. Copies know the same.
#[derive(Clone, Debug, Default)]
pub struct Losses(Arc<Mutex<Option<io::Error>>>);

impl Losses {
    /// A sink whose failure is noted here and ends nothing.
    pub fn spare<S: EventSink>(&self, sink: S) -> Spared<S> {
        Spared { sink, losses: self.clone(), failed: false }
    }

    /// Why the first of them failed, if one did; asked for once.
    pub fn first(&self) -> Option<io::Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, error: io::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// A sink that a run can do without: a disk that fills up must not take along what hours have measured. From its first failure on it is
/// handed nothing.
#[derive(Debug)]
pub struct Spared<S> {
    sink: S,
    losses: Losses,
    failed: bool,
}

impl<S: EventSink> Spared<S> {
    fn unless_failed(&mut self, act: impl FnOnce(&mut S) -> io::Result<()>) {
        if self.failed {
            return;
        }
        if let Err(error) = act(&mut self.sink) {
            self.failed = true;
            self.losses.note(error);
        }
    }
}

impl<S: EventSink> EventSink for Spared<S> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.unless_failed(|sink| sink.event(event));
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed(S::flush);
        Ok(())
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
}
