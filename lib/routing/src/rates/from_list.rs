//! Rates as lists: `key,rate[,prefix_tokens]` as CSV or as JSON lines, in requests per second and tokens.
//!
//! CSV may begin with a header that names the columns, in any order; without one they are in the order above.
//! Duplicate keys, and rates that are negative, NaN or infinite, are errors with their row.

use super::KeyRates;
use cr_trace::bounded::BoundedLines;
use cr_trace::lines::Lines;
use cr_trace::{Key, TraceError};
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::{BufRead, Read};

/// Collects rows and refuses what no rate can be.
struct Collector {
    file: String,
    /// Each key's rate, prefix and row.
    rows: IndexMap<Key, (f64, Option<u64>, u64), FxBuildHasher>,
}

impl Collector {
    fn new(file: &str) -> Collector {
        Collector { file: file.into(), rows: IndexMap::default() }
    }

    fn add(&mut self, line: u64, key: &str, rate: f64, prefix: Option<u64>) -> Result<(), TraceError> {
        if key.is_empty() {
            return Err(self.error(line, "the key is empty; every key has a name"));
        }
        if !cr_trace::request::is_printable(key) {
            return Err(
                self.error(line, format!("the key {key:?} has control characters; a key is printable text"))
            );
        }
        if !(rate.is_finite() && rate >= 0.0) {
            let rate = cr_trace::number::plain(rate);
            let what = format!("the rate of {key:?} is {rate}; a rate is finite and not negative");
            return Err(self.error(line, what));
        }
        if let Some((_, (_, first, _))) = self.rows.first()
            && first.is_some() != prefix.is_some()
        {
            let what = "prefix_tokens is given on some rows only; give it on all or on none";
            return Err(self.error(line, what));
        }
        // Adding a zero turns −0 into 0.
        match self.rows.insert_full(Key::new(key), (rate + 0.0, prefix, line)) {
            (_, Some((_, _, before))) => {
                let what = format!("the key {key:?} is on row {before} already; give each key once");
                Err(self.error(line, what))
            }
            (_, None) => Ok(()),
        }
    }

    fn finish(self) -> Result<KeyRates, TraceError> {
        let Some((_, (_, prefix, _))) = self.rows.first() else {
            let what = "there are no rates; give lines of key,rate[,prefix_tokens]".to_string();
            return Err(TraceError::File { file: self.file, what });
        };
        let mut rates = KeyRates::new(prefix.is_some());
        for (key, (rate, prefix, _)) in self.rows {
            rates.push(key, rate, prefix.unwrap_or(0));
        }
        Ok(rates)
    }

    fn error(&self, line: u64, what: impl Into<String>) -> TraceError {
        TraceError::line(&self.file, line, what)
    }
}

/// One JSON line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    rate: f64,
    prefix_tokens: Option<u64>,
}

/// Reads rates from JSON lines.
///
/// # Errors
/// The input cannot be read, holds no rates, or has a bad row, which is named.
pub fn from_jsonl(reader: impl BufRead, file: &str) -> Result<KeyRates, TraceError> {
    let mut lines = Lines::new(reader, file);
    let mut rows = Collector::new(file);
    while lines.advance()? {
        let Row { key, rate, prefix_tokens } = lines.json()?;
        rows.add(lines.number(), &key, rate, prefix_tokens)?;
    }
    rows.finish()
}

/// Where the columns are.
#[derive(Clone, Copy)]
struct Columns {
    key: usize,
    rate: usize,
    prefix_tokens: Option<usize>,
    fields: usize,
}

impl Columns {
    /// The columns of the first record, and whether it is a header. A record whose second field is a number is data.
    fn of(first: &csv::StringRecord) -> Result<(Columns, bool), String> {
        let fields = first.len();
        if first.get(1).is_some_and(|field| field.parse::<f64>().is_ok()) {
            return match fields {
                2 => Ok((Columns { key: 0, rate: 1, prefix_tokens: None, fields }, false)),
                3 => Ok((Columns { key: 0, rate: 1, prefix_tokens: Some(2), fields }, false)),
                _ => Err(format!("the row has {fields} fields; rows are key,rate[,prefix_tokens]")),
            };
        }
        let at = |name: &str| first.iter().position(|field| field.eq_ignore_ascii_case(name));
        let known = ["key", "rate", "prefix_tokens"];
        let stranger = first.iter().find(|field| !known.iter().any(|name| field.eq_ignore_ascii_case(name)));
        match (at("key"), at("rate"), stranger) {
            (Some(key), Some(rate), None) if fields <= 3 => {
                Ok((Columns { key, rate, prefix_tokens: at("prefix_tokens"), fields }, true))
            }
            (Some(_), Some(_), Some(name)) => {
                Err(format!("there is no column {name:?}; columns are key,rate[,prefix_tokens]"))
            }
            _ => {
                let row = first.iter().collect::<Vec<_>>().join(",");
                Err(format!(
                    "{row:?} is neither a row key,rate[,prefix_tokens] nor a header with these names"
                ))
            }
        }
    }
}

