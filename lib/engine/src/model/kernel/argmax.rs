//! The greedy token of each row of logits.

use super::isa::{Isa, versions};
use rayon::prelude::*;

const LANES: usize = 16;

/// The index of the largest value of each row of `width` values, in place of what `out` held; the first among equals, 0 for
/// a row of NaN.
pub fn argmax_rows(isa: Isa, logits: &[f32], width: usize, out: &mut Vec<u32>) {
    let row = |row: &[f32]| {
        let mut best = 0;
        argmax_row(isa, row, &mut best);
        best
    };
    logits.par_chunks_exact(width).with_min_len(4).map(row).collect_into_vec(out);
}

versions! {
    fn argmax_row(row: &[f32], best: &mut u32) = argmax_body
}

/// Finds the maximum lane by lane, then its first place: two streaming passes without a branch a value.
#[inline(always)]
fn argmax_body<const V: u8>(row: &[f32], best: &mut u32) {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = if chunk[lane] > lanes[lane] { chunk[lane] } else { lanes[lane] };
        }
    }
    let max = lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |m, &v| if v > m { v } else { m });
    let chunk = chunks.iter().position(|chunk| {
        let mut any = false;
        for &value in chunk {
            any |= value == max;
        }
        any
    });
    let from = chunk.map_or(chunks.len() * LANES, |chunk| chunk * LANES);
    *best = row[from..].iter().position(|&v| v == max).map_or(0, |at| (from + at) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_largest_wins(width in 1usize..70, values in proptest::collection::vec(-3i8..4, 280)) {
            let values: Vec<f32> = values.iter().map(|&v| f32::from(v)).collect();
            let rows = values.len() / width;
            let naive: Vec<u32> = (0..rows)
                .map(|r| {
                    let row = &values[r * width..(r + 1) * width];
                    (0..width).fold(0, |best, i| if row[i] > row[best] { i } else { best }) as u32
                })
                .collect();
            for isa in Isa::available() {
                let mut found = vec![7];
                argmax_rows(isa, &values[..rows * width], width, &mut found);
                prop_assert_eq!(&found, &naive);
            }
        }
    }

    #[test]
    fn a_row_of_nan_is_no_panic() {
        let mut found = Vec::new();
        argmax_rows(Isa::best(), &[f32::NAN; 40], 20, &mut found);
        assert_eq!(found, [0, 0]);
    }
}
