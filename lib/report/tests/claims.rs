//! Every check that a claim can make, held against a suite whose outcome is plain to see.

mod common;

use common::suite::suite;
use cr_report::capacity::Censored;
use cr_report::claims::{Check, Claim};
use cr_report::record::{Record, Stored};

fn claim(check: Check) -> Claim {
    Claim { text: "x".into(), caveat: None, at: Default::default(), qps: None, ttft_p99_s: None, check }
}

/// The record, and whether each claim holds.
fn judged(checks: Vec<Check>) -> (Record, Vec<Option<bool>>) {
    judged_claims(checks.into_iter().map(claim).collect(), 240)
}

fn judged_claims(claims: Vec<Claim>, requests: u64) -> (Record, Vec<Option<bool>>) {
    let mut suite = suite(&[5.0, 12.0, 20.0, 30.0, 50.0, 80.0, 240.0], 3, 4, requests);
    suite.slo.ttft_p99_s = Some(0.3);
    suite.design.ladder_qps = vec![5.0, 12.0, 20.0, 30.0, 50.0, 80.0, 240.0];
    suite.design.claims = claims;
    let record = Stored::new(&suite).expect("a record").record;
    let holds = record.file.evidence.iter().map(|evidence| evidence.holds).collect();
    (record, holds)
}

#[test]
fn checks_hold_exactly_where_the_figures_say_so() {
    let plain = judged(Vec::new()).0;
    let at = plain.reference_rate();
    let hit = |policy: &str| plain.cell(policy, at).expect("was run").metric("served_hit").mean;
    let capacity = |policy: &str| {
        let objective = plain.objective().expect("has one");
        plain.capacity(policy, objective).expect("a ladder").mean_qps.mean
    };
    let (cacheroute, flat) = (String::from("cacheroute"), String::from("flat"));
    let gap = 100.0 * (hit("cacheroute").max(hit("sticky")) - hit("preble"));
    let within = |points| Check::HitWithinOfBest { policy: "preble".into(), points };
    let ratio = capacity("cacheroute") / capacity("flat");
    let times = |ratio| Check::CapacityRatioAtLeast { policy: cacheroute.clone(), over: flat.clone(), ratio };
    let best = plain.policies().into_iter().max_by(|a, b| capacity(a).total_cmp(&capacity(b))).expect("six");
    let order = |policies: [&str; 3]| Check::Order {
        metric: "served_hit".into(),
        policies: policies.map(String::from).into(),
    };
    let checks = vec![
        (within(gap + 0.01), true),
        (within(gap - 0.01), false),
        (times(ratio - 0.01), true),
        (times(ratio + 0.01), false),
        (Check::CapacityAtLeast { policy: cacheroute.clone(), qps: capacity("cacheroute") }, true),
        (Check::CapacityAtLeast { policy: cacheroute.clone(), qps: capacity("cacheroute") + 1.0 }, false),
        (Check::CapacityAboveAll { policy: best.into() }, true),
        (Check::CapacityAboveAll { policy: flat.clone() }, false),
        (order(["flat", "preble", "cacheroute"]), true),
        (order(["preble", "flat", "cacheroute"]), false),
        (Check::ImbalanceAtMost { policy: flat.clone(), value: 9.0 }, true),
        (Check::ImbalanceAtMost { policy: flat.clone(), value: 1.0 }, false),
        (
            Check::MetricAtMost {
                policy: flat.clone(),
                metric: "served_hit".into(),
                value: hit("flat") + 0.001,
            },
            true,
        ),
        (
            Check::MetricAtLeast {
                policy: flat.clone(),
                metric: "served_hit".into(),
                value: hit("flat") + 0.001,
            },
            false,
        ),
        (Check::WorstTail { policy: cacheroute.clone() }, false),
        (Check::Verdict { is: "win".into() }, true),
        (Check::Verdict { is: "lose".into() }, false),
    ];
    let (checks, want): (Vec<Check>, Vec<bool>) = checks.into_iter().unzip();
    let (record, holds) = judged(checks);
    assert_eq!(holds, want.into_iter().map(Some).collect::<Vec<_>>(), "{:#?}", record.file.evidence);
    assert!(record.file.evidence.iter().all(|evidence| evidence.seeds == 3 && evidence.said.len() == 1));
}

