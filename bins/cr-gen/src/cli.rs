//! What can be typed.

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
    /// prompts share nothing, and each row is its own key unless a column is named.
    #[command(after_help = "\
Examples:
  cr-gen import conversation_trace.jsonl --from mooncake > w.jsonl
  cr-gen import conversation_trace.jsonl --limit 300 --max-input 2048 --max-output 64 --speedup 4 > small.jsonl
  cr-gen import AzureLLMInferenceTrace_code.csv --unbunch > azure.jsonl
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
    #[arg(required_unless_present = "config")]
    pub(crate) file: Option<String>,
    /// The specification, as a flag
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) config: Option<String>,
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

/// Where requests go, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutArgs {
    /// Write to this file; - is stdout
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) output: String,
    /// Format of the requests
    #[arg(long, value_enum, default_value_t = TraceFormat::Native)]
    pub(crate) format: TraceFormat,
    /// Tokens of a block in Mooncake output
    #[arg(long, default_value = "512", value_parser = positive_u32, value_name = "N")]
    pub(crate) out_block_tokens: u32,
    /// How blocks are numbered in Mooncake output
    #[arg(long, value_enum, default_value_t = Numbering::Dense)]
    pub(crate) hash_ids: Numbering,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// cacheroute.trace/1, one request a line
    Native,
    /// Rows of timestamp, input_length, output_length, hash_ids
    Mooncake,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Numbering {
    /// 0, 1, 2, … as the published traces; memory grows with the number of distinct blocks
    Dense,
    /// The blocks' own hashes of 63 bits; constant memory
    Chained,
}

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InFormat {
    /// cacheroute.trace/1
    Native,
    /// Mooncake's rows of hash blocks of 512 tokens, times in milliseconds
    Mooncake,
    /// Qwen-Bailian's rows of hash blocks of 16 tokens, times in seconds, with chats
    Bailian,
    /// Azure LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens
    Azure,
    /// BurstGPT: CSV with Timestamp, Request tokens, Response tokens
    Burstgpt,
    /// A folder of ServeGen's clients (chunk-N-trace.csv); FILE is the folder
    Servegen,
}

/// What becomes the routing key of a row of hash blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRule {
    /// The first block after those that more than half of the rows share
    Trunk,
    /// The conversation, where rows tell their chats (Bailian)
    Session,
}

/// How an input is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InArgs {
    /// Format of the input; found out from its beginning where not given
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<InFormat>,
    /// Key of a row of hash blocks; trunk where not given
    #[arg(long, value_enum, value_name = "RULE", group = "key_rule")]
    pub(crate) key: Option<KeyRule>,
    /// Key of a row of hash blocks: its first N blocks
    #[arg(long, value_parser = positive_u32, value_name = "N", group = "key_rule")]
    pub(crate) key_blocks: Option<u32>,
    /// Key of a CSV row: this column
    #[arg(long, value_name = "NAME", group = "key_rule")]
    pub(crate) key_column: Option<String>,
    /// Tokens of a block: of the input's hash blocks (512 for Mooncake, 16 for Bailian), and those that stats counts in
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) block_tokens: Option<u32>,
    /// Skip up to N bad rows instead of ending at the first
    #[arg(long, default_value = "0", value_parser = count, value_name = "N")]
    pub(crate) skip_bad: u64,
}

/// What a ServeGen folder does not tell.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "ServeGen folders")]
pub(crate) struct ServeGenArgs {
    /// Seed of arrivals and lengths; 42 where not given
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Multiply every client's rate by this
    #[arg(long, value_parser = positive, value_name = "X")]
    pub(crate) rate_scale: Option<f64>,
    /// Tokens of a client's context, which leads its prompts; 600 where not given, 0 for none
    #[arg(long, value_parser = count, value_name = "N")]
    pub(crate) key_tokens: Option<u64>,
    /// Tokens of a prompt beyond that, on average; 90 where not given
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) user_tokens: Option<u32>,
    /// Lognormal spread of --user-tokens; none where not given
    #[arg(long, value_name = "S")]
    pub(crate) user_sigma: Option<f64>,
    /// Tokens to decode, on average; 64 where not given
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) output_tokens: Option<u32>,
    /// Lognormal spread of --output-tokens; none where not given
    #[arg(long, value_name = "S")]
    pub(crate) output_sigma: Option<f64>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ImportArgs {
    /// The file to read, plain or packed by gzip or zstd; - is stdin
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) input: InArgs,
    #[command(flatten)]
    pub(crate) cut: CutArgs,
    #[command(flatten)]
    pub(crate) servegen: ServeGenArgs,
    #[command(flatten)]
    pub(crate) out: OutArgs,
}

/// How a trace is cut to size.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Cutting to size")]
pub(crate) struct CutArgs {
    /// Keep at most so many requests
    #[arg(long, value_parser = count, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Keep the arrivals from the first time up to the second, and count time from the first
    #[arg(long, num_args = 2, value_parser = seconds, value_names = ["FROM", "TO"])]
    pub(crate) window: Option<Vec<f64>>,
    /// Clip prompts to so many tokens; the leading ones stay
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) max_input: Option<u32>,
    /// Clip outputs to so many tokens
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) max_output: Option<u32>,
    /// Spread requests of one rounded timestamp evenly up to the next
    #[arg(long)]
    pub(crate) unbunch: bool,
    /// Divide arrival times by this
    #[arg(long, default_value = "1", value_parser = positive, value_name = "X")]
    pub(crate) speedup: f64,
}

#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// The trace to read, plain or packed by gzip or zstd; - is stdin
    #[arg(default_value = "-")]
    pub(crate) file: String,
    #[command(flatten)]
    pub(crate) input: InArgs,
    /// Write to this file; - is stdout
    #[arg(short, long, default_value = "-", value_name = "FILE")]
    pub(crate) output: String,
    /// How to print
    #[arg(long, value_enum, default_value_t = StatsFormat::Table)]
    pub(crate) format: StatsFormat,
    /// Count reuse against the size of the cache as well (takes longer; exact up to 65,536 distinct blocks, sampled beyond)
    #[arg(long)]
    pub(crate) curve: bool,
    /// Predict what affinity can win: over so many shards, does a prefix come back before it is evicted?
    #[arg(long, value_parser = positive_u32, value_name = "N", requires = "kv_tokens")]
    pub(crate) shards: Option<u32>,
    /// Tokens that the KV cache of each of --shards holds
    #[arg(long, value_parser = count, value_name = "N", requires = "shards")]
    pub(crate) kv_tokens: Option<u64>,
    /// Draw the shares of the top keys, and the curve where --curve is given, to this SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsFormat {
    /// For people
    Table,
    /// One object, cacheroute.stats/1
    Json,
}
