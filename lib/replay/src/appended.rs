//! Files that grow by a line for every piece of work that is over, so that what was interrupted goes on where it was.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens such a file to go on with it: the whole lines that it has, whatever is in them, and the file to append to, which is made where
/// there is none. A program that was killed leaves half a line, which goes; with `anew` all of it does. The file is this
/// process's until it is closed.
///
/// # Errors
/// A file that cannot be read or written, or that another process goes on with.
pub fn go_on(path: &Path, anew: bool) -> io::Result<(Vec<u8>, File)> {
    let mut file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::other(
                "another process is writing it; wait for its end, or use another file",
            ));
        }
        // Not every file system has locks.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut whole = Vec::new();
    if !anew {
        file.read_to_end(&mut whole)?;
        whole.truncate(whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    }
    file.set_len(whole.len() as u64)?;
    Ok((whole, file))
}

/// Each line of them, without its end.
pub fn each_line(whole: &[u8]) -> impl Iterator<Item = &[u8]> {
    whole.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn half_a_line_gives_way_and_whole_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines");
        let cases: [(&[u8], &[u8], usize); 5] = [
            (b"", b"", 0),
            (b"hal", b"", 0),
            (b"a\nb\nhal", b"a\nb\n", 2),
            (b"a\n", b"a\n", 1),
            // A letter of two bytes that was cut, in the middle and at the end.
            (b"a\n\xd0\nb\n\xd0", b"a\n\xd0\nb\n", 3),
        ];
        for (before, whole, count) in cases {
            std::fs::write(&path, before).expect("is written");
            let (lines, mut file) = go_on(&path, false).expect("is read");
            assert_eq!((lines.as_slice(), each_line(&lines).count()), (whole, count));
            let other = go_on(&path, false).expect_err("one process at a time").to_string();
            assert!(other.starts_with("another process is writing it"), "{other}");
            file.write_all(b"c\n").expect("is written");
            assert_eq!(std::fs::read(&path).expect("is read"), [whole, b"c\n"].concat());
        }
        assert_eq!(go_on(&path, true).expect("is read").0, b"");
        assert_eq!(std::fs::read(&path).expect("is read"), b"");
    }
}
