//! Replanning, streaming, and the commands that read tables.

mod support;

use std::process::Output;
use support::{Folder, cr_plan};

const MODEL: &[&str] = &["--shards", "3", "--qcap", "20", "--warm-slots", "4"];

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("is text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("is JSON")
}

#[track_caller]
fn assert_refused(args: &[&str], stdin: &str, expect: &str) {
    let output = cr_plan(args, stdin);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(expect), "{}", stderr(&output));
}

/// Requests of `keys` keys, key n every (n + 1) tenths of a second, the later ones drifting to other keys.
fn trace(keys: usize, seconds: usize) -> String {
    let mut text = String::new();
    let mut id = 0;
    for tenth in 0..10 * seconds {
        for key in (0..keys).filter(|key| tenth % (key + 1) == 0) {
            let name = if tenth > 5 * seconds { keys - key } else { key };
            text += &format!(
                "{{\"id\":{id},\"t_s\":{},\"key\":\"k{name}\",\"prompt\":[[\"k:k{name}\",{}],[\"u:{id}\",8]],\"output_tokens\":1}}\n",
                tenth as f64 / 10.0,
                16 * (name + 1)
            );
            id += 1;
        }
    }
    text
}

#[test]
fn tokens_decide_where_they_are_asked_to() {
    let rates = "key,rate,prefix_tokens\nbig,10,1000\nsmall,9,100\nlittle,8,100\n";
    let args = ["--shards", "1", "--qcap", "20", "--admission", "tokens", "--kv-tokens", "250"];
    let output = cr_plan(&args, rates);
    assert_eq!(json(&stdout(&output))["keys"], serde_json::json!({"small": [0], "little": [0]}));
    assert!(
        stderr(&output).contains("200 of 250 KV tokens kept win 1700.0 hit tokens/s"),
        "{}",
        stderr(&output)
    );
    assert!(stderr(&output).contains("no choice of keys wins more than 2500.0"), "{}", stderr(&output));
    assert_refused(&args, "a,1\n", "admission by tokens needs each key's prefix_tokens");
    assert_refused(&[&args[..], &["--warm-slots", "3"]].concat(), rates, "--warm-slots counts only with");
}

#[test]
fn work_needs_a_cost_model_and_prompts() {
    let folder = Folder::new();
    let cost = folder.file(
        "cost.toml",
        "schema = \"cacheroute.cost/1\"\nname = \"x\"\nsource = \"a test\"\n[step]\nbase_ms = 1.0\nprefill_token_ms = 0.1\n",
    );
    let args = [MODEL, &["--sizing", "work", "--cost", &cost]].concat();
    let table = json(&stdout(&cr_plan(&args, &trace(6, 20))));
    assert_eq!(table["expected_work"].as_array().expect("is a list").len(), 3);
    let named = [MODEL, &["--sizing", "work", "--cost", "70b-2xh100"]].concat();
    assert!(json(&stdout(&cr_plan(&named, &trace(6, 20))))["expected_work"].is_array());
    let unknown = [MODEL, &["--sizing", "work", "--cost", "70b"]].concat();
    assert_refused(
        &unknown,
        "a,1\n",
        "there is no cost model \"70b\" and no such file; built in are 8b-h100, ",
    );
    assert_refused(&args, "a,1\n", "--sizing work needs to know the prompts");
    assert_refused(&[MODEL, &["--cost", &cost]].concat(), "a,1\n", "--cost counts only with --sizing work");
}

#[test]
fn unequal_and_dead_shards() {
    let args = [MODEL, &["--capacity", "1,1,0.5", "--down", "1"]].concat();
    let table = json(&stdout(&cr_plan(&args, "a,4\nb,3\nc,2\nd,1\n")));
    assert_eq!(table["shard_capacity"], serde_json::json!([1.0, 0.0, 0.5]));
    assert_eq!(table["expected_load"], serde_json::json!([7.0, 0.0, 3.0]));
    assert_refused(&[MODEL, &["--down", "3"]].concat(), "a,1\n", "--down names shard 3, the last shard is 2");
    assert_refused(&[MODEL, &["--capacity", "1,1"]].concat(), "a,1\n", "--capacity lists 2 shards");
    assert_refused(&[MODEL, &["--down", "0,1,2"]].concat(), "a,1\n", "no shard is up");
}

