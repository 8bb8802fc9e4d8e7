//! What an input is: told by its first line.

use super::{KeyRates, TraceRates, from_list};
use cr_trace::lines::MAX_LINE_BYTES;
use cr_trace::{TraceError, TraceReader};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{BufRead, Cursor, Read};

/// Where rates came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Counted over a trace of requests.
    Trace,
    /// `key,rate[,prefix_tokens]` as CSV.
    Csv,
    /// The same as JSON lines.
    Jsonl,
}

/// A byte-order mark, which some editors put in front of a text.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// What tells a line of rates from a line of a trace.
#[derive(Deserialize)]
struct FirstLine {
    rate: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
}

/// Reads rates from a trace, from CSV or from JSON lines, whichever the first line says it is.
///
/// # Errors
/// The input cannot be read or is malformed (the error names the line), or is a trace without a span of time.
pub fn read_rates(reader: impl BufRead, file: &str) -> Result<(KeyRates, Source), TraceError> {
    let (source, reader) = detect(reader, file)?;
    let rates = match source {
        Source::Csv => from_list::from_csv(reader, file),
        Source::Jsonl => from_list::from_jsonl(reader, file),
        Source::Trace => from_trace(reader, file),
    };
    rates.map(|rates| (rates, source))
}

/// Tells what an input is; the reader that comes back starts at its beginning again.
///
/// # Errors
/// The input cannot be read, is empty, or starts with a JSON array.
pub fn detect<R: BufRead>(mut reader: R, file: &str) -> Result<(Source, impl BufRead), TraceError> {
    let head = first_line(&mut reader, file)?;
    let text = head.strip_prefix(MARK).unwrap_or(&head).trim_ascii_start();
    let source = match text.first() {
        None => {
            let what = "is empty; give a trace, or lines of key,rate[,prefix_tokens]".to_string();
            return Err(TraceError::File { file: file.into(), what });
        }
        Some(b'[') => {
            return Err(TraceError::line(file, 1, "this is a JSON array; give one object a line"));
        }
        Some(b'{') => match serde_json::from_slice::<FirstLine>(text) {
            Ok(FirstLine { rate: Some(_), prompt: None }) => Source::Jsonl,
            // What is neither is best explained by the reader of traces.
            _ => Source::Trace,
        },
        Some(_) => Source::Csv,
    };
    // A byte-order mark is no part of the first key.
    let start = if head.starts_with(MARK) { MARK.len() } else { 0 };
    let mut head = Cursor::new(head);
    head.set_position(start as u64);
    Ok((source, head.chain(reader)))
}

/// Everything up to the end of the first line that is not blank.
fn first_line(reader: &mut impl BufRead, file: &str) -> Result<Vec<u8>, TraceError> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        let limit = (MAX_LINE_BYTES as u64 + 1).saturating_sub(start as u64);
        let read = reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut head)
            .map_err(|source| TraceError::Io { file: file.into(), source })?;
        if head.len() > MAX_LINE_BYTES {
            let what =
                format!("the first line is longer than {} MiB; is this a text file?", MAX_LINE_BYTES >> 20);
            return Err(TraceError::File { file: file.into(), what });
        }
        let line = &head[start..];
        let text = if start == 0 { line.strip_prefix(MARK).unwrap_or(line) } else { line };
        if read == 0 || !text.iter().all(u8::is_ascii_whitespace) {
            return Ok(head);
        }
    }
}

/// Counts a whole trace.
fn from_trace(reader: impl BufRead, file: &str) -> Result<KeyRates, TraceError> {
    let mut counts = TraceRates::default();
    for request in TraceReader::new(reader, file)? {
        counts.record(&request?);
    }
    counts.finish().map_err(|error| TraceError::File { file: file.into(), what: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn kind(text: &[u8]) -> Result<Source, String> {
        detect(text, "x").map(|(source, _)| source).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_line_tells() {
        assert_eq!(kind(b"a,1\n"), Ok(Source::Csv));
        assert_eq!(kind(b"\n \nkey,rate\n"), Ok(Source::Csv));
        assert_eq!(kind(b"{\"key\":\"a\",\"rate\":1}\n"), Ok(Source::Jsonl));
        assert_eq!(kind(b"\xef\xbb\xbf{\"rate\":1,\"key\":\"a\"}"), Ok(Source::Jsonl));
        assert_eq!(kind(b"{\"schema\":\"cacheroute.trace/1\"}\n"), Ok(Source::Trace));
        assert_eq!(kind(b"{\"id\":0,\"t_s\":1,\"prompt\":[]}"), Ok(Source::Trace));
        assert!(kind(b"").expect_err("is empty").contains("is empty; give a trace"));
        assert!(kind(b"\n\n").expect_err("is blank").contains("is empty"));
        let endless = detect(io::BufReader::new(io::repeat(b'x')), "x").map(|_| ()).expect_err("never ends");
        assert_eq!(endless.to_string(), "x: the first line is longer than 64 MiB; is this a text file?");
        assert!(kind(b"[1]").expect_err("is an array").starts_with("x:1: this is a JSON array"));
    }

    #[test]
    fn nothing_is_lost_and_lines_keep_their_numbers() {
        let (rates, source) = read_rates(&b"\xef\xbb\xbf\n\na,1\nb,2\n"[..], "x").expect("parses");
        assert_eq!(
            (rates.keys(), source),
            ([cr_trace::Key::new("a"), cr_trace::Key::new("b")].as_slice(), Source::Csv)
        );
        let error = read_rates(&b"\n\na,1\nb,-2\n"[..], "x").expect_err("is negative").to_string();
        assert!(error.starts_with("x:4: "), "{error}");
    }

    #[test]
    fn a_trace_is_counted_and_another_schema_is_explained() {
        let trace = "{\"id\":0,\"t_s\":0,\"key\":\"a\",\"prompt\":[[\"k:a\",4]],\"output_tokens\":1}\n\
                     {\"id\":1,\"t_s\":2,\"key\":\"a\",\"prompt\":[[\"k:a\",4]],\"output_tokens\":1}\n";
        let (rates, source) = read_rates(trace.as_bytes(), "x").expect("parses");
        assert_eq!((rates.rates(), source), ([1.0].as_slice(), Source::Trace));
        let table = read_rates(&b"{\"schema\":\"cacheroute.table/1\"}\n"[..], "x").expect_err("is a table");
        assert!(table.to_string().contains("it is a routing table"), "{table}");
    }
}
