//! What can be typed.

mod files;

pub(crate) use files::*;

use clap::{Args, Parser, Subcommand, ValueEnum};
use cr_cli::CommonArgs;
use cr_cli::extras::Extra;
use cr_cli::quantity::{count, positive, positive_u32, seconds, share};

/// Synthesise or import LLM-serving traffic
#[derive(Parser, Debug)]
#[command(
    name = "cr-gen",
    version,
    about,
    max_term_width = 110,
    after_help = "\
Examples:
  cr-gen zipf --requests 40k --keys 2000 --alpha 1.1 --qps 50 > w.jsonl
  cr-gen aggregate --requests 1M --gini 0.756 --max-share 0.3% -o w.jsonl
  cr-gen threads --requests 20k --turns 4 --think 10s --closed > chat.jsonl
  cr-gen spec workloads/primary.toml --qps 100 --seed 7 > w.jsonl
  cr-gen import conversation_trace.jsonl --from mooncake --limit 500 --max-input 2048 > w.jsonl
  cr-gen stats w.jsonl"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Requests over keys of Zipf popularity
    ///
    /// The key of rank r is asked for in proportion to r^-alpha. A prompt is the global template, the key's context and
    /// the user's turn, in this order. The same seed gives the same keys, prompts and lengths at any rate.
    #[command(after_help = "\
Examples:
  cr-gen zipf --requests 40k --keys 2000 --alpha 1.1 --qps 50 > w.jsonl
  cr-gen zipf --duration 10m --keys 500 --gini 0.8 --seed 7 -o w.jsonl
  cr-gen zipf --requests 1M | head -5")]
    Zipf(ZipfArgs),
    /// Requests over keys of lognormal popularity, as aggregated production traffic has
    ///
    /// A key is asked for in proportion to exp(sigma * N(0,1)). With neither --sigma nor --gini, sigma is 1.648: over
    /// 128,824 keys that gives a Gini coefficient of 0.756 and 46 % of the requests to the top 4 % of the keys.
    #[command(after_help = "\
Examples:
  cr-gen aggregate --requests 1M --qps 100 > w.jsonl
  cr-gen aggregate --requests 100k --keys 20k --gini 0.756 --max-share 0.3% -o w.jsonl
  cr-gen aggregate --requests 10k --format mooncake > mooncake.jsonl")]
    Aggregate(AggregateArgs),
    /// Lognormal popularity with injected whales: a few keys that make a given share of the requests
    #[command(after_help = "\
Examples:
  cr-gen whales --requests 100k --count 4 --share 25% > w.jsonl
  cr-gen whales --share 45% --print-spec > whales.toml")]
    Whales(WhalesArgs),
    /// Multi-turn threads: each turn repeats the thread so far, with its answers
    ///
    /// --qps counts requests, not threads. In an open loop a turn is sent the think time after the one before it; in a closed
    /// loop (--closed) only when that one has been answered as well.
    #[command(after_help = "\
Examples:
  cr-gen threads --requests 20k --turns 2.64 --single-turn-share 50.7% --think 30s > chat.jsonl
  cr-gen threads --requests 20k --turns 6 --closed --key-per-thread > chat.jsonl")]
    Threads(ThreadsArgs),
    /// Requests of a specification file
    ///
    /// Every other synthetic workload is a shorthand for one: --print-spec shows it. Unknown fields are errors.
    #[command(after_help = "\
Examples:
  cr-gen spec workloads/primary.toml > w.jsonl
  cr-gen spec workloads/chat.toml --qps 100 --requests 50k --seed 7 -o w.jsonl
  cr-gen zipf --keys 500 --print-spec | sed 's/poisson/constant/' | cr-gen spec - > w.jsonl")]
    Spec(SpecArgs),
    /// Read traffic of another format, cut it to size, write it
    ///
    /// The routing key of a row of hash blocks is its first block after the leading blocks that more than half of the rows
    /// share (a system prompt), so that the rows of one conversation have one key. CSV rows tell nothing of content: their
    /// prompts share nothing, and each row is its own key unless a column is named. Text becomes hash blocks of its tokens, so
    /// that prompts share what they begin with; its arrivals are drawn, and the later turns of a conversation wait for the answer.
    #[command(after_help = "\
