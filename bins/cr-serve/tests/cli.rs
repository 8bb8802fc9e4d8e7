//! The program as it is typed: outputs, exit codes, bad input, interruption.

use cr_trace::mooncake::{BlockKey, Dialect, MooncakeImport, MooncakeReader};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn cr_serve(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cr-serve"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    cr_serve(args).output().expect("starts")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("is text")
}

/// A trace of `requests` requests over four keys, with or without a header that counts them.
fn trace(folder: &Path, name: &str, requests: u64, header: bool) -> PathBuf {
    let path = folder.join(name);
    let mut file = std::fs::File::create(&path).expect("can be written");
    if header {
        writeln!(file, r#"{{"schema":"cacheroute.trace/1","requests":{requests}}}"#).expect("is written");
    }
    for id in 0..requests {
        let (t_s, key) = (id as f64 * 0.02, id % 4);
        writeln!(
            file,
            r#"{{"id":{id},"t_s":{t_s},"key":"k{key}","prompt":[["g:t",32],["k:k{key}",48],["u:{id}",10]],"output_tokens":3}}"#
        )
        .expect("is written");
    }
    path
}

const SIM: [&str; 4] = ["--engine", "sim", "--cost", "worked-example"];

/// `run` on the simulator.
fn sim(trace: &Path, more: &[&str]) -> Output {
    let path = trace.to_str().expect("is text");
    run(&[&["run", path], &SIM[..], more].concat())
}

/// The text of a failed run's one line on stderr.
fn refusal(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(&output.stderr).trim_end().to_string()
}

#[test]
fn events_go_to_a_pipe_and_a_summary_beside_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 40, true);
    let piped = sim(&trace, &["--shards", "2"]);
    assert!(piped.status.success());
    let lines: Vec<Value> =
        text(&piped.stdout).lines().map(|l| serde_json::from_str(l).expect("is JSON")).collect();
    assert_eq!((&lines[0]["event"], &lines[0]["requests_expected"]), (&"header".into(), &40.into()));
    let last = lines.last().expect("has lines");
    assert_eq!((&last["event"], &last["complete"]), (&"summary".into(), &true.into()));

    let file = folder.path().join("events.ndjson");
    let kept = sim(&trace, &["--shards", "2", "-o", file.to_str().expect("is text")]);
    assert!(text(&kept.stdout).starts_with("flat, seed 42: complete"));
    assert_eq!(std::fs::read(&file).expect("was written"), piped.stdout, "the same bytes");

    let json = sim(&trace, &["--shards", "2", "--format", "json"]);
    let summary: Value = serde_json::from_slice(&json.stdout).expect("is JSON");
    assert_eq!(summary["schema"], "cacheroute.summary/1");
    assert_eq!(summary["served_hit"], last["served_hit"]);
}

/// A disk that fills up under an output takes nothing along that is told elsewhere.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_the_file_and_not_the_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 3_000, true);
    let summary = sim(&trace, &["--format", "json"]).stdout;
    for flag in ["-o", "--requests"] {
        let report = folder.path().join(flag);
        let report = report.to_str().expect("is text");
        let full = sim(&trace, &["--format", "json", flag, "/dev/full", "--report", report]);
        assert_eq!(
            refusal(&full, 1),
            "cr-serve: cannot write /dev/full: No space left on device (os error 28); all else went on without it; make room, or write \
             elsewhere"
        );
        assert_eq!(full.stdout, summary, "{flag}");
        assert!(std::fs::exists(Path::new(report).join("report.md")).expect("can be looked at"), "{flag}");
    }
}

#[test]
fn a_report_of_one_run_has_its_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 40, true);
    let dir = folder.path().join("report");
    let output = sim(&trace, &["--report", dir.to_str().expect("is text")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in ["report.md", "result.json", "run.json", "shard-load.svg", "ttft-cdf.svg"] {
        assert!(dir.join(name).is_file(), "{name}");
    }
}

#[test]
fn an_slo_that_is_missed_exits_with_3() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 40, true);
    assert_eq!(sim(&trace, &["--slo-ttft-p99", "1us"]).status.code(), Some(3));
    assert_eq!(sim(&trace, &["--slo-ttft-p99", "10s"]).status.code(), Some(0));
}

