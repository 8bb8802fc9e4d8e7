//! The native trace format, `cacheroute.trace/1`: an optional header line, then one request a line, ordered by `t_s`.

use crate::ids::IdSet;
use crate::lines::Lines;
use crate::tolerance::{Patience, Rows, Tolerance};
use crate::{Request, TraceError};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

/// The schema of a trace.
pub const TRACE_SCHEMA: &str = "cacheroute.trace/1";

/// Ranges of ids held to find duplicates: 64 MiB at most, and one range for a trace whose ids count up.
const ID_RANGES: usize = 1 << 20;

/// The optional first line of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// Always [`TRACE_SCHEMA`].
    pub schema: String,
    /// The program that wrote the trace, and its version.
    #[serde(default)]
    pub generator: String,
    /// The seed that the requests were drawn from; absent for imported traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many requests follow; absent where the writer could not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// How long the arrivals last, in seconds; absent where the writer could not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How the trace came about: the generator's specification, or the import's options.
    #[serde(default = "empty_spec")]
    pub spec: serde_json::Value,
}

fn empty_spec() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

impl TraceHeader {
    /// A header of the present schema that tells only who wrote the trace.
    pub fn new(generator: impl Into<String>) -> TraceHeader {
        TraceHeader {
            schema: TRACE_SCHEMA.into(),
            generator: generator.into(),
            seed: None,
            requests: None,
            duration_s: None,
            spec: empty_spec(),
        }
    }
}

/// Reads a trace request by request, checking each.
///
/// Checked beyond [`Request::fault`]: arrivals never go back in time, ids are unique, and `after` names a request that
/// came before. The last two are exact as long as the ids seen form at most 2^20 runs without gaps, which bounds the
/// memory; beyond that a duplicate may pass. After the first error the iterator ends.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    header: Option<TraceHeader>,
    /// The first line is already read and is a request.
    pending: bool,
    last_t_s: f64,
    seen: IdSet,
    requests: u64,
    patience: Patience,
}

/// What tells one kind of first line from another.
#[derive(Deserialize)]
struct FirstLine {
    schema: Option<serde_json::Value>,
    hash_ids: Option<serde::de::IgnoredAny>,
    event: Option<serde::de::IgnoredAny>,
}

impl<R: BufRead> TraceReader<R> {
    /// Starts to read; `file` is what errors call the input. The header, if there is one, is read at once.
    ///
    /// # Errors
    ///
    /// The input is empty, cannot be read, starts with a line that is no JSON object, or is of another format.
    pub fn new(reader: R, file: &str) -> Result<TraceReader<R>, TraceError> {
        let mut lines = Lines::new(reader, file);
        if !lines.advance()? {
            return Err(TraceError::File {
                file: file.into(),
                what: "the input is empty; a trace has at least one line".into(),
            });
        }
        if !lines.bytes().trim_ascii_start().starts_with(b"{") {
            return Err(lines.error(
                "this is no JSON object, so no native trace; other formats and compressed files are read by `cr-gen import`",
            ));
        }
        let first: FirstLine = lines.json()?;
        let header = match first.schema {
            Some(schema) if schema == TRACE_SCHEMA => Some(lines.json::<TraceHeader>()?),
            Some(schema) => return Err(lines.error(wrong_schema(&schema))),
            None if first.hash_ids.is_some() => {
                return Err(lines.error(
                    "this is a Mooncake trace, not a native one; convert it with `cr-gen import FILE --from mooncake`",
                ));
            }
            None if first.event.is_some() => {
                return Err(lines.error("these are events of a run, not a trace of requests"));
            }
            None => None,
        };
        if let Some(duration_s) = header.as_ref().and_then(|header| header.duration_s)
            && !(0.0..=crate::Time::MAX_S).contains(&duration_s)
        {
            return Err(lines.error(format!(
                "duration_s is {duration_s}, it must lie between 0 and {} seconds",
                crate::Time::MAX_S
            )));
        }
        let pending = header.is_none();
        let seen = IdSet::new(ID_RANGES);
        Ok(TraceReader {
            lines,
            header,
            pending,
            last_t_s: 0.0,
            seen,
            requests: 0,
            patience: Patience::default(),
        })
    }

