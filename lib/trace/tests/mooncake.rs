//! The Mooncake format: import, export, every kind of bad input, and the published conversation trace.

use cr_trace::mooncake::{BlockKey, Dialect, HashIds, MooncakeImport, MooncakeReader, MooncakeWriter};
use cr_trace::stats::TraceStats;
use cr_trace::{Request, TraceError};
use std::fs::File;
use std::io::BufReader;

const ROWS: &str = r#"{"timestamp":0,"input_length":1300,"output_length":50,"hash_ids":[0,1,2]}
{"timestamp":1500,"input_length":512,"output_length":3,"hash_ids":[0]}
{"timestamp":1500,"input_length":1400,"output_length":7,"hash_ids":[0,1,3]}
"#;

fn import(text: &str) -> Result<Vec<Request>, TraceError> {
    MooncakeImport::new(
        MooncakeReader::new(text.as_bytes(), "m.jsonl", Dialect::MOONCAKE),
        BlockKey::AfterTrunk,
    )
    .collect()
}

fn export(requests: &[Request], block_tokens: u32, numbering: HashIds) -> String {
    let mut writer = MooncakeWriter::new(Vec::new(), block_tokens, numbering);
    requests.iter().for_each(|request| writer.write(request).expect("writes"));
    String::from_utf8(writer.finish().expect("writes")).expect("is text")
}

#[test]
fn rows_become_block_segments_the_last_one_shortened() {
    let requests = import(ROWS).expect("reads");
    let lines: Vec<String> =
        requests.iter().map(|request| serde_json::to_string(request).expect("serialises")).collect();
    assert_eq!(
        lines,
        [
            r#"{"id":0,"t_s":0.0,"key":"h2","prompt":[["b:0",512],["b:1",512],["b:2",276]],"output_tokens":50}"#,
            r#"{"id":1,"t_s":1.5,"key":"h0","prompt":[["b:0",512]],"output_tokens":3}"#,
            r#"{"id":2,"t_s":1.5,"key":"h3","prompt":[["b:0",512],["b:1",512],["b:3",376]],"output_tokens":7}"#,
        ]
    );
    assert!(requests.iter().all(|request| request.fault().is_none()));
}

#[test]
fn export_restores_what_was_imported() {
    let requests = import(ROWS).expect("reads");
    assert_eq!(export(&requests, 512, HashIds::Dense), ROWS);
}

#[test]
fn any_block_size_and_stateless_ids() {
    let requests = import(ROWS).expect("reads");
    let quarter = export(&requests, 128, HashIds::Dense);
    let again: Result<Vec<Request>, _> = MooncakeImport::new(
        MooncakeReader::new(quarter.as_bytes(), "q", Dialect::MOONCAKE.with_block_tokens(Some(128))),
        BlockKey::Prefix(1),
    )
    .collect();
    let again = again.expect("reads");
    assert_eq!(again[0].prompt_tokens(), 1300);
    assert_eq!(cr_trace::content::shared_tokens(&again[0].prompt, &again[2].prompt), 1024);
    let chained = export(&requests, 512, HashIds::Chained);
    let ids: Vec<Vec<u64>> = chained
        .lines()
        .map(|line| {
            let row: cr_trace::mooncake::MooncakeRow = serde_json::from_str(line).expect("parses");
            row.hash_ids
        })
        .collect();
    assert_eq!(ids[0][..2], ids[2][..2]);
    assert!(ids[0][2] != ids[2][2] && ids[0][0] == ids[1][0]);
    assert!(ids.iter().flatten().all(|id| i64::try_from(*id).is_ok()));
}

#[test]
fn every_kind_of_bad_input_is_named_with_its_line() {
    let row = ROWS.lines().next().expect("has one");
    let cases = [
        (String::new(), "m.jsonl: the input is empty; a trace has at least one line"),
        ("timestamp,input\n".into(), "m.jsonl:1: expected ident (column 2)"),
        (
            row[..40].into(),
            "m.jsonl:1: the last line is cut off after 40 bytes; the file is incomplete: write it again, or drop its last line",
        ),
        (row.replace(",\"hash_ids\":[0,1,2]", ""), "m.jsonl:1: missing field `hash_ids` (column 54)"),
        (
            row.replace("1300", "1537"),
            "m.jsonl:1: input_length 1537 takes 4 hash ids for blocks of 512 tokens, but hash_ids has 3; does the trace have another block size (--block-tokens)?",
        ),
        (row.replace("1300", "0"), "m.jsonl:1: input_length is 0, a prompt has at least one token"),
        (row.replace("50", "0"), "m.jsonl:1: output_length is 0, at least one token is decoded"),
        (row.replace(":0,", ":-5,"), "m.jsonl:1: timestamp is -5, it must lie between 0 and 15000000000"),
        (
            format!("{}\n{row}\n", row.replace(":0,", ":5,")),
            "m.jsonl:2: timestamp goes back from 5 to 0; rows must be ordered by arrival",
        ),
        (
            row.replace("[0,1,2]", "[0,-1,2]"),
            "m.jsonl:1: invalid value: integer `-1`, expected u64 (column 70)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(import(&text).expect_err("is refused").to_string(), expected, "{text}");
    }
}

/// Reuse of the published trace against an independent count, and what the rule for keys gives there.
#[test]
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn the_published_conversation_trace() {
    let Ok(folder) = std::env::var("CR_TRACES") else {
        println!("skipped: CR_TRACES names no folder of published traces");
        return;
    };
    let path = format!("{folder}/mooncake/conversation_trace.jsonl");
    let open =
        || MooncakeReader::new(BufReader::new(File::open(&path).expect("opens")), &path, Dialect::MOONCAKE);
    let report = |key| {
        let mut stats = TraceStats::new(512);
        MooncakeImport::new(open(), key).for_each(|request| stats.observe(&request.expect("is valid")));
        stats.report()
    };
    let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 5e-4, "{value} is not {wanted}");

    let trunk = report(BlockKey::AfterTrunk);
    assert_eq!((trunk.requests, trunk.keys.count), (12_031, 7_373));
    near(trunk.reuse.by_blocks, 0.3664);
    near(trunk.reuse.by_tokens, 0.3736);
    near(trunk.keys.gini, 0.3153);
    near(trunk.keys.top_key_share, 0.003_57);
    near(trunk.reuse.within_keys, 0.9302);
    near(report(BlockKey::Prefix(3)).reuse.within_keys, 0.9203);
    assert_eq!(report(BlockKey::Prefix(1)).keys.count, 1);

    let requests: Result<Vec<Request>, _> = MooncakeImport::new(open(), BlockKey::AfterTrunk).collect();
    let exported = export(&requests.expect("is valid"), 512, HashIds::Dense);
    for (ours, theirs) in MooncakeReader::new(exported.as_bytes(), "ours", Dialect::MOONCAKE).zip(open()) {
        assert_eq!(ours.expect("is valid"), theirs.expect("is valid"));
    }
}
