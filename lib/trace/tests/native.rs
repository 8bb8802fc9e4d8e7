//! The native format: what is read, what is written, and every kind of bad input.

use cr_trace::{Request, TraceError, TraceHeader, TraceReader, TraceWriter};
use proptest::prelude::*;

const HEADER: &str = r#"{"schema":"cacheroute.trace/1","generator":"cr-gen 0.1.0","seed":42,"requests":2,"duration_s":800.0,"spec":{}}"#;
const FIRST: &str = r#"{"id":0,"t_s":0.0132,"key":"k17","prompt":[["g:template",256],["k:k17",180],["d:k17/3",600],["u:0",90]],"output_tokens":64}"#;
const LATER: &str = r#"{"id":9,"t_s":0.9,"key":"k17","session":"s4","turn":2,"after":0,"think_s":1.5,"prompt":[["g:template",256],["k:k17",180],["d:k17/3",600],["u:0",90],["a:0",64],["u:9",40]],"output_tokens":50}"#;

fn read(text: &str) -> Result<Vec<Request>, TraceError> {
    TraceReader::new(text.as_bytes(), "w.jsonl")?.collect()
}

fn error(text: &str) -> String {
    read(text).expect_err("is refused").to_string()
}

/// The contract's own lines come back byte for byte.
#[test]
fn the_lines_of_the_contract_round_trip() {
    let text = format!("{HEADER}\n{FIRST}\n{LATER}\n");
    let mut reader = TraceReader::new(text.as_bytes(), "w.jsonl").expect("opens");
    let header = reader.header().cloned().expect("has a header");
    assert_eq!((header.seed, header.requests, header.duration_s), (Some(42), Some(2), Some(800.0)));
    let mut writer = TraceWriter::with_header(Vec::new(), &header).expect("writes");
    for request in &mut reader {
        writer.write(&request.expect("is valid")).expect("writes");
    }
    assert_eq!(reader.requests(), 2);
    assert_eq!(String::from_utf8(writer.finish().expect("writes")).expect("is text"), text);
}

#[test]
fn the_header_and_the_last_line_end_are_optional_and_crlf_is_tolerated() {
    let plain = read(&format!("{FIRST}\n{LATER}\n")).expect("reads");
    assert_eq!(plain.len(), 2);
    assert_eq!(read(&format!("{HEADER}\r\n{FIRST}\r\n\r\n{LATER}")).expect("reads"), plain);
    assert_eq!(read(HEADER).expect("reads"), []);
    let added = FIRST.replace("\"key\"", "\"added_later\":{\"x\":1},\"key\"");
    assert_eq!(read(&added).expect("reads"), plain[..1], "an added field is not an error");
}