    /// Skips bad lines as long as the tolerance lasts. The first line is not among them where it is no JSON object.
    pub fn tolerate(mut self, tolerance: Tolerance) -> TraceReader<R> {
        self.patience = Patience::new(tolerance);
        self
    }

    /// The header line, if the trace has one.
    pub fn header(&self) -> Option<&TraceHeader> {
        self.header.as_ref()
    }

    /// How many requests were read so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// What errors call the input.
    pub fn file(&self) -> &str {
        self.lines.file()
    }

    /// What there is to say of a header that is not the first line: somebody has put one file behind another.
    fn second_header(&self) -> Option<TraceError> {
        let first: FirstLine = self.lines.json().ok()?;
        first.schema.filter(|schema| schema == TRACE_SCHEMA)?;
        Some(self.lines.error(
            "another trace begins here; a file has one, whose ids are unique and whose times do not go back",
        ))
    }

    /// The line of the request read last, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }
}

fn wrong_schema(schema: &serde_json::Value) -> String {
    let name = schema.as_str().unwrap_or_default();
    let hint = match name.split('/').next().unwrap_or_default() {
        "cacheroute.trace" => "it comes from another version of these programs",
        "cacheroute.table" => "it is a routing table, which goes to --table",
        "cacheroute.events" => "these are events of a run, which cr-top and `cr-serve report` read",
        _ => "is it the right file?",
    };
    format!("the schema is {schema}, a trace has {TRACE_SCHEMA:?}; {hint}")
}

impl<R: BufRead> Rows for TraceReader<R> {
    type Row = Request;

    fn read(&mut self) -> Result<Option<Request>, TraceError> {
        if !std::mem::take(&mut self.pending) && !self.lines.advance()? {
            return Ok(None);
        }
        let request: Request = self.lines.json().map_err(|error| self.second_header().unwrap_or(error))?;
        if let Some(fault) = request.fault() {
            return Err(self.lines.error(fault));
        }
        if request.t_s < self.last_t_s {
            return Err(self.lines.error(format!(
                "t_s goes back from {} to {}; requests must be ordered by arrival",
                self.last_t_s, request.t_s
            )));
        }
        if let Some(after) = request.after
            && self.seen.is_exact()
            && !self.seen.contains(after.0)
        {
            return Err(self
                .lines
                .error(format!("after names request {after}, which does not come before this one")));
        }
        if !self.seen.insert(request.id.0) {
            return Err(self.lines.error(format!("id {} was used before; ids must be unique", request.id)));
        }
        self.last_t_s = request.t_s;
        self.requests += 1;
        Ok(Some(request))
    }

    fn patience(&mut self) -> &mut Patience {
        &mut self.patience
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row()
    }
}

/// Writes a trace line by line through one reused buffer; give it a writer that buffers.
#[derive(Debug)]
pub struct TraceWriter<W> {
    writer: W,
    buffer: Vec<u8>,
}

impl<W: Write> TraceWriter<W> {
    /// A trace without a header.
    pub fn new(writer: W) -> TraceWriter<W> {
        TraceWriter { writer, buffer: Vec::with_capacity(1024) }
    }

    /// A trace that begins with a header.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn with_header(writer: W, header: &TraceHeader) -> std::io::Result<TraceWriter<W>> {
        let mut out = TraceWriter::new(writer);
        serde_json::to_writer(&mut out.buffer, header).map_err(std::io::Error::from)?;
        out.end_line()?;
        Ok(out)
    }

    /// Writes one request. Order and uniqueness are the caller's affair; the reader checks them.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn write(&mut self, request: &Request) -> std::io::Result<()> {
        crate::line::append(&mut self.buffer, request).map_err(std::io::Error::from)?;
        self.end_line()
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        self.buffer.push(b'\n');
        let written = self.writer.write_all(&self.buffer);
        self.buffer.clear();
        written
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}
