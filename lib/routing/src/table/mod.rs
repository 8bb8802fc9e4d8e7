//! The routing table (`cacheroute.table/1`): which shards keep which key's prefix warm.
//!
//! * this file — the type and its lookups;
//! * [`places`] — keys and shards, laid out for lookups;
//! * [`wire`] — its JSON;
//! * [`read`] — files with one table or with one table a line.
//!
//! **Invariant.** A `RoutingTable` that exists is valid: every admitted key has at least one shard, the shards of a
//! key are distinct, ascending and exist, and every number is finite and not negative.

mod error;
mod places;
pub mod read;
mod sorted;
mod wire;

pub use error::TableError;
pub use read::{TableReader, read_tables, write_table};

use cr_trace::{Key, ShardId, TraceDigest};
use places::Places;
use smallvec::SmallVec;
pub(crate) use sorted::sort_by_key;

/// The schema of a table, in its first field.
pub const SCHEMA: &str = "cacheroute.table/1";

pub use cr_trace::MAX_SHARDS;

/// The shards of one key, ascending. Four fit without a heap allocation.
pub type ShardSet = SmallVec<[ShardId; 4]>;

/// Everything of a table but its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableMeta {
    /// Program and version.
    pub generator: String,
    /// The number of shards it was planned for, at least one.
    pub shards: u32,
    /// The rate that one shard can serve of one key, in requests per second.
    pub qcap: f64,
    /// Warm prefixes that one shard can keep.
    pub warm_slots: f64,
    /// `shards · warm_slots`: copies that may be placed in all.
    pub capacity: f64,
    /// Run time at which the table is to be installed, in seconds.
    pub from_s: f64,
    /// Whether the rates come from the very requests that the table will be tested on.
    pub in_sample: bool,
    /// The requests that the rates were counted over, where they were: a run whose trace is or begins with these is in sample.
    pub source: Option<TraceDigest>,
    /// Σ rate of admitted keys, in requests per second.
    pub admitted_rate: f64,
    /// Σ rate of the other keys, in requests per second.
    pub cold_rate: f64,
    /// The planned rate of each shard, cold tail included, in requests per second.
    pub expected_load: Vec<f64>,
    /// Max / mean of `expected_load` over the shards that are up, each by its capacity; 1 where that is all zero.
    pub imbalance: f64,
    /// The relative capacity of each shard, 0 for one that is down; empty where all are alike.
    pub shard_capacity: Vec<f64>,
    /// The planned work of each shard in seconds of prefill per second; empty where requests were balanced.
    pub expected_work: Vec<f64>,
}

/// A routing table. Immutable once built; share it as `Arc<RoutingTable>`.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutingTable {
    meta: TableMeta,
    /// Sorted by key.
    places: Places,
    /// The rates that the plan was made from, cold keys included; sorted by key, empty where they were left out.
    rates: Vec<(Key, f64)>,
    /// The prefix of each key in tokens; sorted by key, empty where unknown or left out.
    prefix_tokens: Vec<(Key, u64)>,
}

impl RoutingTable {
    /// A table of these places; sorts them by key.
    ///
    /// # Errors
    /// A key twice, an empty key, no shard or a shard that does not exist, a number that is negative or not finite.
    pub fn new(meta: TableMeta, places: Vec<(Key, ShardSet)>) -> Result<RoutingTable, TableError> {
        let mut places = places;
        sort_by_key(&mut places);
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(TableError::key(&pair[0].0, "is there twice"));
        }
        check_meta(&meta)?;
        places.iter().try_for_each(|(key, shards)| check_place(key, shards, meta.shards))?;
        Ok(RoutingTable { meta, places: Places::new(places), rates: Vec::new(), prefix_tokens: Vec::new() })
    }

    /// A table that admits nothing: every request is routed by power of two choices.
    ///
    /// # Errors
    /// No shards, or more than [`MAX_SHARDS`].
    pub fn empty(shards: u32) -> Result<RoutingTable, TableError> {
        let expected_load = vec![0.0; shards.min(MAX_SHARDS) as usize];
        let meta = TableMeta { shards, qcap: 1.0, expected_load, imbalance: 1.0, ..TableMeta::default() };
        RoutingTable::new(meta, Vec::new())
    }

    /// The same table with the rates it was planned from, in requests per second, cold keys included.
    ///
    /// # Errors
    /// A key twice or without a printable name, or a rate that is negative or not finite.
    pub fn with_rates(mut self, rates: Vec<(Key, f64)>) -> Result<RoutingTable, TableError> {
        self.rates = sorted_once(rates, "rates")?;
        self.check_rates()?;
        Ok(self)
    }

    /// The same table with each key's prefix length in tokens.
    ///
    /// # Errors
    /// A key twice, or without a printable name.
    pub fn with_prefix_tokens(mut self, tokens: Vec<(Key, u64)>) -> Result<RoutingTable, TableError> {
        self.prefix_tokens = sorted_once(tokens, "prefix_tokens")?;
        check_names(self.prefix_tokens.iter().map(|(key, _)| key))?;
        Ok(self)
    }

    /// Everything but the keys.
    pub fn meta(&self) -> &TableMeta {
        &self.meta
    }

    /// The same table, installed at another instant of the run.
    #[must_use]
    pub fn starting_at(mut self, from_s: f64) -> RoutingTable {
        self.meta.from_s = if from_s.is_finite() { from_s.max(0.0) } else { 0.0 };
        self
    }

    /// The number of shards it was planned for.
    pub fn shards(&self) -> u32 {
        self.meta.shards
    }

    /// The number of admitted keys.
    pub fn admitted_keys(&self) -> usize {
        self.places.len()
    }

    /// The shards that keep this key warm, ascending; `None` for a key that is not admitted.
    pub fn shards_of(&self, key: &str) -> Option<&[ShardId]> {
        self.places.get(key)
    }

    /// Whether the key has a place of its own.
    pub fn is_admitted(&self, key: &str) -> bool {
        self.places.get(key).is_some()
    }

    /// The admitted keys and their shards, sorted by key.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (&Key, &[ShardId])> {
        self.places.iter()
    }

    /// The rates that the plan was made from, sorted by key; empty where the table does not carry them.
    pub fn rates(&self) -> &[(Key, f64)] {
        &self.rates
    }

    /// One key's rate in requests per second, where the table carries it.
    pub fn rate_of(&self, key: &str) -> Option<f64> {
        find(&self.rates, key)
    }

    /// Each key's prefix in tokens, sorted by key; empty where the table does not carry them.
    pub fn prefix_tokens(&self) -> &[(Key, u64)] {
        &self.prefix_tokens
    }

    /// One key's prefix in tokens, where the table carries it.
    pub fn prefix_tokens_of(&self, key: &str) -> Option<u64> {
        find(&self.prefix_tokens, key)
    }

    /// The shard of a key with the least planned load, the lowest id among equals: where to send it when nothing is
    /// known of the queues. `None` for a key that is not admitted.
    pub fn preferred_shard(&self, key: &str) -> Option<ShardId> {
        let load = |shard: &ShardId| self.meta.expected_load.get(shard.index()).copied().unwrap_or(0.0);
        self.shards_of(key)?.iter().copied().min_by(|a, b| load(a).total_cmp(&load(b)).then(a.cmp(b)))
    }

    fn check_rates(&self) -> Result<(), TableError> {
        match self.rates.iter().find(|(_, rate)| !is_quantity(*rate)) {
            Some((key, rate)) => {
                Err(TableError::key(key, format!("has the rate {}", cr_trace::number::plain(*rate))))
            }
            None => check_names(self.rates.iter().map(|(key, _)| key)),
        }
    }
}

