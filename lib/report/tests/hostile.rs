//! Whatever a stream holds, it is read, refused in one sentence, or reported: never a panic, never a number that is none.

mod common;

use common::suite::{POLICIES, events};
use cr_report::events::Event;
use cr_report::reader::EventReader;
use cr_report::record::Stored;
use cr_report::svg::FIGURES;
use cr_report::{SuiteReport, read_runs};
use proptest::prelude::*;

fn lines() -> Vec<String> {
    let (mut head, events) = events(POLICIES[5], 1, 20.0, 3, 60);
    head.slo.ttft_p99_s = Some(0.2);
    std::iter::once(Event::Header(head))
        .chain(events)
        .map(|event| serde_json::to_string(&event).expect("a line"))
        .collect()
}

/// One thing that goes wrong with a stream.
#[derive(Clone, Debug)]
enum Harm {
    /// The nth number of a line becomes another one.
    Number { line: usize, nth: usize, value: &'static str },
    /// One byte of a line becomes another one.
    Byte { line: usize, at: usize, value: u8 },
    /// A line is cut.
    Cut { line: usize, at: usize },
    /// A line is gone.
    Gone { line: usize },
    /// A line comes again elsewhere.
    Again { line: usize, at: usize },
}

fn harm() -> impl Strategy<Value = Harm> {
    let extreme = prop::sample::select(vec![
        "0",
        "-1",
        "1",
        "-0.0",
        "1e308",
        "-1e308",
        "5e-324",
        "1e-9",
        "15000000",
        "18446744073709551615",
        "9007199254740993",
        "4294967295",
        "null",
        "true",
        "[]",
        "\"x\"",
    ]);
    let any_line = 0usize..10_000;
    prop_oneof![
        6 => (any_line.clone(), 0usize..20, extreme).prop_map(|(line, nth, value)| Harm::Number { line, nth, value }),
        1 => (any_line.clone(), any::<prop::sample::Index>(), any::<u8>())
            .prop_map(|(line, at, value)| Harm::Byte { line, at: at.index(300), value }),
        1 => (any_line.clone(), 0usize..400).prop_map(|(line, at)| Harm::Cut { line, at }),
        1 => any_line.clone().prop_map(|line| Harm::Gone { line }),
        1 => (any_line.clone(), any_line).prop_map(|(line, at)| Harm::Again { line, at }),
    ]
}

fn apply(lines: &mut Vec<Vec<u8>>, harm: &Harm) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    match *harm {
        Harm::Number { line, nth, value } => {
            let line = &mut lines[line % count];
            let starts: Vec<usize> =
                (1..line.len()).filter(|&at| line[at - 1] == b':' && line[at].is_ascii_digit()).collect();
            if let Some(&start) = starts.get(nth % starts.len().max(1)) {
                let length =
                    line[start..].iter().take_while(|byte| b"0123456789.eE+-".contains(byte)).count();
                line.splice(start..start + length, value.bytes());
            }
        }
        Harm::Byte { line, at, value } => {
            if let Some(byte) = lines[line % count].get_mut(at) {
                *byte = value;
            }
        }
        Harm::Cut { line, at } => lines[line % count].truncate(at),
        Harm::Gone { line } => drop(lines.remove(line % count)),
        Harm::Again { line, at } => {
            let copy = lines[line % count].clone();
            lines.insert(at % count, copy);
        }
    }
}

/// What a summary may leave open.
const MAY_BE_NONE: [&str; 4] = ["worst_tenant", "worst_slowdown_tenant", "worst_p99_tenant", "worst_p99_s"];

/// Whether JSON holds a null where the summary has a number.
fn has_null(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Null => true,
        serde_json::Value::Array(items) => items.iter().any(has_null),
        serde_json::Value::Object(map) => {
            map.iter().any(|(key, value)| !MAY_BE_NONE.contains(&key.as_str()) && has_null(value))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn harmed_streams_are_read_refused_or_reported(harms in prop::collection::vec(harm(), 1..12)) {
        let mut lines: Vec<Vec<u8>> = lines().into_iter().map(String::into_bytes).collect();
        harms.iter().for_each(|harm| apply(&mut lines, harm));
        let text = lines.join(&b'\n');
        // Whoever follows a stream goes on behind a line that is no event.
        let good: Vec<Event> = EventReader::new(&text[..], "x").filter_map(Result::ok).collect();
        let harmless = good.iter().map(|event| serde_json::to_string(event).expect("a line") + "\n").collect::<String>();
        for text in [&text[..], harmless.as_bytes()] {
            match read_runs(EventReader::new(text, "x")) {
                Err(error) => prop_assert!(error.to_string().starts_with("x:"), "{}", error),
                Ok(runs) => {
                    for run in &runs {
                        let value = serde_json::to_value(&run.summary).expect("JSON");
                        prop_assert!(!has_null(&value), "{}", value);
                        let t = &run.summary.ttft_s;
                        prop_assert!(t.p50 <= t.p90 && t.p90 <= t.p99 && t.p99 <= t.max);
                    }
                    let slo = runs.first().map(|run| run.header.slo).unwrap_or_default();
                    let suite = SuiteReport { suite: "x".into(), slo, runs, ..SuiteReport::default() };
                    let record = Stored::new(&suite).expect("a record").record;
                    for figure in FIGURES {
                        figure.draw(&record).expect("a figure, or none");
                    }
                    cr_report::markdown::render(&record, &FIGURES);
                }
            }
        }
    }
}
