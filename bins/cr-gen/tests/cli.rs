//! The program as it is typed: golden output, exit codes, pipes.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROWS: &str = "tests/golden/mooncake.jsonl";

fn cr_gen(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cr-gen"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    cr_gen(args).output().expect("starts")
}

/// Runs with `input` on stdin.
fn pipe(args: &[&str], input: &[u8]) -> Output {
    let mut child = cr_gen(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut stdin = child.stdin.take().expect("is piped");
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        // A program that refuses its input closes the pipe early.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("ends");
    feeder.join().expect("does not panic");
    output
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::str::from_utf8(&output.stdout).expect("is text")
}

#[test]
fn a_seed_and_flags_stand_for_these_bytes() {
    let cases = [
        ("zipf.jsonl", "zipf -n 4 --keys 10 --seed 1"),
        ("aggregate.jsonl", "aggregate -n 4 --keys 50 --seed 1 --gini 0.6 --max-share 10%"),
        ("exported.jsonl", "zipf -n 4 --keys 2 --seed 1 --format mooncake --out-block-tokens 128"),
        ("whales.jsonl", "whales -n 4 --keys 20 --count 2 --share 60% --arrivals gamma --cv 2 --seed 1"),
        ("threads.jsonl", "threads -n 6 --keys 3 --turns 3 --think 0.01 --closed --seed 1"),
        ("spec.toml", "threads --keys 3 --user-sigma 0.5 --drift-sigma 0.3 --top-k 2 --print-spec"),
        ("imported.jsonl", "import ROWS --max-input 1400 --speedup 2"),
        ("stats.txt", "stats ROWS"),
        ("stats-all.txt", "stats ROWS --curve --shards 2 --kv-tokens 2k"),
        ("stats.json", "stats ROWS --format json"),
    ];
    for (file, line) in cases {
        let args: Vec<&str> = line.split(' ').map(|arg| if arg == "ROWS" { ROWS } else { arg }).collect();
        let output = run(&args);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
        if std::env::var_os("CR_BLESS").is_some() {
            std::fs::write(&path, stdout(&output)).expect("writes");
        }
        let golden = std::fs::read_to_string(&path).expect("reads");
        assert_eq!(stdout(&output), golden, "{args:?}");
        assert_eq!(run(&args).stdout, output.stdout, "twice the same");
    }
}

#[test]
fn the_rate_moves_arrivals_and_nothing_else() {
    let without_time = |qps: &str| -> Vec<Value> {
        let output = run(&["zipf", "-n", "200", "--qps", qps, "--user-sigma", "1", "--output-sigma", "1"]);
        let requests = stdout(&output).lines().skip(1).map(|line| {
            let mut request: Value = serde_json::from_str(line).expect("is JSON");
            request.as_object_mut().expect("is an object").remove("t_s");
            request
        });
        requests.collect()
    };
    assert_eq!(without_time("1"), without_time("500"));
}

/// What --print-spec prints generates what the flags generate.
#[test]
fn flags_are_a_shorthand_for_a_specification() {
    for flags in [
        &["zipf", "--keys", "50", "--gini", "0.6", "--key-sigma", "1"][..],
        &["aggregate", "--keys", "500", "--arrivals", "weibull", "--cv", "2", "--population-seed", "3"],
        &["whales", "--keys", "50", "--duration", "20s"],
        &["threads", "--keys", "50", "--closed", "--max-turns", "5", "--single-turn-share", "30%"],
    ] {
        let printed = run(&[flags, &["--print-spec"]].concat());
        let by_spec = pipe(&["spec", "-"], stdout(&printed).as_bytes());
        assert_eq!(stdout(&by_spec), stdout(&run(flags)), "{flags:?}");
    }
}

#[test]
fn a_specification_file_and_what_flags_change() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/chat.toml");
    let changed = run(&["spec", file, "-n", "50", "--qps", "7", "--seed", "9"]);
    let header: Value =
        serde_json::from_str(stdout(&changed).lines().next().expect("has one")).expect("is JSON");
    assert_eq!((&header["requests"], &header["seed"]), (&50.into(), &9.into()));
    assert_eq!(header["spec"]["arrivals"]["qps"], 7.0);
    let by_flag = run(&["spec", file, "-n", "50", "--qps", "7", "--seed", "9"]);
    assert_eq!(by_flag.stdout, changed.stdout);
}

