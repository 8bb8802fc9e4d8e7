//! The request and the ids that name things.

use compact_str::CompactString;
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::content::{ContentId, Scope, prompt_tokens};
use crate::number::plain;
use crate::{Prompt, Time};

/// Names one request within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The most shards of a fleet, in tables, runs and reports alike: a slip of the keyboard must not ask for gigabytes.
pub const MAX_SHARDS: u32 = 65_536;

/// The most tokens of a prompt, and of an answer: far beyond every context, so that a slip of the keyboard costs no memory.
pub const MAX_TOKENS: u64 = 100_000_000;

/// Names one shard: a logical server with a KV pool of its own, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShardId(pub u32);

impl ShardId {
    /// The position in a list of all shards.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether a key can be shown: keys are printed, and a terminal must not take them for commands.
pub fn is_printable(key: &str) -> bool {
    !key.contains(char::is_control)
}

/// A routing key: requests of one key share a prefix. Tenants have the same form.
pub type Key = CompactString;

/// A conversation.
pub type SessionId = CompactString;

/// One request of a trace (`cacheroute.trace/1`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Unique in the trace.
    pub id: RequestId,
    /// Intended arrival, in seconds since the start of the trace.
    pub t_s: f64,
    /// What the router routes by.
    pub key: Key,
    /// Who is served, for fairness; the key where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Key>,
    /// The conversation this belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The number of the turn within its conversation, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Closed loop: not released before this request has finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RequestId>,
    /// Closed loop: seconds between the predecessor's finish and the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_s: Option<f64>,
    /// The prompt's segments in order; at least one token in all.
    pub prompt: Prompt,
    /// Tokens to decode, at least one.
    pub output_tokens: u32,
}

impl Request {
    /// The intended arrival as virtual time.
    #[inline]
    pub fn arrival(&self) -> Time {
        Time::from_s(self.t_s)
    }

    /// The number of prompt tokens.
    #[inline]
    pub fn prompt_tokens(&self) -> u64 {
        prompt_tokens(&self.prompt)
    }

    /// Who is served: the tenant, or the key where none is named.
    #[inline]
    pub fn tenant(&self) -> &Key {
        self.tenant.as_ref().unwrap_or(&self.key)
    }

    /// What is wrong with this request by itself, in words; `None` where nothing is.
    ///
    /// Checked: a finite, non-negative arrival within [`Time::MAX_S`], a key, well-formed segments of at least one
    /// token, at least one output token, and a think time and predecessor that make sense.
    pub fn fault(&self) -> Option<String> {
        if !(0.0..=Time::MAX_S).contains(&self.t_s) {
            let t_s = plain(self.t_s);
            return Some(format!("t_s is {t_s}, it must lie between 0 and {} seconds", Time::MAX_S));
        }
        if self.key.is_empty() {
            return Some("key is empty".into());
        }
        if let Some(text) =
            [Some(&self.key), self.tenant.as_ref()].into_iter().flatten().find(|text| !is_printable(text))
        {
            return Some(format!("{text:?} has control characters; a key or tenant is printable text"));
        }
        if self.prompt.is_empty() {
            return Some("the prompt has no segments".into());
        }
        for segment in &self.prompt {
            if !ContentId::is_valid(segment.content().as_str()) {
                let letters = Scope::ALL.map(Scope::letter).join(", ");
                return Some(format!(
                    "content id {:?} has no scope; it starts with one of {letters} and a colon, as k:name",
                    segment.content().as_str()
                ));
            }
            if segment.tokens() == 0 {
                return Some(format!("segment {:?} has 0 tokens", segment.content().as_str()));
            }
        }
        for (what, tokens) in
            [("the prompt", self.prompt_tokens()), ("the answer", u64::from(self.output_tokens))]
        {
            if tokens > MAX_TOKENS {
                return Some(format!("{what} has {tokens} tokens; no request has more than {MAX_TOKENS}"));
            }
        }
        if self.output_tokens == 0 {
            return Some("output_tokens is 0, at least one token is decoded".into());
        }
        if self.turn == Some(0) {
            return Some("turn is 0; the turns of a thread count from 1".into());
        }
        if let Some(think_s) = self.think_s
            && !(0.0..=Time::MAX_S).contains(&think_s)
        {
            let think_s = plain(think_s);
            return Some(format!("think_s is {think_s}, it must lie between 0 and {} seconds", Time::MAX_S));
        }
        if self.after == Some(self.id) {
            return Some("after names the request itself".into());
        }
        None
    }
}
