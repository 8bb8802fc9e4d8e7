//! Tables of requests (Azure, BurstGPT): import, and every kind of bad input.

use cr_trace::table_csv::{Columns, TableImport};
use cr_trace::tolerance::Tolerance;
use cr_trace::{Request, TraceError};

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8\r\n2024-04-10 00:00:00.009930+00:00,110,27";
const BURST: &str = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,1.5,ChatGPT,472,18,490,Conversation log\n45.5,9,2,GPT-4,1087,230,1317,API log\n";

fn import(text: &str, columns: &Columns) -> Result<Vec<Request>, TraceError> {
    TableImport::new(text.as_bytes(), "t.csv", columns, Tolerance::default())?.collect()
}

#[test]
fn azure_times_count_from_the_first_row() {
    let requests = import(AZURE, &Columns::azure()).expect("reads");
    let brief: Vec<_> =
        requests.iter().map(|r| (r.t_s, r.key.as_str(), r.prompt_tokens(), r.output_tokens)).collect();
    // From 2023-11-16 18:17:03.97996 to 2024-04-10 00:00:00.00993 there are 145 days, 5:42:56.02997.
    let later = 145.0 * 86_400.0 + 5.0 * 3600.0 + 42.0 * 60.0 + 56.029_97;
    assert_eq!(brief, [(0.0, "r0", 4808, 10), (0.052, "r1", 3180, 8), (later, "r2", 110, 27)]);
    assert!(
        requests.iter().all(|request| request.prompt[0].content().as_str() == format!("u:{}", request.id))
    );
}

#[test]
fn burstgpt_has_sessions_and_other_columns_can_be_keys() {
    let requests = import(BURST, &Columns::burstgpt()).expect("reads");
    let keys: Vec<_> = requests.iter().map(|r| (r.t_s, r.key.as_str(), r.session.as_deref())).collect();
    assert_eq!(keys, [(5.0, "r0", None), (45.5, "9", Some("9"))]);
    let by_model = import(BURST, &Columns::burstgpt().with_key(Some("Model".into()))).expect("reads");
    assert_eq!(by_model[1].key, "GPT-4");
    let first_version =
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,x\n";
    assert_eq!(import(first_version, &Columns::burstgpt()).expect("reads")[0].output_tokens, 18);
}

#[test]
fn every_kind_of_bad_input_is_named_with_its_line() {
    let azure = |from: &str, to: &str| import(&AZURE.replace(from, to), &Columns::azure());
    let cases = [
        (import("", &Columns::azure()), "t.csv: the input is empty; a table has a row of column names"),
        (
            import(BURST, &Columns::azure()),
            "t.csv:1: there is no column \"TIMESTAMP\"; the columns are Timestamp, Session ID, Elapsed time, Model, Request tokens, Response tokens, Total tokens, Log Type",
        ),
        (azure("3180,8", "3180"), "t.csv:3: the row has too few columns; is it cut off?"),
        (azure("3180", "many"), "t.csv:3: \"many\" is no number of tokens"),
        (azure("3180", "-5"), "t.csv:3: \"-5\" is no number of tokens"),
        (azure("3180", "0"), "t.csv:3: segment \"u:1\" has 0 tokens"),
        (azure("3180,8", "3180,0"), "t.csv:3: output_tokens is 0, at least one token is decoded"),
        (
            azure("18:17:04", "25:17:04"),
            "t.csv:3: \"2023-11-16 25:17:04.0319600\" is no time; seconds, or a date as 2023-11-16 18:17:03.97",
        ),
        (azure("2024-04", "2022-04"), "t.csv:4: the time goes back from 0.052 to -"),
        (
            azure("2024-04", "2025-04"),
            "t.csv:4: \"2025-04-10 00:00:00.009930+00:00\" lies more than 15000000 seconds after the first row",
        ),
        (
            import(&BURST.replace("45.5", "4.5"), &Columns::burstgpt()),
            "t.csv:3: the time goes back from 5 to 4.5 s; rows must be ordered by arrival",
        ),
        (import(&BURST.replace("45.5", "nan"), &Columns::burstgpt()), "t.csv:3: t_s is NaN"),
    ];
    for (result, expected) in cases {
        let error = result.expect_err("is refused").to_string();
        assert!(error.starts_with(expected), "{error}\n{expected}");
    }
    let binary = TableImport::new(
        &b"TIMESTAMP,ContextTokens,GeneratedTokens\n1,\xff,1\n"[..],
        "t.csv",
        &Columns::azure(),
        Tolerance::default(),
    );
    let error = binary.expect("opens").next().expect("has a row").expect_err("is refused").to_string();
    assert!(error.starts_with("t.csv:2: no UTF-8 text"), "{error}");
}

#[test]
fn bad_rows_are_put_up_with_as_long_as_tolerance_lasts() {
    let text =
        "Timestamp,Model,Request tokens,Response tokens\n1,a,5,0\n2,a,5,5\n3,a,x,5\n4,a,5,5\n5,a,5,0\n";
    let run = |allowed| {
        let tolerance = Tolerance::new(allowed);
        let rows = TableImport::new(text.as_bytes(), "t.csv", &Columns::burstgpt(), tolerance.clone())
            .expect("opens");
        let rows: Vec<_> = rows.collect();
        (
            rows.iter().filter(|row| row.is_ok()).count(),
            rows.iter().filter(|row| row.is_err()).count(),
            tolerance.skipped(),
        )
    };
    assert_eq!(run(0), (0, 1, 0));
    assert_eq!(run(2), (2, 1, 2));
    assert_eq!(run(3), (2, 0, 3));
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn the_published_azure_trace() {
    let Ok(folder) = std::env::var("CR_TRACES") else {
        println!("skipped: CR_TRACES names no folder of published traces");
        return;
    };
    let text =
        std::fs::read_to_string(format!("{folder}/azure/AzureLLMInferenceTrace_code.csv")).expect("reads");
    let requests = import(&text, &Columns::azure()).expect("is valid");
    assert_eq!(requests.len(), 8819);
    assert_eq!(requests.iter().map(Request::prompt_tokens).sum::<u64>(), 18_059_974);
    assert!((requests[8818].t_s - 3_435.948_056).abs() < 1e-6, "{}", requests[8818].t_s);
}