#[test]
fn what_was_not_run_is_not_shown() {
    let (record, holds) = judged(vec![
        Check::CapacityAboveAll { policy: "nobody".into() },
        Check::Order { metric: "served_hit".into(), policies: vec!["flat".into(), "nobody".into()] },
    ]);
    assert_eq!(holds, [None, None]);
    assert!(record.file.evidence.iter().all(|evidence| evidence.word() == "not shown"));
}

#[test]
fn of_two_saturated_tails_none_is_the_worst() {
    let at = |qps| Claim { qps: Some(qps), ..claim(Check::WorstTail { policy: "flat".into() }) };
    let (record, holds) = judged_claims(vec![at(240.0), at(5.0)], 2400);
    let saturated = |qps| record.cells_at(Some(qps)).iter().filter(|cell| cell.saturated()).count();
    assert!(saturated(240.0) > 1 && saturated(5.0) == 0, "{} and {}", saturated(240.0), saturated(5.0));
    assert_eq!((holds[0], holds[1].is_some()), (None, true), "{:#?}", record.file.evidence);
}

#[test]
fn a_folder_without_a_record_is_told_what_it_lacks() {
    let folder = tempfile::tempdir().expect("is made");
    let error = cr_report::load_result(folder.path()).expect_err("is empty").to_string();
    let name = folder.path().display();
    assert_eq!(error, format!("{name}: no result.json; a report is made by a run or a sweep with --report"));
}

/// Capacities beyond an end of the ladder are bounds: what follows from them is said, and nothing else.
#[test]
fn bounds_show_what_they_show() {
    let mut record = judged(Vec::new()).0;
    let ends = [
        ("flat", 30.0, Censored::Below),
        ("sticky", 60.0, Censored::No),
        ("cacheroute", 500.0, Censored::Above),
    ];
    record.file.capacity.retain(|own| ends.iter().any(|end| end.0 == own.policy));
    record.file.aggregates.retain(|cell| ends.iter().any(|end| end.0 == cell.policy));
    for own in &mut record.file.capacity {
        let (_, qps, censored) = ends.iter().find(|end| end.0 == own.policy).expect("was kept");
        (own.mean_qps.mean, own.censored) = (*qps, *censored);
    }
    let at_least = |policy: &str, qps| Check::CapacityAtLeast { policy: policy.into(), qps };
    let times = |policy: &str, over: &str, ratio| Check::CapacityRatioAtLeast {
        policy: policy.into(),
        over: over.into(),
        ratio,
    };
    let order = |policies: [&str; 3]| Check::Order {
        metric: "capacity".into(),
        policies: policies.map(String::from).into(),
    };
    let above_all = |policy: &str| Check::CapacityAboveAll { policy: policy.into() };
    let checks = [
        (at_least("flat", 30.0), Some(false)),
        (at_least("flat", 20.0), None),
        (at_least("cacheroute", 500.0), Some(true)),
        (at_least("cacheroute", 600.0), None),
        (times("sticky", "flat", 2.0), Some(true)),
        (times("sticky", "flat", 2.1), None),
        (times("sticky", "cacheroute", 0.2), Some(false)),
        (times("cacheroute", "sticky", 8.0), Some(true)),
        (times("cacheroute", "sticky", 9.0), None),
        (above_all("cacheroute"), Some(true)),
        (above_all("flat"), Some(false)),
        (order(["flat", "sticky", "cacheroute"]), Some(true)),
        (order(["sticky", "flat", "cacheroute"]), Some(false)),
    ];
    record.file.design.claims = checks.iter().map(|(check, _)| claim(check.clone())).collect();
    let evidence = cr_report::claims::evaluate(&record);
    for ((check, want), found) in checks.iter().zip(&evidence) {
        assert_eq!(found.holds, *want, "{check:?}: {found:?}");
    }
}
