//! Reads a file, also one that still grows or does not exist yet.
//!
//! It is polled: notification services do not work on every file system that runs are written to. A file that shrinks or
//! that is replaced under its name begins anew.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::wait::{Wait, pause};
use super::{CHUNK_BYTES, Follow, Message, Sender, Stop};

/// Hands on what the file holds. `None` once the receiver is gone or the program stops.
pub fn read(path: &Path, follow: Follow, stop: &Stop, sender: &Sender) -> Option<()> {
    let mut file = match open(path, follow, stop, sender) {
        Ok(file) => file?,
        Err(what) => return sender.send(Message::Failed(what)).ok(),
    };
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut position = 0u64;
    let mut is_dry = false;
    loop {
        match file.read(&mut buffer) {
            Ok(0) if follow == Follow::Once => return sender.send(Message::End).ok(),
            Ok(0) => {
                if !std::mem::replace(&mut is_dry, true) {
                    sender.send(Message::Dry).ok()?;
                }
                pause(stop)?;
                if let Some(reason) = began_anew(path, &file, position) {
                    let Ok(new) = File::open(path) else { continue };
                    (file, position) = (new, 0);
                    sender.send(Message::Restart(reason)).ok()?;
                }
            }
            Ok(n) => {
                (position, is_dry) = (position + n as u64, false);
                sender.send(Message::Bytes(buffer[..n].to_vec())).ok()?;
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return sender.send(Message::Failed(failure(path, &e))).ok(),
        }
    }
}

fn failure(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), cr_cli::input::reason_for(path, error))
}

/// Opens the file; where it may still come, waits for it. `Ok(None)` where the program stops meanwhile.
fn open(path: &Path, follow: Follow, stop: &Stop, sender: &Sender) -> Result<Option<File>, String> {
    let mut wait = Wait::new(path, follow);
    loop {
        match File::open(path) {
            Ok(file) => {
                let meta = file.metadata().map_err(|e| failure(path, &e))?;
                if meta.is_dir() {
                    return Err(format!(
                        "cannot read {}: it is a folder, a file of events is wanted",
                        path.display()
                    ));
                }
                return Ok(Some(file));
            }
            Err(e) if e.kind() == ErrorKind::NotFound && wait.may_end() => {
                if wait.go_on("no such file", stop, sender).is_none() {
                    return Ok(None);
                }
            }
            Err(e) => return Err(failure(path, &e)),
        }
    }
}

/// Why the file under this name is not the one that was read so far.
fn began_anew(path: &Path, file: &File, position: u64) -> Option<&'static str> {
    let (now, open) = (fs::metadata(path).ok()?, file.metadata().ok()?);
    if !same_file(&now, &open) {
        return Some("the file was replaced; reading the new one");
    }
    (now.len() < position).then_some("the file was cut short; reading it from its start")
}

#[cfg(unix)]
fn same_file(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::super::wait::POLL;
    use super::*;
    use std::io::Write;
    use std::sync::mpsc::sync_channel;
    use std::thread::sleep;

    fn follow(path: &Path, act: impl FnOnce()) -> (String, Vec<&'static str>) {
        let (sender, receiver) = sync_channel(8);
        let stop = Stop::default();
        let (path, stopped) = (path.to_path_buf(), stop.clone());
        let thread = std::thread::spawn(move || read(&path, Follow::Growing, &stopped, &sender));
        sleep(POLL * 4);
        act();
        sleep(POLL * 6);
        stop.set();
        let _ = thread.join();
        let (mut text, mut restarts) = (String::new(), Vec::new());
        for message in receiver {
            match message {
                Message::Bytes(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
                Message::Restart(why) => restarts.push(why),
                Message::Dry => {}
                Message::Note(note) => text.push_str(&format!("[{note}]")),
                other => panic!("{other:?}"),
            }
        }
        (text, restarts)
    }

    #[test]
    fn a_file_that_comes_later_and_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ndjson");
        std::fs::write(folder.path().join("runs.ndjson"), "").expect("a file");
        let (text, restarts) = follow(&path, || {
            let mut file = File::create(&path).expect("created");
            file.write_all(b"one\n").expect("written");
            sleep(POLL * 3);
            file.write_all(b"two\n").expect("written");
        });
        assert!(text.ends_with("(there is runs.ndjson)]one\ntwo\n"), "{text}");
        assert!(restarts.is_empty());
    }

    #[test]
    fn a_file_that_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.ndjson");
        std::fs::write(&path, "a long first line\n").expect("written");
        let (text, restarts) = follow(&path, || std::fs::write(&path, "new\n").expect("written"));
        assert_eq!(text, "a long first line\nnew\n");
        assert_eq!(restarts.len(), 1);
    }

    #[test]
    fn a_folder_and_a_missing_folder_are_errors() {
        for (path, word) in [("/", "folder"), ("/no/such/place.ndjson", "no such file")] {
            let (sender, receiver) = sync_channel(8);
            read(Path::new(path), Follow::Growing, &Stop::default(), &sender);
            match receiver.recv() {
                Ok(Message::Failed(what)) => assert!(what.contains(word), "{what}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
