//! Two results against each other.

mod common;

use common::suite::suite;
use cr_report::compare::{Change, Comparison, compare};
use cr_report::record::Stored;
use cr_report::result::ResultFile;

fn result(seeds: u64) -> ResultFile {
    Stored::new(&suite(&[], seeds, 4, 200)).expect("a record").record.file
}

fn worse(comparison: &Comparison) -> Vec<(&str, &str)> {
    let rows = comparison.rows.iter().filter(|row| row.change == Change::Worse);
    rows.map(|row| (row.policy.as_str(), row.metric)).collect()
}

#[test]
fn a_result_does_not_regress_against_itself() {
    let a = result(3);
    let same = compare(&a, &a, 0.0);
    assert!(!same.regressed() && same.rows.iter().all(|row| row.change == Change::Same));
    assert!(same.text().ends_with("\nno regression beyond 0.0 % and noise\n"), "{}", same.text());
}

#[test]
fn worse_beyond_tolerance_and_noise_is_a_regression() {
    let a = result(3);
    let mut b = a.clone();
    for run in b.runs.iter_mut().filter(|run| run.policy == "cacheroute") {
        run.served_hit *= 0.9;
        run.ttft_s.p50 *= 0.5;
    }
    assert_eq!(worse(&compare(&a, &b, 0.02)), [("cacheroute", "served_hit")]);
    assert!(compare(&a, &b, 0.02).regressed());
    assert!(!compare(&a, &b, 0.2).regressed(), "ten per cent are within a tolerance of twenty");
    assert_eq!(worse(&compare(&b, &a, 0.02)), [("cacheroute", "ttft_p50_s")]);
    let text = compare(&a, &b, 0.02).text();
    assert!(text.contains("WORSE") && text.contains("better") && text.contains("3 paired"), "{text}");
    assert!(text.ends_with("regressed: 1 figures worse beyond 2.0 % and noise, 0 missing\n"), "{text}");
}

#[test]
fn noise_is_no_regression_but_one_seed_has_none() {
    let a = result(3);
    let mut b = a.clone();
    for (run, factor) in b.runs.iter_mut().filter(|run| run.policy == "flat").zip([0.8, 1.1, 1.0]) {
        run.served_hit *= factor;
    }
    assert!(!compare(&a, &b, 0.01).regressed());
    let only = |mut file: ResultFile| {
        file.runs.retain(|run| run.seed == 1);
        file
    };
    assert_eq!(worse(&compare(&only(a), &only(b), 0.01)), [("flat", "served_hit")]);
}

#[test]
fn other_seeds_are_compared_unpaired() {
    let a = result(3);
    let mut b = a.clone();
    b.runs.iter_mut().for_each(|run| run.seed += 100);
    let comparison = compare(&a, &b, 0.0);
    assert!(!comparison.regressed());
    assert!(comparison.rows.iter().all(|row| row.difference.n == 0 && row.difference.ci95.is_some()));
    assert!(comparison.text().contains("3 and 3"));
}

#[test]
fn a_policy_that_is_gone_and_one_that_saturates_are_regressions() {
    let a = result(2);
    let mut b = a.clone();
    b.runs.retain(|run| run.policy != "preble");
    let gone = compare(&a, &b, 0.5);
    assert!(gone.regressed() && gone.text().contains("B lacks: preble"), "{}", gone.text());
    assert!(!compare(&b, &a, 0.5).regressed() && compare(&b, &a, 0.5).text().contains("only B has: preble"));
    let mut b = a.clone();
    b.runs[0].saturated = true;
    b.runs[0].ttft_s.p99 = 1e9;
    let saturated = compare(&a, &b, 0.5);
    assert_eq!(worse(&saturated), [("flat", "saturated")]);
    assert!(saturated.rows.iter().any(|row| row.metric == "ttft_p99_s" && row.change == Change::Unquoted));
    let mut c = a.clone();
    c.runs.clear();
    assert!(compare(&c, &c, 0.0).text().contains("nothing to compare"));
}
