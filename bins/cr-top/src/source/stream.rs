//! Reads a pipe to its end.

use std::io::{ErrorKind, Read};
use std::path::Path;

use super::{CHUNK_BYTES, Message, Sender};

/// Hands on everything that `input` holds. `None` once the receiver is gone.
pub fn read(mut input: impl Read, name: &str, sender: &Sender) -> Option<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return sender.send(Message::End).ok(),
            Ok(n) => sender.send(Message::Bytes(buffer[..n].to_vec())).ok()?,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => {
                let reason = cr_cli::input::reason(&e);
                return sender.send(Message::Failed(format!("cannot read {name}: {reason}"))).ok();
            }
        }
    }
}

/// Connects to a Unix socket and hands on what comes.
#[cfg(unix)]
pub fn connect(path: &Path, sender: &Sender) -> Option<()> {
    let name = path.display();
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(socket) => read(socket, &name.to_string(), sender),
        Err(e) => {
            let why = match e.kind() {
                ErrorKind::ConnectionRefused => "nothing listens there".into(),
                _ => cr_cli::input::reason(&e),
            };
            let hint = "start the run with cr-serve run --listen first";
            sender.send(Message::Failed(format!("cannot connect to {name}: {why}; {hint}"))).ok()
        }
    }
}

/// Sockets in the file system are not to be had here.
#[cfg(not(unix))]
pub fn connect(path: &Path, sender: &Sender) -> Option<()> {
    let text = format!("cannot connect to {}: this system has no Unix sockets", path.display());
    sender.send(Message::Failed(text)).ok()
}
