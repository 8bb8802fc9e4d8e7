//! The workloads that come with the project: each is valid, says what it shows, and is what it says.

use cr_trace::Request;
use cr_trace::stats::{StatsReport, TraceStats};
use cr_workload::{Generator, Spec};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")
}

fn read(name: &str) -> Spec {
    let text = std::fs::read_to_string(folder().join(name)).expect("reads");
    assert!(text.starts_with("# ") && text.contains("\n# What it shows: "), "{name} says what it shows");
    Spec::from_toml(&text, name).expect("parses")
}

fn stats(spec: &Spec) -> StatsReport {
    let mut stats = TraceStats::new(16);
    Generator::new(spec, &folder()).expect("is valid").for_each(|request| stats.observe(&request));
    stats.report()
}

#[test]
fn all_are_valid_and_give_valid_requests() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).expect("is there") {
        let path = entry.expect("reads").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let spec = read(path.file_name().and_then(|name| name.to_str()).expect("is text"));
        assert!(spec.about.is_some());
        let requests: Vec<Request> = Generator::new(&spec, &folder()).expect("is valid").take(2000).collect();
        assert_eq!(requests.len(), 2000);
        assert!(requests.iter().all(|request| request.fault().is_none()), "{}", path.display());
    }
    assert!(count >= 12, "{count}");
}

/// About 1.2K tokens a prompt, 15 % of them the key's; the population itself is tested where it is drawn.
#[test]
fn the_primary_workload_is_the_published_one() {
    let spec = read("primary.toml");
    let report = stats(&spec);
    assert_eq!(report.keys.count, 128);
    assert!((1000.0..1300.0).contains(&report.input_tokens.mean), "{:?}", report.input_tokens);
    let share = 180.0 / report.input_tokens.mean;
    assert!((0.13..0.18).contains(&share), "{share}");
    let all =
        Spec { popularity: cr_workload::popularity::Popularity { top_k: None, ..spec.popularity }, ..spec };
    let shares = all.popularity.draw(42, &folder()).expect("is valid").shares;
    assert!(shares.len() == 128_824 && shares[0] <= 0.003);
}

#[test]
fn whales_make_their_shares() {
    for share in [5u32, 15, 25, 45] {
        let spec = read(&format!("whales-{share}.toml"));
        let whales: usize = Generator::new(&spec, &folder())
            .expect("is valid")
            .filter(|request| ["k0", "k1", "k2", "k3"].contains(&request.key.as_str()))
            .count();
        let found = whales as f64 / 20_000.0;
        assert!((found - f64::from(share) / 100.0).abs() < 0.012, "{share}: {found}");
    }
}

/// What the files promise about reuse: little in the aggregates, nearly all of it in the agentic one.
#[test]
fn reuse_is_as_described() {
    let (a, b) = (stats(&read("aggregate-a.toml")), stats(&read("aggregate-b.toml")));
    assert!(a.reuse.engine < 0.15 && b.reuse.engine < a.reuse.engine && a.keys.gini > b.keys.gini + 0.2);
    let agentic = stats(&read("agentic.toml"));
    assert!(agentic.reuse.engine > 0.85, "{:?}", agentic.reuse);
    let chat = read("chat.toml");
    let multi =
        Generator::new(&chat, &folder()).expect("is valid").filter(|request| request.turn > Some(1)).count();
    // Of 2.64 turns a thread, 1.64 are not the first; the end of the trace cuts threads off.
    assert!((multi as f64 / 20_000.0 - 1.64 / 2.64).abs() < 0.04, "{multi}");
}
