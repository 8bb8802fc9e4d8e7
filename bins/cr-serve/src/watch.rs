//! Progress of a run, for people at a terminal.

use cr_cli::Progress;
use cr_replay::EventSink;
use cr_report::events::Event;
use std::io;

/// A sink that counts requests that have ended on a progress bar.
pub(crate) struct Watch {
    progress: Progress,
    ended: u64,
}

impl Watch {
    /// Counts on `progress`.
    pub(crate) fn new(progress: Progress) -> Watch {
        Watch { progress, ended: 0 }
    }
}

impl EventSink for Watch {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Finish(_) | Event::Fail(_) => {
                self.ended += 1;
                if self.ended.is_multiple_of(16) {
                    self.progress.set(self.ended);
                }
            }
            Event::Warning(warning) => {
                self.progress.line(format!("warning: {}: {}", warning.name, warning.detail))
            }
            Event::Summary(_) => self.progress.finish(),
            _ => {}
        }
        Ok(())
    }

    fn reads_snapshots(&self) -> bool {
        false
    }
}
