//! Suites as a library: what seeds draw, where plans come from, and what the runs share.

use cr_replay::suite::{Making, NoWatcher, Suite, Sweep};
use cr_trace::Request;
use std::sync::atomic::AtomicBool;

const SUITE: &str = r#"
schema = "cacheroute.suite/1"
name = "small"
title = "A small suite"
policies = ["flat", "cacheroute"]
baseline = "flat"
candidate = "cacheroute"
seeds = [1, 2]
plan_from = 0.25
load = { qps = [20, 40] }
fleet = { shards = 4, kv_blocks = 128 }
engine = { kind = "sim", cost = "worked-example" }

[workload]
seed = 77
requests = 300
output_tokens = { model = "lognormal", mean = 8, sigma = 0.5 }
popularity = { model = "lognormal", keys = 40, sigma = 1.5 }
arrivals = { qps = 10.0 }

[[workload.prompt]]
scope = "global"
tokens = 32

[[workload.prompt]]
scope = "key"
tokens = { model = "lognormal", mean = 200, sigma = 0.5 }

[[workload.prompt]]
scope = "request"
tokens = 40
"#;

fn suite(edits: &[(&str, &str)]) -> Suite {
    let mut text = SUITE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    Suite::from_toml(&text, "suite.toml").expect("is valid")
}

fn requests(suite: &Suite, seed: u64, qps: f64) -> Vec<Request> {
    suite.requests(seed, Some(qps)).expect("draws").collect()
}

fn made(suite: Suite) -> Vec<cr_report::RunReport> {
    let interrupt = AtomicBool::new(false);
    let sweep = Sweep::new(suite, &interrupt).expect("is ready");
    let making = Making { jobs: 2, journal: None, interrupt: &interrupt, watcher: &NoWatcher };
    sweep.make(&making).expect("runs").runs
}

/// The shares of the keys, as far as 300 requests show them: the most popular first by their names.
fn keys(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|request| request.key.to_string()).collect()
}

#[test]
fn requests_depend_on_the_seed_and_a_rate_only_stretches_them() {
    let suite = suite(&[]);
    let (slow, fast) = (requests(&suite, 1, 10.0), requests(&suite, 1, 40.0));
    assert_eq!(slow.len(), fast.len());
    for (slow, fast) in slow.iter().zip(&fast) {
        // Times are whole microseconds.
        assert!((slow.t_s - 4.0 * fast.t_s).abs() < 4e-6);
        assert_eq!(Request { t_s: 0.0, ..slow.clone() }, Request { t_s: 0.0, ..fast.clone() });
    }
    assert_ne!(requests(&suite, 1, 10.0), requests(&suite, 2, 10.0));
    // Every policy of a seed was offered the same.
    let runs = made(suite);
    assert_eq!(runs.len(), 8);
    for pair in runs.chunks(2) {
        let (a, b) = (&pair[0].summary, &pair[1].summary);
        assert_eq!((a.seed, a.qps, a.requests.offered), (b.seed, b.qps, b.requests.offered));
        assert_eq!(a.work.prompt_tokens, b.work.prompt_tokens);
        assert_ne!(a.policy, b.policy);
    }
}

#[test]
fn what_a_seed_draws_anew_is_the_suites_to_say() {
    let vary = |what: &str| suite(&[("plan_from", &format!("seeds_vary = {what:?}\nplan_from"))]);
    let times = |requests: &[Request]| requests.iter().map(|request| request.t_s).collect::<Vec<_>>();
    let draw = |what: &str, seed| requests(&vary(what), seed, 10.0);

    let (a, b) = (draw("population", 1), draw("population", 2));
    assert_eq!(times(&a), times(&b));
    assert_ne!(keys(&a), keys(&b), "the shares differ, so the same draws give other keys");

    let (a, b) = (draw("traffic", 1), draw("traffic", 2));
    assert_ne!(times(&a), times(&b));
    let population = |what: &str, seed| {
        let spec = vary(what).workload_of(seed, None);
        spec.popularity.draw(spec.seed, std::path::Path::new("")).expect("draws").shares
    };
    assert_eq!(population("traffic", 1), population("traffic", 2));
    assert_ne!(population("all", 1), population("all", 2));

    assert_eq!(draw("policy", 1), draw("policy", 2));
}

