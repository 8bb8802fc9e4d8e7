//! Lists in order of last use, one a shard, in one slab: every operation is O(1).

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    value: T,
    older: u32,
    newer: u32,
}

/// Values in order of last use, a list for each shard. The caller remembers the place of each.
#[derive(Clone, Debug)]
pub(super) struct Recency<T> {
    entries: Vec<Entry<T>>,
    /// Places that can be used again.
    spare: Vec<u32>,
    /// The oldest and the newest entry of each shard.
    ends: Vec<(u32, u32)>,
}

impl<T: Clone> Recency<T> {
    /// Empty lists.
    pub(super) fn new(shards: u32) -> Recency<T> {
        Recency { entries: Vec::new(), spare: Vec::new(), ends: vec![(NONE, NONE); shards as usize] }
    }

    /// Appends a value as the newest; says where it is.
    pub(super) fn push(&mut self, shard: u32, value: T) -> u32 {
        let entry = Entry { value, older: NONE, newer: NONE };
        let place = match self.spare.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.link(shard, place);
        place
    }

    /// Makes a value the newest.
    pub(super) fn renew(&mut self, shard: u32, place: u32) -> &mut T {
        self.unlink(shard, place);
        self.link(shard, place);
        &mut self.entries[place as usize].value
    }

    /// Takes the oldest value out.
    pub(super) fn pop_oldest(&mut self, shard: u32) -> Option<T> {
        let (oldest, _) = self.ends[shard as usize];
        (oldest != NONE).then(|| self.remove(shard, oldest))
    }

    /// Takes a value out.
    pub(super) fn remove(&mut self, shard: u32, place: u32) -> T {
        self.unlink(shard, place);
        self.spare.push(place);
        self.entries[place as usize].value.clone()
    }

    /// The values and their places, oldest first.
    pub(super) fn iter(&self, shard: u32) -> impl Iterator<Item = (u32, T)> + '_ {
        let mut next = self.ends[shard as usize].0;
        std::iter::from_fn(move || {
            let place = next;
            let entry = self.entries.get(place as usize)?;
            next = entry.newer;
            Some((place, entry.value.clone()))
        })
    }

    fn link(&mut self, shard: u32, place: u32) {
        let (oldest, newest) = &mut self.ends[shard as usize];
        let before = *newest;
        self.entries[place as usize].older = before;
        self.entries[place as usize].newer = NONE;
        *newest = place;
        match before {
            NONE => *oldest = place,
            before => self.entries[before as usize].newer = place,
        }
    }

    fn unlink(&mut self, shard: u32, place: u32) {
        let &Entry { older, newer, .. } = &self.entries[place as usize];
        let ends = &mut self.ends[shard as usize];
        match older {
            NONE => ends.0 = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => ends.1 = older,
            newer => self.entries[newer as usize].older = older,
        }
    }
}