/// Reads rates from CSV.
///
/// # Errors
/// The input cannot be read, holds no rates, or has a bad row, which is named.
pub fn from_csv(reader: impl Read, file: &str) -> Result<KeyRates, TraceError> {
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(BoundedLines::new(reader));
    let mut record = csv::StringRecord::new();
    let mut rows = Collector::new(file);
    let mut columns: Option<Columns> = None;
    while csv.read_record(&mut record).map_err(|error| csv_error(file, error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let columns = match columns {
            Some(columns) => columns,
            None => {
                let (found, is_header) = Columns::of(&record).map_err(|what| rows.error(line, what))?;
                columns = Some(found);
                if is_header {
                    continue;
                }
                found
            }
        };
        if record.len() != columns.fields {
            let what = format!("the row has {} fields, the first has {}", record.len(), columns.fields);
            return Err(rows.error(line, what));
        }
        let field = |at: usize| record.get(at).unwrap_or_default();
        let rate = field(columns.rate);
        let rate: f64 =
            rate.parse().map_err(|_| rows.error(line, format!("the rate {rate:?} is no number")))?;
        let prefix = match columns.prefix_tokens.map(field) {
            None => None,
            Some(text) => Some(text.parse::<u64>().map_err(|_| {
                rows.error(line, format!("prefix_tokens is {text:?}, it is a whole number of tokens"))
            })?),
        };
        rows.add(line, field(columns.key), rate, prefix)?;
    }
    rows.finish()
}

fn csv_error(file: &str, error: csv::Error) -> TraceError {
    let line = error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(source) => TraceError::Io { file: file.into(), source },
        csv::ErrorKind::Utf8 { .. } => TraceError::line(file, line, "the row is no UTF-8 text"),
        kind => TraceError::line(file, line, format!("the row cannot be read: {kind:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(text: &str) -> Result<KeyRates, String> {
        from_csv(text.as_bytes(), "r.csv").map_err(|error| error.to_string())
    }

    fn jsonl(text: &str) -> Result<KeyRates, String> {
        from_jsonl(text.as_bytes(), "r.jsonl").map_err(|error| error.to_string())
    }

    #[test]
    fn the_same_rates_in_every_form() {
        let plain = csv("b,2\na,1.5\nc,0\n").expect("parses");
        assert_eq!(plain.keys(), ["b", "a", "c"]);
        assert_eq!((plain.rates(), plain.prefix_tokens()), ([2.0, 1.5, 0.0].as_slice(), None));
        assert_eq!(csv("key,rate\nb,2\na,1.5\nc,-0\n"), Ok(plain.clone()));
        assert_eq!(csv(" Rate , KEY \r\n2, b\r\n1.5,\"a\"\r\n0,c"), Ok(plain.clone()));
        assert_eq!(
            jsonl(
                "{\"key\":\"b\",\"rate\":2}\n\n{\"rate\":1.5,\"key\":\"\\u0061\"}\n{\"key\":\"c\",\"rate\":0}"
            ),
            Ok(plain)
        );
        let prefix = csv("key,rate,prefix_tokens\na,1,180\n").expect("parses");
        assert_eq!(prefix.prefix_tokens(), Some([180].as_slice()));
        assert_eq!(csv("a,1,180\n"), Ok(prefix.clone()));
        assert_eq!(jsonl("{\"key\":\"a\",\"rate\":1,\"prefix_tokens\":180}"), Ok(prefix));
    }

    #[test]
    fn bad_rows_are_named() {
        for (text, expect) in [
            ("a,1\nb,2\na,3\n", "r.csv:3: the key \"a\" is on row 1 already; give each key once"),
            ("key,rate\na,-1\n", "r.csv:2: the rate of \"a\" is -1; a rate is finite and not negative"),
            ("a,1\nb,nan\n", "r.csv:2: the rate of \"b\" is NaN"),
            ("a,1\nb,inf\n", "r.csv:2: the rate of \"b\" is inf"),
            ("a,1\nb,1e999\n", "r.csv:2: the rate of \"b\" is inf"),
            ("a,1\nb,two\n", "r.csv:2: the rate \"two\" is no number"),
            ("a,1\nb\n", "r.csv:2: the row has 1 fields, the first has 2"),
            ("a,1,2,3\n", "r.csv:1: the row has 4 fields"),
            ("a,1\n,2\n", "r.csv:2: the key is empty"),
            ("a,1,5\nb,2,\n", "r.csv:2: prefix_tokens is \"\""),
            ("a,1,5\nb,2,1.5\n", "r.csv:2: prefix_tokens is \"1.5\""),
            ("key,rate,prefix\n", "r.csv:1: there is no column \"prefix\""),
            ("hello\n", "r.csv:1: \"hello\" is neither a row key,rate[,prefix_tokens] nor a header"),
            ("key,key,rate\na,b,1\n", "r.csv:2"),
            ("", "r.csv: there are no rates"),
            ("key,rate\n", "r.csv: there are no rates"),
        ] {
            match csv(text) {
                Err(error) => assert!(error.contains(expect), "{text:?}: {error}"),
                Ok(rates) => assert_eq!(expect, "r.csv:2", "{text:?} was accepted as {rates:?}"),
            }
        }
        for (text, expect) in [
            (
                "{\"key\":\"a\",\"rate\":1}\n{\"key\":\"a\",\"rate\":1}",
                "r.jsonl:2: the key \"a\" is on row 1",
            ),
            ("{\"key\":\"a\",\"rate\":-1}", "r.jsonl:1: the rate of \"a\" is -1"),
            ("{\"key\":\"a\",\"rate\":NaN}", "r.jsonl:1: "),
            ("{\"key\":\"a\"}", "r.jsonl:1: missing field `rate`"),
            ("{\"key\":\"a\",\"rate\":1,\"prefx\":1}", "r.jsonl:1: unknown field `prefx`"),
            (
                "{\"key\":\"a\",\"rate\":1,\"prefix_tokens\":1}\n{\"key\":\"b\",\"rate\":1}",
                "r.jsonl:2: prefix_tokens is given on some rows only",
            ),
        ] {
            let error = jsonl(text).expect_err(text);
            assert!(error.contains(expect), "{text:?}: {error}");
        }
        let error = from_csv(&b"a,1\n\xff,2\n"[..], "r.csv").expect_err("is no text").to_string();
        assert_eq!(error, "r.csv:2: the row is no UTF-8 text");
    }
}
