//! Reads an event stream line by line, also one that is still being written.
//!
//! A stream is read in constant memory. In a *growing* file the last line may be half written: that is no error, the
//! reader keeps the part and asks again later. Fields and kinds of event that this version does not know are skipped.
//! A stream may hold several runs, one after the other; each begins with its header.

mod fast;

use crate::events::{Event, Finish, Header, SCHEMA};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::BufRead;

/// The longest line that is read, in bytes. A snapshot of 10,000 shards takes about 4 MB.
pub const MAX_LINE_BYTES: usize = 64 << 20;

pub use cr_trace::MAX_SHARDS;

/// The latest time that an event may name, in seconds; beyond it virtual time itself overflows.
pub const MAX_S: f64 = cr_trace::Time::MAX_S;

/// The highest rate that a header may name, in requests per second.
pub const MAX_QPS: f64 = 1e9;

/// The kinds of event of this version.
const KINDS: [&str; 9] =
    ["header", "finish", "fail", "shards", "plan", "fault", "warning", "gate", "summary"];

/// Why an event stream could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A line that is not an event, or not one that fits the stream.
    #[error("{file}:{line}: {what}")]
    Line {
        /// A path, or `<stdin>`.
        file: String,
        /// From 1.
        line: u64,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The system's word.
    #[error("{file}: {source}")]
    Io {
        /// A path, or `<stdin>`.
        file: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The stream has no header.
    #[error("{file}: no events; the first line of an event stream is its header ({SCHEMA})")]
    Empty {
        /// A path, or `<stdin>`.
        file: String,
    },
}

/// What to make of the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A last line without a newline is a line.
    Final,
    /// A last line without a newline is not finished yet.
    Growing,
}

/// Reads events from any buffered input.
///
/// ```
/// use cr_report::reader::EventReader;
/// let text = concat!(
///     r#"{"event":"header","schema":"cacheroute.events/1","generator":"x","policy":"flat","seed":1,"engine":"sim","#,
///     r#""model":"m","device":"none","shards":1,"block_tokens":16,"kv_blocks":8,"clock":"virtual","#,
///     r#""durations":"modelled","warmup_s":0.0}"#, "\n",
///     r#"{"event":"warning","t_s":1.0,"name":"n","detail":"d"}"#, "\n");
/// let mut reader = EventReader::new(text.as_bytes(), "example");
/// let header = reader.header()?;
/// assert_eq!(header.policy, "flat");
/// assert!(reader.next_event()?.is_some());
/// assert!(reader.next_event()?.is_none());
/// # Ok::<(), cr_report::reader::ReadError>(())
/// ```
#[derive(Debug)]
pub struct EventReader<R> {
    input: R,
    file: String,
    end: End,
    line: u64,
    buffer: Vec<u8>,
    shards: Option<u32>,
    skipped: u64,
    /// Whether the rest of a line that was too long is still to be passed over.
    refused: bool,
}

impl<R: BufRead> EventReader<R> {
    /// A reader of a whole stream; `file` names the input in errors.
    pub fn new(input: R, file: impl Into<String>) -> Self {
        let end = End::Final;
        EventReader {
            input,
            file: file.into(),
            end,
            line: 0,
            buffer: Vec::new(),
            shards: None,
            skipped: 0,
            refused: false,
        }
    }

    /// A reader of a stream that is still being written: at the end of the input [`Self::next_event`] says `None`, and
    /// may say more when it is asked again.
    pub fn growing(input: R, file: impl Into<String>) -> Self {
        EventReader { end: End::Growing, ..Self::new(input, file) }
    }

