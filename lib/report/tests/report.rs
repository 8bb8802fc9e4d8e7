//! The report of a suite: its files, their bytes and what they say.

mod common;

use common::suite::suite;
use cr_report::{SuiteReport, write_report};
use std::collections::BTreeMap;
use std::path::Path;

fn files(suite: &SuiteReport) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().expect("a folder");
    let written = write_report(dir.path(), suite).expect("a report");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a text file");
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let files: BTreeMap<String, String> = written.iter().map(|path| (name(path), read(path))).collect();
    let on_disk = std::fs::read_dir(dir.path()).expect("the folder").count();
    assert_eq!(on_disk, files.len(), "every file in the folder is accounted for");
    if let Ok(keep) = std::env::var("CR_KEEP_REPORT") {
        std::fs::create_dir_all(&keep).expect("a folder");
        files
            .iter()
            .for_each(|(name, text)| std::fs::write(Path::new(&keep).join(name), text).expect("written"));
    }
    files
}

#[test]
fn a_folder_holds_the_report_and_its_figures() {
    let files = files(&suite(&[], 5, 8, 600));
    for name in
        ["report.md", "result.json", "detail.json", "hit-imbalance.svg", "shard-load.svg", "ttft-cdf.svg"]
    {
        assert!(files.contains_key(name), "{name} is missing");
        assert!(files[name].ends_with('\n'), "{name} ends with a newline");
    }
    let report = &files["report.md"];
    for name in files.keys().filter(|name| name.ends_with(".svg")) {
        assert!(report.contains(&format!("({name})")), "{name} is shown");
    }
    let head: Vec<&str> = report.lines().take(5).collect();
    assert_eq!(head[0], "# Six policies in caricature");
    assert!(head[2].starts_with("With **cacheroute** the caches serve "), "{}", head[2]);
    assert_eq!(head[2].matches(". ").count(), 1, "two sentences");
    assert!(head[4].starts_with("**Verdict: win.** p99 TTFT differs from flat's by -"), "{}", head[4]);
    for part in [
        "## Results",
        "## Figures",
        "## Definitions",
        "## How to reproduce",
        "## Limits",
        "cr-gen zipf --seed 1",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

#[test]
fn the_same_suite_gives_the_same_bytes() {
    assert_eq!(files(&suite(&[], 3, 4, 200)), files(&suite(&[], 3, 4, 200)));
}
