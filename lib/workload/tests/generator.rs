//! What a specification turns into: fixed bytes for a seed, and requests that the rate does not change.

use cr_trace::stats::TraceStats;
use cr_trace::{Request, TraceWriter};
use cr_workload::arrivals::Arrivals;
use cr_workload::length::Drawn;
use cr_workload::popularity::Popularity;
use cr_workload::prompt::{Part, PartScope};
use cr_workload::threads::{Loop, Threads};
use cr_workload::{Generator, Length, Spec};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn spec(seed: u64, requests: u64) -> Spec {
    let drawn = |mean| Length::Drawn(Drawn::Lognormal { mean, sigma: 0.5, min: None, max: Some(2000) });
    Spec {
        seed,
        requests: Some(requests),
        duration_s: None,
        output_tokens: drawn(60.0),
        popularity: Popularity::zipf(100, 1.0),
        arrivals: Arrivals::poisson(10.0),
        about: None,
        rate: None,
        threads: None,
        prompt: vec![
            Part::new(PartScope::Global, Length::Constant(32)),
            Part::new(PartScope::Key, drawn(200.0)),
            Part { name: Some("style".into()), ..Part::new(PartScope::Key, Length::Constant(8)) },
            Part::new(PartScope::Request, drawn(40.0)),
        ],
    }
}

fn requests(spec: &Spec) -> Vec<Request> {
    Generator::new(spec, Path::new("")).expect("is valid").collect()
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
    let mut lengths = BTreeMap::new();
    for request in requests(&spec(3, 2000)) {
        let tokens = request.prompt[1].tokens();
        assert_eq!(*lengths.entry(request.key.clone()).or_insert(tokens), tokens);
    }
    let distinct: BTreeSet<u32> = lengths.values().copied().collect();
    assert!(distinct.len() > 50, "contexts differ from key to key");
}

