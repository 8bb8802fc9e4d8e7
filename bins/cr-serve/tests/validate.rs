//! `calibrate` and `validate` on the tiny model.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn cr_serve(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("is text")
}

/// Sixty requests over six keys, some of them with answers long enough to be matched by nobody.
fn trace(folder: &Path) -> PathBuf {
    let path = folder.join("w.jsonl");
    let mut file = std::fs::File::create(&path).expect("can be written");
    writeln!(file, r#"{{"schema":"cacheroute.trace/1","requests":60}}"#).expect("is written");
    for id in 0..60u64 {
        let (t_s, key, output) = (id as f64 * 0.004, id * id % 6, 1 + id % 9);
        let prompt = format!(r#"[["g:t",40],["k:k{key}",60],["u:{id}",{}]]"#, 10 + id % 30);
        let line =
            format!(r#"{{"id":{id},"t_s":{t_s},"key":"k{key}","prompt":{prompt},"output_tokens":{output}}}"#);
        writeln!(file, "{line}").expect("is written");
    }
    path
}

#[test]
fn a_calibrated_cost_model_drives_a_simulation() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path());
    let made =
        cr_serve(folder.path(), &["calibrate", "--model", "llama-tiny", "--rounds", "1", "-o", "cost.toml"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let toml = std::fs::read_to_string(folder.path().join("cost.toml")).expect("was written");
    assert!(toml.contains("mixed steps not fitted") && toml.contains("name = \"llama-tiny-cpu\""), "{toml}");
    let run = cr_serve(
        folder.path(),
        &["run", "w.jsonl", "--engine", "sim", "--cost", "cost.toml", "--format", "json"],
    );
    assert!(run.status.success(), "{}", text(&run.stderr));
    let summary: Value = serde_json::from_slice(&run.stdout).expect("is JSON");
    assert_eq!(summary["requests"]["completed"], 60);
}

#[test]
fn model_and_simulator_serve_alike_under_the_same_durations() {
    let folder = tempfile::tempdir().expect("a folder");
    trace(folder.path());
    for policy in ["flat", "sticky", "preble"] {
        let args = [
            "validate",
            "w.jsonl",
            "--model",
            "llama-tiny",
            "--cost",
            "worked-example",
            "--policy",
            policy,
            "--kv-blocks",
            "24",
            "--shards",
            "3",
            "--format",
            "json",
        ];
        let output = cr_serve(folder.path(), &args);
        assert_eq!(output.status.code(), Some(0), "{policy}: {}", text(&output.stderr));
        let value: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        assert_eq!(value["unlike_modelled_sim"], 0, "{policy}");
        assert_eq!(value["modelled"]["served_hit"], value["sim"]["served_hit"], "{policy}");
        assert_eq!(value["measured"]["requests"]["completed"], 60, "{policy}");
        assert!(value["sim"]["served_hit"].as_f64().expect("is a number") > 0.1, "{policy}");
    }
    let table = cr_serve(
        folder.path(),
        &["validate", "w.jsonl", "--model", "llama-tiny", "--cost", "worked-example"],
    );
    let table = text(&table.stdout);
    assert!(table.contains("served hit") && table.contains("serve every request alike"), "{table}");
}

#[test]
fn nothing_to_replay_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("empty.jsonl"), "{\"schema\":\"cacheroute.trace/1\"}\n")
        .expect("is written");
    let output = cr_serve(folder.path(), &["validate", "empty.jsonl", "--model", "llama-tiny"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("empty.jsonl has no requests to replay"),
        "{}",
        text(&output.stderr)
    );
}
