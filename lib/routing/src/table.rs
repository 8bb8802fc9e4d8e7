//! The routing table (`cacheroute.table/1`).

/// Which shards keep which key's prefix warm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutingTable {}
