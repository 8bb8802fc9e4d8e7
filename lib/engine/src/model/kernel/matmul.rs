//! The product of activations with a packed weight of f32, or of bf16, which is widened as it is read.
//!
//! A weight is stored in panels of 32 output columns, `[outputs / 32][inputs][32]`. A product streams it once, in the
//! order of memory, whatever the number of rows: from one for a decode to hundreds for a prefill. That order is what a
//! decode lives on, as its weights come from main memory. `benches/model.rs` compares whole steps with candle's product.

use super::isa::{Isa, WIDE, versions};
use super::math::fma;
use super::shared::SharedMut;
use super::tasks::{self, TASK_ROWS};
use rayon::prelude::*;

/// Columns of a panel: two AVX-512 registers.
const PANEL: usize = 32;

/// Products are summed in runs of this many terms, so that the part of a panel in use stays in the second-level cache
/// while all rows of a task pass over it.
const RUN: usize = 1024;

/// A weight in panels.
#[derive(Clone)]
pub struct Packed {
    panels: Panels,
    inputs: usize,
    outputs: usize,
}

#[derive(Clone)]
enum Panels {
    F32(Vec<f32>),
    Bf16(Vec<Bf16>),
}

/// The upper half of an f32.
#[derive(Clone, Copy, Default)]
struct Bf16(u16);

/// A weight in memory.
trait Stored: Copy + Default + Send + Sync {
    /// Rounded to this type.
    fn from_f32(value: f32) -> Self;
    /// As it is multiplied.
    fn widen(self) -> f32;
}

