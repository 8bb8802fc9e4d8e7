//! `--requests FILE`: the finished and failed requests of a run as CSV, for notebooks.

use cr_cli::Output;
use cr_replay::EventSink;
use cr_report::events::Event;
use cr_report::requests::RequestTable;
use std::io;

/// A sink that writes a row for every request that ends.
pub(crate) struct Requests(RequestTable<Output>);

impl Requests {
    /// Creates the file at once.
    pub(crate) fn create(path: &str) -> anyhow::Result<Requests> {
        Ok(Requests(RequestTable::new(Output::create(Some(path))?)?))
    }
}

impl EventSink for Requests {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.observe(event).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
