//! Suites as they are typed.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn sweep(suite: &Path, dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .arg("sweep")
        .arg(suite)
        .arg("--report")
        .arg(dir)
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

const SUITE: &str = r#"
schema = "cacheroute.suite/1"
name = "small"
title = "A small suite"
policies = ["flat", "sticky", "cacheroute"]
baseline = "flat"
candidate = "cacheroute"
seeds = [1, 2, 3]
plan_from = 0.25

[load]
utilisation = 0.8
probe_requests = 64

[fleet]
shards = 4
kv_blocks = 256

[engine]
kind = "sim"
cost = "worked-example"

[workload]
requests = 400
output_tokens = 8

[workload.popularity]
model = "zipf"
keys = 24
alpha = 0.9

[workload.arrivals]
process = "poisson"
qps = 10.0

[[workload.prompt]]
scope = "global"
tokens = 32

[[workload.prompt]]
scope = "key"
tokens = 256

[[workload.prompt]]
scope = "request"
tokens = 40
"#;

#[test]
fn a_suite_gives_a_report_and_the_same_one_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("small.toml");
    std::fs::write(&suite, SUITE).expect("is written");
    let first = folder.path().join("report");
    let output = sweep(&suite, &first);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(first.join("result.json")).expect("was written"))
            .expect("is JSON");
    assert_eq!(result["schema"], "cacheroute.result/1");
    assert_eq!(result["runs"].as_array().map(Vec::len), Some(9));
    assert_eq!(result["aggregates"].as_array().map(Vec::len), Some(3));

    // The same command again writes the same bytes everywhere but in run.json and the working file of finished cells.
    let kept = folder.path().join("kept");
    std::fs::rename(&first, &kept).expect("moves");
    assert!(sweep(&suite, &first).status.success());
    for entry in std::fs::read_dir(&kept).expect("is a folder") {
        let name = entry.expect("is an entry").file_name();
        if name != "run.json" && name != "cells.jsonl" {
            let (a, b) = (std::fs::read(kept.join(&name)), std::fs::read(first.join(&name)));
            assert_eq!(a.expect("reads"), b.expect("reads"), "{name:?}");
        }
    }
}

/// A suite of four variants with a ladder that is refined: 4 × 3 × 3 × 2 runs and some more.
/// A disk that fills up under the events takes neither the runs nor the report along.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_the_events_and_not_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("small.toml");
    std::fs::write(&suite, SUITE).expect("is written");
    let (whole, full) = (folder.path().join("whole"), folder.path().join("full"));
    assert!(sweep(&suite, &whole).status.success());
    let output = sweep_with(&suite, &full, &["-o", "/dev/full"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    let told = "cr-serve: cannot write /dev/full: No space left on device (os error 28); all else went on without it; make room, or write elsewhere\n";
    assert!(said.ends_with(told), "{said}");
    let runs = |dir: &Path| {
        serde_json::from_str::<Value>(&read(dir, "result.json")).expect("is JSON")["runs"].take()
    };
    assert_eq!(runs(&full), runs(&whole));
}

fn ladder() -> String {
    let vary = r#"
[[vary]]
name = "shards"
field = "fleet.shards"
values = [2, 4]

[[vary]]
name = "keys"
points = [
    { label = "few", set = { "workload.popularity.keys" = 12 } },
    { label = "many", set = { "workload.popularity.keys" = 48, "workload.prompt.1.tokens" = 128 } },
]

[load]
qps = [20, 60, 180]
refine = 0.2
"#;
    let load = "[load]\nutilisation = 0.8\nprobe_requests = 64\n";
    let text = SUITE.replacen(load, vary, 1).replacen(
        "seeds = [1, 2, 3]",
        "seeds = [1, 2]\nslo = { ttft_p99_s = 0.2 }",
        1,
    );
    assert_ne!(text, SUITE);
    text
}

fn sweep_with(suite: &Path, dir: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .args(["sweep", suite.to_str().expect("is text"), "--report", dir.to_str().expect("is text")])
        .args(more)
        .current_dir(dir.parent().expect("has one"))
        .stdin(Stdio::null())
        .output()
        .expect("starts")
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).expect("was written")
}

