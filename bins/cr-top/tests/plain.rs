//! The program without a terminal: lines, summaries, sentences and exit codes.

mod support;

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::Sample;

fn top(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cr-top"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn piped(text: &[u8], args: &[&str]) -> Output {
    let mut child = top(args).stdin(Stdio::piped()).spawn().expect("spawned");
    let mut stdin = child.stdin.take().expect("a pipe");
    let text = text.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&text));
    let output = child.wait_with_output().expect("ended");
    let _ = writer.join();
    output
}

fn check(output: &Output, code: i32, out: &[&str], err: &str) {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    for part in out {
        assert!(stdout.contains(part), "{part:?} is not in\n{stdout}");
    }
    assert!(stderr.contains(err), "{err:?} is not in\n{stderr}");
    assert!(stderr.lines().count() <= 1, "more than one sentence\n{stderr}");
}

fn file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("run.ndjson");
    std::fs::write(&path, text).expect("written");
    path
}

fn lines() -> Vec<String> {
    Sample::default().ndjson().lines().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_pipe_and_a_file_say_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = Sample::default().ndjson();
    let path = file(folder.path(), &text);
    let from_pipe = piped(text.as_bytes(), &[]);
    let once = top(&[path.to_str().expect("a name"), "--once"]).output().expect("ran");
    let plain = top(&[path.to_str().expect("a name"), "--plain"]).output().expect("ran");
    check(&from_pipe, 0, &["cacheroute, seed 7", "served hit"], "");
    assert_eq!(from_pipe.stdout, once.stdout);
    assert_eq!(once.stdout, plain.stdout);
}

#[test]
fn json_is_the_run_s_own_summary() {
    let text = Sample::default().ndjson();
    let output = piped(text.as_bytes(), &["--once", "--format", "json"]);
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut own: serde_json::Value =
        serde_json::from_str(text.lines().last().expect("a summary")).expect("JSON");
    own.as_object_mut().expect("an object").remove("event");
    assert_eq!(printed, own);
}

#[test]
fn the_summary_goes_where_it_is_asked_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("summary.json");
    let args = ["--once", "--format", "json", "-o", out.to_str().expect("a name")];
    let output = piped(Sample::default().ndjson().as_bytes(), &args);
    check(&output, 0, &[], "");
    assert!(output.stdout.is_empty());
    assert!(
        std::fs::read_to_string(out).expect("written").starts_with("{\"schema\":\"cacheroute.summary/1\"")
    );
}

#[test]
fn a_line_a_second_and_the_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let (all, path) = (lines(), folder.path().join("run.ndjson"));
    // The file does not exist yet: it is waited for.
    let child = top(&[path.to_str().expect("a name"), "--plain"]).spawn().expect("spawned");
    std::thread::sleep(Duration::from_millis(1300));
    let mut growing = std::fs::File::create(&path).expect("created");
    growing.write_all(all[..all.len() / 2].concat().as_bytes()).expect("written");
    std::thread::sleep(Duration::from_millis(2300));
    growing.write_all(all[all.len() / 2..].concat().as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ended");
    check(&output, 0, &["no such file yet", "cacheroute, seed 7"], "");
    let text = String::from_utf8_lossy(&output.stdout);
    let ticks = text.lines().filter(|line| line.starts_with("t ") && line.contains("achieved")).count();
    assert!((2..=4).contains(&ticks), "{text}");
}

#[test]
fn a_bad_line_in_the_middle_is_counted_and_named() {
    let mut all = lines();
    all.insert(4, "{\"event\":\"finish\",\"t_s\":\n".into());
    all.insert(9, "[2J not json\n".into());
    let output = piped(all.concat().as_bytes(), &[]);
    check(&output, 0, &["bad lines: 2", "<stdin>:10:", "cacheroute, seed 7"], "");
}

#[test]
fn a_stream_that_is_cut_is_incomplete() {
    let all = lines();
    let cut = all[..all.len() - 40].concat();
    check(&piped(cut.as_bytes(), &[]), 0, &["incomplete: the stream ended without a summary"], "");
    // In the middle of a line, too.
    let output = piped(&cut.as_bytes()[..cut.len() - 30], &[]);
    check(&output, 0, &["incomplete:", "bad lines: 1"], "");
    // The last line lacks its newline only: nothing is missing.
    let whole = all.concat();
    let output = piped(whole.trim_end().as_bytes(), &[]);
    check(&output, 0, &["cacheroute, seed 7"], "");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("incomplete"));
}

