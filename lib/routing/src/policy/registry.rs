//! Policies by name.

use super::{CacheRoute, DEFAULT_VNODES, Flat, Policy, Sticky};
use crate::table::{MAX_SHARDS, RoutingTable};
use std::sync::Arc;

/// What policies are built from. Each takes what it needs.
#[derive(Clone, Debug)]
pub struct PolicyConfig {
    /// The number of shards, at least one.
    pub shards: u32,
    /// Points a shard on hash rings, at least one.
    pub vnodes: u32,
    /// The table to start with; more may follow through [`Policy::on_table`].
    pub table: Option<Arc<RoutingTable>>,
}

impl PolicyConfig {
    /// The defaults for a fleet of this many shards.
    pub fn new(shards: u32) -> PolicyConfig {
        PolicyConfig { shards, vnodes: DEFAULT_VNODES, table: None }
    }
}

/// Points that all rings together may have: 16 million, half a gigabyte while they are built.
const MAX_POINTS: u64 = 1 << 24;

/// Why there is no such policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No policy has this name.
    #[error("there is no policy {name:?}{}; supported are {}", hint(name), names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The fleet is empty or absurd.
    #[error("{shards} shards; a fleet has 1 to {MAX_SHARDS}")]
    Shards {
        /// What was asked for.
        shards: u32,
    },
    /// The ring is empty or absurd.
    #[error("{vnodes} virtual nodes for {shards} shards; at least 1, and at most {MAX_POINTS} in all")]
    Vnodes {
        /// Points a shard.
        vnodes: u32,
        /// Shards.
        shards: u32,
    },
    /// The table is for another fleet.
    #[error("the table is for {table} shards, the fleet has {shards}")]
    Table {
        /// Shards of the table.
        table: u32,
        /// Shards of the fleet.
        shards: u32,
    },
}

type Make = fn(&PolicyConfig) -> Box<dyn Policy>;

/// Every policy: its name and how it is made.
const POLICIES: &[(&str, Make)] = &[
    ("flat", |_| Box::new(Flat)),
    ("sticky", |config| Box::new(Sticky::new(config.shards, config.vnodes))),
    ("cacheroute", |config| Box::new(CacheRoute::new(config.table.clone()))),
];

/// The names of all policies.
pub fn names() -> Vec<&'static str> {
    POLICIES.iter().map(|&(name, _)| name).collect()
}

/// Makes a policy by name.
///
/// # Errors
/// A name that is not in [`names`], or a configuration that no policy can have.
pub fn build(name: &str, config: &PolicyConfig) -> Result<Box<dyn Policy>, PolicyError> {
    let &(_, make) = POLICIES
        .iter()
        .find(|&&(known, _)| known == name)
        .ok_or_else(|| PolicyError::Unknown { name: name.into() })?;
    let PolicyConfig { shards, vnodes, .. } = *config;
    if shards == 0 || shards > MAX_SHARDS {
        return Err(PolicyError::Shards { shards });
    }
    if vnodes == 0 || u64::from(shards) * u64::from(vnodes) > MAX_POINTS {
        return Err(PolicyError::Vnodes { vnodes, shards });
    }
    match &config.table {
        Some(table) if table.shards() != shards => Err(PolicyError::Table { table: table.shards(), shards }),
        _ => Ok(make(config)),
    }
}

/// The nearest name, where one is near enough to be meant.
fn hint(name: &str) -> String {
    names()
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), known), known))
        .filter(|&(likeness, _)| likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| format!(", did you mean {known:?}?"))
        .unwrap_or_default()
}
