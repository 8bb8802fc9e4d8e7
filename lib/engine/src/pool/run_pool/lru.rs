//! Runs of unreferenced blocks in order of last use, in one slab; every operation is O(1).

const NONE: u32 = u32::MAX;

/// Blocks `[from, to)` of a node that one release left unreferenced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) node: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// When it was let go, in runs let go.
    pub(super) last_use: u64,
    previous: u32,
    next: u32,
}

/// All such runs. Where a run is in the list, the caller remembers its number.
#[derive(Clone, Debug)]
pub(super) struct RunList {
    runs: Vec<Run>,
    /// The first of the numbers that can be used again, linked by `next`.
    spare: u32,
    oldest: u32,
    newest: u32,
}

impl Default for RunList {
    fn default() -> RunList {
        RunList { runs: Vec::new(), spare: NONE, oldest: NONE, newest: NONE }
    }
}

impl RunList {
    /// Forgets all runs.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        (self.spare, self.oldest, self.newest) = (NONE, NONE, NONE);
    }

    /// The run used longest ago.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The run used next after this one.
    pub(super) fn newer(&self, run: u32) -> Option<u32> {
        let next = self.get(run).next;
        (next != NONE).then_some(next)
    }

    #[inline]
    pub(super) fn get(&self, run: u32) -> Run {
        self.runs[run as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, run: u32) -> &mut Run {
        &mut self.runs[run as usize]
    }

    /// Appends a run as the one used last, and gives its number.
    #[inline]
    pub(super) fn push_newest(&mut self, node: u32, from: u32, to: u32, last_use: u64) -> u32 {
        let record = Run { node, from, to, last_use, previous: self.newest, next: NONE };
        let run = match self.spare {
            NONE => {
                self.runs.push(record);
                self.runs.len() as u32 - 1
            }
            run => {
                self.spare = self.get(run).next;
                self.runs[run as usize] = record;
                run
            }
        };
        match self.newest {
            NONE => self.oldest = run,
            newest => self.runs[newest as usize].next = run,
        }
        self.newest = run;
        run
    }

    /// Takes a run out; its number may be used again.
    #[inline]
    pub(super) fn remove(&mut self, run: u32) {
        let Run { previous, next, .. } = self.get(run);
        match previous {
            NONE => self.oldest = next,
            previous => self.runs[previous as usize].next = next,
        }
        match next {
            NONE => self.newest = previous,
            next => self.runs[next as usize].previous = previous,
        }
        self.get_mut(run).next = self.spare;
        self.spare = run;
    }

    /// Takes all runs out, the one used longest ago first.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Run> + '_ {
        std::iter::from_fn(|| {
            let run = self.oldest()?;
            self.remove(run);
            Some(self.get(run))
        })
    }
}
