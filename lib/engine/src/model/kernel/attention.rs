//! Attention over a paged pool.
//!
//! The pool holds tiles of sixteen tokens a head: keys `[tiles, kv_heads, head_dim, 16]`, so that scores need neither a
//! transpose nor a horizontal sum, values `[tiles, kv_heads, 16, head_dim]`. A block of several times sixteen tokens is
//! a run of tiles. The softmax is online, so no matrix of scores is ever stored.

use super::isa::Isa;
use super::rope::rotate;
use super::shared::SharedMut;
use super::tile::{HEAD_DIMS, KEYS, Rows, add_tile};
use crate::model::SeqSlice;
use crate::model::rope::RopeTable;
use rayon::prelude::*;
use std::cell::{Cell, RefCell};

/// Query rows of a task: enough to reuse a tile from the first-level cache, few enough to spread over threads.
const TASK_ROWS: usize = 24;

/// Products below which threads cost more than they save.
const PARALLEL_FROM: usize = 1 << 18;

/// The shape of heads and blocks.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Width of one head.
    pub head_dim: usize,
    /// Tokens of a block.
    pub block_tokens: usize,
}

impl Geometry {
    /// Whether the kernels are compiled for this shape.
    pub fn is_supported(&self) -> bool {
        HEAD_DIMS.contains(&self.head_dim) && self.block_tokens.is_multiple_of(KEYS)
    }

    /// Query heads that share one key head.
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Width of one row of packed queries, keys and values.
    pub fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Values of one tile of one head.
    pub(super) fn tile_len(&self) -> usize {
        KEYS * self.head_dim
    }

    /// Where the tile of one head that holds position `tile · 16` of a sequence starts in the pool.
    fn tile_start(&self, blocks: &[u32], tile: usize, head: usize) -> usize {
        let per_block = self.block_tokens / KEYS;
        let tile = blocks[tile / per_block] as usize * per_block + tile % per_block;
        (tile * self.kv_heads + head) * self.tile_len()
    }
}

/// The pool of one layer.
#[derive(Clone, Copy, Debug)]
pub struct LayerPool<'a> {
    /// Keys.
    pub k: &'a [f32],
    /// Values.
    pub v: &'a [f32],
}

/// A run of query tokens of one sequence, for the query heads that share one key head.
#[derive(Clone, Copy, Debug)]
struct Task {
    seq: usize,
    kv_head: usize,
    first: usize,
    tokens: usize,
}

/// What the kernels of a model's heads have in common.
#[derive(Clone, Debug)]
pub struct Heads {
    /// The instruction set to use.
    pub isa: Isa,
    /// Rotary positions.
    pub rope: RopeTable,
    /// Shape of heads and blocks; [`Geometry::is_supported`].
    pub geometry: Geometry,
}

impl Heads {
    /// Rotates one head's row at a position, times `scale`.
    pub(super) fn rotate(&self, x: &[f32], position: usize, scale: f32, out: &mut [f32]) {
        let angles = position * self.rope.half_dim..(position + 1) * self.rope.half_dim;
        rotate(self.isa, x, &self.rope.cos[angles.clone()], &self.rope.sin[angles], scale, out);
    }
}

/// Causal attention of all rows of a step, `qkv` `[rows, qkv_width]` with queries not yet rotated, into `out`
/// `[rows, heads · head_dim]`. Keys and values of these rows are in the pool already.
pub fn paged_attention(
    heads: &Heads,
    qkv: &[f32],
    pool: LayerPool<'_>,
    seqs: &[SeqSlice<'_>],
    out: &mut [f32],
) {
    let geometry = &heads.geometry;
    let per_task = (TASK_ROWS / geometry.group()).max(1);
    // Taken out while the threads work: a thread that waits may take up another layer's attention.
    let mut tasks = TASKS.take();
    tasks.clear();
    for (seq, slice) in seqs.iter().enumerate() {
        for kv_head in 0..geometry.kv_heads {
            for first in (0..slice.q_len).step_by(per_task) {
                tasks.push(Task { seq, kv_head, first, tokens: per_task.min(slice.q_len - first) });
            }
        }
    }
    let pairs = seqs.iter().map(|seq| seq.q_len * seq.kv_len).sum::<usize>();
    let job = Job { heads, qkv, pool, seqs, out: SharedMut::new(out) };
    if pairs * geometry.heads * geometry.head_dim < PARALLEL_FROM {
        tasks.iter().for_each(|task| job.run(*task));
    } else {
        // The last rows of a chunk see the most keys: start with them.
        tasks.par_iter().rev().for_each(|task| job.run(*task));
    }
    TASKS.set(tasks);
}

/// Buffers of a task, kept by each thread.
#[derive(Default)]
struct Scratch {
    q: Vec<f32>,
    acc: Vec<f32>,
    max: Vec<f32>,
    sum: Vec<f32>,
    visible: Vec<usize>,
}

impl Scratch {
    fn reset(&mut self, rows: usize, head_dim: usize) {
        fn fill<T: Copy>(buffer: &mut Vec<T>, len: usize, value: T) {
            buffer.clear();
            buffer.resize(len, value);
        }
        fill(&mut self.q, rows * head_dim, 0.0);
        fill(&mut self.acc, rows * head_dim, 0.0);
        fill(&mut self.max, rows, f32::NEG_INFINITY);
        fill(&mut self.sum, rows, 0.0);
        fill(&mut self.visible, rows, KEYS);
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
    /// The buffer of tasks.
    static TASKS: Cell<Vec<Task>> = const { Cell::new(Vec::new()) };
}

/// What all tasks of one layer's attention share.
struct Job<'a> {
    heads: &'a Heads,
    qkv: &'a [f32],
    pool: LayerPool<'a>,
    seqs: &'a [SeqSlice<'a>],
    out: SharedMut<'a>,
}

