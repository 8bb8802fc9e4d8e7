//! The program as it is typed: tables byte for byte, exit codes, one-line errors, closed pipes.

mod support;

use std::fs;
use std::io::Read;
use std::process::{Command, Output, Stdio};
use support::{Folder, cr_plan};

const RATES: &str = "a,12.5\nb,3\nc,2\nd,0.5\n";
const FLAGS: &[&str] = &["--shards", "2", "--qcap", "10", "--warm-slots", "2"];
const TABLE: &str = concat!(
    r#"{"schema":"cacheroute.table/1","generator":"cr-plan 0.1.0","shards":2,"qcap":10.0,"warm_slots":2.0,"#,
    r#""capacity":4.0,"from_s":0.0,"in_sample":false,"admitted_keys":3,"admitted_rate":17.5,"cold_rate":0.5,"#,
    r#""expected_load":[9.5,8.5],"imbalance":1.0555555555555556,"keys":{"a":[0,1],"b":[0],"c":[1]},"#,
    r#""rates":{"a":12.5,"b":3.0,"c":2.0,"d":0.5}}"#,
    "\n"
);

fn plan(extra: &[&str], stdin: &str) -> Output {
    cr_plan(&[FLAGS, extra].concat(), stdin)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn assert_refused(output: &Output, expect: &str) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(expect), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn rates_in_any_form_give_the_same_table() {
    let jsonl = "{\"key\":\"a\",\"rate\":12.5}\n{\"key\":\"b\",\"rate\":3}\n{\"key\":\"c\",\"rate\":2}\n{\"key\":\"d\",\"rate\":0.5}\n";
    for input in [RATES, &format!("key,rate\n{RATES}"), jsonl] {
        let output = plan(&[], input);
        assert_eq!(text(&output.stdout), TABLE);
        assert_eq!(
            text(&output.stderr),
            "3 of 4 keys have a place on 2 shards; planned imbalance 1.056, cold 2.8 % of the rate\n"
        );
        assert_eq!(output.status.code(), Some(0));
    }
    assert!(plan(&["-", "--quiet"], RATES).stderr.is_empty());
}

#[test]
fn files_in_and_out() {
    let folder = Folder::new();
    let rates = folder.file("r.csv", RATES);
    let table = folder.path("t.json").display().to_string();
    let output = plan(&[&rates, "-o", &table, "-q"], "");
    assert!(output.stdout.is_empty() && output.status.success());
    assert_eq!(fs::read_to_string(&table).expect("is there"), TABLE);
    let output = plan(&[&rates, "--no-rates"], "");
    assert_eq!(text(&output.stdout), TABLE.replace(r#","rates":{"a":12.5,"b":3.0,"c":2.0,"d":0.5}"#, ""));
    assert_refused(
        &plan(&[&rates, "-o", "/nonexistent/t.json"], ""),
        "cannot write /nonexistent/t.json: there is no folder /nonexistent; make it first, or write elsewhere",
    );
}

#[test]
fn a_trace_is_counted_and_marked_in_sample() {
    let request = |id: u32, t_s: f64, key: &str| {
        format!(
            "{{\"id\":{id},\"t_s\":{t_s},\"key\":\"{key}\",\"prompt\":[[\"g:t\",32],[\"k:{key}\",16],[\"u:{id}\",4]],\"output_tokens\":2}}\n"
        )
    };
    let trace = format!(
        "{{\"schema\":\"cacheroute.trace/1\",\"generator\":\"test\",\"spec\":{{}}}}\n{}{}{}",
        request(0, 0.0, "x"),
        request(1, 1.0, "y"),
        request(2, 2.0, "x")
    );
    let output = plan(&[], &trace);
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!((&table["in_sample"], &table["source"]["requests"]), (&true.into(), &3.into()));
    assert_eq!(table["rates"], serde_json::json!({"x": 1.0, "y": 0.5}));
    assert_eq!(table["prefix_tokens"], serde_json::json!({"x": 48, "y": 0}));
    assert_eq!(table["keys"], serde_json::json!({"x": [0], "y": [1]}));
    // A check knows these requests again, and tells others from them.
    let folder = Folder::new();
    let (path, text_of) = (folder.file("t.json", &text(&output.stdout)), |trace: &str| {
        text(&cr_plan(&["check", &folder.path("t.json").display().to_string(), "-"], trace).stdout)
    });
    assert!(
        text_of(&trace).contains("in sample")
            && !text_of(&trace.replace("\"t_s\":1", "\"t_s\":1.5")).contains("in sample")
    );
    assert!(fs::metadata(path).is_ok());
    assert_refused(&plan(&[], &request(0, 1.0, "x")), "<stdin>: all 1 requests arrive at t_s = 1");
}

#[test]
fn show_draws_the_loads_and_explains_a_key() {
    let overview = "\
keys       3 admitted, 4 copies of 4 slots
rate       17.500/s admitted, 0.500/s cold (2.8 %)
ceilings   qcap 10/s a key and shard, 2 warm slots a shard
imbalance  1.0556 max / mean, as planned

shard      rate/s   share     keys
    0       9.500   52.8%        2  ██████████████████████████████
    1       8.500   47.2%        2  ███████████████████████████
";
    assert_eq!(text(&cr_plan(&["show", "-"], TABLE).stdout), overview);
    assert_eq!(text(&plan(&["--format", "text"], RATES).stdout), overview);
    let key = text(&cr_plan(&["show", "-", "a"], TABLE).stdout);
    assert!(key.starts_with("a  admitted, on shards 0, 1\n"), "{key}");
    let key = text(&cr_plan(&["show", "-", "d"], TABLE).stdout);
    assert!(key.starts_with("d  not admitted"), "{key}");
    assert_refused(&cr_plan(&["show", "-", "aa"], TABLE), "\"aa\" is not in the table; did you mean \"a\"?");
    assert_refused(&cr_plan(&["show", "-"], "{}"), "<stdin>:1: no routing table: missing field");
    assert_refused(&cr_plan(&["show", "/nonexistent"], ""), "cannot open /nonexistent: no such file");
}

#[test]
fn bad_input_is_one_sentence_and_exit_2() {
    for (input, expect) in [
        ("a,1\na,2\n", "cr-plan: <stdin>:2: the key \"a\" is on row 1 already; give each key once\n"),
        ("a,-1\n", "<stdin>:1: the rate of \"a\" is -1"),
        ("a,nan\n", "<stdin>:1: the rate of \"a\" is NaN"),
        ("a,inf\n", "<stdin>:1: the rate of \"a\" is inf"),
        ("a,1e308\nb,1e308\n", "the rates add up to more than"),
        ("", "<stdin>: is empty; give a trace, or lines of key,rate[,prefix_tokens]"),
        ("{\"schema\":\"cacheroute.table/1\"}\n", "it is a routing table"),
        ("{\"key\":\"a\",\"rate\":\"x\"}\n", "<stdin>:1: "),
        ("\u{0}\u{1}\n", "<stdin>:1: "),
    ] {
        let output = plan(&[], input);
        assert_refused(&output, expect);
        assert_eq!(text(&output.stderr).lines().count(), 1, "{input:?}");
    }
}

#[test]
fn bad_flags_are_exit_2() {
    for args in [
        &["--shards", "2"][..],
        &["--shards", "0", "--qcap", "1", "--warm-slots", "1"],
        &["--shards", "2", "--qcap", "nan", "--warm-slots", "1"],
        &["--shards", "2", "--qcap", "1", "--warm-slots", "-1"],
        &["--shards", "99999999", "--qcap", "1", "--warm-slots", "1"],
        &["frobnicate", "--shards", "1", "--qcap", "1", "--warm-slots", "1"],
    ] {
        let output = cr_plan(args, RATES);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output.stderr));
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new();
    let rates: String = (0..60_000).map(|n| format!("key-number-{n},1\n")).collect();
    let rates = folder.file("r.csv", &rates);
    let mut child = Command::new(env!("CARGO_BIN_EXE_cr-plan"))
        .args([FLAGS, &[&rates, "-q"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut head = [0; 10];
    child.stdout.take().expect("is piped").read_exact(&mut head).expect("begins to write");
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn help_man_and_completions() {
    let help = text(&cr_plan(&["--help"], "").stdout);
    assert!(help.contains("Examples:") && help.contains("cr-plan show table.json k17"));
    assert!(text(&cr_plan(&["man"], "").stdout).contains(".TH cr-plan"));
    assert!(text(&cr_plan(&["completions", "bash"], "").stdout).contains("complete -F"));
}
