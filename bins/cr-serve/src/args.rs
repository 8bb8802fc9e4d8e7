//! What is typed.

use crate::calibrate::CalibrateArgs;
use crate::claims::ClaimsArgs;
use crate::compare::{CompareArgs, ReportArgs};
use crate::fit::FitArgs;
use crate::fleet::{AssumeArgs, FleetArgs, ReplanArgs};
use crate::gate::GateArgs;
use crate::generate::GenerateArgs;
use crate::model::{ModelArgs, ModelCommand};
use crate::validate::ValidateArgs;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use cr_cli::CommonArgs;
use cr_cli::extras::Extra;
use cr_cli::quantity;

/// Replay LLM-serving traffic over N logical shards with paged, prefix-caching KV pools, under a routing policy.
#[derive(Parser, Debug)]
#[command(version, about, max_term_width = 110, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve one trace under one policy
    #[command(after_long_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// Run a suite: every policy, rate and seed over one workload
    #[command(after_long_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// Measure a model on this device and fit a cost model to it
    #[command(after_long_help = CALIBRATE_EXAMPLES)]
    Calibrate(CalibrateArgs),
    /// Hold the simulator against the real model on one trace
    #[command(after_long_help = VALIDATE_EXAMPLES)]
    Validate(Box<ValidateArgs>),
    /// Search parameters of a suite that a publication leaves unsaid
    #[command(after_long_help = FIT_EXAMPLES)]
    Fit(FitArgs),
    /// May this traffic be switched from one policy to another? Exits with 3 where it should not
    #[command(after_long_help = GATE_EXAMPLES, mut_arg("engine", |engine| engine.default_value("sim")))]
    #[command(mut_arg("clock", |clock| clock.hide(true)), mut_arg("free_run", |free_run| free_run.hide(true)))]
    Gate(Box<GateArgs>),
    /// How a suite's ranking and verdict change as each unstated parameter moves over its plausible range
    #[command(after_long_help = SENSITIVITY_EXAMPLES)]
    Sensitivity(SweepArgs),
    /// Continue a prompt with a model's own tokens
    #[command(after_long_help = GENERATE_EXAMPLES)]
    #[command(mut_arg("model", |model| model.required(true).default_value(clap::builder::Resettable::Reset)))]
    Generate(GenerateArgs),
    /// What a model is, whether it is right here, how fast it is
    #[command(subcommand)]
    Model(ModelCommand),
    /// Draw a report anew from its result.json and detail.json
    #[command(after_long_help = "Examples:\n  cr-serve report reports/bench --html")]
    Report(ReportArgs),
    /// The claims of several reports beside their evidence; exits with 3 where one fails
    #[command(after_long_help = CLAIMS_EXAMPLES)]
    Claims(ClaimsArgs),
    /// What changed from one result to another; exits with 3 where the newer one regressed
    #[command(after_long_help = COMPARE_EXAMPLES)]
    Compare(CompareArgs),
    #[command(flatten)]
    Extra(Extra),
}

const EXAMPLES: &str = "\
Examples:
  cr-serve run w.jsonl --table table.json | cr-top
  cr-serve run w.jsonl --shards 8 --policy sticky --engine sim -o sticky.ndjson
  cr-serve sweep configs/suites/bench.toml
  cr-serve compare reports/bench now --tolerance 10%
  cr-serve generate --model smollm2.gguf \"The capital of France is\"
Exit codes: 0 done, 1 failed, 2 usage or input, 3 an SLO or a comparison says no, 130 interrupted.";

const RUN_EXAMPLES: &str = "\
Examples:
  Serve a trace on the built-in 8M model, four shards, and watch it:
      cr-serve run w.jsonl --shards 4 --policy sticky | cr-top

  Under a planned table; shards and policy follow from it:
      cr-serve run w.jsonl --table table.json -o events.ndjson

  Learn the plan from the first quarter, measure on the rest:
      cr-serve run w.jsonl --shards 4 --policy cacheroute --plan-from 25%

  Plan anew every minute, moving little, while shard 3 dies and returns:
      cr-serve run w.jsonl --engine sim --replan 60s --max-churn 10% --fault \"down 3 at 60s for 30s\"

  The same fleet simulated, thousands of times faster:
      cr-serve run w.jsonl --shards 8 --engine sim --cost 70b-2xh100";

