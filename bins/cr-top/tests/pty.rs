//! The program on a real pseudo-terminal: keys arrive while events come through a pipe, and the terminal is given back.
#![cfg(unix)]

mod support;
#[path = "support/terminal.rs"]
mod terminal;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use support::Sample;
use terminal::{PATIENCE, Session};

/// A file that holds the sample, its summary left out.
fn running(folder: &Path) -> String {
    let path = folder.join("run.ndjson");
    std::fs::write(&path, Sample { ends: false, ..Sample::default() }.ndjson()).expect("written");
    path.display().to_string()
}

#[test]
fn keys_work_while_stdin_is_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    // An empty line now and then, so that the writer notices that nobody reads any more.
    let mut session =
        Session::start(&format!("(cat {file}; while echo; do sleep 0.1; done) | $TOP"), (28, 80));
    session.shows("● running");
    session.shows("SHARD");
    session.press("?");
    session.shows("Show or hide this help");
    session.press("?6");
    session.shows("newest first");
    session.press("1 ");
    session.shows("paused");
    session.press(" ");
    session.shows("● running");
    session.press("q");
    let text = session.ends(0);
    assert!(text.contains("partial figures"), "{text}");
}

#[test]
fn quit_gives_the_terminal_back_and_prints_the_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    let mut session = Session::start(&format!("$TOP {file}"), (28, 80));
    session.shows("● running");
    session.press("q");
    let text = session.ends(0);
    assert!(text.contains("partial figures"), "{text}");
}

#[test]
fn interrupting_is_exit_130() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    let mut session = Session::start(&format!("$TOP {file}"), (24, 80));
    session.shows("● running");
    session.press("\u{3}");
    session.ends(130);
}

#[test]
fn signals_give_the_terminal_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    for signal in ["TERM", "HUP", "INT"] {
        let pid = folder.path().join("pid");
        let pid = pid.display();
        let kill = format!("(sleep 1; kill -{signal} $(cat {pid})) &");
        let session = Session::start(&format!("{kill} sh -c 'echo $$ > {pid}; exec $TOP {file}'"), (24, 80));
        session.shows("● running");
        session.ends(130);
    }
}

#[test]
fn a_run_that_does_not_listen_yet_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("run.sock");
    let script = format!("cd {} && $TOP --connect run.sock", folder.path().display());
    let mut session = Session::start(&script, (24, 80));
    session.shows("waiting for run.sock: no such file yet");
    session.press("q");
    session.ends(0);
    let mut session = Session::start(&script, (24, 80));
    session.shows("waiting for run.sock: no such file yet");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    let (mut client, _) = listener.accept().expect("a client");
    client.write_all(Sample { ends: false, ..Sample::default() }.ndjson().as_bytes()).expect("written");
    session.shows("● running");
    drop(client);
    session.shows("✖ cut short");
    session.press("\u{3}");
    session.ends(130);
}

#[test]
fn a_terminal_without_a_size_is_taken_for_80_by_24() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    let mut session = Session::start(&format!("$TOP {file}"), (0, 0));
    session.shows("● running");
    session.shows("q quit");
    session.press("q");
    session.ends(0);
}

#[test]
fn resizing_is_followed_and_a_tiny_terminal_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    let mut session = Session::start(&format!("$TOP {file}"), (24, 80));
    session.shows("● running");
    let tiny = PtySize { rows: 8, cols: 30, pixel_width: 0, pixel_height: 0 };
    session.screen.lock().expect("no panic").screen_mut().set_size(8, 30);
    session.pair.master.resize(tiny).expect("resized");
    session.shows("need 40×10, have 30×8");
    session.press("q");
    session.ends(0);
}

#[test]
fn what_holds_no_events_leaves_the_terminal_alone() {
    let text = Session::start("echo '{\"a\":1}' | $TOP", (24, 80)).ends(2);
    assert!(text.contains("<stdin>:1:"), "{text}");
}

#[test]
fn a_finished_file_is_replayed_and_exported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.ndjson");
    std::fs::write(&path, Sample::default().ndjson()).expect("written");
    let script = format!("cd {} && $TOP run.ndjson", folder.path().display());
    let mut session = Session::start(&script, (24, 100));
    session.shows("■ ended");
    session.press("[");
    session.shows("⏸ replay 1× 21.5 s of 31.5 s");
    session.shows("t 21.");
    session.press("+++ ");
    session.shows("▶ replay 8×");
    // It plays to its end and stops there.
    session.shows("⏸ replay 8× 31.5 s of 31.5 s");
    session.press("0");
    session.shows("0 ms of 31.5 s");
    session.press("x");
    session.shows("TTFT");
    session.press("l");
    session.shows("■ ended");
    session.press("e");
    session.shows("wrote cr-top-fleet-1.svg");
    session.press("2");
    session.press("E");
    session.shows("wrote cr-top-latency-1.txt");
    session.press("ww");
    session.shows("wrote cr-top-summary-2.json");
    session.press("q");
    session.ends(0);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("written");
    assert!(read("cr-top-fleet-1.svg").starts_with("<svg "));
    assert!(read("cr-top-latency-1.txt").contains("TTFT of 571 requests"));
    let summary: cr_report::summary::Summary =
        serde_json::from_str(&read("cr-top-summary-1.json")).expect("a summary");
    assert_eq!(summary.requests.completed, 571);
}

