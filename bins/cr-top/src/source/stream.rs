//! Reads a pipe to its end.

use std::io::{ErrorKind, Read};

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