#[test]
fn a_cut_pipe_is_quiet_and_fine() {
    let mut child =
        cr_gen(&["zipf", "-n", "1M"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("is piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("reads");
    drop(lines);
    let output = child.wait_with_output().expect("ends");
    assert!(line.starts_with("{\"schema\":\"cacheroute.trace/1\""));
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

/// The pipe holds 64 KiB, so the program has written nearly all of what was read and waits.
#[cfg(target_os = "linux")]
#[test]
fn a_long_stream_needs_no_more_memory_than_a_short_one() {
    let peak_kib = |requests: usize| -> u64 {
        let mut child =
            cr_gen(&["zipf", "-n", "1M", "--keys", "1000"]).stdout(Stdio::piped()).spawn().expect("starts");
        let mut lines = BufReader::new(child.stdout.take().expect("is piped")).lines();
        assert_eq!(lines.by_ref().take(requests).count(), requests);
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).expect("reads");
        drop(lines);
        assert!(child.wait().expect("ends").success());
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("is there");
        peak.trim().trim_end_matches(" kB").parse().expect("is a number")
    };
    let (short, long) = (peak_kib(10_000), peak_kib(400_000));
    assert!(long < short + 2048, "{short} KiB after 10k requests, {long} KiB after 400k");
}

#[test]
fn formats_convert_and_are_found_out() {
    let native = run(&["import", ROWS]);
    let back = pipe(&["import", "-", "--format", "mooncake"], stdout(&native).as_bytes());
    let rows = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(ROWS)).expect("reads");
    assert_eq!(stdout(&back), rows);
    let named = run(&["import", ROWS, "--from", "mooncake"]);
    assert_eq!(named.stdout, native.stdout);
    let header: Value =
        serde_json::from_str(stdout(&native).lines().next().expect("has one")).expect("is JSON");
    assert_eq!(header["requests"], 5, "a file's requests are counted");
}

#[test]
fn a_window_a_limit_and_clipped_outputs() {
    let output = run(&["import", ROWS, "--window", "1s", "4s", "--limit", "2", "--max-output", "5"]);
    let text = stdout(&output).to_owned();
    let requests: Vec<Value> =
        text.lines().skip(1).map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let brief: Vec<_> =
        requests.iter().map(|r| (r["id"].as_u64(), r["t_s"].as_f64(), r["output_tokens"].as_u64())).collect();
    assert_eq!(brief, [(Some(1), Some(0.5), Some(3)), (Some(2), Some(0.5), Some(5))]);
    let note = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(note, "1 of 2 outputs were clipped to --max-output\n");
}

#[test]
fn packed_files_tables_and_folders_are_found_out() {
    let folder = tempfile::tempdir().expect("is made");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("writes");
        path.to_str().expect("is text").to_owned()
    };
    let rows = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(ROWS)).expect("reads");
    let packed = write("m.zst", &zstd::encode_all(&rows[..], 1).expect("packs"));
    assert_eq!(run(&["import", &packed]).stdout, run(&["import", ROWS]).stdout);

    // The header's count, found by lines, is that of the parsed rows.
    let spaced = write("s.jsonl", &[b"\n", &rows[..], b"\n  \n"].concat());
    for limit in ["1", "2", "1000"] {
        let import = run(&["import", &spaced, "--from", "mooncake", "--limit", limit]);
        let (header, requests) = stdout(&import).split_once('\n').expect("has a header");
        assert!(header.contains(&format!("\"requests\":{},", requests.lines().count())), "{header}");
    }

    let azure = write("a.csv", b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,48,10\n2023-11-16 18:17:04.97,31,8\n");
    let table = run(&["import", &azure]);
    let last = stdout(&table).lines().last().expect("has one");
    assert_eq!(last, r#"{"id":1,"t_s":1.0,"key":"r1","prompt":[["u:1",31]],"output_tokens":8}"#);

    let burst = write("b.csv", b"Timestamp,Model,Request tokens,Response tokens\n1,x,5,0\n2,y,5,5\n");
    let skipped = run(&["import", &burst, "--key-column", "Model", "--skip-bad", "1"]);
    assert!(stdout(&skipped).ends_with("\"key\":\"y\",\"prompt\":[[\"u:0\",5]],\"output_tokens\":5}\n"));
    assert_eq!(String::from_utf8_lossy(&skipped.stderr), "1 bad rows were skipped\n");

    write("chunk-3-trace.csv", b"0,5,1,Gamma,0,0\n600,5,1,Gamma,0,0\n");
    let path = folder.path().to_str().expect("is text");
    let clients = run(&["import", path, "--window", "0", "60", "--user-sigma", "1"]);
    let header: Value =
        serde_json::from_str(stdout(&clients).lines().next().expect("has one")).expect("is JSON");
    assert_eq!((&header["seed"], &header["spec"]["import"]["from"]), (&42.into(), &"servegen".into()));
    assert!(header["requests"].as_u64().is_some_and(|n| (200..400).contains(&n)), "{header}");
    assert!(stdout(&clients).lines().nth(1).is_some_and(|line| line.contains("\"key\":\"c3\"")));
}

/// Writes a file and gives its path.
fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writes");
    path.to_str().expect("is text").to_owned()
}

#[test]
fn text_becomes_requests_that_share_what_they_begin_with() {
    let folder = tempfile::tempdir().expect("is made");
    let write = |name: &str, text: &str| written(folder.path(), name, text);
    let requests = |args: &[&str]| -> (Value, Vec<cr_trace::Request>) {
        let output = run(args);
        let text = stdout(&output);
        let reader = cr_trace::TraceReader::new(text.as_bytes(), "x").expect("opens");
        let header = serde_json::to_value(reader.header()).expect("is JSON");
        (header, reader.collect::<Result<_, _>>().expect("is valid"))
    };
    let system = "You are a patient teacher of mathematics who explains every single step to the pupil before you go on.";
    let custom = write(
        "custom.jsonl",
        &format!(
            "{{\"prompt\":\"{system} What is 2 + 2?\",\"output_tokens\":9}}\n{{\"prompt\":\"{system} What is a prime?\"}}\n"
        ),
    );
    let (header, both) = requests(&["import", &custom, "--tokenizer", "words", "--qps", "3"]);
    assert_eq!(header["requests"], 2);
    let import = &header["spec"]["import"];
    assert_eq!(
        (&import["from"], &import["tokenizer"], &import["loop"]),
        (&"custom".into(), &"words".into(), &"closed".into())
    );
    assert_eq!(
        import["arrivals"],
        serde_json::json!({"drawn": true, "process": "poisson", "qps": 3.0, "cv": null})
    );
    assert_eq!(cr_trace::content::shared_tokens(&both[0].prompt, &both[1].prompt), 16);
    assert_eq!((both[0].output_tokens, both[1].output_tokens, both[0].prompt_tokens()), (9, 64, 24));
    let (_, bytes) = requests(&["import", &custom, "--tokenizer", "bytes"]);
    assert_eq!(bytes[0].prompt_tokens(), system.len() as u64 + 15);

    // A tokenizer.json of three words.
    let tokenizer = write(
        "tokenizer.json",
        r#"{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,"model":{"type":"WordLevel","vocab":{"[UNK]":0,"hello":1,"there":2},"unk_token":"[UNK]"}}"#,
    );
    let chats = write(
        "chats.json",
        r#"[{"conversations":[{"from":"human","value":"hello there"},{"from":"gpt","value":"hello there friend"},{"from":"human","value":"hello"},{"from":"gpt","value":"x"}]}]"#,
    );
    let (_, turns) = requests(&["import", &chats, "--tokenizer", &tokenizer, "--think", "2s"]);
    assert_eq!(turns.iter().map(cr_trace::Request::prompt_tokens).collect::<Vec<_>>(), [2, 6]);
    assert_eq!((turns[1].after, turns[1].turn, turns[0].output_tokens), (Some(turns[0].id), Some(2), 3));
    let (_, open) = requests(&["import", &chats, "--tokenizer", &tokenizer, "--open"]);
    assert_eq!(open[1].after, None);
}

#[test]
fn text_that_cannot_be_imported_is_told_why() {
    let folder = tempfile::tempdir().expect("is made");
    let custom = written(folder.path(), "custom.jsonl", "{\"prompt\":\"What is a prime?\"}\n");
    for (args, said) in [
        (vec!["import", &custom], "text has no tokens by itself: give the model's --tokenizer"),
        (vec!["stats", &custom], "is text, which has neither times nor tokens; make requests of it by"),
        (vec!["import", &custom, "--tokenizer", &custom], "no tokenizer: "),
        (
            vec!["import", ROWS, "--qps", "3"],
            "--qps is for text (custom, sharegpt); other inputs tell it themselves",
        ),
        (
            vec!["import", &custom, "--tokenizer", "words", "--key-column", "user"],
            "custom.jsonl:1: there is no field \"user\"",
        ),
    ] {
        let output = run(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && stderr.contains(said) && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
}

#[test]
fn statistics_can_be_drawn() {
    let folder = tempfile::tempdir().expect("is made");
    let path = folder.path().join("x.svg");
    let draw = |more: &[&str]| {
        let args = [&["stats", ROWS, "--plot", path.to_str().expect("is text")], more].concat();
        stdout(&run(&args));
        std::fs::read_to_string(&path).expect("reads")
    };
    let (plain, both) = (draw(&[]), draw(&["--curve"]));
    for svg in [&plain, &both] {
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("Share of the requests")
        );
    }
    assert!(!plain.contains("Cache, tokens") && both.contains("Cache, tokens"));
    assert_eq!(both, draw(&["--curve"]), "twice the same");
}

#[test]
fn bunches_are_spread_and_the_header_says_so() {
    let output = run(&["import", ROWS, "--unbunch"]);
    let times: Vec<f64> = stdout(&output)
        .lines()
        .skip(1)
        .map(|line| {
            serde_json::from_str::<Value>(line).expect("is JSON")["t_s"].as_f64().expect("is a number")
        })
        .collect();
    assert_eq!(times, [0.0, 1.5, 2.25, 3.0, 9.0]);
    assert!(stdout(&output).starts_with("{\"schema\"") && stdout(&output).contains("\"unbunch\":true"));
}

/// Arguments, stdin, and what stderr says to them.
type Refused = (&'static [&'static str], &'static [u8], &'static str);

fn refused(cases: &[Refused]) {
    for &(args, input, expected) in cases {
        let output = pipe(args, input);
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected, "{args:?}");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn bad_input_is_one_sentence_and_exit_2() {
    refused(&[
        (
            &["import", "-", "--seed", "1"],
            b"",
            "cr-gen: --seed is for ServeGen folders and text; other inputs tell it themselves\n",
        ),
        (
            &["import", "-", "--from", "native", "--key-blocks", "2"],
            b"{}",
            "cr-gen: --key and --key-blocks are for hash blocks (mooncake, bailian) and text\n",
        ),
        (
            &["stats", "/"],
            b"",
            "cr-gen: a ServeGen folder tells rates, not requests; make some by `cr-gen import FOLDER`\n",
        ),
        (
            &["import", "-", "--key", "session"],
            b"{\"timestamp\":0,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1]}\n",
            "cr-gen: <stdin>:1: the row has no chat_id, so its session is not known\n",
        ),
        (
            &["spec", "-"],
            b"seed = 1\n[arrivals]\nqsp = 5\n",
            "cr-gen: <stdin>:3: unknown field \"qsp\"; did you mean \"qps\"? (one of qps, process, cv, gaps_file, block)\n",
        ),
        (&["spec", "-"], b"", "cr-gen: <stdin>:1: missing field `output_tokens`\n"),
        (&["spec", "/nonexistent.toml"], b"", "cr-gen: cannot open /nonexistent.toml: no such file\n"),
        (&["stats", "-"], b"", "cr-gen: <stdin>: the input is empty; a trace has at least one line\n"),
        (&["stats", "-"], b"{\"schema\":\"cacheroute.trace/1\"}\n", "cr-gen: -: the trace has no requests\n"),
        (
            &["import", "-"],
            b"{\"timestamp\":0,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1,2]}\n",
            "cr-gen: <stdin>:1: input_length 9 takes 1 hash id for blocks of 512 tokens, but hash_ids has 2; does the trace have another block size (--block-tokens)?\n",
        ),
        (
            &["import", "-", "--from", "native"],
            b"{\"timestamp\":0,\"hash_ids\":[1,2]}\n",
            "cr-gen: <stdin>:1: this is a Mooncake trace, not a native one; convert it with `cr-gen import FILE --from mooncake`\n",
        ),
        (&["import", "/nonexistent"], b"", "cr-gen: cannot open /nonexistent: no such file\n"),
        (
            &["import", "-", "--window", "9", "3"],
            b"",
            "cr-gen: --window: the first time must lie before the second\n",
        ),
    ]);
}

#[test]
fn bad_values_are_one_sentence_and_exit_2() {
    refused(&[
        (
            &["zipf", "--arrivals", "gamma"],
            b"",
            "cr-gen: arrivals.cv: is missing; gamma and weibull need it\n",
        ),
        (
            &["zipf", "-o", "/nonexistent/w.jsonl"],
            b"",
            "cr-gen: cannot write /nonexistent/w.jsonl: there is no folder /nonexistent; make it first, or write elsewhere\n",
        ),
        (&["zipf", "--alpha", "99"], b"", "cr-gen: popularity.alpha: is 99, it must lie between 0 and 20\n"),
        (
            &["aggregate", "--gini", "1.5"],
            b"",
            "cr-gen: popularity.gini: is 1.5, it must be at least 0 and below 1\n",
        ),
        (&["zipf", "--keys", "0"], b"", "cr-gen: popularity.keys: 0 keys; between 1 and 100000000\n"),
        (
            &["zipf", "--key-tokens", "0", "--user-tokens", "0", "--global-tokens", "0"],
            b"",
            "cr-gen: prompt: has no parts; give at least one [[prompt]] table with tokens\n",
        ),
        (
            &["zipf", "-n", "1G", "--qps", "0.001"],
            b"",
            "cr-gen: arrivals.qps: so slow a rate makes the trace longer than 15000000 seconds\n",
        ),
    ]);
}

#[test]
fn bad_usage_is_exit_2() {
    for args in [
        &["zipf", "--nope"][..],
        &["zipf", "--alpha", "1", "--gini", "0.5"],
        &[],
        &["zipf", "--qps", "0"],
        &["stats", ROWS, "--shards", "3"],
    ] {
        assert_eq!(run(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn help_names_every_flag_and_the_extras_print() {
    for command in ["zipf", "aggregate", "whales", "threads", "spec", "import", "stats"] {
        let help = run(&[command, "--help"]);
        assert!(stdout(&help).contains("Examples:"), "{command}");
    }
    assert!(stdout(&run(&["man"])).contains(".TH"));
    let mut script = String::new();
    run(&["completions", "bash"]).stdout.as_slice().read_to_string(&mut script).expect("is text");
    assert!(script.contains("aggregate"));
}