const SWEEP_EXAMPLES: &str = "\
Examples:
  The everyday bench, watched live from another terminal:
      cr-serve sweep configs/suites/bench.toml -o events.ndjson
      cr-top events.ndjson

  The same on a model of your own:
      cr-serve sweep configs/suites/bench.toml --model llama-tiny --report out

  A simulated ladder with capacities to 5 %; stopped and started again, it goes on where it was:
      cr-serve sweep ladder.toml --report out --jobs 8 --refine 5%";

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  A cost model of the built-in model on this device, then a simulated fleet of such devices:
      cr-serve calibrate -o cost.toml
      cr-serve run w.jsonl --shards 30 --engine sim --cost cost.toml";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  How far is the simulator from the model on my traffic?
      cr-serve validate w.jsonl --shards 4 --policy sticky
      cr-serve validate w.jsonl --shards 4 --policy cacheroute --plan-from 25% --cost cost.toml --format json";

const GATE_EXAMPLES: &str = "\
Examples:
  In CI, on your traffic, simulated on the cost of your engine (`cr-serve calibrate`):
      cr-serve gate w.jsonl --shards 4 --cost cost.toml --format json

  May fixed affinity go, and what did every replay say?
      cr-serve gate w.jsonl --baseline sticky --candidate cacheroute --report gate

Verdicts: enable (exit 0), tie and keep (exit 3: stay with the baseline).";

const SENSITIVITY_EXAMPLES: &str = "\
Examples:
  Each parameter that the suite lists under [[sensitivity]], moved by itself:
      cr-serve sensitivity ladder.toml --report out";

const FIT_EXAMPLES: &str = "\
Examples:
  For 45 minutes at most, keeping every set that was tried:
      cr-serve fit fit.toml --limit 45m -o tried.jsonl";

const GENERATE_EXAMPLES: &str = "\
Examples:
  cr-serve generate --model smollm2.gguf \"The capital of France is\"
  cr-serve generate --model smollm2.gguf --temperature 0.8 --top-p 0.9 --seed 7 \"Once upon a time\"";

const CLAIMS_EXAMPLES: &str = "\
Examples:
  cr-serve claims reports/bench -o claims.md";

const COMPARE_EXAMPLES: &str = "\
Examples:
  Guard a checked-in report in CI:
      cr-serve sweep configs/suites/bench.toml --report now && cr-serve compare reports/bench now --tolerance 10%

  The same as a comment for a pull request:
      cr-serve compare reports/bench now --format markdown -o comparison.md";

/// What stdout gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Every event as one JSON object a line
    Events,
    /// The summary for people
    Text,
    /// The summary as JSON
    Json,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct RunArgs {
    /// The trace to serve (native JSONL), `-` for stdin
    #[arg(value_name = "TRACE", default_value = "-")]
    pub(crate) trace: String,
    #[command(flatten)]
    pub(crate) routing: RoutingArgs,
    #[command(flatten)]
    pub(crate) replan: ReplanArgs,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(flatten)]
    pub(crate) assume: AssumeArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
    #[command(flatten)]
    pub(crate) pool: PoolArgs,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Routing")]
pub(crate) struct RoutingArgs {
    /// Number of shards [default: the table's, else 4]
    #[arg(long, value_name = "N", value_parser = quantity::positive_u32)]
    pub(crate) shards: Option<u32>,
    /// Routing policy: flat, round-robin, least-loaded, sticky, chwbl, dualmap, preble, cacheroute, its steps affinity,
    /// affinity+replication and affinity+replication+lpt, or lru-oracle [default: cacheroute with --table, --plan-from or --replan, else
    /// flat]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    /// Routing table of cr-plan, or one table a line; `-` for stdin
    #[arg(long, value_name = "FILE", conflicts_with = "plan_from")]
    pub(crate) table: Option<String>,
    /// Learn the table from this share of the requests, served as flat and not measured
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub(crate) plan_from: Option<f64>,
    /// With --plan-from or --replan: requests per second one shard can serve of one key [default: its fair share of all]
    #[arg(long, value_name = "QPS", value_parser = quantity::positive)]
    pub(crate) qcap: Option<f64>,
    /// With --plan-from or --replan: warm prefixes a shard can keep [default: its KV tokens / the mean repeated prefix]
    #[arg(long, value_name = "W", value_parser = quantity::positive)]
    pub(crate) warm_slots: Option<f64>,
    /// Points a shard on consistent-hash rings
    #[arg(long, value_name = "N", default_value = "100", value_parser = quantity::positive_u32)]
    pub(crate) vnodes: u32,
}

/// What serves the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineKind {
    /// A real model with real prefill and decode
    Model,
    /// Steps timed by a cost model
    Sim,
    /// The same step by step and block by block: slow, equal to the byte, for checking `sim`
    SimStepwise,
}

