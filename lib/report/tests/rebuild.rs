//! Reports read back from their folder.

mod common;

use common::suite::{POLICIES, events, suite};
use cr_report::aggregate::Aggregator;
use cr_report::events::Event;
use cr_report::{RunReport, SuiteReport, load, read_runs, rebuild, write_report};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn snapshot(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("the folder").map(|entry| entry.expect("an entry").path());
    let files = entries
        .filter(|path| path.is_file() && path.extension().is_none_or(|extension| extension != "ndjson"));
    files
        .map(|path| {
            (
                path.file_name().expect("a name").to_string_lossy().into_owned(),
                fs::read(&path).expect("bytes"),
            )
        })
        .collect()
}

/// Writes the events of a run, ended by its summary.
fn write_events(path: &Path, policy: common::suite::Caricature, seed: u64, complete: bool) -> RunReport {
    let (mut head, events) = events(policy, seed, 12.0, 4, 150);
    head.qps = None;
    let mut aggregator = Aggregator::new(&head);
    events.iter().for_each(|event| aggregator.observe(event));
    let end = complete.then(|| Event::Summary(Box::new(aggregator.summary(true))));
    let lines = std::iter::once(Event::Header(head)).chain(events).chain(end);
    let text: String = lines.map(|event| serde_json::to_string(&event).expect("a line") + "\n").collect();
    fs::write(path, text).expect("written");
    RunReport::of(&aggregator, complete)
}

#[test]
fn a_rebuilt_report_is_the_same_to_the_byte() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut made = suite(&[5.0, 30.0, 80.0], 3, 4, 150);
    made.slo.ttft_p99_s = Some(0.3);
    made.ablation = vec!["flat".into(), "cacheroute".into()];
    write_report(dir.path(), &made).expect("a report");
    let before = snapshot(dir.path());
    for name in ["report.md", "timeline.svg", "waterfall.svg"] {
        fs::remove_file(dir.path().join(name)).expect("removed");
    }
    rebuild(dir.path()).expect("rebuilt");
    assert_eq!(snapshot(dir.path()), before);
}

#[test]
fn events_stand_in_for_the_details() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("events")).expect("a folder");
    let mut runs = Vec::new();
    for (policy, folder) in [(POLICIES[0], "events"), (POLICIES[5], ".")] {
        for seed in [1, 2] {
            let path = dir.path().join(folder).join(format!("{}-{seed}.ndjson", policy.name));
            runs.push(write_events(&path, policy, seed, true));
        }
    }
    let made =
        SuiteReport { suite: "s".into(), baseline: Some("flat".into()), runs, ..SuiteReport::default() };
    write_report(dir.path(), &made).expect("a report");
    let before = snapshot(dir.path());
    fs::remove_file(dir.path().join("detail.json")).expect("removed");
    rebuild(dir.path()).expect("rebuilt");
    assert_eq!(snapshot(dir.path()), before);

    // All runs in one file, one after the other, do as well.
    let mut all = Vec::new();
    for name in ["events/flat-1.ndjson", "events/flat-2.ndjson", "cacheroute-1.ndjson", "cacheroute-2.ndjson"]
    {
        all.extend(fs::read(dir.path().join(name)).expect("events"));
        if name != "events/flat-1.ndjson" {
            fs::remove_file(dir.path().join(name)).expect("removed");
        }
    }
    fs::remove_file(dir.path().join("detail.json")).expect("removed");
    let one = dir.path().join("events/flat-1.ndjson");
    let first = fs::read(&one).expect("events");
    fs::write(&one, all).expect("written");
    rebuild(dir.path()).expect("rebuilt");
    assert_eq!(snapshot(dir.path()), before);

    fs::remove_file(dir.path().join("detail.json")).expect("removed");
    fs::write(&one, first).expect("written");
    let error = rebuild(dir.path()).expect_err("a run is missing").to_string();
    assert!(error.contains("no events of flat, seed 2: without detail.json"), "{error}");
}

#[test]
fn events_alone_make_a_report_and_a_stopped_run_a_partial_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let stopped = dir.path().join("b.ndjson");
    write_events(&dir.path().join("a.ndjson"), POLICIES[0], 1, true);
    write_events(&stopped, POLICIES[5], 1, false);
    let mut text = fs::read_to_string(&stopped).expect("text");
    text.truncate(text.len() - 20);
    fs::write(&stopped, text).expect("written");
    let runs = load(dir.path()).expect("a record").record.runs;
    assert_eq!(runs.iter().map(|run| run.summary.complete).collect::<Vec<_>>(), [true, false]);
    rebuild(dir.path()).expect("rebuilt");
    let report = fs::read_to_string(dir.path().join("report.md")).expect("a report");
    assert!(report.contains("> **Partial report.**"), "{report}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let error = |dir: &Path| load(dir).map(|_| ()).expect_err("unusable").to_string();
    assert!(error(dir.path()).contains("neither result.json nor *.ndjson"));
    assert!(error(&dir.path().join("absent")).contains("neither result.json nor *.ndjson"));
    write_report(dir.path(), &suite(&[], 1, 2, 30)).expect("a report");
    let detail = fs::read_to_string(dir.path().join("detail.json")).expect("text");
    fs::write(
        dir.path().join("detail.json"),
        detail.replace("\"policy\": \"flat\"", "\"policy\": \"other\""),
    )
    .expect("written");
    assert!(error(dir.path()).starts_with("detail.json: its runs are not those of result.json"));
    fs::write(dir.path().join("result.json"), "{\n\"schema\": 3}").expect("written");
    assert!(error(dir.path()).starts_with("result.json:2: invalid type"), "{}", error(dir.path()));
    fs::write(dir.path().join("bad.ndjson"), "{}\n").expect("written");
    fs::remove_file(dir.path().join("result.json")).expect("removed");
    assert!(error(dir.path()).contains("bad.ndjson:1: "), "{}", error(dir.path()));
}

#[test]
fn one_run_is_read_from_its_events() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.ndjson");
    let made = write_events(&path, POLICIES[2], 9, true);
    let text = fs::read(&path).expect("bytes");
    let mut runs = read_runs(cr_report::reader::EventReader::new(&text[..], "a.ndjson")).expect("a run");
    let read = runs.remove(0);
    assert!(runs.is_empty());
    assert_eq!(read.summary, made.summary);
    assert_eq!((read.timeline, read.shards), (made.timeline, made.shards));
}
