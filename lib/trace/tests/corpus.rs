//! Every parser of traces against damaged input: none panics, and what it accepts is valid.

use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use cr_trace::table_csv::{Columns, TableImport};
use cr_trace::text::{TextForm, TextReader};
use cr_trace::tolerance::Tolerance;
use cr_trace::{Request, TraceError, TraceReader, compress};
use proptest::prelude::*;

const NATIVE: &str = include_str!("../../../workloads/samples/zipf.jsonl");
const MOONCAKE: &str = include_str!("../../../workloads/samples/mooncake.jsonl");
const BAILIAN: &str = r#"{"chat_id":159,"parent_chat_id":-1,"timestamp":61.1,"input_length":20,"output_length":13,"type":"text","turn":1,"hash_ids":[1,2]}
{"chat_id":160,"parent_chat_id":159,"timestamp":64.0,"input_length":40,"output_length":1,"type":"text","turn":2,"hash_ids":[1,3,4]}
"#;
const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n";
const BURST: &str = "Timestamp,Session ID,Model,Request tokens,Response tokens\n5,7,ChatGPT,472,18\n45.5,,\"GPT-4\",1087,230\n";

const TEXTS: [&str; 2] = [
    "{\"prompt\":\"What is a prefix?\",\"output_tokens\":9}\n{\"prompt\":\"And a suffix?\",\"completion\":\"The end.\"}\n",
    "[{\"id\":\"a\",\"conversations\":[{\"from\":\"system\",\"value\":\"Be kind.\"},{\"from\":\"human\",\"value\":\"Hi \\\"you\\\"\"},\n{\"from\":\"gpt\",\"value\":\"Hello {there}\"}]},\n {\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}]",
];

type Rows = Vec<Result<Request, TraceError>>;

/// At most so many rows: tolerance could otherwise make damaged rows into a long list.
fn rows(format: usize, bytes: &[u8], tolerated: u64) -> Rows {
    let tolerance = Tolerance::new(tolerated);
    let hashed = |dialect, key| {
        MooncakeImport::new(MooncakeReader::new(bytes, "x", dialect).tolerate(tolerance.clone()), key)
            .collect()
    };
    let table = |columns: Columns| match TableImport::new(bytes, "x", &columns, tolerance.clone()) {
        Ok(rows) => rows.collect(),
        Err(error) => vec![Err(error)],
    };
    match format {
        0 => match TraceReader::new(bytes, "x") {
            Ok(reader) => reader.tolerate(tolerance.clone()).collect(),
            Err(error) => vec![Err(error)],
        },
        1 => hashed(Dialect::MOONCAKE, BlockKey::AfterTrunk),
        2 => hashed(Dialect::BAILIAN, BlockKey::Session),
        3 => table(Columns::azure()),
        _ => table(Columns::burstgpt()),
    }
}

const SEEDS: [&str; 5] = [NATIVE, MOONCAKE, BAILIAN, AZURE, BURST];

fn accepted_are_valid(rows: &Rows) -> Result<(), TestCaseError> {
    let mut last = 0.0;
    for request in rows.iter().flatten() {
        prop_assert_eq!(request.fault(), None);
        prop_assert!(request.t_s >= last);
        last = request.t_s;
    }
    Ok(())
}

#[test]
fn the_seeds_themselves_are_good() {
    for (format, seed) in SEEDS.iter().enumerate() {
        let rows = rows(format, seed.as_bytes(), 0);
        assert!(rows.len() >= 2 && rows.iter().all(Result::is_ok), "{format}: {rows:?}");
    }
    let bailian: Vec<Request> = rows(2, BAILIAN.as_bytes(), 0).into_iter().flatten().collect();
    assert!(
        bailian.iter().all(|request| request.key == "s159" && request.session.as_deref() == Some("s159"))
    );
    assert_eq!((bailian[1].t_s, bailian[1].turn, bailian[1].prompt.len()), (64.0, Some(2), 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_input_is_read_or_refused(
        format in 0usize..5,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
        tolerated in 0u64..4,
    ) {
        let mut bytes = SEEDS[format].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        accepted_are_valid(&rows(format, &bytes, tolerated))?;
    }

    #[test]
    fn noise_is_refused(format in 0usize..5, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        accepted_are_valid(&rows(format, &bytes, 2))?;
    }

    /// Text of either form: what is accepted asks something in every turn.
    #[test]
    fn damaged_text_is_read_or_refused(
        seed in 0usize..2,
        form in any::<bool>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = TEXTS[seed].as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        let form = if form { TextForm::Custom } else { TextForm::ShareGpt };
        if let Ok(reader) = TextReader::new(&bytes[..], "x", form, None, Tolerance::new(2)) {
            for conversation in reader.flatten() {
                prop_assert!(!conversation.turns.is_empty() && conversation.line > 0);
                prop_assert!(conversation.turns.iter().all(|turn| !turn.prompt.trim().is_empty()));
            }
        }
    }

    /// Packed noise ends as an error or as few bytes, never as a panic.
    #[test]
    fn packed_noise_is_refused(zstd in any::<bool>(), noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        let magic: &[u8] = if zstd { &[0x28, 0xb5, 0x2f, 0xfd] } else { &[0x1f, 0x8b, 8, 0] };
        let bytes = [magic, &noise].concat();
        if let Ok(reader) = compress::unpacked(Box::new(std::io::Cursor::new(bytes))) {
            let mut out = Vec::new();
            let _ = std::io::Read::read_to_end(&mut std::io::Read::take(reader, 1 << 20), &mut out);
        }
    }
}