    /// The next event; `None` where there is none, or none yet.
    ///
    /// # Errors
    /// Where the input fails, or a line is no event or none that fits the stream.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        while let Some(parsed) = self.next_line()? {
            self.line += 1;
            match parsed {
                Ok(Some(event)) => {
                    self.check(&event)?;
                    return Ok(Some(event));
                }
                Ok(None) => self.skipped += 1,
                Err(what) => return Err(self.fault(what)),
            }
        }
        Ok(None)
    }

    /// The first event, which must be the header.
    ///
    /// # Errors
    /// As for [`Self::next_event`], and where the first event is another one or missing.
    pub fn header(&mut self) -> Result<Header, ReadError> {
        match self.next_event()? {
            Some(Event::Header(header)) => Ok(header),
            Some(_) => Err(self.fault("a header comes first".into())),
            None => Err(ReadError::Empty { file: self.file.clone() }),
        }
    }

    /// The number of lines read.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Lines that were empty or held an event of a kind this version does not know.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether the input ended within a line that is not finished yet.
    pub fn has_partial_line(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// What the next whole line says; `None` where there is none, or none yet. Keeps an unfinished line of a growing input.
    fn next_line(&mut self) -> Result<Option<Parsed>, ReadError> {
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ReadError::Io { file: self.file.clone(), source }),
            };
            if available.is_empty() {
                let last = self.end == End::Final && !self.buffer.is_empty();
                return Ok(last.then(|| parse_bytes(&std::mem::take(&mut self.buffer))));
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.map_or(available.len(), |at| at + 1);
            if self.refused {
                self.refused = newline.is_none();
                self.input.consume(taken);
                continue;
            }
            if newline.is_some() && self.buffer.is_empty() {
                // The usual case: the line lies in the input's own buffer as a whole.
                let parsed = parse_bytes(&available[..taken]);
                self.input.consume(taken);
                return Ok(Some(parsed));
            }
            self.buffer.extend_from_slice(&available[..taken]);
            self.input.consume(taken);
            if self.buffer.len() > MAX_LINE_BYTES {
                self.line += 1;
                // A reader that goes on does so after this line, and keeps none of it.
                self.buffer = Vec::new();
                self.refused = newline.is_none();
                return Err(
                    self.fault(format!("a line of more than {} MiB is no event", MAX_LINE_BYTES >> 20))
                );
            }
            if newline.is_some() {
                let parsed = parse_bytes(&self.buffer);
                self.buffer.clear();
                return Ok(Some(parsed));
            }
        }
    }

    /// Checks an event against the stream it stands in.
    fn check(&mut self, event: &Event) -> Result<(), ReadError> {
        let what = match (event, self.shards) {
            (Event::Header(header), _) => {
                self.shards = Some(header.shards);
                header_fault(header)
            }
            (_, None) => Some(format!("the first line of an event stream is its header ({SCHEMA})")),
            (event, Some(shards)) => event_fault(event, shards),
        };
        what.map_or(Ok(()), |what| Err(self.fault(what)))
    }

    fn fault(&self, what: String) -> ReadError {
        ReadError::Line { file: self.file.clone(), line: self.line.max(1), what }
    }
}

impl<R: BufRead> Iterator for EventReader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

/// What a line says: an event, nothing (an empty line, or a kind of event that is not known), or what is wrong with it.
type Parsed = Result<Option<Event>, String>;

fn parse_bytes(line: &[u8]) -> Parsed {
    match std::str::from_utf8(line) {
        Ok(text) => parse(text.trim_ascii()),
        Err(e) => Err(format!("column {}: not UTF-8", e.valid_up_to() + 1)),
    }
}

fn parse(line: &str) -> Parsed {
    if line.is_empty() {
        return Ok(None);
    }
    // Nearly all lines are finishes and snapshots. Told by their first bytes, they skip the buffering that a tagged enum costs.
    if line.starts_with(r#"{"event":"finish","#) {
        if let Some(finish) = fast::finish(line) {
            return Ok(Some(Event::Finish(finish)));
        }
        return read_as(line, Event::Finish, "a finish event");
    }
    if line.starts_with(r#"{"event":"shards","#) {
        if let Some(shards) = fast::shards(line) {
            return Ok(Some(Event::Shards(shards)));
        }
        return read_as(line, Event::Shards, "a shards event");
    }
    match serde_json::from_str::<Event>(line) {
        Ok(event) => Ok(Some(event)),
        Err(e) => match kind(line) {
            Some(kind) if !KINDS.contains(&kind.as_str()) => Ok(None),
            Some(kind) => Err(say(&e, &format!("a {kind} event"))),
            None => Err(say(&e, "an event")),
        },
    }
}

