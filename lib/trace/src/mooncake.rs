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

use crate::block::{BlockChain, BlockHash};
use crate::lines::Lines;
use crate::tolerance::Tolerance;
use crate::trunk::{LOOK_AHEAD_ROWS, Trunk, prefix_key};
use crate::{ContentId, Key, Prompt, Request, RequestId, Segment, SessionId, Time, TraceError};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

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
            return Some(format!("timestamp is {}, it must lie between 0 and {latest}", self.timestamp));
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
    tolerance: Tolerance,
    last: f64,
    done: bool,
}

impl<R: BufRead> MooncakeReader<R> {
    /// Rows of `reader`, which errors call `file`.
    pub fn new(reader: R, file: &str, dialect: Dialect) -> MooncakeReader<R> {
        MooncakeReader {
            lines: Lines::new(reader, file),
            dialect: dialect.with_block_tokens(None),
            tolerance: Tolerance::default(),
            last: 0.0,
            done: false,
        }
    }

    /// Skips bad rows as long as the tolerance lasts.
    pub fn tolerate(mut self, tolerance: Tolerance) -> MooncakeReader<R> {
        self.tolerance = tolerance;
        self
    }

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
        if row.timestamp < self.last {
            return Err(self.lines.error(format!(
                "timestamp goes back from {} to {}; rows must be ordered by arrival",
                self.last, row.timestamp
            )));
        }
        self.last = row.timestamp;
        Ok(Some(row))
    }
}

impl<R: BufRead> Iterator for MooncakeReader<R> {
    type Item = Result<MooncakeRow, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let tolerance = self.tolerance.clone();
        let item = tolerance.read(|| self.read());
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// What becomes the routing key of an imported row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockKey {
    /// The first block after the trunk that (nearly) all rows share: see [`crate::trunk`].
    #[default]
    AfterTrunk,
    /// The first so many blocks, at least one.
    Prefix(usize),
    /// The conversation: the chat that a row's chat goes back to. Needs rows that tell their chats, and a map of them.
    Session,
}

/// Rows as requests, numbered from 0. Holds [`LOOK_AHEAD_ROWS`] rows to find the trunk.
#[derive(Debug)]
pub struct MooncakeImport<R> {
    reader: MooncakeReader<R>,
    key: BlockKey,
    held: std::vec::IntoIter<Result<MooncakeRow, TraceError>>,
    trunk: Option<Trunk>,
    /// The first chat of each chat's conversation: about 24 bytes a chat, where rows tell them.
    roots: FxHashMap<i64, i64>,
    next_id: u64,
}

impl<R: BufRead> MooncakeImport<R> {
    /// Imports the rows of `reader` under the given rule for keys.
    pub fn new(reader: MooncakeReader<R>, key: BlockKey) -> MooncakeImport<R> {
        MooncakeImport {
            reader,
            key,
            held: Vec::new().into_iter(),
            trunk: None,
            roots: FxHashMap::default(),
            next_id: 0,
        }
    }

    fn look_ahead(&mut self) -> Trunk {
        if self.key != BlockKey::AfterTrunk {
            return Trunk::default();
        }
        let rows: Vec<_> = self.reader.by_ref().take(LOOK_AHEAD_ROWS).collect();
        let trunk = Trunk::of(rows.iter().flatten().map(|row| row.hash_ids.as_slice()));
        self.held = rows.into_iter();
        trunk
    }

    /// The conversation of a row, where it tells.
    fn session(&mut self, row: &MooncakeRow) -> Option<SessionId> {
        let chat = row.chat_id?;
        let parent = row.parent_chat_id.filter(|parent| *parent >= 0);
        let root = parent.map_or(chat, |parent| self.roots.get(&parent).copied().unwrap_or(parent));
        self.roots.insert(chat, root);
        Some(compact_str::format_compact!("s{root}"))
    }
}

impl<R: BufRead> Iterator for MooncakeImport<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.trunk.is_none() {
            self.trunk = Some(self.look_ahead());
        }
        let row = match self.held.next().or_else(|| self.reader.next())? {
            Ok(row) => row,
            Err(error) => return Some(Err(error)),
        };
        let session = self.session(&row);
        let key = match (self.key, &session) {
            (BlockKey::Prefix(blocks), _) => prefix_key(&row.hash_ids, blocks),
            (BlockKey::AfterTrunk, _) => self.trunk.as_ref()?.key(&row.hash_ids),
            (BlockKey::Session, Some(session)) => session.clone(),
            (BlockKey::Session, None) => {
                return Some(Err(self
                    .reader
                    .lines
                    .error("the row has no chat_id, so its session is not known")));
            }
        };
        let id = RequestId(self.next_id);
        self.next_id += 1;
        Some(Ok(row.to_request(id, key, session, self.reader.dialect)))
    }
}

/// How exported blocks are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashIds {
    /// 0, 1, 2, … in order of first appearance, as the published traces do. Needs a map of every block met: about
    /// 24 bytes a distinct block, which is the only thing in an export that grows.
    #[default]
    Dense,
    /// The block's own chained hash, cut to 63 bits so that signed readers take it. Needs no memory.
    Chained,
}

/// Writes requests of any origin as Mooncake rows.
///
/// Blocks are numbered by the chained hash of their content, so equal ids mean equal leading tokens. A last block that
/// is not full counts as a block of its own: it equals only the last block of the very same prompt.
#[derive(Debug)]
pub struct MooncakeWriter<W> {
    writer: W,
    buffer: Vec<u8>,
    block_tokens: u32,
    numbering: HashIds,
    dense: FxHashMap<BlockHash, u64>,
    hashes: Vec<BlockHash>,
}

/// A row in the making. Timestamps are whole milliseconds, as in the published traces.
#[derive(Serialize)]
struct OutRow<'a> {
    timestamp: u64,
    input_length: u64,
    output_length: u32,
    hash_ids: &'a [u64],
}

impl<W: Write> MooncakeWriter<W> {
    /// A trace with blocks of `block_tokens` tokens (at least one). Give it a writer that buffers.
    pub fn new(writer: W, block_tokens: u32, numbering: HashIds) -> MooncakeWriter<W> {
        MooncakeWriter {
            writer,
            buffer: Vec::with_capacity(1024),
            block_tokens: block_tokens.max(1),
            numbering,
            dense: FxHashMap::default(),
            hashes: Vec::new(),
        }
    }

    /// Writes one request; key, session and closed-loop fields have no place in the format and are lost.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn write(&mut self, request: &Request) -> std::io::Result<()> {
        self.hashes.clear();
        let mut chain = BlockChain::new(self.block_tokens);
        chain.append_prompt(&request.prompt, &mut self.hashes);
        self.hashes.extend(chain.tail());
        let ids: Vec<u64> = self
            .hashes
            .iter()
            .map(|&hash| match self.numbering {
                HashIds::Chained => hash.0 >> 1,
                HashIds::Dense => {
                    let next = self.dense.len() as u64;
                    *self.dense.entry(hash).or_insert(next)
                }
            })
            .collect();
        let row = OutRow {
            timestamp: (request.t_s * 1e3).round() as u64,
            input_length: request.prompt_tokens(),
            output_length: request.output_tokens,
            hash_ids: &ids,
        };
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &row).map_err(std::io::Error::from)?;
        self.buffer.push(b'\n');
        self.writer.write_all(&self.buffer)
    }

    /// Flushes, and gives the writer back.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}
