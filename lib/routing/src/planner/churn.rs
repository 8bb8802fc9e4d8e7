//! How much two tables differ, and what it costs to go from one to the other.

use crate::table::RoutingTable;
use cr_trace::{Key, ShardId};
use std::cmp::Ordering;

/// The difference of two tables, over the pairs (key, shard) that say which prefix is kept where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableDiff {
    /// Pairs of the first table.
    pub pairs_before: u64,
    /// Pairs of the second.
    pub pairs_after: u64,
    /// Pairs of both.
    pub pairs_kept: u64,
    /// Keys in both tables whose shards differ, by key.
    pub moved: Vec<Change>,
    /// Keys only the second table admits, by key.
    pub admitted: Vec<Change>,
    /// Keys only the first table admits, by key.
    pub dropped: Vec<Change>,
    /// Σ over pairs that only the second table has of the key's prefix: what has to be computed anew. `None` where the
    /// second table does not tell prefixes.
    pub rewarm_tokens: Option<u64>,
}

/// One key's shards before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// Its shards in the first table.
    pub before: Vec<ShardId>,
    /// Its shards in the second.
    pub after: Vec<ShardId>,
}

impl TableDiff {
    /// Compares two tables; both may be of any size and fleet.
    pub fn between(before: &RoutingTable, after: &RoutingTable) -> TableDiff {
        let mut diff = TableDiff::default();
        let tells_prefixes = !after.prefix_tokens().is_empty();
        let mut rewarm = 0;
        let (mut old, mut new) = (before.places().peekable(), after.places().peekable());
        loop {
            // Both are sorted by key: walk them side by side.
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            let was = if order == Ordering::Greater { None } else { old.next() };
            let is = if order == Ordering::Less { None } else { new.next() };
            let Some(key) = was.or(is).map(|(key, _)| key) else { break };
            let was: &[ShardId] = was.map_or(&[], |(_, shards)| shards);
            let is: &[ShardId] = is.map_or(&[], |(_, shards)| shards);
            let kept = is.iter().filter(|shard| was.contains(shard)).count();
            diff.pairs_before += was.len() as u64;
            diff.pairs_after += is.len() as u64;
            diff.pairs_kept += kept as u64;
            rewarm += (is.len() - kept) as u64 * after.prefix_tokens_of(key).unwrap_or(0);
            if was != is {
                let change = Change { key: key.clone(), before: was.to_vec(), after: is.to_vec() };
                match order {
                    Ordering::Equal => diff.moved.push(change),
                    Ordering::Greater => diff.admitted.push(change),
                    Ordering::Less => diff.dropped.push(change),
                }
            }
        }
        diff.rewarm_tokens = tells_prefixes.then_some(rewarm);
        diff
    }

    /// 1 − Jaccard similarity of the pairs; 0 for two empty tables.
    pub fn churn(&self) -> f64 {
        churn(self.pairs_before, self.pairs_after, self.pairs_kept)
    }

    /// Keys whose shards changed, admitted and dropped ones included.
    pub fn changed_keys(&self) -> usize {
        self.moved.len() + self.admitted.len() + self.dropped.len()
    }
}

/// 1 − |both| / |either|; 0 where there is nothing.
pub(super) fn churn(before: u64, after: u64, kept: u64) -> f64 {
    let either = before + after - kept;
    if either == 0 { 0.0 } else { 1.0 - kept as f64 / either as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(places: &[(&str, &[u32])]) -> RoutingTable {
        let meta = RoutingTable::empty(4).expect("is valid").meta().clone();
        let places = places
            .iter()
            .map(|&(key, shards)| (Key::new(key), shards.iter().map(|&id| ShardId(id)).collect()))
            .collect();
        RoutingTable::new(meta, places).expect("is valid")
    }

    #[test]
    fn pairs_are_compared_as_sets() {
        let before = table(&[("a", &[0]), ("b", &[0, 1]), ("d", &[3])]);
        let after = table(&[("a", &[0]), ("b", &[1, 2]), ("c", &[2])])
            .with_prefix_tokens(vec![(Key::new("b"), 100), (Key::new("c"), 7)])
            .expect("is valid");
        let diff = TableDiff::between(&before, &after);
        assert_eq!((diff.pairs_before, diff.pairs_after, diff.pairs_kept), (4, 4, 2));
        assert!((diff.churn() - (1.0 - 2.0 / 6.0)).abs() < 1e-12);
        let names =
            |changes: &[Change]| changes.iter().map(|change| change.key.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (names(&diff.moved), names(&diff.admitted), names(&diff.dropped)),
            (vec!["b".into()], vec!["c".into()], vec!["d".into()])
        );
        assert_eq!((diff.rewarm_tokens, diff.changed_keys()), (Some(107), 3));
        assert_eq!(TableDiff::between(&after, &after).churn(), 0.0);
        assert_eq!(TableDiff::between(&table(&[]), &table(&[])).churn(), 0.0);
        assert_eq!(TableDiff::between(&table(&[]), &after).churn(), 1.0);
    }
}