#[test]
fn what_is_no_stream_of_events_is_refused() {
    check(&piped(b"", &[]), 2, &[], "<stdin>: no events, the input is empty");
    check(&piped(b"\n\n", &[]), 2, &[], "<stdin>: no events");
    check(&piped(b"hello\n", &[]), 2, &[], "<stdin>:1: ");
    check(&piped(b"\x00\xff\xfe\n", &[]), 2, &[], "<stdin>:1: ");
    check(&piped(lines()[1].as_bytes(), &[]), 2, &[], "<stdin>:1: ");
    let other = lines()[0].replace("events/1", "events/9");
    check(&piped(other.as_bytes(), &[]), 2, &[], "cacheroute.events/9");
    let huge = lines()[0].replace("\"shards\":4", "\"shards\":70000");
    check(&piped(huge.as_bytes(), &[]), 2, &[], "70000 shards; a run has between 1 and 65536");
    let missing = top(&["/no/such/run.ndjson"]).output().expect("ran");
    check(&missing, 2, &[], "cannot read /no/such/run.ndjson: no such file");
    let missing = top(&["no-such-run.ndjson", "--once"]).output().expect("ran");
    check(&missing, 2, &[], "cannot read no-such-run.ndjson: no such file");
    check(&top(&["/"]).output().expect("ran"), 2, &[], "it is a folder");
}

#[test]
fn head_cuts_it_short_quietly() {
    let script = format!(
        "(cat {sample}; sleep 3) | {top} --plain | head -n 1; echo ${{PIPESTATUS[1]}}",
        sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample.ndjson").display(),
        top = env!("CARGO_BIN_EXE_cr-top"),
    );
    let output = Command::new("bash").args(["-c", &script]).output().expect("ran");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n0\n"), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn several_runs_print_several_summaries() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut paths = Vec::new();
    for seed in [7, 8] {
        let path = folder.path().join(format!("{seed}.ndjson"));
        std::fs::write(&path, Sample { seed, ..Sample::default() }.ndjson()).expect("written");
        paths.push(path.display().to_string());
    }
    let output = top(&[&paths[0], &paths[1], "--once"]).output().expect("ran");
    check(&output, 0, &["cacheroute, seed 7", "cacheroute, seed 8"], "");
    let five: Vec<&str> = paths.iter().cycle().take(5).map(String::as_str).collect();
    check(&top(&five).output().expect("ran"), 2, &[], "5 files; at most 4 runs are compared");
    check(&top(&["-", "-"]).output().expect("ran"), 2, &[], "`-` is given twice");
}

#[test]
fn a_run_behind_a_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.sock");
    let name = path.display().to_string();
    let nobody = top(&["--connect", &name, "--once"]).output().expect("ran");
    check(&nobody, 2, &[], "no such file; start the run with cr-serve run --listen first");
    // One that a run left behind, and one that listens in its place: both are waited for, one after the other.
    drop(UnixListener::bind(&path).expect("bound"));
    let nobody = top(&["--connect", &name, "--once"]).output().expect("ran");
    check(&nobody, 2, &[], "nobody listens there; start the run");
    let child = top(&["--connect", &name]).spawn().expect("spawned");
    std::thread::sleep(Duration::from_millis(1300));
    std::fs::remove_file(&path).expect("removed");
    std::thread::sleep(Duration::from_millis(200));
    let listener = UnixListener::bind(&path).expect("bound");
    let (mut client, _) = listener.accept().expect("a client");
    client.write_all(Sample::default().ndjson().as_bytes()).expect("written");
    drop(client);
    let output = child.wait_with_output().expect("ended");
    let waiting = format!("waiting for {name}: nobody listens there yet");
    check(&output, 0, &[&waiting, "cacheroute, seed 7"], "");
}

#[test]
fn what_no_run_can_come_from_is_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = file(folder.path(), &Sample::default().ndjson());
    let output = top(&["--connect", events.to_str().expect("a name")]).output().expect("ran");
    check(&output, 2, &[], "it is no socket; a file of events is read without --connect");
    check(&top(&["--connect", "/no/such/run.sock"]).output().expect("ran"), 2, &[], "no such file");
    let long = format!("{}/{}", folder.path().display(), "x".repeat(200));
    check(&top(&["--connect", &long]).output().expect("ran"), 2, &[], "cannot connect to ");
    // The run is over before it greets whoever has just connected.
    let path = folder.path().join("run.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let child = top(&["--connect", path.to_str().expect("a name")]).spawn().expect("spawned");
    std::thread::sleep(Duration::from_millis(500));
    drop(listener);
    check(&child.wait_with_output().expect("ended"), 2, &[], "the run ended before it could be watched");
}