#[test]
fn planning_from_the_head_needs_a_known_number_of_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let bare = trace(folder.path(), "bare.jsonl", 40, false);
    let counted = sim(&bare, &["--plan-from", "25%", "--format", "json"]);
    let summary: Value = serde_json::from_slice(&counted.stdout).expect("is JSON");
    assert_eq!((&summary["policy"], &summary["requests"]["offered"]), (&"cacheroute".into(), &30.into()));

    let mut child = cr_serve(&[&["run", "-", "--plan-from", "25%"], &SIM[..]].concat())
        .stdin(Stdio::from(std::fs::File::open(&bare).expect("opens")))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    BufReader::new(child.stderr.take().expect("is piped")).read_line(&mut line).expect("is text");
    assert_eq!(child.wait().expect("ends").code(), Some(2));
    assert!(line.contains("--plan-from needs the number of requests"), "{line}");
}

#[test]
fn what_does_not_fit_together_is_told_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 8, true);
    let table = folder.path().join("t.json");
    let text_of = r#"{"schema":"cacheroute.table/1","generator":"x","shards":2,"qcap":5.0,"warm_slots":4.0,"capacity":8.0,"from_s":0.0,"in_sample":false,"admitted_keys":1,"admitted_rate":1.0,"cold_rate":0.0,"expected_load":[1.0,0.0],"imbalance":2.0,"keys":{"k1":[0]}}"#;
    std::fs::write(&table, text_of).expect("is written");
    let table = table.to_str().expect("is text");
    for (args, needle) in [
        (vec!["--policy", "sticki"], "sticky"),
        (vec!["--policy", "cacheroute"], "needs a plan"),
        (
            vec!["--table", table, "--policy", "flat"],
            "--table is for the policy cacheroute and its ablations, not flat",
        ),
        (vec!["--table", table, "--shards", "3"], "is planned for 2 shards, --shards says 3"),
        (vec!["--table", "nowhere.json"], "cannot open nowhere.json: no such file"),
        (vec!["--cost", "nothing"], "there is no cost model \"nothing\""),
        (vec!["--kv-tokens", "8"], "less than one block"),
        (vec!["--durations", "measured"], "computes nothing that could be measured"),
        (vec!["--shards", "0"], "must be at least 1"),
        (vec!["--warmup", "soon"], "is no duration"),
        (vec!["--plan-from", "100%"], "must leave some"),
        (vec!["--table", table, "--plan-from", "25%"], "cannot be used with"),
        (vec!["-o", "/nonexistent/e.ndjson"], "cannot write /nonexistent/e.ndjson"),
    ] {
        let mut args = args;
        if args[0] == "--cost" {
            args.extend(["--engine", "sim"]);
            let path = trace.to_str().expect("is text");
            let refused = refusal(&run(&[&["run", path], &args[..]].concat()), 2);
            assert!(refused.contains(needle), "{refused}");
            continue;
        }
        let refused = refusal(&sim(&trace, &args), 2);
        assert!(refused.contains(needle), "{args:?}: {refused}");
    }
}

