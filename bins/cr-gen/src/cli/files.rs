//! What can be typed about files: where requests come from, how they are cut, where they go.

use clap::{Args, ValueEnum};
use cr_cli::quantity::{count, positive, positive_u32, seconds};

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
    /// vLLM's custom dataset: JSON lines with a prompt, and output_tokens or the expected output's text
    Custom,
    /// Conversations as ShareGPT's: a JSON array, or an object a line
    Sharegpt,
}

/// What becomes the routing key of a row of hash blocks, or of a conversation's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeyRule {
    /// The first block after those that more than half of the rows share
    Trunk,
    /// The conversation, where there are any (Bailian, ShareGPT)
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
    /// Key of a CSV row or of a text: this column or field
    #[arg(long, value_name = "NAME", group = "key_rule")]
    pub(crate) key_column: Option<String>,
    /// Tokens of a block: of the input's hash blocks (512 for Mooncake, 16 for Bailian and text), and those that stats counts in
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) block_tokens: Option<u32>,
    /// Skip up to N bad rows instead of ending at the first
    #[arg(long, default_value = "0", value_parser = count, value_name = "N")]
    pub(crate) skip_bad: u64,
}

/// What ServeGen folders and text leave open.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "ServeGen folders and text")]
pub(crate) struct DrawnArgs {
    /// Seed of arrivals and lengths; 42 where not given
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Tokens to decode where the input does not tell, on average; 64 where not given
    #[arg(long, value_parser = positive_u32, value_name = "N")]
    pub(crate) output_tokens: Option<u32>,
    /// Lognormal spread of --output-tokens; none where not given
    #[arg(long, value_name = "S")]
    pub(crate) output_sigma: Option<f64>,
}

/// What a ServeGen folder does not tell.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "ServeGen folders")]
pub(crate) struct ServeGenArgs {
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
}

/// What text does not tell.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Text (custom, sharegpt)")]
pub(crate) struct TextArgs {
    /// What makes tokens of text: a tokenizer.json, or a stand-in: bytes (a token a byte), words (a token a word)
    #[arg(long, value_name = "FILE")]
    pub(crate) tokenizer: Option<String>,
    /// Prompts per second, or conversations that begin per second; 50 where not given
    #[arg(long, value_parser = positive, value_name = "RATE")]
    pub(crate) qps: Option<f64>,
    /// How they follow each other; poisson where not given
    #[arg(long, value_enum)]
    pub(crate) arrivals: Option<super::Arrivals>,
    /// Coefficient of variation of gamma and weibull gaps: above 1 is bursty
    #[arg(long, value_name = "CV")]
    pub(crate) cv: Option<f64>,
    /// Time between an answer and the next turn, on average; 10s where not given
    #[arg(long, value_parser = seconds, value_name = "TIME")]
    pub(crate) think: Option<f64>,
    /// Send later turns at fixed times instead of waiting for the answer before them
    #[arg(long)]
    pub(crate) open: bool,
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
    pub(crate) drawn: DrawnArgs,
    #[command(flatten)]
    pub(crate) servegen: ServeGenArgs,
    #[command(flatten)]
    pub(crate) text: TextArgs,
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
