//! Every example of every `--help` is run, and every command of the pages for beginners.
//!
//! Inputs are small: counts are cut down, a suite of the examples' name is put in the place of the real one, and what
//! is served is simulated unless an example says otherwise.
#![cfg(unix)]
#![allow(clippy::print_stdout)] // a skipped example says so

mod support;

use std::fs;
use std::path::Path;
use std::process::Output;
use support::{bash, has, root};

/// What examples may do that cannot be done here, and why.
const SKIPPED: [(&str, &str); 8] = [
    ("smollm2.gguf", "it needs a downloaded checkpoint"),
    ("cr-serve calibrate", "it measures a real model for minutes"),
    ("-o /etc/", "it writes where only root may"),
    ("--replay", "it takes a terminal"),
    ("tokenizer.json", "it needs a downloaded tokenizer"),
    ("sharegpt.json", "it needs a published data set"),
    ("xdg-open", "it opens a window"),
    ("tmux", "it takes a terminal"),
];

/// Counts of the examples, cut to what a test has time for.
const SMALLER: [(&str, &str); 7] = [
    ("1M", "2k"),
    ("--requests 100k", "--requests 2k"),
    ("--requests 40k", "--requests 400"),
    ("--requests 20k", "--requests 2k"),
    ("--requests 10k", "--requests 2k"),
    ("--duration 10m", "--duration 10s"),
    ("workloads/primary.toml", "workloads/primary.toml -n 500"),
];

/// What the examples find in their folder.
const INPUTS: &str = "\
cr-gen zipf --keys 18 --alpha 0.2 -n 150 --qps 40 --key-tokens 64 --global-tokens 32 --user-tokens 16 --output-tokens 4 -o w.jsonl
cr-plan w.jsonl --shards 4 --qcap 5 --warm-slots 20 -o table.json
cp table.json old.json && cp table.json new.json && cp table.json a.json && cp table.json b.json
printf 'k0,4\\nk1,2.5\\nk2,1\\n' | tee new.csv > rates.csv
cr-gen threads --keys 20 -n 400 --qps 20 --format mooncake -o conversation_trace.jsonl
printf 'TIMESTAMP,ContextTokens,GeneratedTokens\\n2023-11-16 18:15:46.6805900,374,44\\n2023-11-16 18:15:50.9951690,396,109\\n' \\
  > AzureLLMInferenceTrace_code.csv
for policy in flat cacheroute sticky; do
  cr-serve run w.jsonl --engine sim --shards 4 --policy $policy --plan-from 25% -o $policy.ndjson -q
done
cp sticky.ndjson run.ndjson && cp sticky.ndjson events.ndjson
mkdir -p configs/suites reports && cp -r ROOT/configs/costs ROOT/configs/models configs && cp -r ROOT/workloads .
sed -e 's/kind = \"model\"/kind = \"sim\"/; s/^model = \"llama.*/cost = \"70b-2xh100\"/; s/^seeds = .*/seeds = [1, 2]/; s/^requests = .*/requests = 100/' \\
  -e 's/^utilisation = .*/qps = [20.0]/; /^probe_requests/d' ROOT/configs/suites/bench.toml > configs/suites/bench.toml
sed -e 's/^plan_from.*/&\\nslo = { ttft_p99_s = 3.5 }/; s/^qps = .20.0./qps = [20.0, 60.0]/' configs/suites/bench.toml > ladder.toml
printf '\n[[published]]\npolicy = \"flat\"\nmetric = \"served_hit\"\nvalue = 0.5\n' >> ladder.toml
printf '\n[[sensitivity]]\nname = \"budget\"\nfield = \"fleet.token_budget\"\nvalues = [64, 1024]\n' >> ladder.toml
printf 'schema = \"cacheroute.fit/1\"\nsuite = \"ladder.toml\"\nseed = 1\nevaluations = 3\nsearch_seeds = [1]\nheld_out_seeds = [2]\n' > fit.toml
printf 'parameter = [{ field = \"fleet.kv_blocks\", low = 64, high = 512, whole = true }]\n' >> fit.toml
cp configs/costs/70b-2xh100.toml cost.toml
printf 'qps,p99\\n10,0.2\\n20,0.4\\n40,1.1\\n80,6\\n' > ladder.csv
cr-serve sweep configs/suites/bench.toml -q > sweep.txt && cp -r reports/bench now
cr-serve sweep ladder.toml --report reports/ladder -q > sweep.txt
";

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("set -eu\n{}", INPUTS.replace("ROOT", &root().display().to_string()));
    let made = bash(folder.path(), &script);
    assert!(made.status.success(), "{}", words(&made));
    folder
}

fn words(output: &Output) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", part(&output.stdout), part(&output.stderr))
}

fn help(command: &str) -> String {
    let output = bash(&root(), &format!("{command} --help"));
    assert!(output.status.success(), "{command} --help: {}", words(&output));
    words(&output)
}

