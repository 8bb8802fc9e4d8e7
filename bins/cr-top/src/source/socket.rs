//! Reads what a run sends that listens on a Unix socket, also one that does not listen yet.

use std::path::Path;

use super::{Follow, Message, Sender, Stop};

/// Connects, where need be once somebody listens, and hands on what comes. `None` once the receiver is gone or the program stops.
#[cfg(unix)]
pub fn read(path: &Path, follow: Follow, stop: &Stop, sender: &Sender) -> Option<()> {
    match unix::connect(path, follow, stop, sender) {
        Ok(socket) => unix::read(socket?, path, sender),
        Err(what) => sender.send(Message::Failed(what)).ok(),
    }
}

/// Sockets in the file system are not to be had here.
#[cfg(not(unix))]
pub fn read(path: &Path, _: Follow, _: &Stop, sender: &Sender) -> Option<()> {
    let text = format!("cannot connect to {}: this system has no Unix sockets", path.display());
    sender.send(Message::Failed(text)).ok()
}

#[cfg(unix)]
mod unix {
    use std::io::{self, ErrorKind, Read};
    use std::os::unix::fs::FileTypeExt;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use super::super::wait::Wait;
    use super::super::{CHUNK_BYTES, Follow, Message, Sender, Stop, stream};

    /// Hands on what comes; a run that is over before its first word came cannot be watched.
    pub(super) fn read(mut socket: UnixStream, path: &Path, sender: &Sender) -> Option<()> {
        let mut first = vec![0; CHUNK_BYTES];
        let failed = |why: &str| Message::Failed(format!("cannot read {}: {why}", path.display()));
        let over =
            "the run ended before it could be watched; keep its events with -o FILE, and name the file";
        match socket.read(&mut first) {
            Ok(n) if n > 0 => {
                first.truncate(n);
                sender.send(Message::Bytes(first)).ok()?;
            }
            Ok(_) => return sender.send(failed(over)).ok(),
            Err(e) => match e.kind() {
                ErrorKind::Interrupted => {}
                // The listener went away with this connection still in its queue.
                ErrorKind::ConnectionReset => return sender.send(failed(over)).ok(),
                _ => return sender.send(failed(&cr_cli::input::reason(&e))).ok(),
            },
        }
        stream::read(socket, &path.display().to_string(), sender)
    }

    /// Connects; a run may be started after whoever watches it. `Ok(None)` where the program stops meanwhile.
    pub(super) fn connect(
        path: &Path,
        follow: Follow,
        stop: &Stop,
        sender: &Sender,
    ) -> Result<Option<UnixStream>, String> {
        let failed = |why: &str| format!("cannot connect to {}: {why}", path.display());
        let mut wait = Wait::new(path, follow);
        loop {
            let why = match UnixStream::connect(path) {
                Ok(socket) => return Ok(Some(socket)),
                Err(error) => not_yet(path, &error).map_err(|why| failed(&why))?,
            };
            if !wait.may_end() {
                return Err(failed(&format!("{why}; start the run with cr-serve run --listen first")));
            }
            if wait.go_on(why, stop, sender).is_none() {
                return Ok(None);
            }
        }
    }

    /// What is still missing; as an error what waiting does not mend.
    fn not_yet(path: &Path, error: &io::Error) -> Result<&'static str, String> {
        let is_other = || std::fs::metadata(path).is_ok_and(|meta| !meta.file_type().is_socket());
        match error.kind() {
            ErrorKind::NotFound => Ok("no such file"),
            // What the system says of a file that is no socket, too.
            ErrorKind::ConnectionRefused if is_other() => {
                Err("it is no socket; a file of events is read without --connect".into())
            }
            ErrorKind::ConnectionRefused => Ok("nobody listens there"),
            _ => Err(cr_cli::input::reason(error)),
        }
    }
}