#[test]
fn a_table_that_is_none_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let events = file(folder.path(), &Sample::default().ndjson());
    let events = events.to_str().expect("a name");
    let output = top(&[events, "--once", "--table", events]).output().expect("ran");
    check(&output, 2, &[], "run.ndjson");
    let output = top(&[events, "--once", "--table", "/no/table.json"]).output().expect("ran");
    check(&output, 2, &[], "cannot open /no/table.json: no such file");
    check(&top(&[events, "--replay"]).output().expect("ran"), 2, &[], "--replay needs a terminal");
}

#[test]
fn a_stream_of_several_runs_prints_each() {
    let text =
        Sample { seed: 7, ..Sample::default() }.ndjson() + &Sample { seed: 8, ..Sample::default() }.ndjson();
    check(&piped(text.as_bytes(), &["--plain"]), 0, &["cacheroute, seed 7", "cacheroute, seed 8"], "");
    // A bad line of the first is not forgotten over the second.
    let bad = piped(text.replacen("\n", "\nno event\n", 1).as_bytes(), &["--once"]);
    check(&bad, 0, &["bad lines: 1, the last one <stdin>:2: "], "");
    let json = piped(text.as_bytes(), &["--once", "--format", "json"]);
    assert_eq!(String::from_utf8_lossy(&json.stdout).lines().count(), 2);
}

#[test]
fn a_line_without_end_is_one_bad_line() {
    let all = lines();
    let mut text = all[..9].concat().into_bytes();
    text.extend(std::iter::repeat_n(b'x', (64 << 20) + (1 << 18)));
    text.push(b'\n');
    text.extend(all[9..].concat().into_bytes());
    check(&piped(&text, &[]), 0, &["bad lines: 1", "<stdin>:10:", "cacheroute, seed 7"], "");
}

/// The sample as a run of a suite: its header and its summary name what is varied.
fn varied(seed: u64, qps: f64, variant: Option<&str>) -> String {
    let vary = |line: &str| {
        let mut event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        if ["header", "summary"].iter().any(|kind| event["event"] == *kind) {
            event["qps"] = qps.into();
            event["variant"] = variant.into();
        }
        format!("{event}\n")
    };
    Sample { seed, ..Sample::default() }.ndjson().lines().map(vary).collect()
}

#[test]
fn a_gate_s_replays_are_told_apart_and_its_verdict_comes_last() {
    let gate = concat!(
        r#"{"event":"gate","decision":"keep","baseline":"flat","candidate":"sticky","#,
        r#""reasons":["near the knee it is worse","its capacity is lower"]}"#,
        "\n"
    );
    let text = varied(7, 56.5, None) + &varied(8, 362.0, Some("long")) + gate;
    let output = piped(text.as_bytes(), &["--once"]);
    check(&output, 0, &["cacheroute, 56.5 QPS, seed 7: complete\n"], "");
    check(&output, 0, &["cacheroute, long, 362 QPS, seed 8: complete\n"], "");
    let verdict =
        "\nKEEP: sticky instead of flat\n  - near the knee it is worse\n  - its capacity is lower\n";
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(verdict), "{output:?}");
    // What was said of earlier runs stays with them.
    let twice = text.clone() + &text;
    let output = piped(twice.as_bytes(), &["--once"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches(verdict).count(), 2, "{output:?}");
    let json = piped(text.as_bytes(), &["--once", "--format", "json"]);
    assert_eq!(String::from_utf8_lossy(&json.stdout).lines().count(), 2);
}

#[test]
fn named_warnings_are_printed_with_their_remedies() {
    let text = Sample::default().ndjson() + &Sample { seed: 8, ..Sample::default() }.ndjson();
    let output = piped(text.as_bytes(), &["--once"]);
    let warning = "\n  warning     few-requests: the p99 of 571 requests rests on the 5 slowest\n";
    check(&output, 0, &[warning, "\n              run longer, or quote p90\n"], "");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout.matches("few-requests").count(), 2, "{stdout}");
    // They stand in the line of the second, too.
    let script = format!(
        "(head -n 600 {sample}; sleep 2) | {top} --plain",
        sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sample.ndjson").display(),
        top = env!("CARGO_BIN_EXE_cr-top"),
    );
    let output = Command::new("bash").args(["-c", &script]).output().expect("ran");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let tick = stdout.lines().find(|line| line.starts_with("t ")).unwrap_or_default();
    assert!(tick.ends_with("  warnings warm-up-measured"), "{stdout}");
}