#[test]
fn plans_come_from_where_the_suite_says() {
    let plan = |source: &str| made(suite(&[("plan_from = 0.25", source), ("[20, 40]", "[20]")]));
    let separate = plan("plan = { from = \"separate-trace\", requests = 200 }");
    let true_rates = plan("warm_slots = 5\nplan = { from = \"true-rates\" }");
    let in_sample = plan("plan = { from = \"in-sample\" }");
    for runs in [&separate, &true_rates] {
        assert!(runs.iter().all(|run| !run.summary.in_sample));
        assert!(runs.iter().all(|run| run.summary.requests.offered == 300), "no head is left out");
    }
    let flagged = |policy: &str| {
        in_sample.iter().filter(|run| run.summary.policy == policy).all(|run| run.summary.in_sample)
    };
    assert!(flagged("cacheroute"));
    for runs in [&separate, &true_rates, &in_sample] {
        let hit = |policy: &str| {
            runs.iter()
                .filter(|run| run.summary.policy == policy)
                .map(|run| run.summary.served_hit)
                .sum::<f64>()
        };
        assert!(hit("cacheroute") > hit("flat"), "{} {}", hit("cacheroute"), hit("flat"));
    }
    // A ceiling that copies every key everywhere takes the affinity away.
    let copied = plan("qcap = 0.01\nwarm_slots = 1000\nplan = { from = \"true-rates\" }");
    let hits = |runs: &[cr_report::RunReport]| {
        runs.iter()
            .filter(|run| run.summary.policy == "cacheroute")
            .map(|run| run.summary.served_hit)
            .sum::<f64>()
    };
    assert!(hits(&copied) < hits(&true_rates));
}

#[test]
fn a_duration_lets_a_higher_rate_serve_more_of_the_same_requests() {
    let suite = suite(&[("requests = 300", "duration_s = 10")]);
    let (slow, fast) = (requests(&suite, 1, 20.0), requests(&suite, 1, 40.0));
    assert!(
        slow.len() > 150 && slow.len() < 250 && fast.len() > slow.len() + 150,
        "{} {}",
        slow.len(),
        fast.len()
    );
    for (slow, fast) in slow.iter().zip(&fast) {
        assert_eq!(
            (&slow.key, &slow.prompt, slow.output_tokens),
            (&fast.key, &fast.prompt, fast.output_tokens)
        );
        assert!((slow.t_s - 2.0 * fast.t_s).abs() < 1e-4);
    }
    let runs = made(suite);
    assert!(runs.iter().all(|run| run.summary.requests.completed > 100));
}

#[test]
fn a_suite_may_say_only_how_it_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("base.toml"), SUITE).expect("is written");
    let text = "extends = \"base.toml\"\nname = \"other\"\nseeds = [3]\n[workload]\nrequests = 10\n";
    let other = Suite::from_toml(text, &path("other.toml")).expect("is valid");
    let base = Suite::from_toml(SUITE, &path("base.toml")).expect("is valid");
    assert_eq!(
        (other.name.as_str(), other.seeds.as_slice(), other.workload.requests),
        ("other", &[3][..], Some(10))
    );
    assert_eq!(
        (&other.fleet, &other.policies, &other.workload.prompt),
        (&base.fleet, &base.policies, &base.workload.prompt)
    );
    let error =
        Suite::from_toml("extends = \"base.toml\"\nnmae = \"x\"", &path("wrong.toml")).expect_err("is wrong");
    assert!(error.to_string().contains("nmae"), "{error}");
}

/// What the small suite comes to: served hit, imbalance by requests, p99 of TTFT and mean e2e in seconds; a change of it is a change of what users see.
const GOLDEN: &[(&str, f64, u64, [f64; 4])] = &[
    ("flat", 20.0, 1, [0.504762, 1.12, 0.055804, 0.058335]),
    ("cacheroute", 20.0, 1, [0.64315, 1.137778, 0.048628, 0.056226]),
    ("flat", 20.0, 2, [0.610758, 1.137778, 0.043581, 0.056126]),
    ("cacheroute", 20.0, 2, [0.724856, 1.048889, 0.040731, 0.054419]),
    ("flat", 40.0, 1, [0.502764, 1.102222, 0.067699, 0.064871]),
    ("cacheroute", 40.0, 1, [0.637443, 1.102222, 0.051773, 0.059936]),
    ("flat", 40.0, 2, [0.599658, 1.084444, 0.04214, 0.060238]),
    ("cacheroute", 40.0, 2, [0.727179, 1.12, 0.045679, 0.058256]),
];

#[test]
fn a_small_suite_comes_to_what_it_always_did() {
    let made: Vec<_> = made(suite(&[]))
        .iter()
        .map(|run| {
            let s = &run.summary;
            let figures = [s.served_hit, s.imbalance.requests, s.ttft_s.p99, s.e2e_s.mean];
            (s.policy.clone(), s.qps.unwrap_or(0.0), s.seed, figures.map(|value| (value * 1e6).round() / 1e6))
        })
        .collect();
    let want: Vec<_> = GOLDEN
        .iter()
        .map(|(policy, qps, seed, figures)| ((*policy).to_owned(), *qps, *seed, *figures))
        .collect();
    assert_eq!(made, want, "look at the difference; then put in what is there now");
}

#[test]
fn every_suite_that_is_shipped_is_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/suites");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).expect("text");
            Suite::from_toml(&text, &path.to_string_lossy()).unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}
