//! Which request ids have been seen, in bounded memory.

use std::collections::BTreeMap;

/// A set of ids kept as disjoint ranges.
///
/// Ids that count up without gaps are one range, so an ordinary trace costs nothing. At most `limit` ranges are held:
/// beyond that the set is no longer [exact](IdSet::is_exact) and answers only what it knows.
#[derive(Clone, Debug)]
pub struct IdSet {
    /// First id of a range to its last.
    ranges: BTreeMap<u64, u64>,
    /// The range that grew last, which the next id most often continues.
    open: Option<(u64, u64)>,
    limit: usize,
    exact: bool,
}

impl IdSet {
    /// An empty set of at most `limit` ranges.
    pub fn new(limit: usize) -> IdSet {
        IdSet { ranges: BTreeMap::new(), open: None, limit, exact: true }
    }

    /// Whether no id had to be forgotten, so that "not contained" means "not seen".
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether the id is known to have been seen.
    pub fn contains(&self, id: u64) -> bool {
        self.open.is_some_and(|(first, last)| (first..=last).contains(&id))
            || self.ranges.range(..=id).next_back().is_some_and(|(_, &last)| id <= last)
    }

    /// Adds an id; `false` if it is known to have been there before.
    pub fn insert(&mut self, id: u64) -> bool {
        if let Some((_, last)) = &mut self.open
            && last.checked_add(1) == Some(id)
            && !self.ranges.contains_key(&id)
        {
            *last = id;
            return true;
        }
        if self.contains(id) {
            return false;
        }
        if let Some((first, last)) = self.open.take() {
            self.store(first, last);
        }
        self.open = Some(self.widened(id));
        true
    }

    /// The range that `id` forms with its neighbours, which leave the map.
    fn widened(&mut self, id: u64) -> (u64, u64) {
        let (mut first, mut last) = (id, id);
        if let Some((&below, &end)) = self.ranges.range(..id).next_back()
            && end.checked_add(1) == Some(id)
        {
            self.ranges.remove(&below);
            first = below;
        }
        if let Some(above) = id.checked_add(1)
            && let Some(end) = self.ranges.remove(&above)
        {
            last = end;
        }
        (first, last)
    }

    /// Puts a range into the map, joined with the one that begins right after it.
    fn store(&mut self, first: u64, last: u64) {
        let mut last = last;
        if let Some(above) = last.checked_add(1)
            && let Some(end) = self.ranges.remove(&above)
        {
            last = end;
        }
        if self.ranges.len() < self.limit {
            self.ranges.insert(first, last);
        } else {
            self.exact = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn counting_up_is_one_range() {
        let mut ids = IdSet::new(4);
        assert!((0..10_000).all(|id| ids.insert(id)));
        assert!(!ids.insert(17) && !ids.insert(9_999) && ids.insert(u64::MAX) && !ids.insert(u64::MAX));
        assert!(ids.is_exact() && ids.ranges.len() == 1);
    }

    #[test]
    fn a_full_set_says_that_it_is_not_exact() {
        let mut ids = IdSet::new(4);
        assert!((0..20).all(|id| ids.insert(id * 2)));
        assert!(!ids.is_exact() && ids.ranges.len() == 4);
        assert!(!ids.insert(0), "what it still knows it still tells");
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(inserts in proptest::collection::vec(0u64..40, 0..120)) {
            let (mut ids, mut plain) = (IdSet::new(1000), BTreeSet::new());
            for id in inserts {
                prop_assert_eq!(ids.insert(id), plain.insert(id));
                for probe in 0..41 {
                    prop_assert_eq!(ids.contains(probe), plain.contains(&probe));
                }
            }
            prop_assert!(ids.is_exact());
        }
    }
}