impl Job<'_> {
    fn run(&self, task: Task) {
        SCRATCH.with_borrow_mut(|scratch| {
            let geometry = &self.heads.geometry;
            scratch.reset(task.tokens * geometry.group(), geometry.head_dim);
            self.load_queries(task, scratch);
            self.attend(task, scratch);
            self.store(task, scratch);
        });
    }

    /// The task's queries, rotated and scaled.
    fn load_queries(&self, task: Task, scratch: &mut Scratch) {
        let geometry = &self.heads.geometry;
        let (dim, group) = (geometry.head_dim, geometry.group());
        let seq = &self.seqs[task.seq];
        let scale = 1.0 / (dim as f32).sqrt();
        for (token, q) in scratch.q.chunks_exact_mut(group * dim).enumerate() {
            let row = seq.q_start + task.first + token;
            let x = &self.qkv[row * geometry.qkv_width() + task.kv_head * group * dim..][..group * dim];
            for (x, q) in x.chunks_exact(dim).zip(q.chunks_exact_mut(dim)) {
                self.heads.rotate(x, seq.start() + task.first + token, scale, q);
            }
        }
    }

    /// The online softmax over all tiles that the task's rows see.
    fn attend(&self, task: Task, scratch: &mut Scratch) {
        let geometry = &self.heads.geometry;
        let seq = &self.seqs[task.seq];
        let first_position = seq.start() + task.first;
        for tile in 0..(first_position + task.tokens).div_ceil(KEYS) {
            if (tile + 1) * KEYS > first_position + 1 {
                for (row, visible) in scratch.visible.iter_mut().enumerate() {
                    let seen = first_position + row / geometry.group() + 1;
                    *visible = seen.saturating_sub(tile * KEYS).min(KEYS);
                }
            }
            let at = geometry.tile_start(seq.blocks, tile, task.kv_head);
            let tile = at..at + geometry.tile_len();
            let mut rows = Rows {
                q: &scratch.q,
                visible: &scratch.visible,
                max: &mut scratch.max,
                sum: &mut scratch.sum,
                acc: &mut scratch.acc,
            };
            let (k, v) = (&self.pool.k[tile.clone()], &self.pool.v[tile]);
            add_tile(self.heads.isa, geometry.head_dim, k, v, &mut rows);
        }
    }

    /// Writes the normalised sums to the task's rows of the output.
    fn store(&self, task: Task, scratch: &Scratch) {
        let geometry = &self.heads.geometry;
        let (dim, group) = (geometry.head_dim, geometry.group());
        let first_row = self.seqs[task.seq].q_start + task.first;
        for token in 0..task.tokens {
            let at = (first_row + token) * geometry.heads * dim + task.kv_head * group * dim;
            // SAFETY: tasks differ in their tokens or in their key head, so no two write the same heads of a row.
            let out = unsafe { self.out.part(at, group * dim) };
            let acc = scratch.acc[token * group * dim..].chunks_exact(dim);
            for ((out, acc), sum) in out.chunks_exact_mut(dim).zip(acc).zip(&scratch.sum[token * group..]) {
                let scale = 1.0 / sum;
                for (out, acc) in out.iter_mut().zip(acc) {
                    *out = acc * scale;
                }
            }
        }
    }
}