#[test]
fn figures_of_a_replay_are_of_the_same_instant() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("run.ndjson"), Sample::default().ndjson()).expect("written");
    let script = format!("cd {} && $TOP run.ndjson --replay --speed 8", folder.path().display());
    let mut session = Session::start(&script, (24, 100));
    session.shows("▶ replay 8×");
    // The histogram counts requests as they come, the figures above it are the summary's.
    session.press("2");
    for number in 1..=6 {
        session.press("E");
        session.shows(&format!("wrote cr-top-latency-{number}.txt"));
        std::thread::sleep(Duration::from_millis(230));
    }
    session.press(" 0");
    session.shows("⏸ replay 8× 0 ms");
    session.press("]}{]E");
    session.shows("wrote cr-top-latency-7.txt");
    session.press("q");
    session.ends(0);
    let mut counts = Vec::new();
    for number in 1..=7 {
        let text = std::fs::read_to_string(folder.path().join(format!("cr-top-latency-{number}.txt")));
        let text = text.expect("written");
        // A seek that was under way has arrived.
        assert!(number < 7 || text.contains("\n t 10.0 s "), "{text}");
        let word = |before: &str| text.split(before).nth(1)?.split_whitespace().next()?.parse::<u64>().ok();
        let of_summary = word("  n ").unwrap_or_else(|| panic!("no count in\n{text}"));
        assert_eq!(word("TTFT of ").unwrap_or(0), of_summary, "{text}");
        counts.push(of_summary);
    }
    assert!(counts[5] > 0 && counts[..6].is_sorted(), "{counts:?}");
}

#[test]
fn a_replay_can_be_asked_for_and_a_pipe_cannot_be_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.ndjson");
    std::fs::write(&path, Sample::default().ndjson()).expect("written");
    let mut session = Session::start(&format!("$TOP {} --replay --speed 2", path.display()), (24, 100));
    session.shows("▶ replay 2×");
    session.press("q");
    session.ends(0);
    let mut session = Session::start(&format!("cat {} | $TOP", path.display()), (24, 100));
    session.shows("■ ended");
    session.press("[");
    session.shows("a pipe cannot be replayed");
    session.press("q");
    session.ends(0);
}

#[test]
fn a_replay_of_a_stream_of_several_runs_is_of_the_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = [7, 8].map(|seed| Sample { seed, ..Sample::default() }.ndjson());
    std::fs::write(folder.path().join("runs.ndjson"), runs.concat()).expect("written");
    let script = format!("cd {} && $TOP runs.ndjson", folder.path().display());
    let mut session = Session::start(&script, (24, 100));
    session.shows("■ ended");
    session.press("0]");
    session.shows("⏸ replay 1× 10.0 s");
    session.shows(" t 10.0 s");
    session.shows(" cacheroute  run 2  llama-8m on cpu  4 shards  seed 8");
    session.press("l");
    session.shows("■ ended");
    session.press("q");
    session.ends(0);
}

#[test]
fn two_files_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, seed) in [("a.ndjson", 7), ("b.ndjson", 8)] {
        let text = Sample { seed, ..Sample::default() }.ndjson();
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let mut session =
        Session::start(&format!("cd {} && $TOP a.ndjson b.ndjson", folder.path().display()), (40, 120));
    session.shows("2 cacheroute ■ seed 8 b.ndjson");
    session.shows("paired blocks");
    session.press("q");
    let text = session.ends(0);
    assert!(text.contains("cacheroute, seed 8"), "{text}");
}

/// Not a test of its own: what [`a_panic_gives_the_terminal_back`] runs on a terminal.
#[test]
#[ignore = "run by another test, on a terminal"]
fn child_that_panics() {
    if std::env::var_os("CR_TOP_PANIC").is_some() {
        let mut screen = cr_top::term::Screen::enter(true).expect("a terminal");
        screen.draw(|area, buffer| buffer.set_style(area, ratatui::style::Style::new())).expect("drawn");
        panic!("on purpose");
    }
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let own = std::env::current_exe().expect("a path");
    let script = format!("CR_TOP_PANIC=1 {} --exact child_that_panics --ignored --nocapture", own.display());
    let session = Session::start(&script, (24, 120));
    // The test harness ends with 101 where a test panicked.
    let text = session.ends(101);
    assert!(text.contains("on purpose"), "{text}");
}

/// A terminal that goes away (a closed window, a lost connection) must not leave a process behind that reads from it forever.
#[test]
fn a_terminal_that_goes_away_ends_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = running(folder.path());
    let size = PtySize { rows: 24, cols: 80, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).expect("a pty");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_cr-top"));
    command.arg(file);
    command.env("TERM", "xterm-256color");
    let mut child = pair.slave.spawn_command(command).expect("spawned");
    drop(pair.slave);
    let mut output = pair.master.try_clone_reader().expect("a reader");
    let mut first = [0; 256];
    assert!(output.read(&mut first).expect("it draws") > 0);
    drop(output);
    drop(pair.master);
    let start = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        assert!(start.elapsed() < PATIENCE, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}
