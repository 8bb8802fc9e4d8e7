//! What a specification turns into: fixed bytes for a seed, and requests that the rate does not change.

use cr_trace::stats::TraceStats;
use cr_trace::{Request, TraceWriter};
use cr_workload::arrivals::{Arrivals, Process};
use cr_workload::length::Drawn;
use cr_workload::popularity::{Law, Popularity};
use cr_workload::prompt::{Part, PartScope};
use cr_workload::{Generator, Length, Spec};
use proptest::prelude::*;

fn spec(seed: u64, requests: u64) -> Spec {
    let drawn = |mean| Length::Drawn(Drawn::Lognormal { mean, sigma: 0.5, min: None, max: Some(2000) });
    Spec {
        seed,
        requests: Some(requests),
        duration_s: None,
        output_tokens: drawn(60.0),
        popularity: Popularity {
            model: Law::Zipf,
            keys: 100,
            alpha: Some(1.0),
            sigma: None,
            gini: None,
            max_share: None,
            seed: None,
        },
        arrivals: Arrivals { qps: 10.0, process: Process::Poisson },
        prompt: vec![
            Part::new(PartScope::Global, Length::Constant(32)),
            Part::new(PartScope::Key, drawn(200.0)),
            Part { name: Some("style".into()), ..Part::new(PartScope::Key, Length::Constant(8)) },
            Part::new(PartScope::Request, drawn(40.0)),
        ],
    }
}

fn requests(spec: &Spec) -> Vec<Request> {
    Generator::new(spec).expect("is valid").collect()
}

/// The bytes that a seed stands for. Whoever changes them breaks everybody's stored workloads.
#[test]
fn a_seed_stands_for_these_bytes() {
    let mut writer = TraceWriter::new(Vec::new());
    requests(&spec(1, 4)).iter().for_each(|request| writer.write(request).expect("writes"));
    let text = String::from_utf8(writer.finish().expect("writes")).expect("is text");
    insta::assert_snapshot!(text);
}

#[test]
fn content_says_who_shares_it() {
    for request in requests(&spec(3, 500)) {
        assert_eq!(request.fault(), None);
        let ids: Vec<&str> = request.prompt.iter().map(|segment| segment.content().as_str()).collect();
        let key = &request.key;
        assert_eq!(
            ids,
            ["g:template", &format!("k:{key}"), &format!("k:{key}/style"), &format!("u:{}", request.id)]
        );
    }
}

#[test]
fn a_key_s_context_always_has_its_length() {
    let mut lengths = std::collections::BTreeMap::new();
    for request in requests(&spec(3, 2000)) {
        let tokens = request.prompt[1].tokens();
        assert_eq!(*lengths.entry(request.key.clone()).or_insert(tokens), tokens);
    }
    let distinct: std::collections::BTreeSet<u32> = lengths.values().copied().collect();
    assert!(distinct.len() > 50, "contexts differ from key to key");
}

#[test]
fn a_duration_ends_before_its_end_and_the_total_is_known() {
    let by_time = Spec { requests: None, duration_s: Some(30.0), ..spec(5, 0) };
    let mut generator = Generator::new(&by_time).expect("is valid");
    let total = generator.total();
    let all: Vec<Request> = generator.by_ref().collect();
    assert_eq!((all.len() as u64, generator.next()), (total, None));
    assert!((250..350).contains(&total) && all[all.len() - 1].t_s < 30.0);
    let both = Spec { requests: Some(100), ..by_time };
    assert_eq!(requests(&both), all[..100]);
    assert_eq!(Generator::new(&both).expect("is valid").total(), 100);
}

/// What a population is drawn with is what a long trace of it shows.
#[test]
fn a_trace_shows_its_population() {
    let mut stats = TraceStats::new(16);
    requests(&spec(8, 50_000)).iter().for_each(|request| stats.observe(request));
    let report = stats.report();
    let harmonic: f64 = (1..=100).map(|rank| 1.0 / f64::from(rank)).sum();
    assert_eq!(report.keys.top_key.as_deref(), Some("k0"));
    assert!((report.keys.top_key_share - 1.0 / harmonic).abs() < 0.006, "{report:?}");
    assert!((report.qps - 10.0).abs() < 0.15);
}

proptest! {
    /// One stream per purpose: only the arrivals may differ.
    #[test]
    fn another_rate_changes_only_the_arrivals(seed in any::<u64>(), qps in 0.1f64..1000.0) {
        let base = spec(seed, 50);
        let mut other = base.clone();
        other.arrivals.qps = qps;
        let stilled = |spec: &Spec| requests(spec).into_iter().map(|r| Request { t_s: 0.0, ..r }).collect::<Vec<_>>();
        prop_assert_eq!(stilled(&base), stilled(&other));
    }

    /// Turning one knob leaves what the other streams draw as it was.
    #[test]
    fn longer_outputs_change_no_key_and_no_prompt(seed in any::<u64>()) {
        let base = spec(seed, 50);
        let other = Spec { output_tokens: Length::Constant(7), ..base.clone() };
        let levelled = |spec: &Spec| requests(spec).into_iter().map(|r| Request { output_tokens: 1, ..r }).collect::<Vec<_>>();
        prop_assert_eq!(levelled(&base), levelled(&other));
    }
}
