//! Suites as they are typed.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn sweep(suite: &Path, dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .arg("sweep")
        .arg(suite)
        .arg("--report")
        .arg(dir)
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

const SUITE: &str = r#"
schema = "cacheroute.suite/1"
name = "small"
title = "A small suite"
policies = ["flat", "sticky", "cacheroute"]
baseline = "flat"
candidate = "cacheroute"
seeds = [1, 2, 3]
plan_from = 0.25

[load]
utilisation = 0.8
probe_requests = 64

[fleet]
shards = 4
kv_blocks = 256

[engine]
kind = "sim"
cost = "worked-example"

[workload]
requests = 400
output_tokens = 8

[workload.popularity]
model = "zipf"
keys = 24
alpha = 0.9

[workload.arrivals]
process = "poisson"
qps = 10.0

[[workload.prompt]]
scope = "global"
tokens = 32

[[workload.prompt]]
scope = "key"
tokens = 256

[[workload.prompt]]
scope = "request"
tokens = 40
"#;

#[test]
fn a_suite_gives_a_report_and_the_same_one_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("small.toml");
    std::fs::write(&suite, SUITE).expect("is written");
    let first = folder.path().join("report");
    let output = sweep(&suite, &first);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(first.join("result.json")).expect("was written"))
            .expect("is JSON");
    assert_eq!(result["schema"], "cacheroute.result/1");
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(9));
    assert_eq!(result["aggregates"].as_array().map(Vec::len), Some(3));

    // The same command again writes the same bytes everywhere but in run.json.
    let kept = folder.path().join("kept");
    std::fs::rename(&first, &kept).expect("moves");
    assert!(sweep(&suite, &first).status.success());
    for entry in std::fs::read_dir(&kept).expect("is a folder") {
        let name = entry.expect("is an entry").file_name();
        if name != "run.json" {
            let (a, b) = (std::fs::read(kept.join(&name)), std::fs::read(first.join(&name)));
            assert_eq!(a.expect("reads"), b.expect("reads"), "{name:?}");
        }
    }
}

#[test]
fn a_suite_that_is_wrong_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, needle) in [
        ("policies =", "polices =", "polices"),
        ("\"sticky\"", "\"stiky\"", "there is no policy \"stiky\""),
        ("plan_from = 0.25", "plan_from = 1.25", "plan_from is 1.25"),
        ("seeds = [1, 2, 3]", "seeds = []", "seeds is empty"),
        ("utilisation = 0.8", "utilisation = -1", "load.utilisation"),
        ("shards = 4", "shards = 0", "at least 1"),
        ("requests = 400\n", "", "requests"),
        ("suite/1", "suite/7", "cacheroute.suite/1"),
        ("baseline = \"flat\"", "baseline = \"chwbl\"", "chwbl"),
        ("cost = \"worked-example\"", "cost = \"none\"", "there is no cost model \"none\""),
    ] {
        let suite = folder.path().join("bad.toml");
        std::fs::write(&suite, SUITE.replacen(from, to, 1)).expect("is written");
        let output = sweep(&suite, &folder.path().join("report"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {said}");
        assert!(said.contains(needle), "{to}: {said}");
    }
}

#[test]
fn a_report_is_drawn_anew_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("small.toml");
    std::fs::write(&suite, SUITE).expect("is written");
    let dir = folder.path().join("report");
    assert!(sweep(&suite, &dir).status.success());
    let serve = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_cr-serve")).args(args).stdin(Stdio::null()).output().expect("starts")
    };
    let path = dir.to_str().expect("is text");
    let page = std::fs::read(dir.join("report.md")).expect("was written");
    std::fs::remove_file(dir.join("report.md")).expect("was there");
    assert!(serve(&["report", path, "--html"]).status.success());
    assert_eq!(std::fs::read(dir.join("report.md")).expect("is there again"), page);
    assert!(dir.join("report.html").is_file());

    assert_eq!(serve(&["compare", path, path]).status.code(), Some(0));
    // A result in which cacheroute's tail is three times as long is a regression.
    let worse = folder.path().join("worse");
    std::fs::create_dir(&worse).expect("a folder");
    let mut result: Value =
        serde_json::from_slice(&std::fs::read(dir.join("result.json")).expect("reads")).expect("is JSON");
    for run in result["runs"].as_array_mut().expect("has runs") {
        if run["policy"] == "cacheroute" {
            for field in ["p99", "max"] {
                let slower = run["ttft_s"][field].as_f64().expect("is a number") * 3.0;
                run["ttft_s"][field] = slower.into();
            }
        }
    }
    let worse = worse.join("result.json");
    std::fs::write(&worse, result.to_string()).expect("is written");
    let worse = worse.to_str().expect("is text");
    let compared = serve(&["compare", path, worse]);
    assert_eq!(compared.status.code(), Some(3), "{}", String::from_utf8_lossy(&compared.stdout));
    assert_eq!(serve(&["compare", path, "nowhere"]).status.code(), Some(2));
}