Examples:
  cr-gen import conversation_trace.jsonl --from mooncake > w.jsonl
  cr-gen import conversation_trace.jsonl --limit 300 --max-input 2048 --speedup 4 > small.jsonl
  cr-gen import AzureLLMInferenceTrace_code.csv --unbunch > azure.jsonl
  cr-gen import prompts.jsonl --from custom --tokenizer tokenizer.json --qps 20 > w.jsonl
  cr-gen import sharegpt.json --from sharegpt --tokenizer words --qps 2 --think 20s > chats.jsonl
  cr-gen import servegen/m-mid --window 480000 480600 --rate-scale 0.1 > clients.jsonl
  cr-gen import w.jsonl --window 5m 10m --format mooncake > mooncake.jsonl")]
    Import(ImportArgs),
    /// Describe a trace: keys and their skew, lengths, reuse with an unlimited cache
    #[command(after_help = "\
Examples:
  cr-gen stats w.jsonl
  cr-gen stats conversation_trace.jsonl --curve --plot conversation.svg
  cr-gen stats w.jsonl --shards 30 --kv-tokens 641k
  cr-gen zipf --requests 100k | cr-gen stats --format json | jq .reuse")]
    Stats(StatsArgs),
    #[command(flatten)]
    Extra(Extra),
}

