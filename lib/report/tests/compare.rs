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

#[test]
fn json_and_markdown_say_what_the_text_says() {
    let a = result(3);
    let mut b = a.clone();
    for run in b.runs.iter_mut().filter(|run| run.policy == "cacheroute") {
        run.served_hit *= 0.9;
    }
    b.runs.retain(|run| run.policy != "preble");
    let comparison = compare(&a, &b, 0.02);
    let json: serde_json::Value =
        serde_json::from_str(&comparison.json().expect("is written")).expect("is JSON");
    assert_eq!(json["schema"], "cacheroute.comparison/1");
    assert_eq!((&json["regressed"], &json["worse"]), (&true.into(), &1.into()));
    assert_eq!(json["missing"], serde_json::json!(comparison.missing));
    let rows = json["rows"].as_array().expect("is a list");
    assert_eq!(rows.len(), comparison.rows.len());
    let worse: Vec<_> = rows.iter().filter(|row| row["change"] == "worse").collect();
    assert_eq!((&worse[0]["policy"], &worse[0]["metric"]), (&"cacheroute".into(), &"served_hit".into()));
    let (of_a, of_b) = (worse[0]["a"]["mean"].as_f64(), worse[0]["b"]["mean"].as_f64());
    let difference = worse[0]["difference"].as_f64().expect("is a number");
    assert!((of_b.expect("is a number") - of_a.expect("is a number") - difference).abs() < 2e-6);
    assert_eq!(worse[0]["paired_seeds"], 3);

    let page = comparison.markdown();
    assert!(
        page.starts_with(
            "**Regressed: 1 figures worse beyond 2.0 % and noise, 1 missing**\n\nB lacks: preble"
        )
    );
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(table.len(), 2 + rows.len());
    assert!(table.iter().all(|line| line.matches(" | ").count() == 8 || line.starts_with("|---")), "{page}");
    let bold: Vec<&&str> = table.iter().filter(|line| line.contains("**")).collect();
    assert_eq!(bold.len(), 1);
    assert!(bold[0].contains("**cacheroute**") && bold[0].contains(r"**served\_hit**"), "{}", bold[0]);
    let same = compare(&a, &a, 0.0);
    assert!(same.markdown().starts_with("**No regression beyond 0.0 % and noise**\n"));
    assert!(!compare(&ResultFile { runs: Vec::new(), ..a.clone() }, &a, 0.0).markdown().contains('|'));
}

/// A refinement chooses rates seed by seed, so a second run of the same suite has others.
#[test]
fn rates_that_a_refinement_added_are_not_compared() {
    let mut suite = suite(&[5.0, 12.0], 2, 4, 100);
    suite.design.ladder_qps = vec![5.0, 12.0];
    let plain = Stored::new(&suite).expect("a record").record.file;
    let mut added = suite.runs[0].clone();
    (added.summary.qps, added.header.qps) = (Some(8.37), Some(8.37));
    suite.runs.push(added);
    let refined = Stored::new(&suite).expect("a record").record.file;
    assert_eq!(refined.runs.len(), plain.runs.len() + 1);
    for (a, b) in [(&plain, &refined), (&refined, &plain)] {
        let both = compare(a, b, 0.0);
        assert!(!both.regressed() && both.missing.is_empty() && both.added.is_empty(), "{}", both.text());
    }
}
