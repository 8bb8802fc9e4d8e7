//! Rounding to 8 bits, in blocks of 32 with a scale each.

use super::{BLOCK, OFFSET};
use crate::model::kernel::isa::{Isa, versions};
use rayon::prelude::*;

/// Elements below which threads cost more than they save.
const PARALLEL_FROM: usize = 1 << 16;

/// Rounds one block of a weight as ggml does, the scale to f16; a short block is filled with zeros. Gives the bytes of
/// the scale.
pub(super) fn weight_block(values: &[f32], out: &mut [i8; BLOCK]) -> [u8; 2] {
    let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
    let scale = largest / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    out.fill(0);
    for (out, value) in out.iter_mut().zip(values) {
        *out = (value * inverse).round() as i8;
    }
    half::f16::from_f32(scale).to_le_bytes()
}

/// Rows of activations, rounded.
#[derive(Default)]
pub(super) struct Activations {
    /// The numbers, `[rows, blocks · 32]`, each row filled up with zeros.
    pub(super) numbers: Vec<i8>,
    /// One scale a block.
    pub(super) scales: Vec<f32>,
    /// −128 times the sum of each block's numbers.
    pub(super) starts: Vec<i32>,
    /// Blocks of a row.
    pub(super) blocks: usize,
}

impl Activations {
    /// Takes in all rows of `x` `[rows, inputs]`.
    pub(super) fn quantise(&mut self, isa: Isa, x: &[f32], inputs: usize) {
        let blocks = inputs.div_ceil(BLOCK);
        let rows = x.len() / inputs;
        self.blocks = blocks;
        self.numbers.resize(rows * blocks * BLOCK, 0);
        self.scales.resize(rows * blocks, 0.0);
        self.starts.resize(rows * blocks, 0);
        let numbers = self.numbers.as_chunks_mut::<BLOCK>().0;
        let row = |(((x, numbers), scales), starts): (((&[f32], &mut [_]), &mut [_]), &mut [_])| {
            quantise_row(isa, x, numbers, scales, starts);
        };
        if x.len() < PARALLEL_FROM {
            let outputs = numbers.chunks_exact_mut(blocks).zip(self.scales.chunks_exact_mut(blocks));
            let outputs = outputs.zip(self.starts.chunks_exact_mut(blocks));
            x.chunks_exact(inputs).zip(outputs).for_each(|(x, ((n, s), t))| row((((x, n), s), t)));
        } else {
            x.par_chunks_exact(inputs)
                .zip(numbers.par_chunks_exact_mut(blocks))
                .zip(self.scales.par_chunks_exact_mut(blocks))
                .zip(self.starts.par_chunks_exact_mut(blocks))
                .for_each(row);
        }
    }
}

versions! {
    fn quantise_row(x: &[f32], numbers: &mut [[i8; BLOCK]], scales: &mut [f32], starts: &mut [i32]) = quantise_row_body
}

#[inline(always)]
fn quantise_row_body<const V: u8>(
    x: &[f32],
    numbers: &mut [[i8; BLOCK]],
    scales: &mut [f32],
    starts: &mut [i32],
) {
    let (whole, rest) = x.as_chunks::<BLOCK>();
    for (i, block) in whole.iter().enumerate() {
        (scales[i], starts[i]) = quantise_block(block, &mut numbers[i]);
    }
    if !rest.is_empty() {
        let mut block = [0f32; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        let i = whole.len();
        (scales[i], starts[i]) = quantise_block(&block, &mut numbers[i]);
    }
}

/// Rounds one block; gives its scale and where its integer sums start.
#[inline(always)]
fn quantise_block(x: &[f32; BLOCK], out: &mut [i8; BLOCK]) -> (f32, i32) {
    /// 1.5 · 2²³: adding it rounds a small float to the nearest integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let mut lanes = [0f32; 16];
    for i in 0..16 {
        let (a, b) = (x[i].abs(), x[i + 16].abs());
        lanes[i] = if a > b { a } else { b };
    }
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] = if lanes[i] > lanes[i + width] { lanes[i] } else { lanes[i + width] };
        }
    }
    let scale = lanes[0] / 127.0;
    // A block of zeros, or one too small to have a scale, is zeros.
    let inverse = if scale > f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
    let mut sum = 0;
    for i in 0..BLOCK {
        let rounded = (x[i] * inverse + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
        out[i] = rounded as i8;
        sum += i32::from(rounded as i8);
    }
    (scale, -OFFSET * sum)
}