fn read_as<T: DeserializeOwned>(line: &str, event: fn(T) -> Event, wanted: &str) -> Parsed {
    serde_json::from_str(line).map(|value| Some(event(value))).map_err(|e| say(&e, wanted))
}

/// The kind of event a line names, where it is an object that names one.
fn kind(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Tag {
        event: String,
    }
    serde_json::from_str::<Tag>(line).ok().map(|tag| tag.event)
}

fn say(error: &serde_json::Error, wanted: &str) -> String {
    let text = error.to_string();
    let cause = text.split(" at line ").next().unwrap_or_default();
    format!("column {}: not {wanted}: {cause}", error.column())
}

fn header_fault(header: &Header) -> Option<String> {
    if header.schema != SCHEMA {
        return Some(format!("schema {:?}; this version reads {SCHEMA}", header.schema));
    }
    if !(1..=MAX_SHARDS).contains(&header.shards) {
        return Some(format!("{} shards; a run has between 1 and {MAX_SHARDS}", header.shards));
    }
    if header.block_tokens == 0 {
        return Some("block_tokens is 0; a block holds at least one token".into());
    }
    if !(0.0..=MAX_S).contains(&header.warmup_s) {
        return Some(format!("warmup_s is {}; it lies between 0 and {MAX_S} seconds", header.warmup_s));
    }
    if let Some(qps) = header.qps.filter(|qps| !(*qps > 0.0 && *qps <= MAX_QPS)) {
        return Some(format!("qps is {qps}; it is positive and at most {MAX_QPS}"));
    }
    let bound = header.slo.ttft_p99_s.filter(|bound_s| !(*bound_s > 0.0 && *bound_s <= MAX_S));
    bound.map(|bound_s| format!("slo.ttft_p99_s is {bound_s}; it is positive and at most {MAX_S} seconds"))
}

fn event_fault(event: &Event, shards: u32) -> Option<String> {
    if let Some(t_s) = event.t_s()
        && !(0.0..=MAX_S).contains(&t_s)
    {
        return Some(format!("t_s is {t_s}; it lies between 0 and {MAX_S} seconds"));
    }
    let strange = match event {
        Event::Finish(finish) => return finish_fault(finish, shards),
        Event::Fail(fail) => fail.shard.filter(|shard| shard.0 >= shards),
        Event::Fault(fault) => Some(fault.shard).filter(|shard| shard.0 >= shards),
        Event::Shards(snapshot) => {
            snapshot.shards.iter().map(|state| state.shard).find(|shard| shard.0 >= shards)
        }
        _ => None,
    };
    strange.map(|shard| no_such_shard(shard, shards))
}

fn finish_fault(finish: &Finish, shards: u32) -> Option<String> {
    if finish.shard.0 >= shards {
        return Some(no_such_shard(finish.shard, shards));
    }
    if finish.cached_tokens > finish.prompt_tokens {
        let (cached, prompt) = (finish.cached_tokens, finish.prompt_tokens);
        return Some(format!("cached_tokens {cached} is more than the prompt_tokens {prompt}"));
    }
    let times = [
        ("arrival_s", finish.arrival_s),
        ("queue_s", finish.queue_s),
        ("ttft_s", finish.ttft_s),
        ("tpot_s", finish.tpot_s.unwrap_or(0.0)),
        ("e2e_s", finish.e2e_s),
    ];
    times
        .into_iter()
        .find(|(_, value)| !(0.0..=MAX_S).contains(value))
        .map(|(name, value)| format!("{name} is {value}; it lies between 0 and {MAX_S} seconds"))
}

fn no_such_shard(shard: cr_trace::ShardId, shards: u32) -> String {
    format!("shard {shard} of a run of {shards} shards; they are numbered from 0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;

    /// As serde knows them: its refusal of another one lists them all.
    #[test]
    fn every_kind_of_event_is_known() {
        let refusal =
            serde_json::from_str::<Event>(r#"{"event":"nonsense"}"#).expect_err("there is none").to_string();
        let (_, list) = refusal.split_once("expected one of ").expect("lists them");
        let names: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(names.iter().filter(|name| KINDS.contains(name)).count(), KINDS.len(), "{refusal}");
        assert_eq!(names.len(), KINDS.len(), "{refusal}");
    }
}