#[test]
fn the_number_of_jobs_and_an_interruption_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("ladder.toml");
    std::fs::write(&suite, ladder()).expect("is written");
    let dir = folder.path().join("report");
    let files = ["report.md", "result.json", "detail.json", "capacity.svg", "p99-rate.svg"];
    let one = sweep_with(&suite, &dir, &["--jobs", "1"]);
    assert!(one.status.success(), "{}", String::from_utf8_lossy(&one.stderr));
    let want = files.map(|name| read(&dir, name));
    let cells = read(&dir, "cells.jsonl");
    let result: Value = serde_json::from_str(&want[1]).expect("is JSON");
    let runs = result["runs"].as_array().map_or(0, Vec::len);
    assert_eq!(result["variants"].as_array().map(Vec::len), Some(4));
    assert!(runs > 72 && cells.lines().count() == runs, "{runs} runs; refinement adds to 72");
    assert!(result["capacity"].as_array().is_some_and(|all| all.len() == 12));

    // All at once, from nothing.
    let all = sweep_with(&suite, &dir, &["--jobs", "7", "--restart"]);
    assert!(all.status.success() && files.map(|name| read(&dir, name)) == want, "jobs change the result");

    // As if it had been killed in the middle of a line.
    let half: String = cells.lines().take(31).map(|line| format!("{line}\n")).collect();
    std::fs::write(dir.join("cells.jsonl"), format!("{half}{}", &cells[half.len()..half.len() + 100]))
        .expect("is written");
    files.iter().for_each(|name| std::fs::remove_file(dir.join(name)).expect("was there"));
    let rest = sweep_with(&suite, &dir, &["--jobs", "2"]);
    assert_eq!(String::from_utf8_lossy(&rest.stderr).matches("(from before)").count(), 31);
    assert_eq!(files.map(|name| read(&dir, name)), want);

    // Another seed makes its own runs and no other.
    std::fs::write(&suite, ladder().replacen("seeds = [1, 2]", "seeds = [1, 2, 9]", 1)).expect("is written");
    let more = sweep_with(&suite, &dir, &[]);
    let said = String::from_utf8_lossy(&more.stderr);
    assert!(more.status.success() && said.matches("(from before)").count() >= 72, "{said}");
    assert!(
        said.lines()
            .filter(|line| !line.contains("from before") && line.contains("] "))
            .all(|line| line.contains("seed 9")),
        "{said}"
    );
}

const CLAIMS: &str = r#"
[map]
x = "keys"
y = "shards"
places = [{ name = "whales", baseline_hit = 0.093, candidate_hit = 0.77, published = "win" }]

[[claims]]
text = "The plan's hit is close to that of fixed affinity"
caveat = "a small suite"
qps = 60
check = { kind = "hit_within_of_best", policy = "cacheroute", points = 30 }

[[claims]]
text = "Nothing is missed"
at = { keys = "many" }
check = { kind = "metric_at_least", policy = "flat", metric = "served_hit", value = 0.9999 }

[[published]]
policy = "flat"
metric = "served_hit"
value = 0.5
plus_minus = 0.01
qps = 20
at = { keys = "few", shards = "2" }

[[published]]
policy = "cacheroute"
metric = "capacity"
value = 100
at = { keys = "few", shards = "4" }

[[sensitivity]]
name = "block tokens"
field = "fleet.block_tokens"
values = [8, 64]

[[sensitivity]]
name = "plan"
points = [{ label = "in sample", set = { plan_from = 0.5 } }]
"#;

#[test]
fn claims_published_values_and_the_map_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("ladder.toml");
    std::fs::write(&suite, format!("{}{CLAIMS}", ladder())).expect("is written");
    let dir = folder.path().join("report");
    let output = sweep_with(&suite, &dir, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_str(&read(&dir, "result.json")).expect("is JSON");
    let evidence = result["evidence"].as_array().expect("has evidence");
    assert_eq!(
        (evidence[0]["holds"].as_bool(), evidence[0]["said"].as_array().map(Vec::len)),
        (Some(true), Some(4))
    );
    assert_eq!(
        (evidence[1]["holds"].as_bool(), evidence[1]["said"].as_array().map(Vec::len)),
        (Some(false), Some(2))
    );
    assert_eq!(evidence[0]["seeds"], 2);
    let ours = &result["beside"][0];
    let deviation = ours["mean"].as_f64().expect("a number") / 0.5 - 1.0;
    assert!((ours["deviation"].as_f64().expect("a number") - deviation).abs() < 1e-5);
    assert!(result["variants"][0]["foretold"]["pinned"].as_f64().is_some_and(|share| share > 0.3));
    let report = read(&dir, "report.md");
    for part in [
        "## Claims and evidence",
        "1 of 2 claims hold",
        "## Beside the published values",
        "## Regimes",
        "| whales |",
        "Foretold",
    ] {
        assert!(report.contains(part), "{part}");
    }
    assert!(read(&dir, "regimes.svg").contains("[A]"));
    // All of it is made again from the stored files.
    let again =
        Command::new(env!("CARGO_BIN_EXE_cr-serve")).arg("report").arg(&dir).output().expect("starts");
    assert!(again.status.success() && read(&dir, "report.md") == report);
}

