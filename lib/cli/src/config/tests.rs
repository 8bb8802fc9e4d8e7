//! The layers over a made-up program.

use super::*;
use crate::CommonArgs;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Parser, Debug)]
#[command(name = "cr-serve")]
struct Cli {
    #[command(subcommand)]
    command: Sub,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Subcommand, Debug)]
enum Sub {
    Run(RunArgs),
    Sweep {
        #[arg(long)]
        seed: Option<u64>,
    },
}

#[derive(Args, Debug)]
struct RunArgs {
    trace: Option<String>,
    #[arg(long)]
    shards: u32,
    #[arg(long, value_enum, default_value_t = Kind::Model)]
    engine: Kind,
    #[arg(long)]
    kv_blocks: Option<u32>,
    #[arg(long, conflicts_with = "kv_blocks")]
    kv_tokens: Option<u32>,
    #[arg(long, num_args = 2)]
    window: Option<Vec<f64>>,
    #[arg(long)]
    fault: Vec<String>,
    #[arg(long, overrides_with = "no_rates")]
    with_rates: bool,
    #[arg(long)]
    no_rates: bool,
    #[arg(long, requires = "kv_blocks")]
    protect: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Model,
    Sim,
}

/// Resolves a line under variables `NAME=value` and the text of a file.
fn resolved(line: &str, variables: &[&str], file: &str) -> Result<Resolved<Cli>, Failure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lab.toml");
    std::fs::write(&path, file).expect("written");
    let typed = line.replace("FILE", &path.display().to_string());
    let typed = typed.split_whitespace().map(OsString::from).collect();
    let pairs: Vec<_> = variables
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    resolve::<Cli>(typed, &pairs)
}

fn cli(line: &str, variables: &[&str], file: &str) -> Cli {
    match resolved(line, variables, file) {
        Ok(Resolved::Run(cli)) => *cli,
        Ok(Resolved::Print(text)) => panic!("printed {text}"),
        Err(Failure::Usage(error)) => panic!("{error}"),
        Err(Failure::Input(error)) => panic!("{error}"),
    }
}

fn run(line: &str, variables: &[&str], file: &str) -> RunArgs {
    match cli(line, variables, file).command {
        Sub::Run(run) => run,
        other => panic!("{other:?}"),
    }
}

fn printed(line: &str, variables: &[&str], file: &str) -> String {
    match resolved(line, variables, file) {
        Ok(Resolved::Print(text)) => text,
        other => panic!("{}", error_of(other)),
    }
}

fn error_of(result: Result<Resolved<Cli>, Failure>) -> String {
    match result {
        Ok(_) => panic!("it worked"),
        Err(Failure::Usage(error)) => squeezed(&error.to_string()),
        Err(Failure::Input(error)) => squeezed(&error.to_string()),
    }
}

