//! Inputs that go on without end, such as a device or a lost pipe: told, not read until the memory is full.

use crate::lines::MAX_LINE_BYTES;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// The largest file that is read as a whole.
pub const MAX_WHOLE_BYTES: u64 = 64 << 20;

/// Reads a whole small file (a configuration, a table) as text.
///
/// # Errors
/// What the system says, text that is no UTF-8, or more than [`MAX_WHOLE_BYTES`] of it.
pub fn read_file(path: impl AsRef<Path>) -> io::Result<String> {
    read_text(BufReader::new(File::open(path)?))
}

/// As [`read_file`], from an input that is open.
///
/// # Errors
/// As [`read_file`].
pub fn read_text(reader: impl BufRead) -> io::Result<String> {
    let (mut reader, mut text) = (reader.take(MAX_WHOLE_BYTES), String::new());
    let read = reader.read_to_string(&mut text);
    // What goes on may have been cut within a letter.
    if reader.limit() == 0 && !reader.into_inner().fill_buf().is_ok_and(<[u8]>::is_empty) {
        let most = MAX_WHOLE_BYTES >> 20;
        return Err(io::Error::other(format!("it is larger than {most} MiB; is this the file you meant?")));
    }
    read.map(|_| text)
}

/// An input of lines, for readers that would wait for the end of one as long as it takes.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: R,
    /// Bytes of the present line so far.
    line: usize,
}

impl<R: Read> BoundedLines<R> {
    /// Fails where a line of `reader` is longer than [`MAX_LINE_BYTES`].
    pub fn new(reader: R) -> BoundedLines<R> {
        BoundedLines { reader, line: 0 }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.line = match memchr::memrchr(b'\n', &buffer[..read]) {
            Some(end) => read - end - 1,
            None => self.line + read,
        };
        if self.line > MAX_LINE_BYTES {
            let most = MAX_LINE_BYTES >> 20;
            return Err(io::Error::other(format!("a line is longer than {most} MiB; is this a text file?")));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_told() {
        let zeros = || BufReader::new(io::repeat(0));
        let whole = read_text(zeros()).expect_err("never ends").to_string();
        assert_eq!(whole, "it is larger than 64 MiB; is this the file you meant?");
        let lines = b"a,1\n".chain(zeros());
        let line =
            io::copy(&mut BoundedLines::new(lines), &mut io::sink()).expect_err("never ends").to_string();
        assert_eq!(line, "a line is longer than 64 MiB; is this a text file?");
    }

    #[test]
    fn what_ends_is_read() {
        assert_eq!(read_text(&b"a\nb"[..]).expect("is text"), "a\nb");
        let line = vec![b'x'; MAX_LINE_BYTES];
        let lines = (&line[..]).chain(&b"\n"[..]).chain(&line[..]);
        let copied = io::copy(&mut BoundedLines::new(lines), &mut io::sink()).expect("no line is too long");
        assert_eq!(copied as usize, 2 * line.len() + 1);
    }
}