#[test]
fn every_kind_of_bad_input_is_named_with_its_line() {
    let cut = &LATER[..60];
    let cases = [
        (String::new(), "w.jsonl: the input is empty; a trace has at least one line"),
        ("\n\n".into(), "w.jsonl: the input is empty; a trace has at least one line"),
        (
            "hello\n".into(),
            "w.jsonl:1: this is no JSON object, so no native trace; other formats and compressed files are read by `cr-gen import`",
        ),
        (
            format!("{HEADER}\n{FIRST}\n{cut}"),
            "w.jsonl:3: the last line is cut off after 60 bytes; the file is incomplete: write it again, or drop its last line",
        ),
        (
            format!("{FIRST}\n{cut}\n{LATER}\n"),
            "w.jsonl:2: the JSON stops after 60 bytes; every line must be one whole object",
        ),
        (
            r#"{"schema":"cacheroute.trace/9"}"#.into(),
            r#"w.jsonl:1: the schema is "cacheroute.trace/9", a trace has "cacheroute.trace/1"; it comes from another version of these programs"#,
        ),
        (
            r#"{"schema":"cacheroute.table/1"}"#.into(),
            r#"w.jsonl:1: the schema is "cacheroute.table/1", a trace has "cacheroute.trace/1"; it is a routing table, which goes to --table"#,
        ),
        (
            r#"{"schema":7}"#.into(),
            r#"w.jsonl:1: the schema is 7, a trace has "cacheroute.trace/1"; is it the right file?"#,
        ),
        (
            r#"{"timestamp":0,"input_length":5,"output_length":1,"hash_ids":[0]}"#.into(),
            "w.jsonl:1: this is a Mooncake trace, not a native one; convert it with `cr-gen import FILE --from mooncake`",
        ),
        (r#"{"event":"finish"}"#.into(), "w.jsonl:1: these are events of a run, not a trace of requests"),
        (
            HEADER.replace("800.0", "-1"),
            "w.jsonl:1: duration_s is -1, it must lie between 0 and 15000000 seconds",
        ),
        (
            HEADER.replace("\"requests\":2", "\"requests\":-2"),
            "w.jsonl:1: invalid value: integer `-2`, expected u64 (column 81)",
        ),
        (format!("{LATER}\n"), "w.jsonl:1: after names request 0, which does not come before this one"),
        (
            format!("{HEADER}\n{FIRST}\n{HEADER}\n{LATER}\n"),
            "w.jsonl:3: another trace begins here; a file has one, whose ids are unique and whose times do not go back",
        ),
        (format!("{FIRST}\n\n{FIRST}\n"), "w.jsonl:3: id 0 was used before; ids must be unique"),
        (
            format!("{FIRST}\n{}\n", LATER.replace("0.9,", "0.01,")),
            "w.jsonl:2: t_s goes back from 0.0132 to 0.01; requests must be ordered by arrival",
        ),
        (FIRST.replace("0.0132", "-1"), "w.jsonl:1: t_s is -1, it must lie between 0 and 15000000 seconds"),
        (FIRST.replace("0.0132", "1e999"), "w.jsonl:1: number out of range (column 19)"),
        (FIRST.replace("\"k17\"", "\"\""), "w.jsonl:1: key is empty"),
        (FIRST.replace(",90]", ",0]"), "w.jsonl:1: segment \"u:0\" has 0 tokens"),
        (
            FIRST.replace(",90]", ",4294967295]"),
            "w.jsonl:1: the prompt has 4294968331 tokens; no request has more than 100000000",
        ),
        (
            FIRST.replace("64}", "200000000}"),
            "w.jsonl:1: the answer has 200000000 tokens; no request has more than 100000000",
        ),
        (
            FIRST.replace("\"output_tokens\"", "\"turn\":0,\"output_tokens\""),
            "w.jsonl:1: turn is 0; the turns of a thread count from 1",
        ),
        (FIRST.replace(",90]", ",-9]"), "w.jsonl:1: invalid value: integer `-9`, expected u32 (column 101)"),
        (
            FIRST.replace("u:0", "x:0"),
            "w.jsonl:1: content id \"x:0\" has no scope; it starts with one of g, k, d, u, a, b and a colon, as k:name",
        ),
        (FIRST.replace("64}", "0}"), "w.jsonl:1: output_tokens is 0, at least one token is decoded"),
        (FIRST.replace(",\"output_tokens\":64", ""), "w.jsonl:1: missing field `output_tokens` (column 104)"),
        (
            FIRST.replace("\"output_tokens\"", "\"after\":0,\"output_tokens\""),
            "w.jsonl:1: after names the request itself",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(&text), expected, "{text}");
    }
    let binary = TraceReader::new(&b"{\"id\":\"\x00\xff\n"[..], "w").expect_err("is refused").to_string();
    assert!(binary.starts_with("w:1: "), "{binary}");
}

#[test]
fn reading_ends_at_the_first_error() {
    let text = format!("{FIRST}\n{FIRST}\n{LATER}\n");
    let items: Vec<_> = TraceReader::new(text.as_bytes(), "w").expect("opens").collect();
    assert!(items.len() == 2 && items[0].is_ok() && items[1].is_err());
}

#[test]
fn a_new_header_tells_only_what_is_known() {
    let header = serde_json::to_string(&TraceHeader::new("x 1")).expect("serialises");
    assert_eq!(header, r#"{"schema":"cacheroute.trace/1","generator":"x 1","spec":{}}"#);
}

proptest! {
    /// No input makes the reader panic, and what it accepts it writes back to the same requests.
    #[test]
    fn any_mutation_is_read_or_refused(at in 0usize..500, byte in any::<u8>(), cut in 0usize..500) {
        let mut bytes = format!("{HEADER}\n{FIRST}\n{LATER}\n").into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut % bytes.len());
        if let Ok(reader) = TraceReader::new(&bytes[..], "w")
            && let Ok(requests) = reader.collect::<Result<Vec<Request>, _>>()
        {
            let mut writer = TraceWriter::new(Vec::new());
            for request in &requests {
                writer.write(request).expect("writes");
            }
            let written = writer.finish().expect("writes");
            if !requests.is_empty() {
                let again: Result<Vec<Request>, _> = TraceReader::new(&written[..], "w").expect("opens").collect();
                prop_assert_eq!(again.expect("reads"), requests);
            }
        }
    }
}
