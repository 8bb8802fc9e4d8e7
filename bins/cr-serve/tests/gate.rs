//! The deployment gate as it is typed.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Draws a workload into a trace.
fn trace(folder: &Path, name: &str, alpha: f64, key_tokens: u32, request_tokens: u32) -> String {
    let spec = format!(
        r#"
seed = 5
requests = 3000
output_tokens = 4
popularity = {{ model = "zipf", keys = 64, alpha = {alpha} }}
arrivals = {{ qps = 20.0 }}
prompt = [{{ scope = "key", tokens = {key_tokens} }}, {{ scope = "request", tokens = {request_tokens} }}]
"#
    );
    let spec = cr_workload::Spec::from_toml(&spec, "spec").expect("is valid");
    let generator = cr_workload::Generator::new(&spec, Path::new("")).expect("draws");
    let mut text = String::new();
    for request in generator {
        text.push_str(&serde_json::to_string(&request).expect("is JSON"));
        text.push('\n');
    }
    let path = folder.join(name);
    std::fs::write(&path, text).expect("is written");
    path.to_str().expect("is text").to_owned()
}

fn gate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .args(["gate", "--cost", "worked-example", "--kv-blocks", "400", "--replicates", "3"])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn much_to_reuse_and_caches_too_small_for_all_of_it_is_enabled() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "reuse.jsonl", 0.6, 512, 32);
    let report = folder.path().join("report");
    let output = gate(&[&trace, "--format", "json", "--report", report.to_str().expect("is text")]);
    let gate_says = json(&output);
    assert_eq!(gate_says["schema"], "cacheroute.gate/1");
    assert_eq!(gate_says["decision"], "enable", "{gate_says:#}");
    assert_eq!(output.status.code(), Some(0));
    let near = &gate_says["loads"][1];
    assert_eq!((near["name"].as_str(), near["of_knee"].as_f64()), (Some("near"), Some(0.9)));
    let hit = |side: &str| near[side]["served_hit"]["mean"].as_f64().expect("a number");
    assert!(hit("candidate") > hit("baseline") + 0.1);
    assert!(
        std::fs::read_to_string(report.join("report.md"))
            .expect("was written")
            .contains("# Gate: cacheroute for flat")
    );

    // The events of all replays, and what the gate says as their last line.
    let events = folder.path().join("events.ndjson");
    gate(&[&trace, "--format", "json", "-o", events.to_str().expect("is text")]);
    let events = std::fs::read_to_string(events).expect("was written");
    assert_eq!(events.matches("\"event\":\"header\"").count(), 2 * 8 * 3);
    let last: Value = serde_json::from_str(events.lines().last().unwrap_or_default()).expect("is JSON");
    assert_eq!((&last["event"], &last["decision"]), (&"gate".into(), &"enable".into()));
    assert_eq!(last["reasons"], gate_says["reasons"]);

    // A disk that is full costs the events and not the verdict.
    #[cfg(target_os = "linux")]
    {
        let full = gate(&[&trace, "--format", "json", "-o", "/dev/full"]);
        assert_eq!((json(&full), full.status.code()), (gate_says.clone(), Some(1)));
        assert!(
            String::from_utf8_lossy(&full.stderr).contains("cannot write /dev/full: No space left on device")
        );
    }

    // The same again, whatever the number of jobs; and for people.
    assert_eq!(json(&gate(&[&trace, "--format", "json", "--jobs", "1"])), gate_says);
    let text = String::from_utf8(gate(&[&trace]).stdout).expect("is text");
    assert!(
        text.starts_with("ENABLE: cacheroute instead of flat\n") && text.contains("The knee of flat is "),
        "{text}"
    );
}

#[test]
fn nothing_to_reuse_is_not_enabled() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "fresh.jsonl", 1.2, 16, 500);
    let output = gate(&[&trace, "--format", "json"]);
    let says = json(&output);
    assert!(says["decision"] == "tie" || says["decision"] == "keep", "{says:#}");
    assert_eq!(output.status.code(), Some(3));
    // Fixed affinity on skewed traffic is worse, and so is kept out.
    let sticky = gate(&[&trace, "--candidate", "sticky", "--format", "json"]);
    assert_eq!((json(&sticky)["decision"].as_str(), sticky.status.code()), (Some("keep"), Some(3)));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let few = folder.path().join("few.jsonl");
    std::fs::write(
        &few,
        "{\"id\":0,\"t_s\":0.0,\"key\":\"a\",\"prompt\":[[\"k:a\",20]],\"output_tokens\":1}\n",
    )
    .expect("is written");
    let few = few.to_str().expect("is text");
    let whole = trace(folder.path(), "whole.jsonl", 0.6, 64, 32);
    for (args, needle) in [
        (vec![few], "1 requests are too few for a gate"),
        (vec![&whole, "--candidate", "flat"], "the same policy"),
        (vec![&whole, "--candidate", "flatt"], "there is no policy \"flatt\""),
        (vec![&whole, "--plan-from", "60%", "--settle", "40%"], "leave some to measure"),
        (vec![&whole, "--slo-ttft-p99", "1ms"], "no knee"),
        (vec!["nowhere.jsonl"], "nowhere.jsonl"),
    ] {
        let output = gate(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(needle), "{args:?}: {said}");
    }
}

/// What policies assume of the shards is what the shards have, as in a run.
#[test]
fn policies_know_the_fleet_that_they_are_tried_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "small.jsonl", 0.9, 128, 32);
    let events = folder.path().join("events.ndjson");
    let path = events.to_str().expect("is text");
    let output = gate(&[&trace, "--baseline", "dualmap", "--candidate", "preble", "-o", path]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(events).expect("is there");
    let headers: Vec<Value> = text
        .lines()
        .filter(|line| line.starts_with(r#"{"event":"header""#))
        .map(|line| serde_json::from_str(line).expect("is JSON"))
        .collect();
    assert!(!headers.is_empty());
    for header in headers {
        let assumes = header["assumes"].as_str().expect("both assume something");
        assert!(assumes.contains("6400 KV tokens a shard"), "{assumes}");
        let slo_s = header["slo"]["ttft_p99_s"].as_f64().expect("the bound that the knee was found under");
        assert!(
            header["policy"] != "dualmap" || assumes.starts_with(&format!("TTFT within {slo_s} s")),
            "{assumes}"
        );
    }
}

#[test]
fn what_would_have_no_effect_is_refused() {
    for (flags, why) in [
        (&["--clock", "wall"][..], "virtual clock"),
        (&["--free-run"], "the trace's answers"),
        (&["--engine", "sim-stepwise"], "--engine sim"),
    ] {
        let output = gate(&[&["nothing.jsonl"], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}
