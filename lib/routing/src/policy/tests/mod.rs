//! Tests of the family's contract and of each policy's published invariant.

mod cacheroute;
mod chwbl;
mod dualmap;
mod family;
mod flat;
mod ladder;
mod simple;
mod sticky;

use super::*;
use crate::view::ShardView;
use cr_trace::{ContentId, Key, RequestId, Segment};

/// A request of this key; its prompt is the key's context.
pub(super) fn request(id: u64, key: &str) -> Request {
    Request {
        id: RequestId(id),
        t_s: 0.0,
        key: Key::new(key),
        tenant: None,
        session: None,
        turn: None,
        after: None,
        think_s: None,
        prompt: [Segment(ContentId::key(key), 64)].into_iter().collect(),
        output_tokens: 1,
    }
}

/// A fleet of this many idle shards that are up.
pub(super) fn idle(shards: u32) -> Vec<ShardView> {
    vec![ShardView { up: true, ..ShardView::default() }; shards as usize]
}

/// A view of these shards.
pub(super) fn view(shards: &[ShardView]) -> FleetView<'_> {
    FleetView { shards, as_of: Time::ZERO }
}