#[test]
fn placements_are_what_they_say() {
    let rates: String = (0..9).map(|n| format!("k{n},{}\n", 9 - n)).collect();
    let keys = |placement: &[&str]| {
        json(&stdout(&cr_plan(&[MODEL, &["--placement"], placement].concat(), &rates)))["keys"].clone()
    };
    assert_eq!(keys(&["round-robin"])["k4"], serde_json::json!([1]));
    assert_eq!(keys(&["random"]), keys(&["random", "--seed", "42"]));
    assert_ne!(keys(&["random"]), keys(&["random", "--seed", "43"]));
    assert_ne!(keys(&["hash"]), keys(&["lpt"]));
    // LPT's textbook loss is 7 against 5; an exchange finds 6 against 6.
    let two = ["--shards", "2", "--qcap", "20", "--warm-slots", "4"];
    let imbalance = |placement: &str| {
        let output = cr_plan(&[&two[..], &["--placement", placement]].concat(), "a,3\nb,3\nc,2\nd,2\ne,2\n");
        json(&stdout(&output))["imbalance"].as_f64().expect("is a number")
    };
    assert!(imbalance("lpt") > 1.16);
    assert_eq!(imbalance("lpt+refine"), 1.0);
}

#[test]
fn a_replan_keeps_to_its_churn_and_diff_agrees() {
    let folder = Folder::new();
    let slots = ["--shards", "3", "--qcap", "20", "--warm-slots", "40"];
    let rates = |factor: usize| -> String {
        (0..100).map(|n| format!("k{n},{},10\n", 1 + (n * factor) % 17)).collect()
    };
    let before = folder.file("before.json", &stdout(&cr_plan(&slots, &rates(5))));
    let args = [&slots[..], &["--previous", &before, "--max-churn", "10%"]].concat();
    let output = cr_plan(&args, &rates(7));
    let after = folder.file("after.json", &stdout(&output));
    assert!(stderr(&output).contains("a plain plan: churn"), "{}", stderr(&output));
    let diff = json(&stdout(&cr_plan(&["diff", &before, &after, "--format", "json"], "")));
    let churn = diff["churn"].as_f64().expect("is a number");
    assert!(churn > 0.0 && churn <= 0.1, "{diff}");
    assert_eq!(
        diff["rewarm_tokens"],
        diff["moved_keys"].as_u64().map(|n| serde_json::json!(10 * n)).expect("is a count")
    );
    let text = stdout(&cr_plan(&["diff", &before, &after, "--top", "1"], ""));
    assert!(text.contains("\nmoved\n  k") && text.contains("] -> ["), "{text}");
    let plain = folder.file("plain.json", &stdout(&cr_plan(&slots, &rates(7))));
    let text = stdout(&cr_plan(&["diff", &before, &plain, "--top", "1"], ""));
    assert!(text.contains("more (--top)"), "{text}");
    let same = json(&stdout(&cr_plan(&["diff", &before, &before, "--format", "json"], "")));
    assert_eq!(same["churn"], 0.0);
    assert_refused(&[&slots[..], &["--max-churn", "5%"]].concat(), "a,1\n", "need a table to start from");
    let grown = ["--shards", "5", "--qcap", "20", "--warm-slots", "4", "--previous", &before];
    let said = stderr(&cr_plan(&grown, &rates(5)));
    assert!(
        said.contains("the previous table is for 3 shards, this plan for 5: shards 3 to 4 begin empty"),
        "{said}"
    );
}

