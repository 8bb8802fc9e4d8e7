//! Traces that are tables: one CSV row a request, with its time and its lengths and nothing about its content.
//!
//! Azure's LLM inference traces and BurstGPT are such tables. Since they do not tell what prompts share, a request's
//! prompt is one segment of its own (`u:ID`) and nothing can be reused; they are good for arrivals and lengths. Rows without a
//! key column each get a key of their own (`r0`, `r1`, …).

use crate::lines::Lines;
use crate::tolerance::{Patience, Rows, Tolerance};
use crate::{ContentId, Key, Prompt, Request, RequestId, Segment, Time, TraceError};
use std::io::BufRead;
use std::time::UNIX_EPOCH;

/// Which columns of a table mean what, by their names in the first row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Arrival: seconds, or a date and time of day.
    pub time: String,
    /// Prompt tokens.
    pub input: String,
    /// Decoded tokens.
    pub output: String,
    /// The routing key; none where the table has no such column.
    pub key: Option<String>,
    /// The session, which is also the key where no key is named. May be missing from the table.
    pub session: Option<String>,
}

impl Columns {
    /// Azure LLM inference traces (2023 and 2024): `TIMESTAMP,ContextTokens,GeneratedTokens`.
    pub fn azure() -> Columns {
        Columns {
            time: "TIMESTAMP".into(),
            input: "ContextTokens".into(),
            output: "GeneratedTokens".into(),
            key: None,
            session: None,
        }
    }

    /// BurstGPT: `Timestamp,Model,Request tokens,Response tokens,…`, later versions with `Session ID`. Failed calls have no
    /// response tokens, which is a fault of the row here.
    pub fn burstgpt() -> Columns {
        Columns {
            time: "Timestamp".into(),
            input: "Request tokens".into(),
            output: "Response tokens".into(),
            key: None,
            session: Some("Session ID".into()),
        }
    }

    /// The same table, routed by another column.
    pub fn with_key(self, column: Option<String>) -> Columns {
        Columns { key: column.or(self.key), ..self }
    }
}

/// Where the columns are.
#[derive(Debug)]
struct Places {
    time: usize,
    input: usize,
    output: usize,
    key: Option<usize>,
    session: Option<usize>,
}

/// Reads the rows of a table as requests, numbered from 0; times count from the first row where they are dates.
#[derive(Debug)]
pub struct TableImport<R> {
    lines: Lines<R>,
    fields: csv::StringRecord,
    places: Places,
    patience: Patience,
    /// Seconds since 1970 of the first row's date.
    start_s: Option<f64>,
    last_s: f64,
    next_id: u64,
}

impl<R: BufRead> TableImport<R> {
    /// Starts to read; `file` is what errors call the input.
    ///
    /// # Errors
    ///
    /// An input that is empty, cannot be read, or lacks one of the columns.
    pub fn new(
        reader: R,
        file: &str,
        columns: &Columns,
        tolerance: Tolerance,
    ) -> Result<TableImport<R>, TraceError> {
        let mut lines = Lines::new(reader, file);
        if !lines.advance()? {
            let what = "the input is empty; a table has a row of column names".into();
            return Err(TraceError::File { file: file.into(), what });
        }
        let mut header = csv::StringRecord::new();
        split(lines.line(), &mut header).map_err(|what| lines.error(what))?;
        let place = |name: &str| {
            header.iter().position(|column| column == name).ok_or_else(|| {
                let columns = header.iter().collect::<Vec<_>>().join(", ");
                lines.error(format!("there is no column {name:?}; the columns are {columns}"))
            })
        };
        let places = Places {
            time: place(&columns.time)?,
            input: place(&columns.input)?,
            output: place(&columns.output)?,
            key: columns.key.as_deref().map(place).transpose()?,
            session: columns.session.as_deref().and_then(|name| place(name).ok()),
        };
        Ok(TableImport {
            lines,
            fields: header,
            places,
            patience: Patience::new(tolerance),
            start_s: None,
            last_s: 0.0,
            next_id: 0,
        })
    }

    fn request(&mut self) -> Result<Request, String> {
        let id = RequestId(self.next_id);
        let field =
            |place: usize| self.fields.get(place).ok_or("the row has too few columns; is it cut off?");
        let t_s = seconds(field(self.places.time)?, &mut self.start_s)?;
        let (input, output) = (tokens(field(self.places.input)?)?, tokens(field(self.places.output)?)?);
        let session = match self.places.session {
            Some(place) => Some(Key::from(field(place)?)).filter(|session| !session.is_empty()),
            None => None,
        };
        let key = match (self.places.key, &session) {
            (Some(place), _) => Key::from(field(place)?),
            (None, Some(session)) => session.clone(),
            (None, None) => compact_str::format_compact!("r{id}"),
        };
        if t_s < self.last_s {
            return Err(format!(
                "the time goes back from {} to {t_s} s; rows must be ordered by arrival",
                self.last_s
            ));
        }
        let request = Request {
            id,
            t_s,
            key,
            tenant: None,
            session,
            turn: None,
            after: None,
            think_s: None,
            prompt: Prompt::from_iter([Segment(ContentId::user(id), input)]),
            output_tokens: output,
        };
        request.fault().map_or(Ok(request), Err)
    }
}

impl<R: BufRead> Rows for TableImport<R> {
    type Row = Request;

    fn read(&mut self) -> Result<Option<Request>, TraceError> {
        if !self.lines.advance()? {
            return Ok(None);
        }
        let row = split(self.lines.line(), &mut self.fields).and_then(|()| self.request());
        let request = row.map_err(|what| self.lines.error(what))?;
        self.last_s = request.t_s;
        self.next_id += 1;
        Ok(Some(request))
    }

    fn patience(&mut self) -> &mut Patience {
        &mut self.patience
    }
}

impl<R: BufRead> Iterator for TableImport<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row()
    }
}

/// Splits one line of CSV; a quoted field must not span lines.
fn split(line: &[u8], fields: &mut csv::StringRecord) -> Result<(), String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .buffer_capacity(256)
        .from_reader(line);
    match reader.read_record(fields) {
        Ok(true) => Ok(()),
        Ok(false) => Err("the row is empty".into()),
        Err(error) => match error.into_kind() {
            csv::ErrorKind::Utf8 { err, .. } => Err(format!("no UTF-8 text: {err}")),
            other => Err(format!("no CSV row: {other:?}")),
        },
    }
}

fn tokens(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is no number of tokens"))
}

/// Seconds, or the seconds since the first date that was met.
fn seconds(text: &str, start_s: &mut Option<f64>) -> Result<f64, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Ok(seconds);
    }
    let plain = text.strip_suffix("+00:00").unwrap_or(text);
    let instant = humantime::parse_rfc3339_weak(plain)
        .map_err(|_| format!("{text:?} is no time; seconds, or a date as 2023-11-16 18:17:03.97"))?;
    let since = instant.duration_since(UNIX_EPOCH).map_err(|_| format!("{text:?} lies before 1970"))?;
    let start = *start_s.get_or_insert(since.as_secs_f64());
    // To the microsecond: a double holds no more of a date.
    let elapsed = ((since.as_secs_f64() - start) * 1e6).round() / 1e6;
    if elapsed > Time::MAX_S {
        return Err(format!("{text:?} lies more than {} seconds after the first row", Time::MAX_S));
    }
    Ok(elapsed)
}
