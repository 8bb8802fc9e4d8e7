//! Arithmetic that vectorises.

use super::isa::PLAIN;

/// `a · b + c`, fused where the instruction set has that.
#[inline(always)]
pub(super) fn fma<const V: u8>(a: f32, b: f32, c: f32) -> f32 {
    if V != PLAIN { a.mul_add(b, c) } else { a * b + c }
}

/// `e^x` within 2 units in the last place, for `x` clamped to [−87, 88], so it is never 0, infinite or subnormal.
///
/// Cody–Waite reduction and the Cephes polynomial. No branch and no call, so a loop over it vectorises.
#[inline(always)]
pub(super) fn exp<const V: u8>(x: f32) -> f32 {
    /// 1.5 · 2²³: adding it rounds a small float to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let n = fma::<V>(x, std::f32::consts::LOG2_E, ROUND) - ROUND;
    let r = fma::<V>(n, -0.693_359_4, x);
    let r = fma::<V>(n, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4;
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        p = fma::<V>(p, r, c);
    }
    let y = fma::<V>(p, r * r, r) + 1.0;
    f32::from_bits(((n as i32 + 127) << 23) as u32) * y
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernel::isa::WIDE;

    #[test]
    fn exp_is_exp() {
        for i in -87_000..=88_000 {
            let x = i as f32 / 1000.0;
            for ours in [exp::<WIDE>(x), exp::<PLAIN>(x)] {
                let exact = f64::from(x).exp();
                assert!((f64::from(ours) / exact - 1.0).abs() < 3e-7, "{x}: {ours} for {exact}");
            }
        }
        assert!(exp::<PLAIN>(f32::NEG_INFINITY) < 2e-38);
        assert!(exp::<PLAIN>(1e9).is_finite());
    }
}
