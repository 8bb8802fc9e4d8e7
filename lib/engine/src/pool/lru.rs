//! A list of blocks in order of last use, linked through arrays: every operation is O(1) and allocates nothing.

const NONE: u32 = u32::MAX;

/// Doubly linked list over block numbers; each block is in it at most once.
#[derive(Clone, Debug)]
pub(super) struct LruList {
    previous: Vec<u32>,
    next: Vec<u32>,
    oldest: u32,
    newest: u32,
    len: u32,
}

impl LruList {
    /// An empty list over blocks `0..blocks`.
    pub(super) fn new(blocks: u32) -> LruList {
        let links = vec![NONE; blocks as usize];
        LruList { previous: links.clone(), next: links, oldest: NONE, newest: NONE, len: 0 }
    }

    /// The number of blocks in the list.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Appends a block that is not in the list, as the most recently used.
    pub(super) fn push_newest(&mut self, block: u32) {
        self.previous[block as usize] = self.newest;
        self.next[block as usize] = NONE;
        match self.newest {
            NONE => self.oldest = block,
            newest => self.next[newest as usize] = block,
        }
        self.newest = block;
        self.len += 1;
    }

    /// Takes out a block that is in the list.
    pub(super) fn remove(&mut self, block: u32) {
        let (previous, next) = (self.previous[block as usize], self.next[block as usize]);
        match previous {
            NONE => self.oldest = next,
            previous => self.next[previous as usize] = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.previous[next as usize] = previous,
        }
        self.len -= 1;
    }

    /// Takes out the least recently used block.
    pub(super) fn pop_oldest(&mut self) -> Option<u32> {
        let block = self.oldest;
        (block != NONE).then(|| {
            self.remove(block);
            block
        })
    }
}