#[test]
fn a_duration_ends_before_its_end_and_the_total_is_known() {
    let by_time = Spec { requests: None, duration_s: Some(30.0), ..spec(5, 0) };
    let mut generator = Generator::new(&by_time, Path::new("")).expect("is valid");
    let total = generator.total();
    let all: Vec<Request> = generator.by_ref().collect();
    assert_eq!((all.len() as u64, generator.next()), (total, None));
    assert!((250..350).contains(&total) && all[all.len() - 1].t_s < 30.0);
    let both = Spec { requests: Some(100), ..by_time };
    assert_eq!(requests(&both), all[..100]);
    assert_eq!(Generator::new(&both, Path::new("")).expect("is valid").total(), 100);
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

fn threads(mode: Loop) -> Threads {
    Threads {
        mean_turns: 3.0,
        single_turn_share: None,
        max_turns: Some(8),
        think_s: 20.0,
        think_sigma: None,
        mode,
        key_per_thread: false,
    }
}

fn chat(seed: u64, requests: u64, mode: Loop) -> Spec {
    let mut spec = Spec { threads: Some(threads(mode)), ..spec(seed, requests) };
    spec.prompt.insert(3, Part::thread());
    spec
}

/// Each turn repeats the turn before it, with its answer, and goes on from there.
#[test]
fn a_turn_repeats_the_thread_so_far() {
    for mode in [Loop::Open, Loop::Closed] {
        let mut last: BTreeMap<_, Request> = BTreeMap::new();
        let mut waited = 0;
        let mut now = 0.0;
        for request in requests(&chat(2, 3000, mode)) {
            assert!(request.fault().is_none() && request.t_s >= now);
            now = request.t_s;
            let session = request.session.clone().expect("has a session");
            if let Some(before) = last.get(&session) {
                let shared = cr_trace::content::shared_tokens(&before.prompt, &request.prompt);
                assert_eq!(shared, before.prompt_tokens());
                let answer = &request.prompt[before.prompt.len()];
                assert_eq!(answer.content(), &cr_trace::ContentId::answer(before.id));
                assert_eq!(answer.tokens(), before.output_tokens);
                assert_eq!((request.turn, &request.key), (before.turn.map(|turn| turn + 1), &before.key));
                assert_eq!(request.after, (mode == Loop::Closed).then_some(before.id));
                if let Some(think_s) = request.think_s {
                    assert!((request.t_s - before.t_s - think_s).abs() < 2e-6);
                    waited += 1;
                }
            } else {
                assert_eq!((request.turn, request.after, request.think_s), (Some(1), None, None));
            }
            last.insert(session, request);
        }
        assert_eq!(waited > 1000, mode == Loop::Closed);
    }
}

/// The rate counts requests, not threads; think times make the beginning slower.
#[test]
fn threads_bring_the_rate_asked_for() {
    let long = Spec { requests: None, duration_s: Some(4000.0), ..chat(4, 0, Loop::Open) };
    let generator = Generator::new(&long, Path::new("")).expect("is valid");
    let total = generator.total();
    let all: Vec<Request> = generator.collect();
    assert_eq!(all.len() as u64, total);
    let late = all.iter().filter(|request| request.t_s >= 1000.0).count() as f64;
    assert!((late / 3000.0 / 10.0 - 1.0).abs() < 0.03, "{late}");
}

/// How threads interleave depends on the rate; what they say does not.
#[test]
fn another_rate_keeps_every_thread_s_lengths() {
    let by_thread = |qps: f64| {
        let mut spec = chat(6, 2000, Loop::Open);
        spec.arrivals.qps = qps;
        let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for request in requests(&spec) {
            let user = request.prompt[request.prompt.len() - 1].tokens();
            let of_thread = threads.entry(request.session.clone().expect("has a session")).or_default();
            of_thread.push((request.key, user, request.output_tokens));
        }
        threads
    };
    let (slow, fast) = (by_thread(5.0), by_thread(50.0));
    let both: Vec<_> = slow.iter().filter_map(|(session, turns)| Some((turns, fast.get(session)?))).collect();
    assert!(both.len() > 500);
    assert!(both.iter().all(|(a, b)| a.iter().zip(b.iter()).all(|(x, y)| x == y)));
}

#[test]
fn a_thread_can_be_the_key() {
    let mut spec = chat(6, 200, Loop::Open);
    spec.threads = Some(Threads { key_per_thread: true, ..threads(Loop::Open) });
    for request in requests(&spec) {
        assert_eq!(Some(&request.key), request.session.as_ref());
        assert!(request.tenant.is_some_and(|tenant| tenant.starts_with('k')));
    }
}

/// The break probability is the share of consecutive pairs of one key whose documents differ.
#[test]
fn a_pool_breaks_as_often_as_asked() {
    let drawn = Length::Drawn(Drawn::Lognormal { mean: 300.0, sigma: 1.0, min: None, max: None });
    let mut spec = spec(9, 30_000);
    spec.prompt = vec![Part::pool(6, 0.67, drawn), Part::new(PartScope::Request, Length::Constant(9))];
    let mut last: BTreeMap<_, _> = BTreeMap::new();
    let mut lengths: BTreeMap<_, u32> = BTreeMap::new();
    let (mut pairs, mut breaks) = (0, 0);
    for request in requests(&spec) {
        let document = request.prompt[0].content().clone();
        let tokens = request.prompt[0].tokens();
        assert_eq!(*lengths.entry(document.clone()).or_insert(tokens), tokens, "a document has one length");
        assert!(document.as_str().starts_with(&format!("d:{}/", request.key)));
        if let Some(before) = last.insert(request.key, document.clone()) {
            pairs += 1;
            breaks += u32::from(before != document);
        }
    }
    assert!((f64::from(breaks) / f64::from(pairs) - 0.67).abs() < 0.01, "{breaks} of {pairs}");
    assert!(lengths.len() > 500);
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