#[derive(Args, Debug)]
pub(crate) struct ZipfArgs {
    /// Number of keys
    #[arg(long, default_value = "1000", value_parser = count, value_name = "N")]
    pub(crate) keys: u64,
    /// Exponent of the popularity; 1 where neither this nor --gini is given
    #[arg(long, value_name = "A", conflicts_with = "gini")]
    pub(crate) alpha: Option<f64>,
    #[command(flatten)]
    pub(crate) population: PopulationArgs,
    #[command(flatten)]
    pub(crate) synth: SynthArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AggregateArgs {
    /// Number of keys
    #[arg(long, default_value = "128824", value_parser = count, value_name = "N")]
    pub(crate) keys: u64,
    /// Standard deviation of the logarithm of the popularity; 1.648 where neither this nor --gini is given
    #[arg(long, value_name = "S", conflicts_with = "gini")]
    pub(crate) sigma: Option<f64>,
    #[command(flatten)]
    pub(crate) population: PopulationArgs,
    #[command(flatten)]
    pub(crate) synth: SynthArgs,
}

#[derive(Args, Debug)]
pub(crate) struct WhalesArgs {
    /// Number of keys
    #[arg(long, default_value = "10000", value_parser = count, value_name = "N")]
    pub(crate) keys: u64,
    /// Standard deviation of the logarithm of the others' popularity; 1.648 where neither this nor --gini is given
    #[arg(long, value_name = "S", conflicts_with = "gini")]
    pub(crate) sigma: Option<f64>,
    /// How many of the keys are whales
    #[arg(long, default_value = "4", value_parser = count, value_name = "N")]
    pub(crate) count: u64,
    /// The share of the requests that the whales make together
    #[arg(long, default_value = "25%", value_parser = share, value_name = "SHARE")]
    pub(crate) share: f64,
    #[command(flatten)]
    pub(crate) population: PopulationArgs,
    #[command(flatten)]
    pub(crate) synth: SynthArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ThreadsArgs {
    /// Number of keys
    #[arg(long, default_value = "1000", value_parser = count, value_name = "N")]
    pub(crate) keys: u64,
    /// Exponent of the Zipf popularity; 1 where neither this nor --gini is given
    #[arg(long, value_name = "A", conflicts_with = "gini")]
    pub(crate) alpha: Option<f64>,
    /// Turns of a thread, on average
    #[arg(long, default_value = "2.64", value_parser = positive, value_name = "N")]
    pub(crate) turns: f64,
    /// Share of threads that have one turn only; geometric turns where not given
    #[arg(long, value_parser = share, value_name = "SHARE")]
    pub(crate) single_turn_share: Option<f64>,
    /// No thread has more turns
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
    /// Time between turns, on average
    #[arg(long, default_value = "10s", value_parser = seconds, value_name = "TIME")]
    pub(crate) think: f64,
    /// Send a turn only when the one before it has been answered
    #[arg(long)]
    pub(crate) closed: bool,
    /// Route by thread; the key becomes the tenant
    #[arg(long)]
    pub(crate) key_per_thread: bool,
    #[command(flatten)]
    pub(crate) population: PopulationArgs,
    #[command(flatten)]
    pub(crate) synth: SynthArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SpecArgs {
    /// The specification (TOML); - is stdin
    pub(crate) file: String,
    /// End after so many requests, instead of where the file says
    #[arg(short = 'n', long, value_parser = count, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// End after so much time, instead of where the file says
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) duration: Option<f64>,
    /// Requests per second, instead of the file's
    #[arg(long, value_parser = positive, value_name = "RATE")]
    pub(crate) qps: Option<f64>,
    /// Seed, instead of the file's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print the specification that results, and generate nothing
    #[arg(long)]
    pub(crate) print_spec: bool,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// What populations of any law have.
#[derive(Args, Debug)]
#[command(next_help_heading = "Population")]
pub(crate) struct PopulationArgs {
    /// Fit the population to this Gini coefficient
    #[arg(long, value_name = "G")]
    pub(crate) gini: Option<f64>,
    /// Let no key make more than this share of the requests
    #[arg(long, value_parser = share, value_name = "SHARE")]
    pub(crate) max_share: Option<f64>,
    /// Draw the population from this seed instead of --seed, so that seeds vary the traffic alone
    #[arg(long, value_name = "SEED")]
    pub(crate) population_seed: Option<u64>,
    /// Replay only the requests of so many of the most popular keys
    #[arg(long, value_parser = count, value_name = "K")]
    pub(crate) top_k: Option<u64>,
    /// Let shares walk: each --drift-interval multiplies every key's by exp(S * N(0,1))
    #[arg(long, value_name = "S")]
    pub(crate) drift_sigma: Option<f64>,
    /// Time between the steps of --drift-sigma
    #[arg(long, default_value = "60s", value_parser = seconds, value_name = "TIME", requires = "drift_sigma")]
    pub(crate) drift_interval: f64,
}

/// What every synthetic workload has.
#[derive(Args, Debug)]
#[command(next_help_heading = "Traffic")]
pub(crate) struct SynthArgs {
    /// End after so many requests; 10k where neither this nor --duration is given
    #[arg(short = 'n', long, value_parser = count, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// End after so much time
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) duration: Option<f64>,
    /// Requests per second
    #[arg(long, default_value = "50", value_parser = positive, value_name = "RATE")]
    pub(crate) qps: f64,
    /// How arrivals follow each other
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    pub(crate) arrivals: Arrivals,
    /// Coefficient of variation of gamma and weibull gaps: above 1 is bursty
    #[arg(long, value_name = "CV")]
    pub(crate) cv: Option<f64>,
    /// Let the whole rate walk: each --rate-interval multiplies it by exp(S * N(0,1))
    #[arg(long, value_name = "S")]
    pub(crate) rate_walk: Option<f64>,
    /// Time between the steps of --rate-walk
    #[arg(long, default_value = "60s", value_parser = seconds, value_name = "TIME", requires = "rate_walk")]
    pub(crate) rate_interval: f64,
    /// Tokens of the template that all requests share; 0 for none
    #[arg(long, default_value = "256", value_parser = count, value_name = "N")]
    pub(crate) global_tokens: u64,
    /// Tokens of a key's context, on average; 0 for none
    #[arg(long, default_value = "600", value_parser = count, value_name = "N")]
    pub(crate) key_tokens: u64,
    /// Lognormal spread of --key-tokens over keys
    #[arg(long, default_value_t = 0.0, value_name = "S")]
    pub(crate) key_sigma: f64,
    /// Tokens of the user's turn, on average; 0 for none
    #[arg(long, default_value = "90", value_parser = count, value_name = "N")]
    pub(crate) user_tokens: u64,
    /// Lognormal spread of --user-tokens over requests
    #[arg(long, default_value_t = 0.0, value_name = "S")]
    pub(crate) user_sigma: f64,
    /// Tokens to decode, on average
    #[arg(long, default_value = "64", value_parser = positive_u32, value_name = "N")]
    pub(crate) output_tokens: u32,
    /// Lognormal spread of --output-tokens over requests
    #[arg(long, default_value_t = 0.0, value_name = "S")]
    pub(crate) output_sigma: f64,
    /// Seed of everything random
    #[arg(long, default_value_t = 42)]
    pub(crate) seed: u64,
    /// Print the specification that the flags stand for, and generate nothing
    #[arg(long)]
    pub(crate) print_spec: bool,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arrivals {
    /// Independent arrivals
    Poisson,
    /// Equal gaps
    Constant,
    /// Gamma gaps of variation --cv
    Gamma,
    /// Weibull gaps of variation --cv
    Weibull,
}
