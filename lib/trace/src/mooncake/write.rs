//! Requests of any origin as rows of hash blocks.

use crate::Request;
use crate::block::{BlockChain, BlockHash};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io::Write;

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