#[test]
fn sensitivity_moves_one_parameter_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("ladder.toml");
    std::fs::write(&suite, format!("{}{CLAIMS}", ladder())).expect("is written");
    let dir = folder.path().join("report");
    let output = Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .args(["sensitivity", suite.to_str().expect("is text"), "--report", dir.to_str().expect("is text")])
        .output()
        .expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = read(&dir, "report.md");
    for part in [
        "## Sensitivity",
        "| as the suite stands |",
        "| block tokens | 64 |",
        "| plan | in sample |",
        "tornado.svg",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let result: Value = serde_json::from_str(&read(&dir, "result.json")).expect("is JSON");
    assert_eq!(result["variants"].as_array().map(Vec::len), Some(4));
    assert_eq!(result["one_at_a_time"], true);
    // A suite that lists nothing has nothing to move.
    std::fs::write(&suite, ladder()).expect("is written");
    let none = Command::new(env!("CARGO_BIN_EXE_cr-serve"))
        .arg("sensitivity")
        .arg(&suite)
        .current_dir(folder.path())
        .output()
        .expect("starts");
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("[[sensitivity]]"));
}

#[test]
fn claims_that_cannot_be_checked_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, needle) in [
        (
            "policy = \"cacheroute\", points",
            "policy = \"preble\", points",
            "\"preble\" is not among the policies",
        ),
        ("qps = 60\n", "qps = 61\n", "61 is no rate of load.qps"),
        ("metric = \"served_hit\", value", "metric = \"hits\", value", "there is no metric \"hits\""),
        ("at = { keys = \"many\" }", "at = { keys = \"none\" }", "no variant is at"),
        ("at = { keys = \"few\", shards = \"2\" }", "at = { keys = \"few\" }", "2 variants are at"),
        ("x = \"keys\"", "x = \"key\"", "there is no axis \"key\""),
        (
            "{ kind = \"hit_within_of_best\", policy = \"cacheroute\", points = 30 }",
            "{ kind = \"verdict\", is = \"won\" }",
            "a verdict is win, tie or lose",
        ),
        (
            "{ kind = \"hit_within_of_best\", policy = \"cacheroute\", points = 30 }",
            "{ kind = \"order\", metric = \"capacity\", policies = [\"flat\"] }",
            "an order needs at least two policies",
        ),
        ("value = 0.5\n", "value = nan\n", "published.0.value is NaN; it must be a finite number"),
        ("points = 30", "points = inf", "claims.0.check.points is inf; it must be a finite number"),
        ("hit_within_of_best", "hit_within", "did you mean \"hit_within_of_best\"?"),
        ("fleet.block_tokens", "fleet.block", "unknown field \"block\"; did you mean"),
    ] {
        let suite = folder.path().join("bad.toml");
        std::fs::write(&suite, format!("{}{CLAIMS}", ladder()).replacen(from, to, 1)).expect("is written");
        let output = sweep(&suite, &folder.path().join("report"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(needle), "{to}: {said}");
    }
}

#[test]
fn a_parameter_that_cannot_vary_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, needle) in [
        ("\"fleet.shards\"", "\"fleet.shard\"", "unknown field \"shard\"; did you mean \"shards\"?"),
        ("\"fleet.shards\"", "\"seeds\"", "belongs to the whole suite"),
        ("values = [2, 4]", "values = [2, 0]", "variant \"shards 0, keys few\": every number of [fleet]"),
        ("values = [2, 4]", "values = [2, 2]", "has the point 2 twice"),
        (
            "\"workload.prompt.1.tokens\" = 128",
            "\"fleet.shards\" = 8",
            "\"shards\" and \"keys\" both set fleet.shards",
        ),
        ("name = \"keys\"", "name = \"shards\"", "two axes named \"shards\""),
        ("ttft_p99_s = 0.2", "ttft_p99 = 0.2", "unknown field \"ttft_p99\"; did you mean \"ttft_p99_s\"?"),
        ("qps = [20, 60, 180]", "qps = 20", "invalid type: integer `20`, expected a sequence"),
        (
            "refine = 0.2",
            "utilisation = 0.5",
            "load needs either qps, a list of rates, or utilisation and probe_requests",
        ),
        ("values = [2, 4]", "", "needs either field and values, or points"),
        ("workload.prompt.1.tokens", "workload.prompt.7.tokens", "no entry of a list of 3"),
        ("refine = 0.2", "refine = 2", "load.refine is 2"),
        ("ttft_p99_s = 0.2", "", "needs a ladder of at least two rates and an objective"),
        ("plan_from = 0.25", "", "cacheroute needs a plan"),
        ("plan_from = 0.25", "plan = { from = \"true-rates\" }", "needs warm_slots"),
    ] {
        let suite = folder.path().join("bad.toml");
        std::fs::write(&suite, ladder().replacen(from, to, 1)).expect("is written");
        let output = sweep(&suite, &folder.path().join("report"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(needle), "{to}: {said}");
    }
}

