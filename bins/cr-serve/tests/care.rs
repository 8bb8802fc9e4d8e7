//! What is dear to users: files that are there already, and a word where something is not as it seems.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn cr_serve(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cr-serve"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).output().expect("starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A trace whose header says `says` requests, with `requests` of them that are `apart_s` seconds apart.
fn trace(folder: &Path, says: u64, requests: u64, apart_s: f64) -> PathBuf {
    let path = folder.join("w.jsonl");
    let mut file = std::fs::File::create(&path).expect("can be written");
    writeln!(file, r#"{{"schema":"cacheroute.trace/1","requests":{says}}}"#).expect("is written");
    for id in 0..requests {
        let t_s = id as f64 * apart_s;
        writeln!(
            file,
            r#"{{"id":{id},"t_s":{t_s},"key":"k{}","prompt":[["u:{id}",90]],"output_tokens":3}}"#,
            id % 4
        )
        .expect("is written");
    }
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("is text")
}

#[test]
fn a_command_that_cannot_run_leaves_its_output_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, kept) = (trace(folder.path(), 20, 20, 0.1), folder.path().join("kept.ndjson"));
    std::fs::write(&kept, "dear\n").expect("is written");
    let wrong: [&[&str]; 4] = [
        &["--cost", "nope"],
        &["--policy", "nope"],
        &["--fault", "down 99 at 1s"],
        &["--cost", "worked-example", "--report", text(&trace)],
    ];
    for more in wrong {
        let args = [&["run", text(&trace), "--engine", "sim", "-o", text(&kept)], more].concat();
        let output = cr_serve(&args);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", said(&output));
        assert_eq!(std::fs::read_to_string(&kept).expect("is there"), "dear\n", "{more:?}");
    }
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), 200, 200, 0.05);
    let cost = folder.path().join("c.toml");
    let model = "schema = \"cacheroute.cost/1\"\nname = \"c\"\nsource = \"made up\"\n[step]\nbase_ms = 1.0\n";
    std::fs::write(&cost, model).expect("is written");
    let before = std::fs::read(&trace).expect("reads");
    for (args, file) in [
        (vec!["gate", text(&trace), "-o", text(&trace)], "w.jsonl"),
        (vec!["gate", text(&trace), "--cost", text(&cost), "-o", text(&cost)], "c.toml"),
        (vec!["run", text(&trace), "--engine", "sim", "--cost", text(&cost), "-o", text(&cost)], "c.toml"),
        (
            vec!["run", text(&trace), "--engine", "sim", "--cost", text(&cost), "--requests", text(&cost)],
            "c.toml",
        ),
    ] {
        let output = cr_serve(&args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
        assert!(
            said(&output).contains(&format!("{file} is also an input or another output")),
            "{}",
            said(&output)
        );
    }
    assert_eq!(std::fs::read(&trace).expect("reads"), before);
    assert_eq!(std::fs::read_to_string(&cost).expect("reads"), model);
}

/// The report would be written over the events, which then were made in vain.
#[test]
fn no_output_takes_the_name_of_a_file_of_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), 20, 20, 0.1);
    let report = folder.path().join("report");
    for (flag, name) in [("-o", "ttft-cdf.svg"), ("-o", "result.json"), ("--requests", "report.md")] {
        let file = report.join(name);
        let run = ["run", text(&trace), "--engine", "sim", "--policy", "flat", "--report", text(&report)];
        let output = cr_serve(&[&run[..], &[flag, text(&file)]].concat());
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(
            said(&output).contains(&format!("{name} is also an input or another output")),
            "{}",
            said(&output)
        );
        assert!(!file.exists(), "{name}");
    }
}

#[test]
fn a_suite_is_not_written_over_with_what_it_extends() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = folder.path().join("base.toml");
    let suite =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/suites/bench.toml"));
    std::fs::write(&base, suite.expect("is there")).expect("is written");
    let more = folder.path().join("more.toml");
    std::fs::write(&more, "extends = \"base.toml\"\nname = \"more\"\n").expect("is written");
    let report = folder.path().join("report");
    let before = std::fs::read(&base).expect("reads");
    let output = cr_serve(&["sweep", text(&more), "-o", text(&base), "--report", text(&report)]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(std::fs::read(&base).expect("reads"), before);
}

