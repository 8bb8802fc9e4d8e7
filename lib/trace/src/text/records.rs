//! The objects of a JSON array or of JSON lines, one at a time.

use crate::TraceError;
use crate::lines::{Lines, MAX_LINE_BYTES};
use std::io::BufRead;

/// Reads one JSON object after another, from lines of one object each or from an array of objects, however it is laid out.
#[derive(Debug)]
pub(super) enum Records<R> {
    /// One object a line.
    Lines(Lines<R>),
    /// The objects between brackets.
    Array(Elements<R>),
}

impl<R: BufRead> Records<R> {
    /// Looks at the first byte that is no white space: a bracket begins an array.
    pub(super) fn new(mut reader: R, file: &str) -> Result<Records<R>, TraceError> {
        let mut lines = 0;
        // Byte by byte: the first read of a pipe may be short.
        loop {
            let head = reader.fill_buf().map_err(|source| TraceError::Io { file: file.into(), source })?;
            match head.first() {
                Some(b'\n') => lines += 1,
                Some(b' ' | b'\t' | b'\r' | 0xef | 0xbb | 0xbf) => {}
                Some(b'[') => return Ok(Records::Array(Elements::new(reader, file, lines + 1))),
                _ => return Ok(Records::Lines(Lines::new(reader, file).after(lines))),
            }
            reader.consume(1);
        }
    }

    /// Moves on to the next object; `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, TraceError> {
        match self {
            Records::Lines(lines) => lines.advance(),
            Records::Array(elements) => elements.advance(),
        }
    }

    /// Parses the present object.
    pub(super) fn json<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, TraceError> {
        match self {
            Records::Lines(lines) => lines.json(),
            Records::Array(elements) => serde_json::from_slice(&elements.object).map_err(|error| {
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
                // The object may span lines; serde_json counts them from 1.
                let line = elements.start + (error.line() as u64).saturating_sub(1);
                TraceError::line(&elements.file, line, what)
            }),
        }
    }

    /// The line on which the present object begins, from 1; 0 before the first.
    pub(super) fn number(&self) -> u64 {
        match self {
            Records::Lines(lines) => lines.number(),
            Records::Array(elements) => elements.start,
        }
    }

    /// What the input is called.
    pub(super) fn file(&self) -> &str {
        match self {
            Records::Lines(lines) => lines.file(),
            Records::Array(elements) => &elements.file,
        }
    }
}

/// The elements of a JSON array of objects. Only strings, brackets and commas are understood here; the rest is the parser's.
#[derive(Debug)]
pub(super) struct Elements<R> {
    reader: R,
    file: String,
    /// The present element.
    object: Vec<u8>,
    /// The line on which it begins.
    start: u64,
    /// The line that is being read.
    line: u64,
    place: Between,
}

/// What may come next, outside of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// The opening bracket.
    Start,
    /// The first element, or the end of an empty array.
    First,
    /// A comma or the end.
    Separator,
    /// An element.
    Element,
    /// Nothing but white space.
    Over,
}

impl<R: BufRead> Elements<R> {
    fn new(reader: R, file: &str, line: u64) -> Elements<R> {
        Elements { reader, file: file.into(), object: Vec::new(), start: 0, line, place: Between::Start }
    }

    fn error(&self, what: impl Into<String>) -> TraceError {
        // Not a fault of one row: where the next element begins is no longer known.
        TraceError::File { file: format!("{}:{}", self.file, self.line), what: what.into() }
    }

    fn byte(&mut self) -> Result<Option<u8>, TraceError> {
        let buffer =
            self.reader.fill_buf().map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
        let Some(&byte) = buffer.first() else { return Ok(None) };
        self.reader.consume(1);
        self.line += u64::from(byte == b'\n');
        Ok(Some(byte))
    }