/// A text without the temporary folder, one blank between words.
fn squeezed(text: &str) -> String {
    let word = |word: &str| match word.rfind("lab.toml") {
        Some(at) => word[at..].to_string(),
        None => word.to_string(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let file = "[run]\nshards = 2\n";
    assert_eq!(run("cr-serve run --config FILE", &[], file).shards, 2);
    assert_eq!(run("cr-serve run --config FILE", &["CR_SHARDS=3"], file).shards, 3);
    assert_eq!(run("cr-serve run --config FILE --shards 4", &["CR_SHARDS=3"], file).shards, 4);
    assert_eq!(run("cr-serve run --shards 4", &[], "").engine, Kind::Model);
    assert_eq!(run("cr-serve --config=FILE run", &[], "shards = 5\nengine = \"sim\"").engine, Kind::Sim);
}

#[test]
fn the_specific_scope_wins() {
    let scopes = ["shards = 1", "[run]\nshards = 2", "[cr-serve]\nshards = 3", "[cr-serve.run]\nshards = 4"];
    for (many, expect) in (1..=4).zip(1u32..) {
        let file = scopes[..many].join("\n");
        assert_eq!(run("cr-serve run --config FILE", &[], &file).shards, expect);
    }
    let names = ["CR_SHARDS=1", "CR_RUN_SHARDS=2", "CR_SERVE_SHARDS=3", "CR_SERVE_RUN_SHARDS=4"];
    for (many, expect) in (1..=4).zip(1u32..) {
        assert_eq!(run("cr-serve run", &names[..many], "").shards, expect);
    }
}

#[test]
fn values_reach_only_the_commands_that_have_the_flag() {
    let file = "seed = 7\nshards = 2\n[cr-gen.zipf]\nkeys = 48\n";
    assert_eq!(run("cr-serve run --config FILE", &[], file).shards, 2);
    let sweep = cli("cr-serve sweep --config FILE", &["CR_SHARDS=9"], file);
    assert!(matches!(sweep.command, Sub::Sweep { seed: Some(7) }));
}

#[test]
fn a_layer_yields_to_what_conflicts_above_it() {
    let file = "shards = 1\nkv-blocks = 10\nno-rates = true";
    let args = run("cr-serve run --config FILE --kv-tokens 64 --with-rates", &[], file);
    assert_eq!((args.kv_blocks, args.kv_tokens), (None, Some(64)));
    assert!(args.with_rates && !args.no_rates);
    let args = run("cr-serve run --config FILE", &["CR_KV_TOKENS=32"], file);
    assert_eq!((args.kv_blocks, args.kv_tokens), (None, Some(32)));
    // Within one layer a conflict is the user's to mend.
    let error = error_of(resolved("cr-serve run --config FILE", &[], &format!("{file}\nkv-tokens = 3")));
    assert!(error.contains("cannot be used with"), "{error}");
    assert!(error.contains("--kv-blocks is set by lab.toml:2"), "{error}");
}

#[test]
fn switches_counts_and_lists() {
    let file = "shards = 1\nquiet = true\nverbose = 2\nwindow = [1, 2.5]\nfault = [\"down 3\", \"up 3\"]";
    let made = cli("cr-serve run --config FILE", &["CR_QUIET=0"], file);
    assert!(!made.common.quiet && made.common.verbose == 2);
    let args = run("cr-serve run t.jsonl --config FILE", &[], file);
    assert_eq!(args.window, Some(vec![1.0, 2.5]));
    assert_eq!(args.fault, ["down 3", "up 3"]);
    assert_eq!(args.trace.as_deref(), Some("t.jsonl"));
    assert_eq!(run("cr-serve run --fault x --config FILE", &[], file).fault, ["x"]);
    assert_eq!(run("cr-serve run", &["CR_SHARDS=1", "CR_WINDOW=3 4"], "").window, Some(vec![3.0, 4.0]));
}

#[test]
fn a_value_before_the_subcommand_is_not_taken_for_it() {
    let args = run("cr-serve --color never run --config FILE", &["CR_ENGINE=sim"], "shards = 3");
    assert_eq!((args.shards, args.engine), (3, Kind::Sim));
}

#[test]
fn mistakes_name_their_place() {
    let check = |file: &str, expect: &str| {
        let error = error_of(resolved("cr-serve run --config FILE", &[], file));
        assert!(error.contains(expect), "{error}\ndoes not say {expect}");
    };
    check("\nshrads = 2", "lab.toml:2: unknown key \"shrads\" for cr-serve; did you mean \"shards\"?");
    check("[run]\nseed = 2", "lab.toml:2: unknown key \"seed\" for cr-serve run; keys are the long flags");
    check("[rum]\nshards = 2", "lab.toml:1: unknown key \"rum\" for cr-serve; did you mean \"run\"?");
    check("[cr-serv]\nshards = 2", "did you mean \"cr-serve\"?");
    check("shards = ", "lab.toml:1: ");
    check("shards = 1\nquiet = \"loud\"", "lab.toml:2: quiet: it is a switch; write true or false");
    check("shards = [1, 2]", "lab.toml:1: shards: it takes one value, not a list");
    check("shards = 1979-05-27", "lab.toml:1: shards: a datetime is no value of a flag");
    check("config = \"x\"", "unknown key \"config\"");
    check("shards = \"many\"", "--shards is set by lab.toml:1");
    check("shards = 1\nprotect = true", "--protect is set by lab.toml:2");
    let error = error_of(resolved("cr-serve run", &["CR_RUN_SHARDS=many"], ""));
    assert!(error.contains("--shards is set by CR_RUN_SHARDS"), "{error}");
    let error = error_of(resolved("cr-serve run --config nowhere.toml", &[], ""));
    assert_eq!(error, "cannot open nowhere.toml: no such file");
}

#[test]
fn what_is_printed_is_a_file_that_says_the_same() {
    let line = "cr-serve run --fault a --fault b,c --window 1 2 --config FILE --print-config";
    let text = printed(line, &["CR_ENGINE=sim", "CR_TRACES=/data"], "shards = 3\n");
    for line in [
        "[cr-serve.run]",
        "shards = 3 # lab.toml:1",
        "engine = \"sim\" # CR_ENGINE",
        "# kv-blocks = # not set",
        "window = [1, 2] # --window",
        "fault = [\"a\", \"b,c\"] # --fault",
        "# quiet = false # default",
        "# Variables that set nothing here: CR_TRACES",
    ] {
        let text = squeezed(&text);
        assert!(text.contains(line), "{text}\nlacks {line}");
    }
    let again = run("cr-serve run --config FILE", &[], &text);
    assert_eq!((again.shards, again.engine), (3, Kind::Sim));
    assert_eq!((again.fault, again.window), (vec!["a".into(), "b,c".into()], Some(vec![1.0, 2.0])));
}

#[test]
fn printing_tells_what_is_missing_and_still_refuses_nonsense() {
    let text = printed("cr-serve run --print-config", &[], "");
    assert!(squeezed(&text).contains("# shards = # missing, and needed"), "{text}");
    let error = error_of(resolved("cr-serve run --print-config --shards x", &[], ""));
    assert!(error.contains("invalid value"), "{error}");
}

#[test]
fn a_variable_names_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lab.toml");
    std::fs::write(&path, "shards = 6").expect("written");
    let named = format!("CR_CONFIG={}", path.display());
    assert_eq!(run("cr-serve run", &[&named], "").shards, 6);
    assert_eq!(run("cr-serve run --config FILE", &[&named], "shards = 2").shards, 2);
}