#[test]
fn a_missed_objective_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), 200, 200, 0.05);
    let sim = ["run", text(&trace), "--engine", "sim", "--cost", "worked-example", "--format", "text"];
    let missed = cr_serve(&[&sim[..], &["--slo-ttft-p99", "1ms"]].concat());
    assert_eq!(missed.status.code(), Some(3));
    assert!(said(&missed).starts_with("p99 TTFT within 1.00 ms: missed, it is "), "{}", said(&missed));
    assert!(
        String::from_utf8_lossy(&missed.stdout).contains("\n  objective   p99 TTFT within 1.00 ms: missed")
    );
    let met = cr_serve(&[&sim[..], &["--slo-ttft-p99", "10s"]].concat());
    assert_eq!((met.status.code(), said(&met).as_str()), (Some(0), ""));
    assert!(String::from_utf8_lossy(&met.stdout).contains("\n  objective   p99 TTFT within 10.0 s: met"));
}

#[test]
fn what_is_not_as_it_seems_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let sim = |trace: &Path, more: &[&str]| {
        cr_serve(&[&["run", text(trace), "--engine", "sim", "--cost", "worked-example"], more].concat())
    };
    // A trace that was cut at the end of a line.
    let cut = trace(folder.path(), 60, 40, 0.1);
    let output = sim(&cut, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(
        said(&output).contains("w.jsonl: the header says 60 requests and 40 follow"),
        "{}",
        said(&output)
    );
    // One that is longer than the clock.
    let chain = folder.path().join("chain.jsonl");
    let one = |id: u64, more: &str| {
        format!(r#"{{"id":{id},"t_s":0,"key":"k","prompt":[["u:{id}",9]],"output_tokens":1{more}}}"#)
    };
    let lines =
        [one(0, ""), one(1, r#","after":0,"think_s":14999999"#), one(2, r#","after":1,"think_s":14999999"#)];
    std::fs::write(&chain, lines.join("\n") + "\n").expect("is written");
    let output = sim(&chain, &["--format", "json"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("more than 173 days into the run"), "{}", said(&output));
    let summary: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("what was measured is told");
    assert_eq!((&summary["complete"], &summary["requests"]["completed"]), (&false.into(), &2.into()));
}

/// A simulated suite of one rate; `requests` decide how long it takes.
fn suite(requests: u64) -> String {
    format!(
        r#"
schema = "cacheroute.suite/1"
name = "care"
title = "A suite of {requests} requests"
policies = ["flat", "sticky"]
baseline = "flat"
candidate = "sticky"
seeds = [1, 2, 3, 4, 5, 6]
[load]
qps = [40]
[fleet]
shards = 4
[engine]
kind = "sim"
cost = "8b-h100"
[workload]
requests = {requests}
output_tokens = 20
popularity = {{ model = "zipf", keys = 20, alpha = 1.0 }}
arrivals = {{ qps = 1.0 }}
prompt = [{{ scope = "key", tokens = 200 }}, {{ scope = "request", tokens = 50 }}]
"#
    )
}

#[cfg(unix)]
#[test]
fn half_a_report_does_not_take_the_place_of_a_finished_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, report) = (folder.path().join("suite.toml"), folder.path().join("report"));
    let args = ["sweep", text(&file), "--report", text(&report), "--jobs", "1"];
    std::fs::write(&file, suite(200)).expect("is written");
    let output = cr_serve(&args);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let finished = std::fs::read_to_string(report.join("report.md")).expect("was written");
    std::fs::write(&file, suite(400_000)).expect("is written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    // Once it says what it runs, it hears signals.
    let mut stderr = BufReader::new(child.stderr.take().expect("is piped"));
    let mut first = String::new();
    stderr.read_line(&mut first).expect("says something");
    assert!(first.starts_with("suite care"), "{first}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill exists");
    assert!(killed.success());
    let rest = std::io::read_to_string(stderr).expect("is text");
    assert_eq!(child.wait().expect("ends").code(), Some(130), "{rest}");
    assert!(rest.contains("was left as it is"), "{rest}");
    assert_eq!(std::fs::read_to_string(report.join("report.md")).expect("is there"), finished);
}
