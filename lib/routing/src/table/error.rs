//! What can be wrong with a table.

/// Why a routing table is refused, without the place: the readers add it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TableError {
    /// No shards, or an absurd number of them.
    #[error("the table is for {shards} shards; a fleet has 1 to {}", super::MAX_SHARDS)]
    Shards {
        /// What was given.
        shards: u32,
    },
    /// A list that does not fit the fleet.
    #[error("{field} has {entries} entries for {shards} shards; it has one a shard")]
    PerShard {
        /// The field.
        field: &'static str,
        /// Entries found.
        entries: usize,
        /// Shards of the table.
        shards: u32,
    },
    /// A number that no plan can have.
    #[error("{field} is {}; it must be finite and not negative", cr_trace::number::plain(*.value))]
    Number {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A key that breaks a rule.
    #[error("key {key:?} {what}")]
    Key {
        /// The key.
        key: String,
        /// Which rule.
        what: String,
    },
}

impl TableError {
    pub(super) fn key(key: &str, what: impl Into<String>) -> TableError {
        TableError::Key { key: key.into(), what: what.into() }
    }
}
