//! The Mooncake trace format: one JSON object a line, with the ids of the prompt's hash blocks.
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
use crate::trunk::{LOOK_AHEAD_ROWS, Trunk, prefix_key};
use crate::{ContentId, Key, Prompt, Request, RequestId, Segment, Time, TraceError};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

/// Tokens of a hash block in the published traces.
pub const MOONCAKE_BLOCK_TOKENS: u32 = 512;

/// One row of a Mooncake trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MooncakeRow {
    /// Arrival in milliseconds since the start.
    pub timestamp: f64,
    /// Prompt tokens.
    pub input_length: u32,
    /// Tokens to decode.
    pub output_length: u32,
    /// One id per block of the prompt.
    pub hash_ids: Vec<u64>,
}

impl MooncakeRow {
    /// What is wrong with the row when its blocks have `block_tokens` tokens; `None` where nothing is.
    pub fn fault(&self, block_tokens: u32) -> Option<String> {
        let blocks = self.input_length.div_ceil(block_tokens) as usize;
        if !(0.0..=Time::MAX_S * 1e3).contains(&self.timestamp) {
            return Some(format!(
                "timestamp is {}, it must lie between 0 and {} ms",
                self.timestamp,
                Time::MAX_S * 1e3
            ));
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

    /// The row as a request; `block_tokens` as in [`MooncakeRow::fault`], which must have found nothing.
    pub fn to_request(&self, id: RequestId, key: Key, block_tokens: u32) -> Request {
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
            t_s: self.timestamp / 1e3,
            key,
            tenant: None,
            session: None,
            turn: None,
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
    block_tokens: u32,
    last_ms: f64,
    done: bool,
}

impl<R: BufRead> MooncakeReader<R> {
    /// Rows of `reader`, which errors call `file`, with blocks of `block_tokens` tokens (at least one).
    pub fn new(reader: R, file: &str, block_tokens: u32) -> MooncakeReader<R> {
        MooncakeReader {
            lines: Lines::new(reader, file),
            block_tokens: block_tokens.max(1),
            last_ms: 0.0,
            done: false,
        }
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
        if let Some(fault) = row.fault(self.block_tokens) {
            return Err(self.lines.error(fault));
        }
        if row.timestamp < self.last_ms {
            return Err(self.lines.error(format!(
                "timestamp goes back from {} to {}; rows must be ordered by arrival",
                self.last_ms, row.timestamp
            )));
        }
        self.last_ms = row.timestamp;
        Ok(Some(row))
    }
}

impl<R: BufRead> Iterator for MooncakeReader<R> {
    type Item = Result<MooncakeRow, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.read().transpose();
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
}

/// Rows as requests, numbered from 0. Holds [`LOOK_AHEAD_ROWS`] rows to find the trunk.
#[derive(Debug)]
pub struct MooncakeImport<R> {
    reader: MooncakeReader<R>,
    key: BlockKey,
    held: std::vec::IntoIter<Result<MooncakeRow, TraceError>>,
    trunk: Option<Trunk>,
    next_id: u64,
}

impl<R: BufRead> MooncakeImport<R> {
    /// Imports the rows of `reader` under the given rule for keys.
    pub fn new(reader: MooncakeReader<R>, key: BlockKey) -> MooncakeImport<R> {
        MooncakeImport { reader, key, held: Vec::new().into_iter(), trunk: None, next_id: 0 }
    }

    fn look_ahead(&mut self) -> Trunk {
        if let BlockKey::Prefix(_) = self.key {
            return Trunk::default();
        }
        let rows: Vec<_> = self.reader.by_ref().take(LOOK_AHEAD_ROWS).collect();
        let trunk = Trunk::of(rows.iter().flatten().map(|row| row.hash_ids.as_slice()));
        self.held = rows.into_iter();
        trunk
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
        let key = match (self.key, &self.trunk) {
            (BlockKey::Prefix(blocks), _) => prefix_key(&row.hash_ids, blocks),
            (BlockKey::AfterTrunk, trunk) => trunk.as_ref()?.key(&row.hash_ids),
        };
        let id = RequestId(self.next_id);
        self.next_id += 1;
        Some(Ok(row.to_request(id, key, self.reader.block_tokens)))
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
