//! The event stream of a run (`cacheroute.events/1`): one JSON object a line, times in seconds of run time.
//!
//! Readers ignore fields they do not know: a field may be added to the schema, never renamed or redefined.

mod detail;
pub mod line;
mod scopes;

pub use detail::Detail;
pub use scopes::ScopeTokens;
pub(crate) use scopes::scope;

use crate::summary::Summary;
use compact_str::CompactString;
use cr_trace::{RequestId, ShardId};
use serde::{Deserialize, Serialize};

/// The schema of the stream, in its header.
pub const SCHEMA: &str = "cacheroute.events/1";

/// Run time between two `shards` events, in seconds.
pub const SHARDS_EVERY_S: f64 = 0.25;

/// One line of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[expect(
    clippy::large_enum_variant,
    reason = "a header comes once a run; a box would cost every reader of one"
)]
pub enum Event {
    /// The first line.
    Header(Header),
    /// A request has its last token.
    Finish(Finish),
    /// A request ends without an answer.
    Fail(Fail),
    /// A snapshot of every shard.
    Shards(Shards),
    /// A routing table was installed.
    Plan(Plan),
    /// A shard changed its state.
    Fault(Fault),
    /// Something a reader of the numbers should know.
    Warning(Warning),
    /// What a gate says, after the runs that it is from.
    Gate(Gate),
    /// The last line.
    Summary(Box<Summary>),
}

/// What is run, on what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Program and version.
    pub generator: String,
    /// The routing policy's name.
    pub policy: String,
    /// The seed of every random stream of the run.
    pub seed: u64,
    /// `model` or `sim`.
    pub engine: String,
    /// The model's name, or the cost model's under `sim`.
    pub model: String,
    /// `cpu`, `cuda`, `metal`; `none` under `sim`.
    pub device: String,
    /// Number of shards.
    pub shards: u32,
    /// Tokens a KV block.
    pub block_tokens: u32,
    /// KV blocks a shard.
    pub kv_blocks: u32,
    /// `virtual` or `wall`.
    pub clock: String,
    /// `measured` or `modelled`.
    pub durations: String,
    /// The number of requests of the trace, where known.
    #[serde(default)]
    pub requests_expected: Option<u64>,
    /// Requests that finish earlier are not measured.
    pub warmup_s: f64,
    /// Bounds that the run is held against.
    #[serde(default)]
    pub slo: Slo,
    /// How many leading requests are not measured: they fed the plan (`--plan-from`), or let caches settle under it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub plan_requests: u64,
    /// Whether the table was planned from the requests it is tested on.
    #[serde(default)]
    pub in_sample: bool,
    /// The rate asked for, in requests per second, where a suite sets one; absent where the trace sets its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// The variant of the suite, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// How tables are replanned; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replan: Option<ReplanHeader>,
    /// What happens to shards, a sentence each, as `--fault` takes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// Routers that share the fleet; absent for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers: Option<u32>,
    /// How old the state is that routers see, in seconds; absent where they see the present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_lag_s: Option<f64>,
    /// Whether pools evict blocks of keys that are not admitted first.
    #[serde(default, skip_serializing_if = "is_false")]
    pub protect_admitted: bool,
    /// Whether the model goes on from its own tokens instead of the trace's answers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub free_run: bool,
    /// What the policy assumes of the shards without observing it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumes: Option<String>,
}

/// The control loop of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplanHeader {
    /// The control interval, in seconds.
    pub interval_s: f64,
    /// How many intervals older than the last one the rates are.
    #[serde(default)]
    pub stale: u32,
    /// Whether each interval is planned from its own requests: an oracle.
    #[serde(default)]
    pub fresh: bool,
    /// Bound on the churn of each table; a plain plan where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_churn: Option<f64>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Service level objectives; absent where not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// Bound on the 99th percentile of TTFT, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_p99_s: Option<f64>,
}

/// A finished request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finish {
    /// When its last token was there.
    pub t_s: f64,
    /// Which request.
    pub id: RequestId,
    /// Its routing key.
    pub key: CompactString,
    /// Who was served.
    pub tenant: CompactString,
    /// Where.
    pub shard: ShardId,
    /// Whether the key was in the routing table when it was routed.
    pub admitted: bool,
    /// The intended arrival (in a closed loop, the release).
    pub arrival_s: f64,
    /// From arrival to first scheduling.
    pub queue_s: f64,
    /// From arrival to the first token.
    pub ttft_s: f64,
    /// (last token − first token) / (output tokens − 1); absent for a single token.
    #[serde(default)]
    pub tpot_s: Option<f64>,
    /// From arrival to the last token.
    pub e2e_s: f64,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Of those, found in the shard's KV cache at first scheduling.
    pub cached_tokens: u64,
    /// The cached tokens by the scope letter of their content; scopes without any are left out.
    #[serde(default)]
    pub cached_by_scope: ScopeTokens,
    /// Tokens decoded.
    pub output_tokens: u64,
    /// How often it was sent again after a shard died.
    pub retries: u32,
    /// How often it lost its blocks and was computed anew.
    pub preemptions: u32,
    /// Whether it counts: false while the plan is learned and before the end of the warm-up.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub measured: bool,
}

fn yes() -> bool {
    true
}

fn is_true(flag: &bool) -> bool {
    *flag
}

/// Why a request ended without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailReason {
    /// Prompt and output exceed the model's context.
    PromptTooLong,
    /// Prompt and output need more blocks than a shard has.
    PoolTooSmall,
    /// Not finished in time.
    Timeout,
    /// Its shard died.
    ShardDown,
    /// The request it waits for failed.
    PredecessorFailed,
    /// The run was stopped.
    Interrupted,
}