#[test]
fn a_stream_plans_each_interval_from_the_past() {
    let trace = trace(6, 40);
    for estimator in
        [&["--half-life", "20"][..], &["--estimator", "window", "--window", "20s", "--max-keys", "4"]]
    {
        let args = [MODEL, &["--interval", "10s", "--max-churn", "20%"], estimator].concat();
        let text = stdout(&cr_plan(&args, &trace));
        let tables: Vec<serde_json::Value> = text.lines().map(json).collect();
        let starts: Vec<f64> =
            tables.iter().map(|table| table["from_s"].as_f64().expect("is a number")).collect();
        assert_eq!(starts, [10.0, 20.0, 30.0]);
        assert!(tables.iter().all(|table| table["in_sample"] == false));
        // k6 appears in the second half only: a table of the past does not know it.
        assert!(tables[0]["rates"].get("k6").is_none() && tables[1]["rates"].get("k6").is_none());
        assert!(tables[2]["rates"].get("k6").is_some(), "{}", tables[2]);
        // The total rate is that of the window: 10 + 5 + 10/3 + … requests per second of six keys.
        let total = |table: &serde_json::Value| {
            table["admitted_rate"].as_f64().expect("is a number")
                + table["cold_rate"].as_f64().expect("is a number")
        };
        assert!((total(&tables[0]) - 24.5).abs() < 0.5, "{}", total(&tables[0]));
        // What comes out is what --table takes: several tables, in order.
        let shown = cr_plan(&["show", "-"], &text);
        assert_eq!(stdout(&shown).matches("imbalance").count(), 3);
    }
    let tokens =
        ["--shards", "3", "--qcap", "20", "--admission", "tokens", "--kv-tokens", "60", "--interval", "10s"];
    let tables = stdout(&cr_plan(&tokens, &trace));
    // Prefixes are 16 (n + 1) tokens; the hottest go first, and no shard holds more than 60.
    assert_eq!(tables.lines().count(), 3);
    let first = json(tables.lines().next().expect("has one"));
    assert!(first["keys"].get("k0").is_some() && first["keys"].get("k5").is_none(), "{first}");
    let work = [MODEL, &["--interval", "10s", "--sizing", "work", "--cost", "70b-2xh100"]].concat();
    assert!(
        json(stdout(&cr_plan(&work, &trace)).lines().next().expect("has one"))["expected_work"].is_array()
    );
    assert_refused(
        &[MODEL, &["--interval", "10s"]].concat(),
        "a,1\n",
        "--interval needs a trace of requests",
    );
    assert_refused(
        &[MODEL, &["--interval", "10s", "--window", "5s"]].concat(),
        &trace,
        "--window counts only with",
    );
}

#[test]
fn check_tells_a_table_that_fits_from_one_that_does_not() {
    let folder = Folder::new();
    let rates = "a,4\nb,3\nc,2\nd,1\n";
    let table = folder.file("t.json", &stdout(&cr_plan(&[MODEL, &["--no-rates"]].concat(), rates)));
    let output = cr_plan(&["check", &table, "-"], rates);
    assert!(stdout(&output).ends_with("fits\n"));
    let output = cr_plan(&["check", &table, "-", "--format", "json"], "a,40\nb,3\nz,2\n");
    assert_eq!(output.status.code(), Some(3));
    let found = json(&String::from_utf8(output.stdout).expect("is text"));
    assert_eq!(
        (&found["fits"], &found["idle_keys"], &found["cold_keys"]),
        (&false.into(), &2.into(), &1.into())
    );
    assert_eq!(found["complaints"].as_array().expect("is a list").len(), 2, "{found}");
}

#[test]
fn show_explains_rank_slots_and_place() {
    let rates: String = (0..20).map(|n| format!("k{n:02},{}\n", 50 - n)).collect();
    let table = stdout(&cr_plan(&["--shards", "3", "--qcap", "40", "--warm-slots", "4"], &rates));
    let shown = stdout(&cr_plan(&["show", "-", "k01"], &table));
    assert!(shown.starts_with("k01  admitted, on shards "), "{shown}");
    assert!(
        shown.contains("49.0000/s, rank 2 of 20")
            && shown.contains("2 of 3 shards: 49.0000/s at 40/s a shard"),
        "{shown}"
    );
    assert!(shown.contains("2 of 12 were taken by hotter keys"), "{shown}");
    let shown = stdout(&cr_plan(&["show", "-", "k05"], &table));
    assert!(shown.contains("10 of 12 were taken by hotter keys"), "{shown}");
    let shown = stdout(&cr_plan(&["show", "-", "k19"], &table));
    assert!(shown.contains("12 of 12 were taken by hotter keys, 1 more did not fit"), "{shown}");
}

