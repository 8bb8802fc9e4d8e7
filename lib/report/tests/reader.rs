//! The reader on whole, growing and broken streams.

mod common;

use common::{finish, header, worked_example};
use cr_report::events::{Event, Header};
use cr_report::reader::{EventReader, ReadError};
use cr_trace::Scope;
use std::io::{BufReader, Read};
use std::sync::{Arc, Mutex};

fn line(event: &Event) -> String {
    serde_json::to_string(event).expect("a line") + "\n"
}

fn head(shards: u32) -> Header {
    header("flat", 1, shards)
}

fn first_error(text: &str) -> String {
    EventReader::new(text.as_bytes(), "run.ndjson").find_map(Result::err).expect("an error").to_string()
}

/// The contract's own lines are read, word for word.
#[test]
fn reads_the_documented_lines() {
    let text = include_str!("data/contract.ndjson");
    let events: Vec<Event> =
        EventReader::new(text.as_bytes(), "contract").map(|e| e.expect("an event")).collect();
    assert_eq!(events.len(), 8);
    assert!(
        matches!(&events[0], Event::Header(h) if h.slo.ttft_p99_s == Some(3.5) && h.requests_expected == Some(300))
    );
    assert!(
        matches!(&events[1], Event::Finish(f) if f.cached_by_scope.get(Scope::Document) == 588 && f.measured)
    );
    assert!(matches!(&events[2], Event::Fail(f) if f.shard.is_none()));
    assert!(matches!(&events[3], Event::Shards(s) if s.shards[0].evicted_admitted_blocks == 0));
    assert!(matches!(&events[7], Event::Summary(s) if s.imbalance.tokens == 1.12 && s.tpot_s.count == 0));
}

#[test]
fn errors_name_the_file_the_line_and_the_cause() {
    let good = line(&Event::Header(head(2)));
    let cases = [
        ("{\"event\":\"finish\"}\n".to_string(), "run.ndjson:1: "),
        (good.clone() + "{oops\n", "run.ndjson:2: column 2: not an event: "),
        (good.clone() + "[1]\n", "run.ndjson:2: "),
        (
            good.clone() + "\n{\"event\":\"finish\",\"t_s\":1}\n",
            "run.ndjson:3: column 26: not a finish event: missing field",
        ),
        (good.clone() + &good.replace("events/1", "events/9"), "run.ndjson:2: schema"),
        (
            good.replace("events/1", "events/9"),
            "run.ndjson:1: schema \"cacheroute.events/9\"; this version reads",
        ),
        (good.replace("\"shards\":2", "\"shards\":0"), "run.ndjson:1: 0 shards"),
        (good.replace("\"shards\":2", "\"shards\":4000000000"), "run.ndjson:1: 4000000000 shards"),
        (good.replace("\"block_tokens\":16", "\"block_tokens\":0"), "run.ndjson:1: block_tokens is 0"),
    ];
    for (text, want) in cases {
        let got = first_error(&text);
        assert!(got.starts_with(want), "{got}\nnot\n{want}");
    }
    let mut bytes = good.clone().into_bytes();
    bytes.extend_from_slice(b"{\"event\":\"\xff\"}\n");
    let error = EventReader::new(&bytes[..], "x").find_map(Result::err).expect("an error").to_string();
    assert_eq!(error, "x:2: column 11: not UTF-8");
    let strange = |change: fn(&mut cr_report::events::Finish)| {
        let mut event = finish(1, 0.0, 0.1, 0.2);
        change(&mut event);
        first_error(&(good.clone() + &line(&Event::Finish(event))))
    };
    assert!(
        strange(|f| f.shard = cr_trace::ShardId(2)).contains("run.ndjson:2: shard 2 of a run of 2 shards")
    );
    assert!(strange(|f| f.cached_tokens = 99).contains("cached_tokens 99 is more than the prompt_tokens 58"));
    assert!(strange(|f| f.ttft_s = -0.5).contains("ttft_s is -0.5"));
    assert!(strange(|f| f.t_s = 1e300).contains("t_s is 1"));
}

#[test]
fn runs_follow_one_another_each_with_its_header() {
    let on_shard = |shard: u32| {
        let mut event = finish(1, 0.0, 0.1, 0.2);
        event.shard = cr_trace::ShardId(shard);
        line(&Event::Finish(event))
    };
    let text = line(&Event::Header(head(1))) + &on_shard(0) + &line(&Event::Header(head(3))) + &on_shard(2);
    let runs = cr_report::read_runs(EventReader::new(text.as_bytes(), "x")).expect("two runs");
    assert_eq!(runs.iter().map(|run| run.shards.len()).collect::<Vec<_>>(), [1, 3]);
    assert!(runs.iter().all(|run| run.summary.requests.completed == 1 && !run.summary.complete));
    let error = first_error(&(text + &line(&Event::Header(head(1))) + &on_shard(2)));
    assert!(error.contains("shard 2 of a run of 1 shards"), "{error}");
}

#[test]
fn an_empty_stream_says_so() {
    let mut reader = EventReader::new(&b""[..], "run.ndjson");
    let error = reader.header().expect_err("no header");
    assert!(matches!(error, ReadError::Empty { .. }));
    assert!(error.to_string().starts_with("run.ndjson: no events"));
}

#[test]
fn what_later_versions_add_is_skipped() {
    let text = line(&Event::Header(head(1))).replace("\"seed\"", "\"novel\":[1],\"seed\"")
        + "{\"event\":\"novelty\",\"t_s\":1}\n\n"
        + &line(&Event::Finish(finish(3, 0.0, 0.1, 0.2))).replace("\"id\"", "\"novel\":{},\"id\"");
    let mut reader = EventReader::new(text.as_bytes(), "x");
    assert_eq!(reader.header().expect("a header").shards, 1);
    assert!(matches!(reader.next_event(), Ok(Some(Event::Finish(_)))));
    assert!(matches!(reader.next_event(), Ok(None)));
    assert_eq!((reader.skipped(), reader.line()), (2, 4));
}

#[test]
fn a_last_line_needs_no_newline_when_the_stream_is_whole() {
    let text = line(&Event::Header(head(1))) + line(&Event::Finish(finish(3, 0.0, 0.1, 0.2))).trim_end();
    assert_eq!(EventReader::new(text.as_bytes(), "x").filter(Result::is_ok).count(), 2);
    let cut = &text[..text.len() - 4];
    assert!(first_error(cut).starts_with("run.ndjson:2: "));
}

/// A file that another program writes.
#[derive(Clone, Default)]
struct Growing(Arc<Mutex<Vec<u8>>>);

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut bytes = self.0.lock().expect("not poisoned");
        let n = bytes.len().min(into.len());
        into[..n].copy_from_slice(&bytes[..n]);
        bytes.drain(..n);
        Ok(n)
    }
}

#[test]
fn half_a_line_of_a_growing_file_is_not_yet_a_line() {
    let (head, events) = worked_example();
    let text: String = std::iter::once(Event::Header(head)).chain(events.clone()).map(|e| line(&e)).collect();
    for piece in [1, 7, 64, 300] {
        let file = Growing::default();
        let mut reader = EventReader::growing(BufReader::new(file.clone()), "x");
        let mut seen = Vec::new();
        for part in text.as_bytes().chunks(piece) {
            file.0.lock().expect("not poisoned").extend_from_slice(part);
            while let Some(event) = reader.next_event().expect("no error, only not yet") {
                seen.push(event);
            }
        }
        assert!(!reader.has_partial_line());
        assert_eq!(seen[1..], events);
    }
}
