//! Rows of hash blocks as requests: ids, keys, sessions.

use super::{Dialect, MooncakeReader, MooncakeRow};
use crate::ahead::ReadAhead;
use crate::trunk::{LOOK_AHEAD_ROWS, Trunk, prefix_key};
use crate::{Request, RequestId, SessionId, TraceError};
use rustc_hash::FxHashMap;
use std::io::BufRead;

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
pub struct MooncakeImport<I> {
    rows: I,
    dialect: Dialect,
    key: BlockKey,
    held: std::vec::IntoIter<Result<MooncakeRow, TraceError>>,
    trunk: Option<Trunk>,
    /// The first chat of each chat's conversation: about 24 bytes a chat, where rows tell them.
    roots: FxHashMap<i64, i64>,
    next_id: u64,
}

impl<R: BufRead> MooncakeImport<MooncakeReader<R>> {
    /// Imports the rows of `reader` under the given rule for keys.
    pub fn new(reader: MooncakeReader<R>, key: BlockKey) -> Self {
        MooncakeImport::of(reader.dialect, reader.that_tells(key), key)
    }
}

impl MooncakeImport<ReadAhead<Result<MooncakeRow, TraceError>>> {
    /// The same, with the rows parsed on a thread of their own: what becomes of a row takes about as long as to parse it.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn ahead<R>(reader: MooncakeReader<R>, key: BlockKey) -> std::io::Result<Self>
    where
        R: BufRead + Send + 'static,
    {
        Ok(MooncakeImport::of(reader.dialect, ReadAhead::new(reader.that_tells(key))?, key))
    }
}

impl<R> MooncakeReader<R> {
    /// Refuses rows that lack what keys are made of.
    fn that_tells(mut self, key: BlockKey) -> MooncakeReader<R> {
        self.wants_chats = key == BlockKey::Session;
        self
    }
}

impl<I: Iterator<Item = Result<MooncakeRow, TraceError>>> MooncakeImport<I> {
    fn of(dialect: Dialect, rows: I, key: BlockKey) -> MooncakeImport<I> {
        MooncakeImport {
            rows,
            dialect,
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
        let rows: Vec<_> = self.rows.by_ref().take(LOOK_AHEAD_ROWS).collect();
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

impl<I: Iterator<Item = Result<MooncakeRow, TraceError>>> Iterator for MooncakeImport<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.trunk.is_none() {
            self.trunk = Some(self.look_ahead());
        }
        let row = match self.held.next().or_else(|| self.rows.next())? {
            Ok(row) => row,
            Err(error) => return Some(Err(error)),
        };
        let session = self.session(&row);
        let key = match (self.key, &session) {
            (BlockKey::Prefix(blocks), _) => prefix_key(&row.hash_ids, blocks),
            (BlockKey::AfterTrunk, _) => self.trunk.as_ref()?.key(&row.hash_ids),
            (BlockKey::Session, session) => session.clone().unwrap_or_default(),
        };
        let id = RequestId(self.next_id);
        self.next_id += 1;
        Some(Ok(row.to_request(id, key, session, self.dialect)))
    }
}