#[test]
fn a_suite_that_is_wrong_is_refused_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, needle) in [
        ("policies =", "polices =", "polices"),
        ("\"sticky\"", "\"stiky\"", "there is no policy \"stiky\""),
        ("plan_from = 0.25", "plan_from = 1.25", "plan_from is 1.25"),
        ("seeds = [1, 2, 3]", "seeds = []", "seeds is empty"),
        ("utilisation = 0.8", "utilisation = -1", "load.utilisation"),
        ("shards = 4", "shards = 0", "at least 1"),
        ("requests = 400\n", "", "requests"),
        ("suite/1", "suite/7", "cacheroute.suite/1"),
        ("baseline = \"flat\"", "baseline = \"chwbl\"", "chwbl"),
        ("cost = \"worked-example\"", "cost = \"none\"", "there is no cost model \"none\""),
    ] {
        let suite = folder.path().join("bad.toml");
        std::fs::write(&suite, SUITE.replacen(from, to, 1)).expect("is written");
        let output = sweep(&suite, &folder.path().join("report"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {said}");
        assert!(said.contains(needle), "{to}: {said}");
    }
}

#[test]
fn a_report_is_drawn_anew_and_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let suite = folder.path().join("small.toml");
    std::fs::write(&suite, SUITE).expect("is written");
    let dir = folder.path().join("report");
    assert!(sweep(&suite, &dir).status.success());
    let serve = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_cr-serve")).args(args).stdin(Stdio::null()).output().expect("starts")
    };
    let path = dir.to_str().expect("is text");
    let page = std::fs::read(dir.join("report.md")).expect("was written");
    std::fs::remove_file(dir.join("report.md")).expect("was there");
    assert!(serve(&["report", path, "--html"]).status.success());
    assert_eq!(std::fs::read(dir.join("report.md")).expect("is there again"), page);
    assert!(dir.join("report.html").is_file());

    assert_eq!(serve(&["compare", path, path]).status.code(), Some(0));
    // A result in which cacheroute's tail is three times as long is a regression.
    let worse = folder.path().join("worse");
    std::fs::create_dir(&worse).expect("a folder");
    let mut result: Value =
        serde_json::from_slice(&std::fs::read(dir.join("result.json")).expect("reads")).expect("is JSON");
    for run in result["runs"].as_array_mut().expect("has runs") {
        if run["policy"] == "cacheroute" {
            for field in ["p99", "max"] {
                let slower = run["ttft_s"][field].as_f64().expect("is a number") * 3.0;
                run["ttft_s"][field] = slower.into();
            }
        }
    }
    let worse = worse.join("result.json");
    std::fs::write(&worse, result.to_string()).expect("is written");
    let worse = worse.to_str().expect("is text");
    let compared = serve(&["compare", path, worse]);
    assert_eq!(compared.status.code(), Some(3), "{}", String::from_utf8_lossy(&compared.stdout));
    let file = folder.path().join("comparison.json");
    let file = file.to_str().expect("is text");
    let compared = serve(&["compare", path, worse, "--format", "json", "-o", file]);
    assert_eq!((compared.status.code(), compared.stdout.len()), (Some(3), 0));
    let written: Value = serde_json::from_slice(&std::fs::read(file).expect("reads")).expect("is JSON");
    assert_eq!(
        (&written["schema"], &written["regressed"]),
        (&"cacheroute.comparison/1".into(), &true.into())
    );
    assert_eq!(serve(&["compare", path, "nowhere"]).status.code(), Some(2));
}
