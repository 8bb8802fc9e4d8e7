//! Traces of hash blocks, one JSON object a line: Mooncake's format, and Bailian's dialect of it.
//!
//! ```json
//! {"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [0, 46]}
//! ```
//!
//! `timestamp` is in milliseconds; `hash_ids` holds one id per block of 512 tokens, the last block filled as far as the
//! input reaches; an id stands for its block and for everything before it. Published with "Mooncake: A KVCache-centric
//! Disaggregated Architecture for LLM Serving" (FAST '25).
//!
//! On import a row becomes segments `b:ID` of the block length, the last shortened to the input length.

mod import;
mod write;

pub use import::{BlockKey, MooncakeImport};
pub use write::{HashIds, MooncakeWriter};

use crate::lines::Lines;
use crate::tolerance::{Patience, Rows, Tolerance};
use crate::{ContentId, Key, Prompt, Request, RequestId, Segment, SessionId, Time, TraceError};
use serde::{Deserialize, Serialize};
use std::io::BufRead;

/// Tokens of a hash block in the published traces.
pub const MOONCAKE_BLOCK_TOKENS: u32 = 512;

/// One row of a Mooncake trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MooncakeRow {
    /// Arrival since the start, in the dialect's unit.
    pub timestamp: f64,
    /// Prompt tokens.
    pub input_length: u32,
    /// Tokens to decode.
    pub output_length: u32,
    /// One id per block of the prompt.
    pub hash_ids: Vec<u64>,
    /// The chat that the row belongs to, in traces that tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<i64>,
    /// The chat that this one goes on from; negative where it is the first turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_chat_id: Option<i64>,
    /// The number of the turn, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// What differs between traces of hash blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dialect {
    /// Tokens of a block, at least one.
    pub block_tokens: u32,
    /// Units of `timestamp` in a second.
    pub per_second: f64,
}

impl Dialect {
    /// Mooncake: blocks of 512 tokens, milliseconds.
    pub const MOONCAKE: Dialect = Dialect { block_tokens: MOONCAKE_BLOCK_TOKENS, per_second: 1e3 };
    /// Qwen-Bailian: blocks of 16 tokens, seconds; rows tell their chats.
    pub const BAILIAN: Dialect = Dialect { block_tokens: 16, per_second: 1.0 };

    /// The same dialect with another block size.
    pub fn with_block_tokens(self, block_tokens: Option<u32>) -> Dialect {
        Dialect { block_tokens: block_tokens.unwrap_or(self.block_tokens).max(1), ..self }
    }
}

impl MooncakeRow {
    /// What is wrong with the row in this dialect; `None` where nothing is.
    pub fn fault(&self, dialect: Dialect) -> Option<String> {
        let block_tokens = dialect.block_tokens;
        let latest = Time::MAX_S * dialect.per_second;
        let blocks = self.input_length.div_ceil(block_tokens) as usize;
        if !(0.0..=latest).contains(&self.timestamp) {
            let timestamp = crate::number::plain(self.timestamp);
            return Some(format!("timestamp is {timestamp}, it must lie between 0 and {latest}"));
        }
        if self.input_length == 0 {
            return Some("input_length is 0, a prompt has at least one token".into());
        }
        if self.output_length == 0 {
            return Some("output_length is 0, at least one token is decoded".into());
        }
        if self.hash_ids.len() != blocks {
            return Some(format!(
                "input_length {} takes {blocks} hash id{} for blocks of {block_tokens} tokens, but hash_ids has {}; does the trace have another block size (--block-tokens)?",
                self.input_length,
                if blocks == 1 { "" } else { "s" },
                self.hash_ids.len()
            ));
        }
        None
    }

    /// The row as a request; [`MooncakeRow::fault`] must have found nothing.
    pub fn to_request(
        &self,
        id: RequestId,
        key: Key,
        session: Option<SessionId>,
        dialect: Dialect,
    ) -> Request {
        let block_tokens = dialect.block_tokens;
        let mut left = self.input_length;
        let prompt: Prompt = self
            .hash_ids
            .iter()
            .map(|&hash_id| {
                let tokens = left.min(block_tokens);
                left -= tokens;
                Segment(ContentId::block(hash_id), tokens)
            })
            .collect();
        Request {
            id,
            t_s: self.timestamp / dialect.per_second,
            key,
            tenant: None,
            session,
            turn: self.turn,
            after: None,
            think_s: None,
            prompt,
            output_tokens: self.output_length,
        }
    }
}

/// Reads rows, checking each by itself and their order. After the first error the iterator ends.
#[derive(Debug)]
pub struct MooncakeReader<R> {
    lines: Lines<R>,
    dialect: Dialect,
    patience: Patience,
    /// Keys are sessions: a row must tell its chat.
    wants_chats: bool,
    last: f64,
}

impl<R: BufRead> MooncakeReader<R> {
    /// Rows of `reader`, which errors call `file`.
    pub fn new(reader: R, file: &str, dialect: Dialect) -> MooncakeReader<R> {
        MooncakeReader {
            lines: Lines::new(reader, file),
            dialect: dialect.with_block_tokens(None),
            patience: Patience::default(),
            wants_chats: false,
            last: 0.0,
        }
    }

    /// Skips bad rows as long as the tolerance lasts.
    pub fn tolerate(mut self, tolerance: Tolerance) -> MooncakeReader<R> {
        self.patience = Patience::new(tolerance);
        self
    }
}

impl<R: BufRead> Rows for MooncakeReader<R> {
    type Row = MooncakeRow;

    fn read(&mut self) -> Result<Option<MooncakeRow>, TraceError> {
        if !self.lines.advance()? {
            return if self.lines.number() == 0 {
                let what = "the input is empty; a trace has at least one line".into();
                Err(TraceError::File { file: self.lines.file().into(), what })
            } else {
                Ok(None)
            };
        }
        let row: MooncakeRow = self.lines.json()?;
        if let Some(fault) = row.fault(self.dialect) {
            return Err(self.lines.error(fault));
        }
        if self.wants_chats && row.chat_id.is_none() {
            return Err(self.lines.error("the row has no chat_id, so its session is not known"));
        }
        if row.timestamp < self.last {
            return Err(self.lines.error(format!(
                "timestamp goes back from {} to {}; rows must be ordered by arrival",
                self.last, row.timestamp
            )));
        }
        self.last = row.timestamp;
        Ok(Some(row))
    }

    fn patience(&mut self) -> &mut Patience {
        &mut self.patience
    }
}

impl<R: BufRead> Iterator for MooncakeReader<R> {
    type Item = Result<MooncakeRow, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row()
    }
}
