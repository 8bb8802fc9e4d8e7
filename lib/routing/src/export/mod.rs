//! A routing table as the configuration of a load balancer.
//!
//! Both proxies route by a request header that carries the key: an admitted key of one shard to that shard, an admitted key
//! of several to the least loaded of them, and every other key to the less loaded of two random shards. What a proxy calls
//! load is its own open connections to a server, counted apart for each group of servers, so a shard's load over several
//! groups is not one number there, as it is in a router of our own.

mod fleet;
mod haproxy;
mod nginx;
#[cfg(test)]
mod tests;

pub use fleet::FleetFile;
pub use haproxy::haproxy;
pub use nginx::nginx;

use crate::table::RoutingTable;
use cr_trace::ShardId;
use std::collections::BTreeSet;

/// One file of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its name, without a folder.
    pub name: &'static str,
    /// Its text.
    pub text: String,
    /// Whether it is a script.
    pub executable: bool,
}

/// Why a table cannot be exported.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExportError {
    /// The fleet file is no TOML of this schema.
    #[error("{file}: {what}")]
    Fleet {
        /// The file.
        file: String,
        /// Place and reason.
        what: String,
    },
    /// The table is for another fleet.
    #[error("the table is for {table} shards, the fleet file lists {fleet}")]
    Shards {
        /// Shards of the table.
        table: u32,
        /// Addresses of the fleet file.
        fleet: usize,
    },
    /// A key that the proxy's map cannot hold.
    #[error("the key {key:?} {what}")]
    Key {
        /// The key.
        key: String,
        /// Why not.
        what: &'static str,
    },
}

/// The name of the place of an admitted key: `s3` for one shard, `set_0_2` for several.
fn place(shards: &[ShardId]) -> String {
    match shards {
        [shard] => format!("s{shard}"),
        _ => shards.iter().fold("set".to_string(), |name, shard| format!("{name}_{shard}")),
    }
}

/// The replica sets of a table, each once, in order.
fn replica_sets(table: &RoutingTable) -> BTreeSet<Vec<ShardId>> {
    table.places().filter(|(_, shards)| shards.len() > 1).map(|(_, shards)| shards.to_vec()).collect()
}

fn check_fleet(table: &RoutingTable, fleet: &FleetFile) -> Result<(), ExportError> {
    if fleet.addresses().len() != table.shards() as usize {
        return Err(ExportError::Shards { table: table.shards(), fleet: fleet.addresses().len() });
    }
    Ok(())
}
