//! `--listen SOCKET`: the events of a run on a Unix socket, for `cr-top --connect`.

use cr_cli::bad_input;
use cr_replay::EventSink;
use cr_replay::sink::{JsonLines, Spared};
use cr_report::events::Event;
use std::io::{self, BufWriter};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

type Client = Spared<JsonLines<BufWriter<UnixStream>>>;

/// Hands the events to everybody who connects, from when they connect on; who comes late gets the header first.
pub(crate) struct Listen {
    listener: UnixListener,
    path: PathBuf,
    header: Option<Event>,
    clients: Vec<Client>,
}

impl Listen {
    /// Makes the socket; it is removed at the end of the run.
    pub(crate) fn bind(path: &str) -> anyhow::Result<Listen> {
        let failed = |e: io::Error| {
            bad_input(match e.kind() {
                io::ErrorKind::AddrInUse => format!("{path} exists already; remove it, or listen elsewhere"),
                _ => format!("cannot listen on {path}: {e}"),
            })
        };
        if path.is_empty() {
            // The system takes it for a socket without a name, which nobody can find.
            return Err(bad_input("--listen needs a name for the socket"));
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Listen { listener, path: path.into(), header: None, clients: Vec::new() })
    }

    /// Greets whoever has connected since the last time.
    fn accept(&mut self) -> io::Result<()> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(false)?;
            let mut client = Spared::for_reader(JsonLines::new(BufWriter::new(stream)));
            if let Some(header) = &self.header {
                client.event(header)?;
            }
            self.clients.push(client);
        }
        Ok(())
    }
}

impl EventSink for Listen {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Header(_) => self.header = Some(event.clone()),
            // Often enough: a snapshot comes every quarter second of run time.
            Event::Shards(_) => self.accept()?,
            _ => {}
        }
        self.clients.iter_mut().try_for_each(|client| client.event(event))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.clients.iter_mut().try_for_each(|client| client.flush())
    }
}

impl Drop for Listen {
    fn drop(&mut self) {
        // Nobody is helped by an error about a socket that is gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}