#[test]
fn sensitivity_lists_each_error_of_each_input() {
    let rates: String = (1..50).map(|n| format!("k{n},{}\n", 100.0 / n as f64)).collect();
    let points =
        json(&stdout(&cr_plan(&[&["sensitivity", "-", "--format", "json"], MODEL].concat(), &rates)));
    let points = points.as_array().expect("is a list");
    assert_eq!(points.len(), 9);
    let warm = |at: usize| points[at]["warm_share"].as_f64().expect("is a number");
    assert!(warm(5) < warm(0) && warm(0) < warm(8), "fewer slots warm less, more warm more");
    let text = stdout(&cr_plan(&[&["sensitivity", "-"], MODEL].concat(), &rates));
    assert!(text.contains("warm slots   -25 %"), "{text}");
}

#[test]
fn calibrate_reads_ladders_and_pools() {
    let folder = Folder::new();
    let csv = "qps,p99,failed,run\n10,0.5,0,1\n20,0.6,0,1\n30,5,0,1\n10,0.5,0,2\n20,0.6,0.2,2\n30,5,0,2\n";
    let found =
        json(&stdout(&cr_plan(&["calibrate", "-", "--slo", "2s", "--shards", "2", "--format", "json"], csv)));
    assert_eq!(
        (&found["qcap"], &found["qcap_below"], &found["runs"]),
        (&7.5.into(), &12.5.into(), &2.into())
    );
    let run = |seed: u64, qps: f64, p99: f64, policy: &str| {
        format!(
            "{{\"policy\":\"{policy}\",\"seed\":{seed},\"requests\":{{\"offered\":100,\"completed\":100,\"failed\":0,\"offered_qps\":{qps}}},\"ttft_s\":{{\"p99\":{p99}}},\"saturated\":false}}"
        )
    };
    let runs = [run(1, 10.0, 0.2, "flat"), run(1, 20.0, 3.0, "flat"), run(1, 20.0, 0.1, "sticky")].join(",");
    let result = folder.file(
        "result.json",
        &format!(
            "{{\"schema\":\"cacheroute.result/1\",\"suite\":\"x\",\"runs\":[{runs}],\"aggregates\":[]}}"
        ),
    );
    let text = stdout(&cr_plan(&["calibrate", &result, "--slo", "2s", "--policy", "flat"], ""));
    assert!(text.starts_with("qcap        10.00\n") && text.contains("10.00 passes, 20.00 fails"), "{text}");
    assert_refused(&["calibrate", &result, "--slo", "2s"], "", "name one of flat, sticky by --policy");
    assert_refused(&["calibrate", "-"], "qps,p99\n10,0.5\n", "1 loads are too few to find a knee");
    assert_refused(&["calibrate", "-"], "qps,latency\n10,0.5\n", "<stdin>:2:");
    let rates = folder.file("rates.csv", "a,3,100\nb,1,300\n");
    let pool = ["--kv-tokens", "10k", "--rates", &rates, "--reserve", "20%"];
    let text = stdout(&cr_plan(&[&["calibrate", "-", "--slo", "2s"], &pool[..]].concat(), csv));
    assert!(text.contains("warm_slots  53.3\n"), "{text}");
}

#[test]
fn every_command_that_answers_writes_to_a_file_where_asked() {
    let folder = Folder::new();
    let rates = folder.file("rates.csv", "a,4\nb,3\nc,2\nd,1\n");
    let table = folder.file("t.json", &stdout(&cr_plan(&[&[rates.as_str()][..], MODEL].concat(), "")));
    let ladder = folder.file("ladder.csv", "qps,p99\n10,0.5\n20,0.6\n30,5\n");
    let commands: [&[&str]; 5] = [
        &["show", &table],
        &["diff", &table, &table],
        &["check", &table, &rates],
        &["calibrate", &ladder, "--slo", "2s"],
        &[&["sensitivity", &rates][..], MODEL].concat(),
    ];
    for command in commands {
        let printed = stdout(&cr_plan(command, ""));
        let file = folder.file("answer", "");
        let output = cr_plan(&[command, &["-o", &file]].concat(), "");
        assert!(output.status.success() && output.stdout.is_empty(), "{command:?}: {}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&file).expect("was written"), printed, "{command:?}");
    }
    assert_refused(&["show", &table, "-o", &table], "", "t.json");
}