#[test]
fn a_bad_trace_is_named_by_its_line_and_what_was_measured_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = trace(folder.path(), "w.jsonl", 40, true);
    for (name, line, needle) in [
        ("cut", r#"{"id":40,"t_s":0.9,"key":"k1","pro"#, "w-cut.jsonl:42: "),
        (
            "past",
            r#"{"id":40,"t_s":0.1,"key":"k1","prompt":[["g:t",3]],"output_tokens":1}"#,
            "w-past.jsonl:42: ",
        ),
        ("none", r#"{"id":40,"t_s":0.9,"key":"k1","prompt":[],"output_tokens":1}"#, "no segments"),
        ("scope", r#"{"id":40,"t_s":0.9,"key":"k1","prompt":[["x",3]],"output_tokens":1}"#, "has no scope"),
        (
            "output",
            r#"{"id":40,"t_s":0.9,"key":"k1","prompt":[["g:t",3]],"output_tokens":0}"#,
            "output_tokens is 0",
        ),
        (
            "after",
            r#"{"id":40,"t_s":0.9,"key":"k1","after":77,"prompt":[["g:t",3]],"output_tokens":1}"#,
            "after",
        ),
    ] {
        let bad = folder.path().join(format!("w-{name}.jsonl"));
        let mut content = std::fs::read(&path).expect("was written");
        content.extend(line.as_bytes());
        std::fs::write(&bad, content).expect("is written");
        let events = folder.path().join(format!("{name}.ndjson"));
        let output = sim(&bad, &["-o", events.to_str().expect("is text")]);
        let refused = refusal(&output, 2);
        assert!(refused.contains(needle) && refused.contains(":42"), "{refused}");
        let kept = std::fs::read_to_string(&events).expect("was written");
        assert!(kept.lines().filter(|l| l.contains(r#""event":"finish""#)).count() > 30);
        let last: Value = serde_json::from_str(kept.lines().last().expect("has lines")).expect("is JSON");
        assert_eq!((&last["event"], &last["complete"]), (&"summary".into(), &false.into()));
    }
    let empty = folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").expect("is written");
    assert!(refusal(&sim(&empty, &[]), 2).contains("empty"));
    assert!(refusal(&sim(folder.path(), &[]), 2).contains("it is a folder"));
}

/// The number of lines read before the reader goes.
fn head(child: &mut std::process::Child, lines: usize) {
    let mut reader = BufReader::new(child.stdout.take().expect("is piped"));
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        reader.read_line(&mut line).expect("is text");
    }
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 20_000, true);
    let path = trace.to_str().expect("is text");
    let mut child = cr_serve(&[&["run", path], &SIM[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    head(&mut child, 3);
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn a_reader_that_leaves_does_not_end_a_run_that_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 20_000, true);
    let (path, kept) = (trace.to_str().expect("is text"), folder.path().join("e.ndjson"));
    let keep = ["--format", "events", "-o", kept.to_str().expect("is text")];
    let mut child =
        cr_serve(&[&["run", path], &SIM[..], &keep].concat()).stdout(Stdio::piped()).spawn().expect("starts");
    head(&mut child, 3);
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    let events = std::fs::read_to_string(&kept).expect("was written");
    assert!(events.lines().last().is_some_and(|l| l.contains(r#""complete":true"#)));
}

#[cfg(unix)]
#[test]
fn an_interrupt_writes_what_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("trace");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo exists");
    assert!(made.success());
    let (events, report) = (folder.path().join("e.ndjson"), folder.path().join("report"));
    let child = cr_serve(
        &[
            &["run", fifo.to_str().expect("is text")],
            &SIM[..],
            &["-o", events.to_str().expect("is text"), "--report", report.to_str().expect("is text")],
        ]
        .concat(),
    )
    .stderr(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .expect("starts");
    // The trace stops coming but does not end: the run waits for it when the signal comes.
    let requests = std::fs::read(trace(folder.path(), "w.jsonl", 200, true)).expect("was written");
    let mut feed = std::fs::OpenOptions::new().write(true).open(&fifo).expect("somebody reads");
    feed.write_all(&requests).expect("is read");
    feed.flush().expect("is read");
    let seen = |needle: &str| std::fs::read_to_string(&events).is_ok_and(|text| text.contains(needle));
    for _ in 0..200 {
        if seen(r#""event":"header""#) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill exists").success());
    // One more request wakes the reader up.
    let _ = feed
        .write_all(b"{\"id\":200,\"t_s\":9.0,\"key\":\"k1\",\"prompt\":[[\"g:t\",3]],\"output_tokens\":1}\n");
    drop(feed);
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let kept = std::fs::read_to_string(&events).expect("was written");
    let last: Value = serde_json::from_str(kept.lines().last().expect("has lines")).expect("is JSON");
    assert_eq!((&last["event"], &last["complete"]), (&"summary".into(), &false.into()));
    let page = std::fs::read_to_string(report.join("report.md")).expect("was written");
    assert!(page.to_lowercase().contains("partial") || page.to_lowercase().contains("incomplete"), "{page}");
}

#[test]
fn the_real_model_serves_what_the_simulator_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 24, true);
    let path = trace.to_str().expect("is text");
    let hits = |more: &[&str]| {
        let args =
            [&["run", path, "--cost", "worked-example", "--format", "json", "--shards", "2"], more].concat();
        let output = run(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        (summary["served_hit"].clone(), summary["ttft_s"].clone(), summary["work"]["computed_tokens"].clone())
    };
    let modelled = hits(&["--model", "llama-tiny", "--durations", "modelled"]);
    assert_eq!(modelled, hits(&["--engine", "sim"]));
}

/// Over the real trace where it is at hand: all of it simulated, a part of it on a real model.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_real_trace() {
    let Some(folder) = std::env::var_os("CR_TRACES") else {
        eprintln!("skipped: CR_TRACES is not set");
        return;
    };
    let rows = Path::new(&folder).join("mooncake/conversation_trace.jsonl");
    let input = std::fs::File::open(rows).expect("CR_TRACES has mooncake/conversation_trace.jsonl");
    let reader = MooncakeReader::new(BufReader::new(input), "conversation", Dialect::MOONCAKE);
    let folder = tempfile::tempdir().expect("a folder");
    let native = folder.path().join("conv.jsonl");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&native).expect("can be written"));
    for request in MooncakeImport::new(reader, BlockKey::AfterTrunk) {
        serde_json::to_writer(&mut file, &request.expect("is valid")).expect("is written");
        file.write_all(b"\n").expect("is written");
    }
    file.flush().expect("is written");
    let args = ["--shards", "8", "--block-tokens", "512", "--kv-blocks", "4000", "--format", "json"];
    let output = sim(&native, &args);
    let summary: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!(
        (&summary["requests"]["completed"], &summary["requests"]["failed"]),
        (&12_031.into(), &0.into())
    );
    let hit = summary["served_hit"].as_f64().expect("is a number");
    assert!(hit > 0.05 && hit < 0.374, "{hit}: below the reuse of one unlimited cache");
}

#[cfg(unix)]
#[test]
fn a_run_is_heard_on_a_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("trace");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo exists").success());
    let socket = folder.path().join("run.sock");
    let (trace_path, socket_path) = (fifo.to_str().expect("is text"), socket.to_str().expect("is text"));
    let listen = ["--listen", socket_path, "--format", "json"];
    let mut child = cr_serve(&[&["run", trace_path], &SIM[..], &listen].concat())
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    let requests = std::fs::read(trace(folder.path(), "w.jsonl", 200, true)).expect("was written");
    let mut feed = std::fs::OpenOptions::new().write(true).open(&fifo).expect("somebody reads");
    let (head, tail) = requests.split_at(requests.len() / 2);
    feed.write_all(head).expect("is read");
    let mut heard = None;
    for _ in 0..200 {
        heard = std::os::unix::net::UnixStream::connect(&socket).ok();
        if heard.is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    feed.write_all(tail).expect("is read");
    drop(feed);
    let text = std::io::read_to_string(heard.expect("connects")).expect("is text");
    assert!(child.wait().expect("ends").success());
    assert!(text.lines().next().is_some_and(|l| l.contains(r#""event":"header""#)), "{text}");
    assert!(text.lines().last().is_some_and(|l| l.contains(r#""complete":true"#)), "{text}");
    assert!(!socket.exists(), "the socket goes with the run");
}

#[test]
fn an_output_that_is_an_input_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 40, true);
    let before = std::fs::read(&trace).expect("reads");
    let refused = refusal(&sim(&trace, &["-o", trace.to_str().expect("is text")]), 2);
    assert!(refused.contains("is also an input"), "{refused}");
    assert_eq!(std::fs::read(&trace).expect("reads"), before);
}

/// The model's own tokens: as many, for as many hits; and a cost model has none.
#[test]
fn a_free_run_serves_the_same_lengths() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 8, true);
    let path = trace.to_str().expect("is text");
    let figures = |more: &[&str]| {
        let flags = [
            "run",
            path,
            "--model",
            "llama-tiny",
            "--durations",
            "modelled",
            "--cost",
            "worked-example",
            "--format",
            "json",
        ];
        let output = run(&[&flags[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        (summary["work"]["output_tokens"].clone(), summary["served_hit"].clone(), summary["e2e_s"].clone())
    };
    assert_eq!(figures(&["--free-run"]), figures(&[]));
    let refused = refusal(&sim(&trace, &["--free-run"]), 2);
    assert!(refused.contains("--engine sim has no tokens of its own"), "{refused}");
}

#[test]
fn an_slo_over_nothing_is_no_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = trace(folder.path(), "w.jsonl", 40, true);
    let refused = refusal(&sim(&trace, &["--warmup", "10m", "--slo-ttft-p99", "1s", "--format", "json"]), 2);
    assert!(refused.contains("no request was measured"), "{refused}");
}

#[test]
fn a_hub_model_that_cannot_be_had_is_one_sentence_with_the_place() {
    let cache = tempfile::tempdir().expect("a folder");
    let ask = |offline: &str| {
        let mut command = cr_serve(&["model", "inspect", "no-org/no-model"]);
        command.env("HF_HOME", cache.path()).env("HF_HUB_OFFLINE", offline).env_remove("HF_HUB_CACHE");
        command.env("HF_ENDPOINT", "http://127.0.0.1:1").output().expect("starts")
    };
    for (offline, expect) in [("1", "HF_HUB_OFFLINE forbids"), ("0", "http://127.0.0.1:1 cannot be reached")]
    {
        let output = ask(offline);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(expect) && error.contains("hub/models--no-org--no-model"), "{error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}
