//! The activation of the feed-forward part.

use super::isa::{Isa, versions};
use super::math::exp;
use rayon::prelude::*;

/// Elements below which threads cost more than they save.
const PARALLEL_FROM: usize = 1 << 14;

/// `out[r, i] = silu(x[r, i]) · x[r, ff + i]` for rows of `2 · ff` values; `out` has rows of `ff`.
pub fn swiglu(isa: Isa, x: &[f32], ff: usize, out: &mut [f32]) {
    assert_eq!(x.len(), 2 * out.len());
    let row = |(out, x): (&mut [f32], &[f32])| swiglu_row(isa, &x[..ff], &x[ff..], out);
    if out.len() < PARALLEL_FROM {
        out.chunks_exact_mut(ff).zip(x.chunks_exact(2 * ff)).for_each(row);
    } else {
        out.par_chunks_exact_mut(ff).zip(x.par_chunks_exact(2 * ff)).for_each(row);
    }
}

versions! {
    fn swiglu_row(gate: &[f32], up: &[f32], out: &mut [f32]) = swiglu_body
}

#[inline(always)]
fn swiglu_body<const V: u8>(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((out, &x), &up) in out.iter_mut().zip(gate).zip(up) {
        *out = x / (1.0 + exp::<V>(-x)) * up;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn swiglu_is_silu_times_up(
            ff in 1usize..70, rows in 1usize..4, values in proptest::collection::vec(-90f32..90.0, 560),
        ) {
            let x = &values[..2 * ff * rows];
            for isa in Isa::available() {
                let mut out = vec![f32::NAN; ff * rows];
                swiglu(isa, x, ff, &mut out);
                for (i, &ours) in out.iter().enumerate() {
                    let (row, column) = (i / ff, i % ff);
                    let gate = f64::from(x[row * 2 * ff + column]);
                    let exact = gate / (1.0 + (-gate).exp()) * f64::from(x[row * 2 * ff + ff + column]);
                    prop_assert!((f64::from(ours) - exact).abs() <= 1e-6 * exact.abs() + 1e-30, "{isa} {exact} {ours}");
                }
            }
        }
    }

    #[test]
    fn many_rows_go_to_many_threads_and_agree() {
        let x: Vec<f32> = (0..2 * 64 * 512).map(|i| (i % 97) as f32 / 10.0 - 5.0).collect();
        let mut whole = vec![0.0; 64 * 512];
        swiglu(Isa::best(), &x, 64, &mut whole);
        for (x, whole) in x.chunks(128).zip(whole.chunks(64)) {
            let mut row = vec![0.0; 64];
            swiglu(Isa::best(), x, 64, &mut row);
            assert_eq!(row, whole);
        }
    }
}