/// A program's commands, itself included, from what their `--help` lists.
fn commands(program: &str) -> Vec<String> {
    let mut found = vec![program.to_string()];
    let mut next = 0;
    while let Some(command) = found.get(next).cloned() {
        let text = help(&command);
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        let listed = listed.take_while(|line| line.is_empty() || line.starts_with(' '));
        let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        found.extend(names.map(|name| format!("{command} {name}")));
        next += 1;
    }
    found
}

/// The commands under "Examples:", without the words that stand beside them.
fn examples(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| line.trim() != "Examples:").skip(1);
    let lines = section.take_while(|line| line.is_empty() || line.starts_with(' ')).map(str::trim);
    let starts = |line: &str| ["cr-", "printf ", "cat ", "for "].iter().any(|start| line.starts_with(start));
    lines
        .filter(|line| starts(line))
        .map(|line| line.split("   ").next().unwrap_or(line).to_string())
        .collect()
}

/// Runs one example among fresh inputs: it must do what it says, or say no.
fn tried(inputs: &Path, example: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let copied = bash(folder.path(), &format!("cp -r {}/. .", inputs.display()));
    assert!(copied.status.success(), "{}", words(&copied));
    let small = SMALLER.iter().fold(example.to_string(), |text, (from, to)| text.replace(from, to));
    // What is started beside a reader must have ended too.
    let script =
        format!("set -o pipefail; export CR_SERVE_RUN_ENGINE=sim\n{small}\ncode=$?; wait; exit $code");
    let output = bash(folder.path(), &format!("timeout 120 bash -c {}", quoted(&script)));
    match output.status.code() {
        // 3: it ran, and a gate or a comparison says no. 141: `head` has cut a pipe.
        Some(0 | 3 | 141) => Ok(()),
        code => Err(format!("{example}\n  ran as: {small}\n  code {code:?}: {}", words(&output))),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[test]
#[expect(clippy::print_stdout, reason = "an example that is skipped says so")]
fn every_example_of_every_help_runs() {
    let inputs = prepared();
    let (mut ran, mut wrong) = (0, Vec::new());
    for program in ["cr-gen", "cr-plan", "cr-serve", "cr-top"] {
        for command in commands(program) {
            for example in examples(&help(&command)) {
                let skip = SKIPPED.iter().find(|(word, _)| example.contains(word));
                if let Some((_, why)) = skip {
                    println!("skipped: {example}: {why}");
                } else if example.contains("| jq") && !has("jq") {
                    println!("skipped: {example}: there is no jq");
                } else if example.contains("servegen/") {
                    println!("skipped: {example}: it needs a published folder of clients");
                } else {
                    ran += 1;
                    wrong.extend(tried(inputs.path(), &example).err());
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} examples fail:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran > 30, "only {ran} examples were found");
}

#[test]
fn every_flag_stands_in_a_group_and_every_command_says_what_it_is() {
    for program in ["cr-gen", "cr-plan", "cr-serve", "cr-top"] {
        for command in commands(program) {
            let text = help(&command);
            let about = text.lines().next().unwrap_or_default();
            assert!(about.len() > 10, "{command} --help begins with {about:?}");
            let own: Vec<&str> = command.split(' ').collect();
            if !matches!(own.last(), Some(&"completions" | &"man" | &"model")) {
                assert!(!examples(&text).is_empty(), "{command} --help has no example");
                assert!(
                    text.contains("\nCommon options:\n"),
                    "{command} --help has no group of common options"
                );
            }
        }
    }
}

/// The `sh` blocks of a page, but those marked `ignore`.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match line {
            "```sh" => {
                inside = true;
                blocks.push(String::new());
            }
            "```" => inside = false,
            _ => {
                if let Some(block) = blocks.last_mut().filter(|_| inside) {
                    *block += &format!("{line}\n");
                }
            }
        }
    }
    blocks
}

/// The README serves more than a test has time for; the quick start's few requests are really computed.
fn engine(page: &str) -> &'static str {
    if page == "README.md" { "export CR_SERVE_RUN_ENGINE=sim" } else { "" }
}

/// A page's blocks, one after the other in one folder, as a reader types them; `before` brings what the page wants its reader to have.
fn page_runs(page: &str, before: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let ready = bash(folder.path(), before);
    assert!(ready.status.success(), "{page}: {}", words(&ready));
    let text = fs::read_to_string(root().join(page)).expect("the page exists");
    let blocks = blocks(&text);
    assert!(!blocks.is_empty(), "{page} has no command to run");
    for block in &blocks {
        let script = format!("set -euo pipefail\n{}\n{block}", engine(page));
        let output = bash(folder.path(), &format!("timeout 300 bash -c {}", quoted(&script)));
        let code = output.status.code();
        assert_eq!(code, Some(0), "{page}:\n{block}\n{}", words(&output));
    }
}

#[test]
fn the_quick_start_runs_as_typed() {
    page_runs("docs/quick-start.md", "");
}

#[test]
fn the_page_on_your_own_trace_runs_as_typed() {
    page_runs("docs/own-trace.md", "");
}

#[test]
fn the_readme_runs_as_typed() {
    page_runs(
        "README.md",
        "cr-gen threads --keys 20 -n 400 --qps 20 --format mooncake -o conversation_trace.jsonl",
    );
}
