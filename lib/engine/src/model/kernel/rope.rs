//! Rotary positions of one head's row.

use super::isa::versions;

versions! {
    /// Rotates `x` of `2 · cos.len()` elements by the angles of its position, times `scale`, into `out`.
    ///
    /// Pairs are elements `i` and `i + cos.len()` (the NeoX order).
    pub fn rotate(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) = rotate_body
}

#[inline(always)]
fn rotate_body<const V: u8>(x: &[f32], cos: &[f32], sin: &[f32], scale: f32, out: &mut [f32]) {
    let half = cos.len();
    let (x0, x1) = x.split_at(half);
    let (out0, out1) = out.split_at_mut(half);
    let (x1, sin, out1) = (&x1[..half], &sin[..half], &mut out1[..half]);
    for i in 0..half {
        out0[i] = (x0[i] * cos[i] - x1[i] * sin[i]) * scale;
        out1[i] = (x1[i] * cos[i] + x0[i] * sin[i]) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernel::Isa;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pairs_turn_by_their_angle(
            half in 1usize..40, angle in 0f32..3.0, values in proptest::collection::vec(-9f32..9.0, 80),
        ) {
            let x = &values[..2 * half];
            let (cos, sin) = (vec![angle.cos(); half], vec![angle.sin(); half]);
            for isa in Isa::available() {
                let mut out = vec![f32::NAN; 2 * half];
                rotate(isa, x, &cos, &sin, 0.5, &mut out);
                for i in 0..half {
                    let (a, b) = (f64::from(x[i]), f64::from(x[i + half]));
                    let (c, s) = (f64::from(cos[i]), f64::from(sin[i]));
                    prop_assert!((f64::from(out[i]) - 0.5 * (a * c - b * s)).abs() < 1e-5);
                    prop_assert!((f64::from(out[i + half]) - 0.5 * (b * c + a * s)).abs() < 1e-5);
                }
            }
        }
    }
}
