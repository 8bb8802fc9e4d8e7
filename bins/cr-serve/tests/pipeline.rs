//! The four programs as the README composes them, in a shell.
#![cfg(unix)]

mod support;

use std::path::Path;
use std::process::Output;

/// Runs a script in bash, and tells the exit codes of its last pipe.
fn shell(folder: &Path, script: &str) -> Output {
    support::bash(folder, &format!("set -u; {script}\necho \"codes ${{PIPESTATUS[*]}}\""))
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("is text")
}

const PLAN: &str = "cr-gen zipf --keys 20 -n 200 --qps 20 --seed 1 | tee w.jsonl | cr-plan --shards 4 --qcap 5 --warm-slots 20 > table.json";

#[test]
fn a_workload_is_planned_for_and_watched() {
    let folder = tempfile::tempdir().expect("a folder");
    let planned = shell(folder.path(), PLAN);
    assert_eq!(text(&planned), "codes 0 0 0\n", "{}", String::from_utf8_lossy(&planned.stderr));
    let watched = shell(folder.path(), "cr-serve run w.jsonl --table table.json --engine sim | cr-top");
    let said = text(&watched);
    assert!(said.contains("cacheroute, seed 42: complete") && said.ends_with("codes 0 0\n"), "{said}");
    assert!(said.contains("200 offered, 200 completed, 0 failed"), "{said}");
}

#[test]
fn head_cuts_any_of_them_short_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(text(&shell(folder.path(), PLAN)), "codes 0 0 0\n");
    for script in [
        "cr-gen zipf -n 1M | head -n 2",
        "cr-gen stats w.jsonl | head -n 1",
        "cat w.jsonl | cr-plan --shards 4 --qcap 5 --warm-slots 20 | head -c 40",
        "cr-plan show table.json | head -n 1",
        "cr-serve run w.jsonl --table table.json --engine sim | head -n 3",
        "cr-serve run w.jsonl --table table.json --engine sim | cr-top --plain | head -n 1",
        "cr-serve completions bash | head -n 1",
        "cr-top man | head -n 1",
    ] {
        let output = shell(folder.path(), script);
        let said = text(&output);
        let (_, codes) = said.rsplit_once("codes ").expect("prints its codes");
        assert!(codes.split_whitespace().all(|code| code == "0"), "{script}: {said}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !errors.contains("error") && !errors.contains("panicked") && !errors.contains("pipe"),
            "{script}: {errors}"
        );
    }
}

#[test]
fn what_goes_through_stdin_is_what_goes_through_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(text(&shell(folder.path(), PLAN)), "codes 0 0 0\n");
    let script = "cr-serve run w.jsonl --engine sim > a; cr-serve run - --engine sim < w.jsonl > b; \
                  cat w.jsonl | cr-serve run --engine sim > c; cmp a b && cmp b c";
    assert_eq!(text(&shell(folder.path(), script)), "codes 0\n");
}

#[test]
fn a_run_knows_the_requests_that_its_table_was_planned_from() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(text(&shell(folder.path(), PLAN)), "codes 0 0 0\n");
    let serve = "cr-serve run --table table.json --engine sim --format text";
    for (trace, told) in [
        ("cr-gen zipf --keys 20 -n 300 --qps 20 --seed 2 > other.jsonl; {} other.jsonl", false),
        ("{} w.jsonl", true),
        // Longer, but it begins with them.
        (
            r#"(cat w.jsonl; tail -n 1 w.jsonl | sed 's/"id":[0-9]*/"id":900/') > more.jsonl; {} more.jsonl"#,
            true,
        ),
        ("head -n 100 w.jsonl > less.jsonl; {} less.jsonl", false),
        // What comes through a pipe cannot be read beforehand.
        ("cat other.jsonl | {}", true),
    ] {
        let said = text(&shell(folder.path(), &trace.replace("{}", serve)));
        assert!(said.contains("completed"), "{trace}: {said}");
        assert_eq!(said.contains("in sample"), told, "{trace}: {said}");
    }
}