/// A failed request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fail {
    /// When it was given up.
    pub t_s: f64,
    /// Which request.
    pub id: RequestId,
    /// Its routing key.
    pub key: CompactString,
    /// Where it was; none where it was never routed.
    #[serde(default)]
    pub shard: Option<ShardId>,
    /// Why.
    pub reason: FailReason,
    /// In words, with numbers.
    #[serde(default)]
    pub detail: Detail,
    /// As for a finished request.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub measured: bool,
    /// The intended arrival (in a closed loop, the release); absent where it was never released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival_s: Option<f64>,
    /// How often it was sent again after a shard died.
    #[serde(default, skip_serializing_if = "none_sent_again")]
    pub retries: u32,
}

fn none_sent_again(n: &u32) -> bool {
    *n == 0
}

impl Event {
    /// When it happened, in seconds of run time; none for the header, the summary and what a gate says.
    pub fn t_s(&self) -> Option<f64> {
        match self {
            Event::Header(_) | Event::Summary(_) | Event::Gate(_) => None,
            Event::Finish(event) => Some(event.t_s),
            Event::Fail(event) => Some(event.t_s),
            Event::Shards(event) => Some(event.t_s),
            Event::Plan(event) => Some(event.t_s),
            Event::Fault(event) => Some(event.t_s),
            Event::Warning(event) => Some(event.t_s),
        }
    }
}

impl FailReason {
    /// The name in the stream.
    pub fn as_str(self) -> &'static str {
        match self {
            FailReason::PromptTooLong => "prompt_too_long",
            FailReason::PoolTooSmall => "pool_too_small",
            FailReason::Timeout => "timeout",
            FailReason::ShardDown => "shard_down",
            FailReason::PredecessorFailed => "predecessor_failed",
            FailReason::Interrupted => "interrupted",
        }
    }
}

/// A snapshot of every shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shards {
    /// When.
    pub t_s: f64,
    /// One entry a shard, in order.
    pub shards: Vec<ShardState>,
    /// Set on the one snapshot that stands exactly at the start of the measured window (the end of the warm-up, or the
    /// arrival of the first request after the part that the plan is learned from): what its counters hold came before.
    /// Absent where everything is measured.
    #[serde(default, skip_serializing_if = "is_false")]
    pub window_start: bool,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// One shard: its state now, and counters since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardState {
    /// Which.
    pub shard: ShardId,
    /// Whether it takes requests.
    pub up: bool,
    /// Requests that wait to be scheduled.
    pub queued: u64,
    /// Requests being prefilled or decoded.
    pub running: u64,
    /// Blocks that running requests hold or that keep a cached prefix.
    pub kv_used_blocks: u64,
    /// Blocks of the pool.
    pub kv_total_blocks: u64,
    /// Blocks that eviction must spare.
    pub kv_protected_blocks: u64,
    /// Time spent in steps, in seconds.
    pub busy_s: f64,
    /// Requests finished.
    pub requests: u64,
    /// Prompt tokens of requests first scheduled.
    pub prompt_tokens: u64,
    /// Of those, found in the cache.
    pub cached_tokens: u64,
    /// Prompt tokens computed, recomputation after preemption not counted.
    pub computed_tokens: u64,
    /// Tokens decoded.
    pub output_tokens: u64,
    /// Cached blocks given up for room.
    pub evicted_blocks: u64,
    /// Of those, blocks of admitted keys.
    pub evicted_admitted_blocks: u64,
    /// Requests that lost their blocks.
    pub preemptions: u64,
    /// Tokens computed again after a preemption.
    #[serde(default)]
    pub recomputed_tokens: u64,
}

impl ShardState {
    /// A shard that is up and has done nothing yet.
    pub fn idle(shard: ShardId, kv_total_blocks: u64) -> ShardState {
        ShardState {
            shard,
            up: true,
            queued: 0,
            running: 0,
            kv_used_blocks: 0,
            kv_total_blocks,
            kv_protected_blocks: 0,
            busy_s: 0.0,
            requests: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            computed_tokens: 0,
            output_tokens: 0,
            evicted_blocks: 0,
            evicted_admitted_blocks: 0,
            preemptions: 0,
            recomputed_tokens: 0,
        }
    }
}

/// A routing table was installed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// When.
    pub t_s: f64,
    /// Keys with a place of their own.
    pub admitted_keys: u64,
    /// Keys whose shards changed.
    pub moved_keys: u64,
    /// 1 − Jaccard similarity of the (key, shard) pairs before and after.
    pub churn: f64,
    /// Planned max / mean load.
    pub imbalance: f64,
    /// Planned rate of keys without a place, in requests per second.
    pub cold_rate: f64,
}

/// A shard changed its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// When.
    pub t_s: f64,
    /// Which shard.
    pub shard: ShardId,
    /// `down`, `up`, `slow`.
    pub kind: String,
    /// Requests sent elsewhere.
    pub rerouted: u64,
}

/// Something a reader of the numbers should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// When.
    pub t_s: f64,
    /// A stable name, listed in the documentation.
    pub name: String,
    /// In words, with numbers.
    pub detail: String,
}

/// What a gate says: whether one policy may replace another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    /// `enable`, `tie` or `keep`.
    pub decision: String,
    /// The policy in service.
    pub baseline: String,
    /// The one that would replace it.
    pub candidate: String,
    /// Why, a sentence each, what decided first.
    pub reasons: Vec<String>,
}
