//! The search finds a parameter that published values were made with.

use cr_replay::fit::{Evaluation, FitSpec, Searching, fit};
use cr_replay::suite::Suite;
use std::sync::atomic::AtomicBool;

const SUITE: &str = r#"
schema = "cacheroute.suite/1"
name = "hidden"
title = "Values made with 96 KV blocks a shard"
policies = ["flat", "sticky"]
baseline = "flat"
candidate = "sticky"
seeds = [1]
load = { qps = [20] }
fleet = { shards = 4, kv_blocks = BLOCKS }
engine = { kind = "sim", cost = "worked-example" }

[workload]
requests = 400
output_tokens = 4
popularity = { model = "zipf", keys = 40, alpha = 0.7 }
arrivals = { qps = 10.0 }
prompt = [{ scope = "key", tokens = 200 }, { scope = "request", tokens = 40 }]
"#;

const FIT: &str = r#"
schema = "cacheroute.fit/1"
suite = "hidden.toml"
seed = 3
evaluations = 24
search_seeds = [11, 12]
held_out_seeds = [21, 22]
parameter = [{ field = "fleet.kv_blocks", low = 16, high = 1024, log = true, whole = true }]
fact = [{ of = "input_tokens.mean", low = 239, high = 241 }]
"#;

fn suite(blocks: u32, published: &str) -> Suite {
    let text = SUITE.replace("BLOCKS", &blocks.to_string()) + published;
    Suite::from_toml(&text, "hidden.toml").expect("is valid")
}

/// The hits of a run, as published values.
fn published(blocks: u32) -> String {
    use cr_replay::suite::{Making, NoWatcher, Sweep};
    let interrupt = AtomicBool::new(false);
    let sweep = Sweep::new(suite(blocks, ""), &interrupt).expect("is ready");
    let making = Making { jobs: 1, journal: None, interrupt: &interrupt, watcher: &NoWatcher };
    let runs = sweep.make(&making).expect("runs").runs;
    let one = |run: &cr_report::RunReport| {
        let (policy, hit) = (&run.summary.policy, run.summary.served_hit);
        format!("\n[[published]]\npolicy = \"{policy}\"\nmetric = \"served_hit\"\nvalue = {hit}\n")
    };
    runs.iter().map(one).collect()
}

fn how<'a>(jobs: usize, known: &'a [Evaluation], interrupt: &'a AtomicBool) -> Searching<'a> {
    Searching { jobs, limit_s: None, known, interrupt }
}

#[test]
fn a_hidden_parameter_is_found_and_holds_on_other_seeds() {
    let published = published(96);
    // The suite itself says something else.
    let suite = suite(600, &published);
    let spec = FitSpec::from_toml(FIT, "fit.toml").expect("is valid");
    let search = |jobs| {
        let mut errors = Vec::new();
        let tell = &mut |_: u32, evaluation: &Evaluation| errors.push(evaluation.error);
        let interrupt = AtomicBool::new(false);
        let fitted = fit(&spec, &suite, &how(jobs, &[], &interrupt), tell).expect("fits");
        (fitted.best.set["fleet.kv_blocks"].as_integer(), fitted.held_out_error, errors)
    };
    let (blocks, held_out, errors) = search(1);
    assert!(blocks.is_some_and(|blocks| (64..160).contains(&blocks)), "{blocks:?} {errors:?}");
    assert!(held_out.is_some_and(|error| error < 1.5), "{held_out:?}");
    assert_eq!(errors.len(), 24);
    assert_eq!(search(3), (blocks, held_out, errors), "the search depends on its seed alone");
}

#[test]
fn a_search_goes_on_where_it_was_left_and_screens_what_is_far_behind() {
    let suite = suite(600, &published(96));
    let screened = FIT.replace("[11, 12]", "[11, 12, 13]\nscreen_seeds = 1");
    let spec = FitSpec::from_toml(&screened, "fit.toml").expect("is valid");
    let search = |known: &[Evaluation], stop_after: u32| {
        let (interrupt, mut sets) = (AtomicBool::new(false), Vec::new());
        let tell = &mut |count: u32, evaluation: &Evaluation| {
            sets.push(evaluation.clone());
            interrupt.store(count == stop_after, std::sync::atomic::Ordering::Relaxed);
        };
        let fitted = fit(&spec, &suite, &how(1, known, &interrupt), tell).expect("fits");
        (fitted.best, sets)
    };
    let (best, whole) = search(&[], 0);
    let (_, begun) = search(&[], 9);
    assert_eq!(begun.len(), 9);
    let (resumed_best, resumed) = search(&begun, 0);
    let sets = |sets: &[Evaluation]| -> Vec<_> {
        sets.iter().map(|one| (one.set.clone(), one.error, one.screened_error)).collect()
    };
    assert_eq!(sets(&resumed), sets(&whole));
    assert_eq!(resumed[..9], begun[..], "what was known was not tried again");
    assert_eq!(resumed_best.set, best.set);
    // In any order.
    let known: Vec<Evaluation> = whole.iter().rev().cloned().collect();
    let again = search(&known, 0).1;
    assert_eq!(sets(&again), sets(&whole));
    assert!(again.iter().all(|one| known.contains(one)), "nothing was tried again");
    let ruled_out = whole.iter().filter(|one| one.screened_error.is_some() && one.error.is_none()).count();
    assert!((1..24).contains(&ruled_out), "{ruled_out} of 24 sets were ruled out by their first seed");
}

#[test]
fn facts_rule_sets_out_and_bad_fits_are_refused() {
    let suite = suite(600, &published(96));
    let edited = |from: &str, to: &str| FitSpec::from_toml(&FIT.replacen(from, to, 1), "fit.toml");
    let nothing = edited("low = 239", "low = 240.5").expect("is valid");
    let interrupt = AtomicBool::new(false);
    let error = fit(&nothing, &suite, &how(1, &[], &interrupt), &mut |_, _| {}).expect_err("none fits");
    assert!(error.to_string().contains("facts"), "{error}");
    for (from, to, needle) in [
        ("[21, 22]", "[11]", "seed 11 is searched with and held out"),
        ("high = 1024", "high = 16", "needs either low below high, or values"),
        ("low = 16", "low = 0", "a logarithm needs low above 0"),
        ("fit/1", "fit/2", "cacheroute.fit/1"),
        ("held_out", "screen_seeds = 2\nheld_out", "must leave some of search_seeds"),
        ("evaluations = 24", "evaluations = 0", "at least one evaluation"),
    ] {
        let error = edited(from, to).expect_err("is refused");
        assert!(error.starts_with("fit.toml: ") && error.contains(needle), "{error}");
    }
}
