//! The product of activations with a weight of 8-bit integers.
//!
//! Numbers come in blocks of 32 along the inputs, with one scale each: ggml's Q8_0, which a checkpoint's weights keep bit
//! for bit. Activations are rounded to the same form, row by row, when a product starts; sums within a block are exact
//! integers, sums over blocks are f32.
//!
//! A weight is stored in panels of 16 output columns. For each block of inputs a panel holds the 16 scales (f16), then
//! eight groups of four inputs: 16 columns × 4 bytes, one AVX-512 register. Like the f32 weights of
//! [`super::matmul`], it is streamed once, in the order of memory. Weights are stored with 128 added: the instruction that
//! multiplies bytes takes one unsigned factor, and the correction, −128 times the sum of a block's activations, is where the
//! sum of that block starts.

mod dot;
mod quantise;

use super::isa::Isa;
use super::shared::SharedMut;
use super::tasks::{self, TASK_ROWS};
use dot::multiply_panels;
use quantise::Activations;
use rayon::prelude::*;
use std::cell::RefCell;

/// Numbers that share a scale.
pub(super) const BLOCK: usize = 32;

/// Bytes of a Q8_0 block as files have it: the scale (f16), then the numbers.
pub const FILE_BLOCK_BYTES: usize = 2 + BLOCK;

/// Columns of a panel: one AVX-512 register of 32-bit sums.
const PANEL: usize = 16;

/// Panels that are multiplied at a time, so that each activation is loaded once for 32 columns.
const PANELS: usize = 2;

/// Bytes of a panel's scales for one block.
const SCALE_BYTES: usize = 2 * PANEL;

/// Bytes of a panel for one block.
const PANEL_BLOCK_BYTES: usize = SCALE_BYTES + BLOCK * PANEL;

/// What is added to a weight.
const OFFSET: i32 = 128;

/// A weight in panels.
#[derive(Clone)]
pub struct PackedQ8 {
    panels: Vec<u8>,
    inputs: usize,
    outputs: usize,
}

thread_local! {
    /// Kept for the next product, so that a decode allocates nothing for it.
    static ACTIVATIONS: RefCell<Activations> = RefCell::default();
}

impl PackedQ8 {
    /// Rounds and packs a weight `[outputs, inputs]`, given row by row.
    pub fn from_f32(weight: &[f32], outputs: usize, inputs: usize) -> PackedQ8 {
        assert_eq!(weight.len(), outputs * inputs);
        Self::pack(outputs, inputs, |row, block, out| {
            let row = &weight[row * inputs..][..inputs];
            quantise::weight_block(&row[block * BLOCK..inputs.min((block + 1) * BLOCK)], out)
        })
    }

    /// Packs the bytes of a Q8_0 tensor `[outputs, inputs]`; `inputs` is a multiple of 32.
    pub fn from_file_blocks(bytes: &[u8], outputs: usize, inputs: usize) -> PackedQ8 {
        assert!(inputs.is_multiple_of(BLOCK) && bytes.len() == outputs * inputs / BLOCK * FILE_BLOCK_BYTES);
        let (blocks, _) = bytes.as_chunks::<FILE_BLOCK_BYTES>();
        Self::pack(outputs, inputs, |row, block, out| {
            let block = &blocks[row * (inputs / BLOCK) + block];
            for (out, &value) in out.iter_mut().zip(&block[2..]) {
                // −128 is no value that Q8_0 rounds to, and would overflow where signs are exchanged.
                *out = (value as i8).max(-127);
            }
            [block[0], block[1]]
        })
    }

    /// `block(row, block, out)` writes the numbers of one block and gives the bytes of its scale.
    fn pack(
        outputs: usize,
        inputs: usize,
        block: impl Fn(usize, usize, &mut [i8; BLOCK]) -> [u8; 2] + Sync,
    ) -> Self {
        let blocks = inputs.div_ceil(BLOCK);
        // A number of panels that are taken two at a time; the columns behind the last output have scales of 0.
        let count = outputs.div_ceil(PANEL).next_multiple_of(PANELS);
        let mut panels = vec![0u8; count * blocks * PANEL_BLOCK_BYTES];
        panels.par_chunks_exact_mut(blocks * PANEL_BLOCK_BYTES).enumerate().for_each(|(panel, bytes)| {
            for column in 0..PANEL.min(outputs.saturating_sub(panel * PANEL)) {
                for (b, bytes) in bytes.chunks_exact_mut(PANEL_BLOCK_BYTES).enumerate() {
                    let mut numbers = [0i8; BLOCK];
                    let scale = block(panel * PANEL + column, b, &mut numbers);
                    bytes[2 * column..][..2].copy_from_slice(&scale);
                    for (group, numbers) in numbers.as_chunks::<4>().0.iter().enumerate() {
                        let at = SCALE_BYTES + (group * PANEL + column) * 4;
                        bytes[at..at + 4].copy_from_slice(&numbers.map(|n| (i32::from(n) + OFFSET) as u8));
                    }
                }
            }
        });
        PackedQ8 { panels, inputs, outputs }
    }

    /// Length of an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Length of an output row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Bytes that the weight takes.
    pub fn bytes(&self) -> usize {
        self.panels.len()
    }

    /// `out[r] = W · x[r]` for all rows of `x` `[rows, inputs]`; `out` is `[rows, outputs]`.
    pub fn multiply(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        let rows = x.len() / self.inputs;
        assert!(x.len() == rows * self.inputs && out.len() == rows * self.outputs);
        // Taken out while the threads work: a thread that waits may take up another product.
        let mut activations = ACTIVATIONS.take();
        activations.quantise(isa, x, self.inputs);
        self.multiply_quantised(isa, &activations, rows, &SharedMut::new(out));
        ACTIVATIONS.set(activations);
    }

    fn multiply_quantised(&self, isa: Isa, x: &Activations, rows: usize, out: &SharedMut<'_>) {
        const COLUMNS: usize = PANELS * PANEL;
        let pair_bytes = PANELS * self.inputs.div_ceil(BLOCK) * PANEL_BLOCK_BYTES;
        tasks::for_each(rows, self.panels.len() / pair_bytes, self.inputs * COLUMNS, |rows, pairs| {
            let mut sums = [[0f32; COLUMNS]; TASK_ROWS];
            let sums = &mut sums[..rows.len()];
            for pair in pairs {
                let panels = self.panels[pair * pair_bytes..][..pair_bytes].split_at(pair_bytes / PANELS);
                multiply_panels(isa, panels.into(), x, rows.start, sums);
                let columns = COLUMNS.min(self.outputs - pair * COLUMNS);
                for (row, sums) in rows.clone().zip(&*sums) {
                    // SAFETY: a task has its own rows and panels, so no other writes these columns of this row.
                    let out = unsafe { out.part(row * self.outputs + pair * COLUMNS, columns) };
                    out.copy_from_slice(&sums[..columns]);
                }
            }
        });
    }
}

impl std::fmt::Debug for PackedQ8 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PackedQ8[{}, {}]", self.outputs, self.inputs)
    }
}

#[cfg(test)]
mod tests;
