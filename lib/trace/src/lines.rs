//! Lines of a text input, with their numbers, in bounded memory.

use crate::TraceError;
use std::io::BufRead;

/// A line longer than this is refused, so that a binary file or a lost line end cannot eat the memory.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// Reads one line after another into one reused buffer.
///
/// Lines end in LF or CRLF, the last one may go without. A byte-order mark before the first line is dropped.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    file: String,
    number: u64,
    buffer: Vec<u8>,
    terminated: bool,
}

impl<R: BufRead> Lines<R> {
    /// Lines of `reader`, which errors call `file`.
    pub fn new(reader: R, file: &str) -> Lines<R> {
        Lines { reader, file: file.into(), number: 0, buffer: Vec::new(), terminated: true }
    }

    /// Counts lines from here: so many were read already.
    pub(crate) fn after(mut self, lines: u64) -> Lines<R> {
        self.number = lines;
        self
    }

    /// Moves on to the next line that is not blank; `false` at the end of the input. [`Lines::line`] then holds it.
    ///
    /// # Errors
    ///
    /// The input fails, or the line is longer than [`MAX_LINE_BYTES`].
    pub fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            self.buffer.clear();
            self.read_line().map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
            if self.buffer.is_empty() {
                return Ok(false);
            }
            self.number += 1;
            if self.buffer.len() > MAX_LINE_BYTES {
                return Err(self.error(format!(
                    "the line is longer than {} MiB; is this a text file?",
                    MAX_LINE_BYTES >> 20
                )));
            }
            self.terminated = self.buffer.last() == Some(&b'\n');
            while matches!(self.buffer.last(), Some(b'\n' | b'\r')) {
                self.buffer.pop();
            }
            if self.number == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.iter().all(u8::is_ascii_whitespace) {
                return Ok(true);
            }
        }
    }

    /// Appends what is left of the present line with its end, or as much as shows that it is too long.
    fn read_line(&mut self) -> std::io::Result<()> {
        while self.buffer.len() <= MAX_LINE_BYTES {
            let ready = match self.reader.fill_buf() {
                Ok(ready) => ready,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr::memchr(b'\n', ready);
            let (taken, done) = end.map_or((ready.len(), ready.is_empty()), |at| (at + 1, true));
            self.buffer.extend_from_slice(&ready[..taken]);
            self.reader.consume(taken);
            if done {
                break;
            }
        }
        Ok(())
    }

    /// The present line, without its end.
    pub fn line(&self) -> &[u8] {
        &self.buffer
    }

    /// The number of the present line, from 1; 0 before the first.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the present line had a line end. Only the last line of an input can lack it.
    pub fn terminated(&self) -> bool {
        self.terminated
    }

    /// What the input is called.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// An error on the present line.
    pub fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::line(&self.file, self.number, what)
    }

    /// The present line, without its end.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Parses the present line as JSON.
    ///
    /// # Errors
    ///
    /// The line is no such JSON; a last line that stops in the middle is told apart.
    pub fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, TraceError> {
        serde_json::from_slice(&self.buffer).map_err(|error| self.json_error(&error))
    }

    /// The error for a line that JSON refused.
    pub fn json_error(&self, error: &serde_json::Error) -> TraceError {
        if error.is_eof() {
            let bytes = self.buffer.len();
            return self.error(if self.terminated {
                format!("the JSON stops after {bytes} bytes; every line must be one whole object")
            } else {
                format!(
                    "the last line is cut off after {bytes} bytes; the file is incomplete: write it again, or drop its last line"
                )
            });
        }
        // serde_json counts lines within what it was given, and that is always one; the column is worth keeping.
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        self.error(format!("{what} (column {})", error.column()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(u64, String, bool)> {
        let mut lines = Lines::new(text, "x");
        let mut out = Vec::new();
        while lines.advance().expect("reads") {
            let text = String::from_utf8_lossy(lines.line()).into_owned();
            out.push((lines.number(), text, lines.terminated()));
        }
        out
    }

    #[test]
    fn line_ends_blank_lines_and_a_byte_order_mark() {
        assert_eq!(
            all(b"\xef\xbb\xbfa\r\n\n  \nb\nc"),
            [(1, "a".into(), true), (4, "b".into(), true), (5, "c".into(), false)]
        );
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n\r\n"), []);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        let error = Lines::new(endless, "x").advance().expect_err("too long").to_string();
        assert_eq!(error, "x:1: the line is longer than 64 MiB; is this a text file?");
    }

    #[test]
    fn a_cut_last_line_says_so() {
        let mut lines = Lines::new(&b"{\"a\":"[..], "x");
        assert!(lines.advance().expect("reads"));
        let error = lines.json::<serde_json::Value>().expect_err("cut").to_string();
        assert!(error.starts_with("x:1: the last line is cut off after 5 bytes"), "{error}");
    }
}
