//! Reading and writing files of tables.
//!
//! A file holds one table, on one line or spread over many, or several, one after the other, each with the instant
//! `from_s` from which it holds.

use super::RoutingTable;
use cr_trace::TraceError;
use serde_json::error::Category;
use serde_json::{Deserializer, StreamDeserializer, de::IoRead};
use std::io::{Read, Write};

/// Reads tables one after the other, in constant memory.
///
/// Ends after the first error. Tables must be in order of `from_s` and for the same number of shards.
pub struct TableReader<R: Read> {
    file: String,
    tables: StreamDeserializer<'static, IoRead<R>, RoutingTable>,
    last: Option<(f64, u32)>,
    done: bool,
}

impl<R: Read> TableReader<R> {
    /// Reads from `input`, best buffered; `file` names it in errors.
    pub fn new(input: R, file: &str) -> TableReader<R> {
        let tables = Deserializer::from_reader(input).into_iter();
        TableReader { file: file.into(), tables, last: None, done: false }
    }

    fn check_order(&mut self, table: &RoutingTable) -> Result<(), TraceError> {
        let (from_s, shards) = (table.meta().from_s, table.shards());
        let what = match self.last {
            Some((last_s, _)) if from_s <= last_s => {
                format!("a table from {from_s} s follows one from {last_s} s; tables come in order of from_s")
            }
            Some((_, last)) if shards != last => {
                format!("a table for {shards} shards follows one for {last}; all are for one fleet")
            }
            _ => {
                self.last = Some((from_s, shards));
                return Ok(());
            }
        };
        Err(TraceError::File { file: self.file.clone(), what })
    }

    fn error(&self, error: &serde_json::Error) -> TraceError {
        match error.classify() {
            Category::Io => TraceError::Io {
                file: self.file.clone(),
                source: error.io_error_kind().unwrap_or(std::io::ErrorKind::Other).into(),
            },
            // serde_json ends its text with the place, which stands in front here.
            Category::Data | Category::Syntax | Category::Eof => {
                let text = error.to_string();
                let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
                let line = (error.line() as u64).max(1);
                TraceError::line(&self.file, line, format!("no routing table: {what}"))
            }
        }
    }
}

impl<R: Read> Iterator for TableReader<R> {
    type Item = Result<RoutingTable, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = match self.tables.next()? {
            Ok(table) => self.check_order(&table).map(|()| table),
            Err(error) => Err(self.error(&error)),
        };
        self.done = item.is_err();
        Some(item)
    }
}

/// All tables of an input: at least one, in order of `from_s`.
///
/// # Errors
/// The input cannot be read, is empty, or holds something that is no valid table; the error names the line.
pub fn read_tables(input: impl Read, file: &str) -> Result<Vec<RoutingTable>, TraceError> {
    let tables: Vec<RoutingTable> = TableReader::new(input, file).collect::<Result<_, _>>()?;
    if tables.is_empty() {
        let what = "is empty; a routing table comes from cr-plan".to_string();
        return Err(TraceError::File { file: file.into(), what });
    }
    Ok(tables)
}

/// Writes one table as one line.
///
/// # Errors
/// The output cannot be written.
pub fn write_table(table: &RoutingTable, mut out: impl Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut out, table)?;
    out.write_all(b"\n")
}