    fn advance(&mut self) -> Result<bool, TraceError> {
        while let Some(byte) = self.byte()? {
            self.place = match (self.place, byte) {
                (_, b' ' | b'\t' | b'\r' | b'\n') => continue,
                (Between::Start, b'[') => Between::First,
                (Between::First | Between::Separator, b']') => Between::Over,
                (Between::Separator, b',') => Between::Element,
                (Between::First | Between::Element, b'{') => {
                    self.element()?;
                    self.place = Between::Separator;
                    return Ok(true);
                }
                (Between::Over, _) => {
                    return Err(self.error("something follows the end of the JSON array"));
                }
                (Between::Separator, _) => {
                    return Err(self.error("a comma or a closing bracket is wanted between conversations"));
                }
                _ => return Err(self.error("an object is wanted here: the file is an array of objects")),
            };
        }
        match self.place {
            Between::Over => Ok(false),
            _ => Err(self.error("the JSON array has no end; the file is incomplete")),
        }
    }

    /// The rest of an element, whose opening brace has been read.
    fn element(&mut self) -> Result<(), TraceError> {
        self.object.clear();
        self.object.push(b'{');
        self.start = self.line;
        let (mut depth, mut in_string, mut escaped) = (1u32, false, false);
        while depth > 0 {
            let buffer = self
                .reader
                .fill_buf()
                .map_err(|source| TraceError::Io { file: self.file.clone(), source })?;
            if buffer.is_empty() {
                return Err(self.error(format!(
                    "the file ends within the object that begins on line {}; it is incomplete",
                    self.start
                )));
            }
            let mut used = 0;
            for &byte in buffer {
                used += 1;
                self.line += u64::from(byte == b'\n');
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    b'{' if !in_string => depth += 1,
                    b'}' if !in_string => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            self.object.extend_from_slice(&buffer[..used]);
            self.reader.consume(used);
            if self.object.len() > MAX_LINE_BYTES {
                return Err(self.error(format!(
                    "the object that begins on line {} is longer than {} MiB; is a quote or a brace missing?",
                    self.start,
                    MAX_LINE_BYTES >> 20
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn all(text: &str) -> Result<Vec<(u64, Value)>, String> {
        // A buffer of three bytes: elements span refills.
        let reader = std::io::BufReader::with_capacity(3, text.as_bytes());
        let mut records = Records::new(reader, "x").map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        while records.advance().map_err(|error| error.to_string())? {
            out.push((records.number(), records.json().map_err(|error| error.to_string())?));
        }
        Ok(out)
    }

    #[test]
    fn an_array_and_lines_hold_the_same() {
        let objects = [r#"{"a":"}{[\"\\"}"#, r#"{"b":{"c":[1,{}]}}"#];
        let values: Vec<Value> =
            objects.iter().map(|text| serde_json::from_str(text).expect("is JSON")).collect();
        let read = |text: String| {
            let values: Vec<Value> = all(&text).expect("reads").into_iter().map(|(_, value)| value).collect();
            values
        };
        assert_eq!(read(objects.join("\n")), values);
        assert_eq!(read(format!("[{}]", objects.join(","))), values);
        assert_eq!(read(format!("\u{feff} [\n  {}\n]\n", objects.join(" ,\n  "))), values);
        assert_eq!(all("[]"), Ok(Vec::new()));
        assert_eq!(
            all("[\n{},\n\n{\n}]").expect("reads").iter().map(|(line, _)| *line).collect::<Vec<_>>(),
            [2, 4]
        );
    }

    #[test]
    fn broken_arrays_say_where() {
        for (text, wanted) in [
            ("[", "x:1: the JSON array has no end; the file is incomplete"),
            ("[\n{}", "x:2: the JSON array has no end; the file is incomplete"),
            ("[{}\n{}]", "x:2: a comma or a closing bracket is wanted between conversations"),
            ("[1]", "x:1: an object is wanted here: the file is an array of objects"),
            ("[{},]", "x:1: an object is wanted here: the file is an array of objects"),
            ("[]\n{}", "x:2: something follows the end of the JSON array"),
            ("[\n{\"a\":\"", "x:2: the file ends within the object that begins on line 2; it is incomplete"),
            ("[\n{\n\"a\":x}]", "x:3: expected value"),
        ] {
            assert_eq!(all(text).expect_err(text), wanted, "{text}");
        }
    }
}
