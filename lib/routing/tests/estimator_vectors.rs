//! Every case of `vectors/estimator.json`: values that the published single-process module computes.

use cr_routing::rates::RateEstimator;
use cr_trace::Key;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    half_life: f64,
    max_owners: Option<NonZeroUsize>,
    records: Vec<i64>,
    snapshots: Vec<Snapshot>,
    decay: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    after_records: usize,
    rates: BTreeMap<String, f64>,
    order: Vec<i64>,
}

/// The module takes the C library's power, which may differ from a portable one in the last bit of each step.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-14 * b.abs()
}

#[test]
fn every_case_of_the_module_comes_out_the_same() {
    let vectors: Vectors = serde_json::from_str(include_str!("vectors/estimator.json")).expect("parses");
    assert_eq!(vectors.cases.len(), 4);
    for case in vectors.cases {
        let mut estimator = RateEstimator::new(case.half_life, case.max_owners).expect("is valid");
        assert!(close(estimator.decay(), case.decay), "{}: decay", case.name);
        let mut recorded = 0;
        for snapshot in case.snapshots {
            for owner in &case.records[recorded..snapshot.after_records] {
                estimator.record(&Key::from(owner.to_string()));
            }
            recorded = snapshot.after_records;
            let counts = estimator.counts();
            let order: Vec<String> = counts.iter().map(|(key, _)| key.to_string()).collect();
            assert_eq!(order, snapshot.order.iter().map(i64::to_string).collect::<Vec<_>>(), "{}", case.name);
            assert_eq!(counts.len(), snapshot.rates.len(), "{}", case.name);
            for (key, count) in counts {
                let expect = snapshot.rates[key.as_str()];
                assert!(close(count, expect), "{} after {recorded}: {key}: {count} for {expect}", case.name);
            }
        }
    }
}
