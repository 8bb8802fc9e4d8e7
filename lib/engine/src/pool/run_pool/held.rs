//! The content of one sequence as stretches of blocks, and what it holds of the pool.

use cr_trace::tokens::mix64;
use cr_trace::{ContentId, Request, RequestId};
use smallvec::SmallVec;

/// The end of a stretch that is not over yet: the answer.
const OPEN: u32 = u32::MAX;

/// Blocks of a sequence that end within one segment. Where it begins, the one before it ends.
///
/// A block is named by where it ends: two sequences share block `b` exactly if it ends for both in a stretch of the same
/// name, for the name stands for the segment's content and for everything before the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// A hash of the segment's content and of all segments before it with their lengths.
    pub(super) name: u64,
    /// The first block of the sequence after this stretch.
    pub(super) end: u32,
}

/// A sequence's share of a node: its first so many blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) node: u32,
    pub(super) blocks: u32,
}

/// What one sequence is made of and what it holds.
#[derive(Clone, Debug)]
pub struct HeldRuns {
    stretches: SmallVec<[Stretch; 4]>,
    /// A hash of the whole prompt, which the answer goes on from.
    pub(super) history: u64,
    pub(super) request: RequestId,
    pub(super) admitted: bool,
    /// The pool's protection when this was opened: one that has been lifted since spares nothing.
    pub(super) protection: u32,
    /// The published blocks it holds, from the first one on.
    pub(super) path: SmallVec<[Share; 3]>,
    /// How many leading blocks can be found: the sum over `path`.
    pub(super) published: u32,
    /// All blocks held; those beyond `published` are its own and nameless.
    pub(super) blocks: u32,
    /// Leading blocks that are full of tokens known so far: the prompt's, then those published of the answer.
    pub(super) named: u32,
    /// The first block that ends in what no other request has, as far as the request tells.
    pub(super) private_from: u32,
    /// Blocks full of computed tokens, as last told.
    pub(super) full: u32,
    /// A block that could not be found, and how much the pool had seen published by then: until more is, it cannot be.
    pub(super) absent: (u32, u64),
}

impl HeldRuns {
    /// Nothing.
    pub(super) fn nothing() -> HeldRuns {
        HeldRuns {
            stretches: SmallVec::new(),
            history: 0,
            request: RequestId(0),
            admitted: false,
            protection: 0,
            path: SmallVec::new(),
            published: 0,
            blocks: 0,
            named: 0,
            private_from: 0,
            full: 0,
            absent: (0, 0),
        }
    }

    /// The content of a request, where nothing is held.
    #[inline]
    pub(super) fn describe(&mut self, request: &Request, block_tokens: u32) {
        let outline = request.prompt.outline();
        let own = outline.first_of(request.id.0);
        let (mut tokens, mut named, mut private_from) = (0, 0, None);
        self.stretches.clear();
        for (place, part) in outline.parts().iter().enumerate() {
            if own == Some(place) {
                private_from = Some(tokens / block_tokens);
            }
            tokens += part.tokens;
            let end = tokens / block_tokens;
            if end > named {
                self.stretches.push(Stretch { name: part.name, end });
                named = end;
            }
        }
        self.path.clear();
        (self.history, self.request, self.named) = (outline.history(), request.id, named);
        // What follows the prompt is the answer.
        self.private_from = private_from.unwrap_or(named);
        (self.published, self.blocks, self.full, self.absent) = (0, 0, 0, (0, 0));
    }

    /// The stretches of the prompt, and of the answer once that was asked for.
    #[inline]
    pub(super) fn stretches(&self) -> &[Stretch] {
        &self.stretches
    }

    /// What it holds and what it is made of, apart.
    #[inline]
    pub(super) fn path_and_stretches(&mut self) -> (&mut SmallVec<[Share; 3]>, &[Stretch]) {
        (&mut self.path, &self.stretches)
    }

    /// The stretches, made to cover at least `blocks` blocks.
    #[inline]
    pub(super) fn stretches_to(&mut self, blocks: u32) -> &[Stretch] {
        if self.stretches.last().map_or(0, |stretch| stretch.end) < blocks {
            let name = mix64(self.history ^ ContentId::answer(self.request).hash64());
            self.stretches.push(Stretch { name, end: OPEN });
        }
        &self.stretches
    }
}

/// The stretch that holds block `block`, which must be covered.
#[inline]
pub(super) fn stretch_of(stretches: &[Stretch], block: u32) -> usize {
    // Short lists, and mostly the last one is asked for.
    match stretches.len() {
        n if n > 1 && stretches[n - 2].end <= block => n - 1,
        n if n <= 8 => stretches.iter().position(|stretch| block < stretch.end).unwrap_or(n),
        _ => stretches.partition_point(|stretch| stretch.end <= block),
    }
}
