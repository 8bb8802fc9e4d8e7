//! The report of the worked example, to the byte. `CR_UPDATE_GOLDEN=1` writes the files anew.

mod common;

use common::worked_example;
use cr_report::aggregate::Aggregator;
use cr_report::{RunReport, SuiteReport, write_report};
use std::path::Path;

#[test]
fn the_worked_example_to_the_byte() {
    let (head, events) = worked_example();
    let mut aggregator = Aggregator::new(&head);
    events.iter().for_each(|event| aggregator.observe(event));
    let suite = SuiteReport {
        suite: "example".into(),
        title: "The worked example".into(),
        commands: vec!["cr-serve run example.jsonl --engine sim --shards 1 --cost worked-example".into()],
        runs: vec![RunReport::of(&aggregator, true)],
        ..SuiteReport::default()
    };
    let dir = tempfile::tempdir().expect("a folder");
    write_report(dir.path(), &suite).expect("a report");
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for name in ["report.md", "result.json", "detail.json", "ttft-cdf.svg"] {
        let made = std::fs::read_to_string(dir.path().join(name)).expect("text");
        if std::env::var_os("CR_UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&golden).expect("a folder");
            std::fs::write(golden.join(name), &made).expect("written");
        }
        let want = std::fs::read_to_string(golden.join(name)).expect("a golden file");
        assert!(
            made == want,
            "{name} is not as it was; look at the difference, then run with CR_UPDATE_GOLDEN=1:\n{made}"
        );
    }
}
