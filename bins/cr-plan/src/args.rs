//! What can be typed.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use cr_cli::extras::Extra;
use cr_cli::{CommonArgs, quantity};

const EXAMPLES: &str = "\
Examples:
  cr-plan w.jsonl --shards 4 --qcap 50 --warm-slots 40 -o table.json
  cr-gen zipf --requests 40k | tee w.jsonl | cr-plan --shards 4 --qcap 50 --warm-slots 40 > table.json
  printf 'a,12.5\\nb,3\\n' | cr-plan --shards 2 --qcap 10 --warm-slots 8 --format text
  cr-plan show table.json k17

QCAP is the rate that one shard can serve of one key, WARM_SLOTS the prefixes that one shard keeps
warm. Both are measured, not guessed: the highest rate that a single shard serves within its latency
bound, and its KV tokens divided by the tokens of a key's prefix.";

/// Turn per-key rates into a routing table
///
/// Reads a trace of requests (rates are counted over its span), or rates in requests per second as lines of
/// key,rate[,prefix_tokens] or as JSON lines with these fields; the first line tells which. Writes the table as one
/// line of JSON (cacheroute.table/1).
#[derive(Parser, Debug)]
#[command(
    name = "cr-plan",
    version,
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Show(ShowArgs),
    #[command(flatten)]
    Extra(Extra),
}

/// Planning itself.
#[derive(ClapArgs, Debug)]
pub(crate) struct PlanArgs {
    /// A trace or rates; `-` is stdin
    #[arg(value_name = "TRACE|RATES", default_value = "-")]
    pub(crate) input: String,
    /// Number of shards to plan for
    #[arg(long, value_name = "R", required = true, value_parser = quantity::positive_u32)]
    pub(crate) shards: Option<u32>,
    /// Requests per second that one shard can serve of one key; a hotter key gets copies
    #[arg(long, value_name = "QPS", required = true, value_parser = quantity::positive)]
    pub(crate) qcap: Option<f64>,
    /// Prefixes that one shard can keep warm; may be fractional
    #[arg(long, value_name = "W", required = true, value_parser = quantity::positive)]
    pub(crate) warm_slots: Option<f64>,
    /// Write here instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Put the rates of all keys into the table [default: below 100k keys]
    #[arg(long, overrides_with = "no_rates")]
    pub(crate) with_rates: bool,
    /// Leave the rates out of the table
    #[arg(long)]
    pub(crate) no_rates: bool,
    /// Write the table as JSON, or as text for people
    #[arg(long, value_enum, default_value_t = Format::Json)]
    pub(crate) format: Format,
}

/// Show a table: the load of each shard, or where one key is and why
#[derive(ClapArgs, Debug)]
pub(crate) struct ShowArgs {
    /// A routing table, or several, one a line; `-` is stdin
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    /// Explain this key
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// `cacheroute.table/1`
    Json,
    /// As `cr-plan show`
    Text,
}
