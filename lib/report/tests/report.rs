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

fn markdown(suite: &SuiteReport) -> String {
    files(suite).remove("report.md").expect("a report")
}

#[test]
fn a_partial_report_says_so_first() {
    let mut suite = suite(&[], 2, 4, 100);
    suite.runs[3].summary.complete = false;
    let report = markdown(&suite);
    let third = report.lines().nth(2).expect("a third line");
    assert!(
        third.starts_with(
            "> **Partial report.** The suite is not over: 1 of 12 runs did not come to their end."
        ),
        "{third}"
    );
    suite.runs[3].summary.complete = true;
    suite.expected_runs = Some(12);
    assert!(!markdown(&suite).contains("Partial"));
    suite.expected_runs = Some(30);
    assert!(
        markdown(&suite).contains("> **Partial report.** The suite is not over: 12 of 30 runs were made.")
    );
    let empty = markdown(&SuiteReport { suite: "none".into(), ..SuiteReport::default() });
    assert!(empty.starts_with("# none\n\n> **Partial report.**"), "{empty}");
    assert!(empty.contains("No policy was run") && !empty.contains("NaN"), "{empty}");
}

#[test]
fn a_saturated_latency_is_never_quoted() {
    let mut suite = suite(&[], 3, 4, 100);
    for run in suite.runs.iter_mut().filter(|run| run.summary.policy == "sticky") {
        run.summary.saturated = true;
        run.summary.ttft_s.p99 = 7.77;
    }
    let report = markdown(&suite);
    let row = report.lines().find(|line| line.starts_with("| sticky |")).expect("a row");
    assert!(row.contains("| saturated (3 of 3 runs) | saturated |") && row.ends_with("| lose |"), "{row}");
    assert!(!report.contains("7.77"));
    let differences =
        report.lines().filter(|line| line.starts_with("| sticky |")).nth(1).expect("a row of differences");
    assert!(differences.ends_with("| saturated | saturated |"), "{differences}");
    assert!(report.contains("- Saturated, so without a latency: sticky."));

    // The candidate against a saturated baseline, and both saturated.
    suite.baseline = Some("sticky".into());
    assert!(
        markdown(&suite).contains("**Verdict: win.** sticky is saturated in 3 of 3 runs, cacheroute is not.")
    );
    suite.candidate = Some("flat".into());
    suite.runs.iter_mut().for_each(|run| run.summary.saturated = true);
    let report = markdown(&suite);
    assert!(report.contains("**Verdict: no verdict.** Both flat and sticky are saturated."), "{report}");
    assert!(report.contains("not quoted (saturated)"));
}

#[test]
fn equal_policies_tie_and_one_seed_gives_no_verdict() {
    let mut suite = suite(&[], 3, 4, 100);
    let flat: Vec<_> = suite.runs.iter().filter(|run| run.summary.policy == "flat").cloned().collect();
    suite.runs.retain(|run| run.summary.policy == "flat");
    for mut run in flat {
        (run.summary.policy, run.header.policy) = ("cacheroute".into(), "cacheroute".into());
        suite.runs.push(run);
    }
    let report = markdown(&suite);
    assert!(report.contains("**Verdict: tie.** p99 TTFT differs from flat's by 0.00 ± 0.00 s (3 paired seeds, 95 % CI), which is within noise."), "{report}");
    assert_eq!(report.matches("(within noise)").count(), 5, "{report}");
    suite.runs.retain(|run| run.summary.seed == 1);
    let report = markdown(&suite);
    assert_eq!(report.matches("(one seed)").count(), 5, "{report}");
    assert!(
        report.contains("**Verdict: no verdict.** One paired seed has no confidence interval."),
        "{report}"
    );
    assert!(report.contains("- One seed: there are no confidence intervals"));
}

#[test]
fn names_do_not_break_the_page() {
    let mut suite = suite(&[], 2, 4, 60);
    for run in suite.runs.iter_mut().filter(|run| run.summary.policy == "cacheroute") {
        run.summary.policy = "cache|route <b>*1*\n".into();
        run.header.policy = run.summary.policy.clone();
    }
    suite.candidate = None;
    let report = markdown(&suite);
    assert!(report.contains("| cache\\|route \\<b\\>\\*1\\*  | "), "{report}");
}

#[test]
fn nothing_of_the_machine_is_in_the_report() {
    let dir = tempfile::tempdir().expect("a folder");
    write_report(dir.path(), &suite(&[], 2, 4, 60)).expect("a report");
    let made = cr_report::provenance::Provenance::collect(
        "cr-serve 0.1.0",
        ["cr-serve".into()],
        "cpu",
        std::time::SystemTime::now(),
    );
    let path = cr_report::write_provenance(dir.path(), &made).expect("run.json");
    assert_eq!(path.file_name().expect("a name"), "run.json");
    for entry in std::fs::read_dir(dir.path()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("text");
        let told = [&made.machine.kernel, &made.machine.cpu, &made.started, &made.build.rustc]
            .iter()
            .any(|fact| text.contains(*fact));
        assert_eq!(told, path.ends_with("run.json"), "{}", path.display());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("taken");
    std::fs::write(&file, "").expect("a file");
    let error = write_report(&file, &suite(&[], 1, 2, 20)).expect_err("not a folder").to_string();
    assert!(error.starts_with(&file.display().to_string()), "{error}");
}

#[test]
fn a_ladder_with_an_objective_is_judged_by_capacity() {
    let mut suite = suite(&[5.0, 12.0, 20.0, 30.0, 50.0, 80.0, 240.0], 3, 4, 240);
    suite.slo.ttft_p99_s = Some(0.3);
    let report = markdown(&suite);
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines[2].contains(" at 30 QPS "), "{}", lines[2]);
    assert!(lines[4].starts_with("**Verdict: win.** Capacity at p99 TTFT within 300 ms is "), "{}", lines[4]);
    assert!(lines[6].starts_with("At 30 QPS: win. p99 TTFT differs from flat's by -"), "{}", lines[6]);
    for part in [
        "### Capacity",
        "<details><summary>All other rates</summary>",
        "### At 80 QPS",
        "![Capacity](capacity.svg)",
    ] {
        assert!(report.contains(part), "{part}");
    }
    let table = report.split("### Capacity").nth(1).expect("a capacity table");
    let row = table.lines().find(|line| line.starts_with("| cacheroute |")).expect("a row");
    assert_eq!(row.matches('|').count(), 5, "{row}");
}
