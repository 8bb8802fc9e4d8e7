//! What can be typed. The flags of a subcommand stand in its own file.

use crate::model::ModelArgs;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use cr_cli::extras::Extra;
use cr_cli::{CommonArgs, Output, quantity};
use std::io::Write as _;
use std::num::NonZeroUsize;

const EXAMPLES: &str = "\
Examples:
  cr-plan w.jsonl --shards 4 --qcap 50 --warm-slots 40 -o table.json
  cr-gen zipf -n 40k | tee w.jsonl | cr-plan --shards 4 --qcap 50 --warm-slots 40 > table.json
  printf 'a,12.5\\nb,3\\n' | cr-plan --shards 2 --qcap 10 --warm-slots 8 --format text
  cr-plan w.jsonl --shards 4 --qcap 50 --admission tokens --kv-tokens 64k
  cr-plan new.csv --shards 4 --qcap 50 --warm-slots 40 --previous table.json --max-churn 5%
  cr-plan w.jsonl --shards 4 --qcap 50 --warm-slots 40 --interval 60s --max-churn 5% > tables.jsonl
  cr-plan show table.json k17

QCAP is the rate that one shard can serve of one key, WARM_SLOTS the prefixes that one shard keeps
warm. Both are measured, not guessed: `cr-plan calibrate` reads them off a load ladder and the pool.";

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
    #[command(after_help = "\
Examples:
  cr-plan show table.json
  cr-plan show table.json k17")]
    Show(crate::show::ShowArgs),
    #[command(after_help = "\
Examples:
  cr-plan diff old.json new.json")]
    Diff(crate::diff::DiffArgs),
    #[command(after_help = "\
Examples:
  cr-plan check table.json w.jsonl")]
    Check(crate::check::CheckArgs),
    Export(crate::export::ExportArgs),
    #[command(after_help = "\
Examples:
  cr-plan calibrate reports/ladder/result.json --policy flat --shards 4 --slo 3.5s
  cr-plan calibrate ladder.csv --slo 3.5s --kv-tokens 64k --rates w.jsonl")]
    Calibrate(crate::calibrate::CalibrateArgs),
    #[command(after_help = "\
Examples:
  cr-plan sensitivity w.jsonl --shards 4 --qcap 50 --warm-slots 40")]
    Sensitivity(crate::sensitivity::SensitivityArgs),
    #[command(flatten)]
    Extra(Extra),
}

/// Planning itself.
#[derive(ClapArgs, Debug)]
pub(crate) struct PlanArgs {
    /// A trace or rates; `-` is stdin
    #[arg(value_name = "TRACE|RATES", default_value = "-")]
    pub(crate) input: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) churn: ChurnArgs,
    #[command(flatten)]
    pub(crate) stream: StreamArgs,
}

/// What comes out.
#[derive(ClapArgs, Debug)]
pub(crate) struct OutputArgs {
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

/// Where the answer of a subcommand goes.
#[derive(ClapArgs, Debug)]
pub(crate) struct Destination {
    /// Write here instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
}

impl Destination {
    /// Writes the whole answer.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        let mut out = Output::create(self.output.as_deref())?;
        out.write_all(text.as_bytes())?;
        out.finish()
    }
}

/// Planning from a previous table.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Replanning")]
pub(crate) struct ChurnArgs {
    /// Start from this table and change only what pays
    #[arg(long, value_name = "TABLE")]
    pub(crate) previous: Option<String>,
    /// Change at most this share of the (key, shard) pairs; 1 − Jaccard
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub(crate) max_churn: Option<f64>,
    /// Move a prefix only where each of its tokens lowers the highest load by this much
    #[arg(long, value_name = "LOAD", value_parser = quantity::positive)]
    pub(crate) move_cost: Option<f64>,
}

/// A table per interval.
#[derive(ClapArgs, Debug)]
#[command(next_help_heading = "Streaming")]
pub(crate) struct StreamArgs {
    /// Write a table per interval of a trace, from the rates of the past only; one a line
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds)]
    pub(crate) interval: Option<f64>,
    /// How rates are estimated
    #[arg(long, value_enum, default_value_t = Estimator::Ewma, requires = "interval")]
    pub(crate) estimator: Estimator,
    /// Requests after which a request counts half (ewma) [default: 10k]
    #[arg(long, value_name = "N", value_parser = quantity::positive, requires = "interval")]
    pub(crate) half_life: Option<f64>,
    /// Seconds that count (window) [default: five intervals]
    #[arg(long, value_name = "TIME", value_parser = quantity::seconds, requires = "interval")]
    pub(crate) window: Option<f64>,
    /// Remember at most so many keys, the most frequent ones
    #[arg(long, value_name = "N", value_parser = positive_usize, requires = "interval")]
    pub(crate) max_keys: Option<NonZeroUsize>,
}

/// A count of at least one.
fn positive_usize(text: &str) -> Result<NonZeroUsize, String> {
    let count = quantity::count(text)?;
    usize::try_from(count).ok().and_then(NonZeroUsize::new).ok_or_else(|| "must be at least 1".into())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// JSON
    Json,
    /// Text for people
    Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Estimator {
    /// Counts that decay with every request
    Ewma,
    /// Counts of the last seconds
    Window,
}
