//! The search finds a parameter that published values were made with.

use cr_replay::fit::{FitSpec, fit};
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

#[test]
fn a_hidden_parameter_is_found_and_holds_on_other_seeds() {
    let published = published(96);
    // The suite itself says something else.
    let suite = suite(600, &published);
    let spec = FitSpec::from_toml(FIT, "fit.toml").expect("is valid");
    let search = |jobs| {
        let mut errors = Vec::new();
        let tell = &mut |_: u32, evaluation: &cr_replay::fit::Evaluation| errors.push(evaluation.error);
        let fitted = fit(&spec, &suite, jobs, None, &AtomicBool::new(false), tell).expect("fits");
        (fitted.best.set["fleet.kv_blocks"].as_integer(), fitted.held_out_error, errors)
    };
    let (blocks, held_out, errors) = search(1);
    assert!(blocks.is_some_and(|blocks| (64..160).contains(&blocks)), "{blocks:?} {errors:?}");
    assert!(held_out.is_some_and(|error| error < 1.5), "{held_out:?}");
    assert_eq!(errors.len(), 24);
    assert_eq!(search(3), (blocks, held_out, errors), "the search depends on its seed alone");
}

#[test]
fn facts_rule_sets_out_and_bad_fits_are_refused() {
    let suite = suite(600, &published(96));
    let edited = |from: &str, to: &str| FitSpec::from_toml(&FIT.replacen(from, to, 1), "fit.toml");
    let nothing = edited("low = 239", "low = 240.5").expect("is valid");
    let error =
        fit(&nothing, &suite, 1, None, &AtomicBool::new(false), &mut |_, _| {}).expect_err("none fits");
    assert!(error.to_string().contains("facts"), "{error}");
    for (from, to, needle) in [
        ("[21, 22]", "[11]", "seed 11 is searched with and held out"),
        ("high = 1024", "high = 16", "needs either low below high, or values"),
        ("low = 16", "low = 0", "a logarithm needs low above 0"),
        ("fit/1", "fit/2", "cacheroute.fit/1"),
        ("evaluations = 24", "evaluations = 0", "at least one evaluation"),
    ] {
        let error = edited(from, to).expect_err("is refused");
        assert!(error.starts_with("fit.toml: ") && error.contains(needle), "{error}");
    }
}