impl Stored for f32 {
    #[inline(always)]
    fn from_f32(value: f32) -> f32 {
        value
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Stored for Bf16 {
    fn from_f32(value: f32) -> Bf16 {
        Bf16(half::bf16::from_f32(value).to_bits())
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

impl Packed {
    /// Packs a weight `[outputs, inputs]`, given row by row.
    pub fn new(weight: &[f32], outputs: usize, inputs: usize) -> Packed {
        Packed { panels: Panels::F32(pack(weight, outputs, inputs)), inputs, outputs }
    }

    /// Packs a weight rounded to bf16: half the memory to stream.
    pub fn bf16(weight: &[f32], outputs: usize, inputs: usize) -> Packed {
        Packed { panels: Panels::Bf16(pack(weight, outputs, inputs)), inputs, outputs }
    }

    /// Whether the weight is rounded to bf16.
    pub fn is_bf16(&self) -> bool {
        matches!(self.panels, Panels::Bf16(_))
    }

    /// Length of an input row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Length of an output row.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// `out[r] = W · x[r]` for all rows of `x` `[rows, inputs]`; `out` is `[rows, outputs]`.
    pub fn multiply(&self, isa: Isa, x: &[f32], out: &mut [f32]) {
        let rows = x.len() / self.inputs;
        assert!(x.len() == rows * self.inputs && out.len() == rows * self.outputs);
        let out = SharedMut::new(out);
        let panels = self.outputs.div_ceil(PANEL);
        tasks::for_each(rows, panels, self.inputs * PANEL, |rows, panels| {
            let x = &x[rows.start * self.inputs..rows.end * self.inputs];
            let mut sums = [[0f32; PANEL]; TASK_ROWS];
            let sums = &mut sums[..rows.len()];
            for panel in panels {
                self.multiply_panel(isa, x, panel, sums);
                let columns = PANEL.min(self.outputs - panel * PANEL);
                for (row, sums) in rows.clone().zip(&*sums) {
                    let at = row * self.outputs + panel * PANEL;
                    // SAFETY: a task has its own rows and panels, so no other writes these columns of this row.
                    unsafe { out.part(at, columns) }.copy_from_slice(&sums[..columns]);
                }
            }
        });
    }

    /// All rows of `x` against one panel, run by run.
    fn multiply_panel(&self, isa: Isa, x: &[f32], panel: usize, sums: &mut [[f32; PANEL]]) {
        let weights = panel * self.inputs * PANEL..(panel + 1) * self.inputs * PANEL;
        sums.fill([0.0; PANEL]);
        for from in (0..self.inputs).step_by(RUN) {
            let run = from * PANEL..self.inputs.min(from + RUN) * PANEL;
            let x = &x[from..];
            match &self.panels {
                Panels::F32(panels) => {
                    multiply_run_f32(isa, x, self.inputs, &panels[weights.clone()][run], sums);
                }
                Panels::Bf16(panels) => {
                    multiply_run_bf16(isa, x, self.inputs, &panels[weights.clone()][run], sums);
                }
            }
        }
    }
}

fn pack<W: Stored>(weight: &[f32], outputs: usize, inputs: usize) -> Vec<W> {
    assert_eq!(weight.len(), outputs * inputs);
    let mut panels = vec![W::default(); outputs.div_ceil(PANEL) * inputs * PANEL];
    let pack = |(panel, rows): (&mut [W], &[f32])| {
        for (column, row) in rows.chunks_exact(inputs).enumerate() {
            for (out, &value) in panel.chunks_exact_mut(PANEL).zip(row) {
                out[column] = W::from_f32(value);
            }
        }
    };
    panels.par_chunks_exact_mut(inputs * PANEL).zip(weight.par_chunks(PANEL * inputs)).for_each(pack);
    panels
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packed[{}, {}]", self.outputs, self.inputs)
    }
}

versions! {
    fn multiply_run_f32(x: &[f32], stride: usize, panel: &[f32], sums: &mut [[f32; PANEL]]) = run_f32
}

versions! {
    fn multiply_run_bf16(x: &[f32], stride: usize, panel: &[Bf16], sums: &mut [[f32; PANEL]]) = run_bf16
}

#[inline(always)]
fn run_f32<const V: u8>(x: &[f32], stride: usize, panel: &[f32], sums: &mut [[f32; PANEL]]) {
    multiply_run::<V, f32>(x, stride, panel, sums);
}

#[inline(always)]
fn run_bf16<const V: u8>(x: &[f32], stride: usize, panel: &[Bf16], sums: &mut [[f32; PANEL]]) {
    multiply_run::<V, Bf16>(x, stride, panel, sums);
}

/// Adds to `sums[r]` the products of row `x[r · stride..]` with a run of a panel.
#[inline(always)]
fn multiply_run<const V: u8, W: Stored>(x: &[f32], stride: usize, panel: &[W], sums: &mut [[f32; PANEL]]) {
    let panel = panel.as_chunks::<PANEL>().0;
    let mut at = 0;
    while at < sums.len() {
        let (x, sums) = (&x[at * stride..], &mut sums[at..]);
        // The sums of a group fill the registers: at most 12 rows of 2 registers of 16 lanes, 6 of 2 of 8 lanes. Groups of 8
        // are left out: the compiler gathers their inputs into vectors and takes twice the time (`benches/product.rs`).
        at += if V == WIDE {
            match sums.len() {
                1 => group::<V, W, 1, 32>(x, stride, panel, sums),
                2 => group::<V, W, 2, 32>(x, stride, panel, sums),
                3 => group::<V, W, 3, 32>(x, stride, panel, sums),
                4 | 8 => group::<V, W, 4, 32>(x, stride, panel, sums),
                5 => group::<V, W, 5, 32>(x, stride, panel, sums),
                6 | 11 => group::<V, W, 6, 32>(x, stride, panel, sums),
                7 | 14 => group::<V, W, 7, 32>(x, stride, panel, sums),
                9 | 15 | 16 => group::<V, W, 9, 32>(x, stride, panel, sums),
                10 => group::<V, W, 10, 32>(x, stride, panel, sums),
                _ => group::<V, W, 12, 32>(x, stride, panel, sums),
            }
        } else {
            match sums.len() {
                1 => group::<V, W, 1, 16>(x, stride, panel, sums),
                2 => group::<V, W, 2, 16>(x, stride, panel, sums),
                3 => group::<V, W, 3, 16>(x, stride, panel, sums),
                4 | 7 | 8 => group::<V, W, 4, 16>(x, stride, panel, sums),
                5 | 9 | 10 | 13 | 14 => group::<V, W, 5, 16>(x, stride, panel, sums),
                _ => group::<V, W, 6, 16>(x, stride, panel, sums),
            }
        };
    }
}

/// The first `R` rows, the panel's columns in passes of `C`; returns `R`.
#[inline(always)]
fn group<const V: u8, W: Stored, const R: usize, const C: usize>(
    x: &[f32],
    stride: usize,
    panel: &[[W; PANEL]],
    sums: &mut [[f32; PANEL]],
) -> usize {
    let rows: [&[f32]; R] = std::array::from_fn(|r| &x[r * stride..][..panel.len()]);
    let sums = sums.first_chunk_mut::<R>().expect("a row of sums for each row");
    for pass in (0..PANEL).step_by(C) {
        // Indices into `part` are constants after unrolling; any other would keep it in memory.
        let mut part = [[0f32; C]; R];
        for (i, weights) in panel.iter().enumerate() {
            let stored = weights[pass..].first_chunk::<C>().expect("C divides a panel");
            // Not `map`, which may stay a call, and a call puts all sums into memory and back.
            let mut weights = [0f32; C];
            for j in 0..C {
                weights[j] = stored[j].widen();
            }
            for r in 0..R {
                let x = rows[r][i];
                for j in 0..C {
                    part[r][j] = fma::<V>(x, weights[j], part[r][j]);
                }
            }
        }
        for r in 0..R {
            for j in 0..C {
                sums[r][pass + j] += part[r][j];
            }
        }
    }
    R
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_product_is_the_product(
            rows in 1usize..120,
            inputs in prop_oneof![1usize..90, 1020usize..1100],
            outputs in 1usize..100,
            seed in 0u32..1000,
        ) {
            let value = |i: usize| {
                ((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) >> 16) as f32 / 65536.0 - 0.5
            };
            let x: Vec<f32> = (0..rows * inputs).map(value).collect();
            let weight: Vec<f32> = (0..outputs * inputs).map(|i| value(i + 7)).collect();
            let rounded: Vec<f32> = weight.iter().map(|&w| half::bf16::from_f32(w).to_f32()).collect();
            for (packed, weight) in [
                (Packed::new(&weight, outputs, inputs), &weight),
                (Packed::bf16(&weight, outputs, inputs), &rounded),
            ] {
                for isa in Isa::available() {
                    let mut out = vec![f32::NAN; rows * outputs];
                    packed.multiply(isa, &x, &mut out);
                    for (i, &ours) in out.iter().enumerate() {
                        let (x, w) = (&x[i / outputs * inputs..], &weight[i % outputs * inputs..][..inputs]);
                        let products = || w.iter().zip(x).map(|(&a, &b)| f64::from(a) * f64::from(b));
                        let (exact, size): (f64, f64) = (products().sum(), products().map(f64::abs).sum());
                        prop_assert!((f64::from(ours) - exact).abs() < 4e-6 * size + 1e-12, "{isa} at {i}: {ours} for {exact}");
                    }
                }
            }
        }
    }
}