/// What time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockKind {
    /// Every shard has a time line of its own, so N shards on one device behave as N devices
    Virtual,
    /// Real time; all shards share the device
    Wall,
}

/// Where the durations of steps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durations {
    /// The wall clock around each step
    Measured,
    /// The cost model, while the model still computes
    Modelled,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// What serves the requests
    #[arg(long, value_enum, default_value = "model")]
    pub(crate) engine: EngineKind,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// Cost model of a step: a TOML file or a built-in name, such as 70b-2xh100 or 8b-h100
    #[arg(long, value_name = "NAME|FILE", default_value = "70b-2xh100")]
    pub(crate) cost: String,
    /// Where the durations of steps come from [default: measured; modelled under sim]
    #[arg(long, value_enum)]
    pub(crate) durations: Option<Durations>,
    /// Go on from the model's own greedy tokens instead of the trace's answers; their length stays the trace's
    #[arg(long)]
    pub(crate) free_run: bool,
    /// What time is
    #[arg(long, value_enum, default_value = "virtual")]
    pub(crate) clock: ClockKind,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Shards")]
pub(crate) struct PoolArgs {
    /// Tokens a KV block
    #[arg(long, value_name = "N", default_value = "16", value_parser = quantity::positive_u32)]
    pub(crate) block_tokens: u32,
    /// KV blocks a shard [default: 4096, or what fits in memory]
    #[arg(long, value_name = "N", value_parser = quantity::positive_u32)]
    pub(crate) kv_blocks: Option<u32>,
    /// KV tokens a shard, rounded down to blocks
    #[arg(long, value_name = "N", conflicts_with = "kv_blocks", value_parser = quantity::positive_u32)]
    pub(crate) kv_tokens: Option<u32>,
    /// Most tokens fed in one step
    #[arg(long, value_name = "N", default_value = "512", value_parser = quantity::positive_u32)]
    pub(crate) token_budget: u32,
    /// Most requests in a batch; never more than the token budget
    #[arg(long, value_name = "N", default_value = "256", value_parser = quantity::positive_u32)]
    pub(crate) max_running: u32,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct MeasureArgs {
    /// Seed of the policy's choices and the random weights
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub(crate) seed: u64,
    /// Do not measure requests that finish before this run time
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = quantity::seconds)]
    pub(crate) warmup: f64,
    /// Give up requests not finished this long after their arrival
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) timeout: Option<f64>,
    /// Exit with 3 where the 99th percentile of TTFT is above this, or the run is saturated, and say so
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub slo_ttft_p99: Option<f64>,
}

#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write the events to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// What stdout gets [default: text on a terminal, with --output or with --report, else events]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// Write a report with plots into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<std::path::PathBuf>,
    /// Hand the events to whoever connects to this Unix socket (`cr-top --connect`)
    #[arg(long, value_name = "SOCKET")]
    pub(crate) listen: Option<String>,
    /// Write every finished and failed request as a row of CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SweepArgs {
    /// The suite (TOML)
    #[arg(value_name = "SUITE")]
    pub(crate) suite: String,
    /// Write the events of all runs, one after the other, to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Write the report into this folder [default: reports/ and the suite's name, for sensitivity with -sensitivity]
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<std::path::PathBuf>,
    /// Serve with this model instead of the suite's engine: a built-in name, a TOML or GGUF file, a safetensors folder, a hub name
    #[arg(
        long,
        value_name = "MODEL",
        conflicts_with = "cost",
        help_heading = "Instead of what the suite says"
    )]
    pub(crate) model: Option<String>,
    /// Simulate with this cost model instead of the suite's engine: a built-in name or a TOML file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Instead of what the suite says")]
    pub(crate) cost: Option<String>,
    /// Run at these rates, in requests per second and ascending, instead of the suite's
    #[arg(long, value_name = "QPS,…", value_delimiter = ',', value_parser = quantity::positive, help_heading = "Instead of what the suite says")]
    pub(crate) qps: Vec<f64>,
    #[command(flatten)]
    pub(crate) making: MakingArgs,
}

/// How the runs of a suite are made.
#[derive(ClapArgs, Debug)]
pub(crate) struct MakingArgs {
    /// Simulated runs made at a time [default: one a core]; a real model runs alone
    #[arg(short, long, value_name = "N", value_parser = quantity::positive_u32)]
    pub(crate) jobs: Option<u32>,
    /// Halve the gaps around each capacity until they are at most this share of the rate
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub(crate) refine: Option<f64>,
    /// Run everything again, also what an interrupted sweep has finished
    #[arg(long)]
    pub(crate) restart: bool,
}