fn check_meta(meta: &TableMeta) -> Result<(), TableError> {
    if meta.shards == 0 || meta.shards > MAX_SHARDS {
        return Err(TableError::Shards { shards: meta.shards });
    }
    for (field, list, may_be_empty) in [
        ("expected_load", &meta.expected_load, false),
        ("shard_capacity", &meta.shard_capacity, true),
        ("expected_work", &meta.expected_work, true),
    ] {
        if list.len() != meta.shards as usize && !(may_be_empty && list.is_empty()) {
            return Err(TableError::PerShard { field, entries: list.len(), shards: meta.shards });
        }
    }
    let numbers = [
        ("qcap", meta.qcap),
        ("warm_slots", meta.warm_slots),
        ("capacity", meta.capacity),
        ("from_s", meta.from_s),
        ("admitted_rate", meta.admitted_rate),
        ("cold_rate", meta.cold_rate),
        ("imbalance", meta.imbalance),
    ];
    let lists = [
        ("expected_load", &meta.expected_load),
        ("shard_capacity", &meta.shard_capacity),
        ("expected_work", &meta.expected_work),
    ];
    let lists = lists.into_iter().flat_map(|(field, list)| list.iter().map(move |&value| (field, value)));
    match numbers.into_iter().chain(lists).find(|&(_, value)| !is_quantity(value)) {
        Some((field, value)) => Err(TableError::Number { field, value }),
        None => Ok(()),
    }
}

fn is_quantity(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Keys have a name that can be printed.
fn check_names<'a>(mut keys: impl Iterator<Item = &'a Key>) -> Result<(), TableError> {
    match keys.find(|key| key.is_empty() || !cr_trace::request::is_printable(key)) {
        Some(key) if key.is_empty() => Err(TableError::key(key, "is the empty text; a key has a name")),
        Some(key) => Err(TableError::key(key, "has control characters; a key is printable text")),
        None => Ok(()),
    }
}

fn check_place(key: &Key, members: &[ShardId], shards: u32) -> Result<(), TableError> {
    check_names(std::iter::once(key))?;
    if members.is_empty() {
        return Err(TableError::key(key, "has no shard; leave a key that is not admitted out"));
    }
    if !members.is_sorted_by(|a, b| a < b) {
        return Err(TableError::key(key, "has shards that are not ascending and distinct"));
    }
    match members.last() {
        Some(last) if last.0 >= shards => {
            Err(TableError::key(key, format!("is on shard {last}, but the last shard is {}", shards - 1)))
        }
        _ => Ok(()),
    }
}

fn sorted_once<T: Default>(
    mut pairs: Vec<(Key, T)>,
    field: &'static str,
) -> Result<Vec<(Key, T)>, TableError> {
    sort_by_key(&mut pairs);
    match pairs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(TableError::key(&pair[0].0, format!("is there twice in {field}"))),
        None => Ok(pairs),
    }
}

fn find<T: Copy>(pairs: &[(Key, T)], key: &str) -> Option<T> {
    let at = pairs.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
    Some(pairs[at].1)
}

#[cfg(test)]
mod tests;
