//! A table of requests as CSV, a row a request, for people with notebooks.

use crate::events::{Event, Fail, Finish};
use cr_trace::Scope;
use std::io::Write;

/// The columns, in order. Times are in seconds of run time; empty where a value does not exist.
pub const COLUMNS: [&str; 25] = [
    "id",
    "key",
    "tenant",
    "outcome",
    "reason",
    "measured",
    "shard",
    "admitted",
    "arrival_s",
    "end_s",
    "queue_s",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "prompt_tokens",
    "cached_tokens",
    "cached_g",
    "cached_k",
    "cached_d",
    "cached_u",
    "cached_a",
    "cached_b",
    "output_tokens",
    "retries",
    "preemptions",
];

/// Writes a row for every request that comes to an end, in the order of the events.
#[derive(Debug)]
pub struct RequestTable<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> RequestTable<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn new(output: W) -> Result<Self, csv::Error> {
        let mut csv = csv::Writer::from_writer(output);
        csv.write_record(COLUMNS)?;
        Ok(RequestTable { csv })
    }

    /// Takes one event; those that are not the end of a request change nothing.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn observe(&mut self, event: &Event) -> Result<(), csv::Error> {
        match event {
            Event::Finish(finish) => self.csv.write_record(finish_row(finish)),
            Event::Fail(fail) => self.csv.write_record(fail_row(fail)),
            _ => Ok(()),
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// Where the output fails.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.csv.flush()
    }
}

fn finish_row(f: &Finish) -> [String; 25] {
    let [g, k, d, u, a, b] = Scope::ALL.map(|scope| f.cached_by_scope.get(scope).to_string());
    [
        f.id.to_string(),
        f.key.to_string(),
        f.tenant.to_string(),
        "finished".into(),
        String::new(),
        f.measured.to_string(),
        f.shard.to_string(),
        f.admitted.to_string(),
        f.arrival_s.to_string(),
        f.t_s.to_string(),
        f.queue_s.to_string(),
        f.ttft_s.to_string(),
        f.tpot_s.map(|tpot_s| tpot_s.to_string()).unwrap_or_default(),
        f.e2e_s.to_string(),
        f.prompt_tokens.to_string(),
        f.cached_tokens.to_string(),
        g,
        k,
        d,
        u,
        a,
        b,
        f.output_tokens.to_string(),
        f.retries.to_string(),
        f.preemptions.to_string(),
    ]
}

fn fail_row(f: &Fail) -> [String; 25] {
    let mut row: [String; 25] = Default::default();
    row[0] = f.id.to_string();
    row[1] = f.key.to_string();
    row[3] = "failed".into();
    row[4] = f.reason.as_str().into();
    row[5] = f.measured.to_string();
    row[6] = f.shard.map(|shard| shard.to_string()).unwrap_or_default();
    row[8] = f.arrival_s.map(|arrival_s| arrival_s.to_string()).unwrap_or_default();
    row[9] = f.t_s.to_string();
    row[23] = f.retries.to_string();
    row
}
