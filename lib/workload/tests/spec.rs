//! Specifications as TOML: what is read, what is written back, and every kind of fault with its line.

use cr_workload::{Generator, Spec};
use proptest::prelude::*;
use std::path::Path;

const FULL: &str = r#"about = "everything at once"
seed = 7
requests = 500
output_tokens = 64

[popularity]
model = "lognormal"
keys = 1000
sigma = 1.648
max_share = 0.05
top_k = 128
seed = 1

[popularity.whales]
count = 2
share = 0.25

[popularity.drift]
sigma = 0.3
interval_s = 60.0

[arrivals]
qps = 20.0
process = "gamma"
cv = 1.9

[rate]
shape = "spike"
at_s = 5.0
for_s = 2.0
factor = 3.0

[threads]
mean_turns = 2.64
single_turn_share = 0.507
think_s = 8.0
loop = "closed"

[[prompt]]
scope = "global"
tokens = 256

[[prompt]]
scope = "key"
tokens = { model = "lognormal", mean = 180, sigma = 0.4 }

[[prompt]]
scope = "pool"
documents = 8
break_probability = 0.67
tokens = { model = "lognormal", mean = 600, sigma = 1.66, max = 8192 }

[[prompt]]
scope = "thread"

[[prompt]]
scope = "request"
tokens = 90
"#;

#[test]
fn a_full_specification_round_trips_and_runs() {
    let spec = Spec::from_toml(FULL, "x.toml").expect("parses");
    let written = spec.to_toml().expect("writes");
    assert_eq!(Spec::from_toml(&written, "y.toml").expect("parses"), spec, "{written}");
    let requests: Vec<_> = Generator::new(&spec, Path::new("")).expect("is valid").collect();
    assert_eq!(requests.len(), 500);
    assert!(requests.iter().all(|request| request.fault().is_none()));
}

#[test]
fn faults_of_the_text_name_line_and_nearest_field() {
    let cases = [
        (
            "qps = 20.0",
            "qsp = 20.0",
            "x.toml:23: unknown field \"qsp\"; did you mean \"qps\"? (one of qps, process, cv, gaps_file, block)",
        ),
        (
            "\"gamma\"",
            "\"gama\"",
            "x.toml:24: unknown value \"gama\"; did you mean \"gamma\"? (one of poisson, constant, gamma, weibull, bootstrap)",
        ),
        ("requests = 500", "requests = -5", "x.toml:3: invalid value: integer `-5`, expected u64"),
        ("keys = 1000", "keys = ", "x.toml:8: string values must be quoted, expected literal string"),
        (
            "[arrivals]\n",
            "[arrival]\n",
            "x.toml:22: unknown field \"arrival\"; did you mean \"arrivals\"? (one of about, seed, requests, duration_s, output_tokens, popularity, arrivals, rate, threads, prompt)",
        ),
        (
            "for_s = 2.0",
            "fro_s = 2.0",
            "x.toml:30: unknown field \"fro_s\"; did you mean \"for_s\"? (one of at_s, for_s, factor, every_s)",
        ),
        (
            "output_tokens = 64",
            "output_tokens = \"many\"",
            "x.toml:4: invalid type: string \"many\", expected a number of tokens, or a table such as { model = \"lognormal\", mean = 600, sigma = 1 }",
        ),
    ];
    for (good, bad, expected) in cases {
        assert!(FULL.contains(good));
        let error =
            Spec::from_toml(&FULL.replacen(good, bad, 1), "x.toml").expect_err("is refused").to_string();
        assert_eq!(error, expected);
    }
}

#[test]
fn faults_of_values_name_the_field() {
    let cases = [
        ("requests = 500\n", "", "requests: is missing; give requests or duration_s"),
        ("qps = 20.0", "qps = 1e-7", "arrivals.qps: is 1e-7, it must lie between 0.000001 and 1000000000"),
        (
            "qps = 20.0",
            "qps = 1e-6",
            "arrivals.qps: so slow a rate makes the trace longer than 15000000 seconds",
        ),
        ("requests = 500", "duration_s = -1", "duration_s: is -1, it must lie between 0 and 15000000"),
        (
            "[threads]\nmean_turns = 2.64\nsingle_turn_share = 0.507\nthink_s = 8.0\nloop = \"closed\"\n",
            "",
            "prompt: has a part of scope thread, but there is no [threads] table",
        ),
    ];
    for (good, bad, expected) in cases {
        assert!(FULL.contains(good));
        let spec = Spec::from_toml(&FULL.replacen(good, bad, 1), "x.toml").expect("parses");
        assert_eq!(spec.check().expect_err("is refused").to_string(), expected);
    }
}

proptest! {
    /// No text makes the parser panic, and what it accepts and finds valid runs.
    #[test]
    fn any_mutation_is_read_or_refused(at in 0usize..900, byte in 32u8..127, cut in 0usize..900) {
        let mut bytes = FULL.as_bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len() - cut % bytes.len());
        let text = String::from_utf8(bytes).expect("is ASCII");
        if let Ok(spec) = Spec::from_toml(&text, "x.toml")
            && spec.popularity.keys.is_none_or(|keys| keys < 100_000)
            && let Ok(generator) = Generator::new(&spec, Path::new("/nonexistent"))
        {
            prop_assert!(generator.take(50).all(|request| request.fault().is_none()));
        }
    }
}
