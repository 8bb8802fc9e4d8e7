use super::*;
use proptest::prelude::*;

/// Values between −0.5 and 0.5, with blocks of zeros and blocks of another scale among them.
fn value(i: usize, seed: u32) -> f32 {
    let bits = (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed.wrapping_mul(97)) >> 8;
    let scale = [1.0, 0.0, 1e-3, 30.0, 1.0, 1.0][i / 50 % 6];
    (bits as f32 / (1u32 << 24) as f32 - 0.5) * scale
}

/// One row rounded block by block, and back: the numbers times their scale. The scale of a weight is an f16.
fn rounded(row: &[f32], is_weight: bool) -> Vec<f64> {
    row.chunks(BLOCK)
        .flat_map(|block| {
            let scale = block.iter().fold(0f32, |m, v| m.max(v.abs())) / 127.0;
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            let kept = if is_weight { half::f16::from_f32(scale).to_f32() } else { scale };
            let round = move |v: &f32| {
                if is_weight { (v * inverse).round() } else { (v * inverse).round_ties_even() }
            };
            block.iter().map(move |v| f64::from(round(v)) * f64::from(kept)).collect::<Vec<_>>()
        })
        .collect()
}

fn check(rows: usize, inputs: usize, outputs: usize, seed: u32) -> Result<(), TestCaseError> {
    let x: Vec<f32> = (0..rows * inputs).map(|i| value(i, seed)).collect();
    let weight: Vec<f32> = (0..outputs * inputs).map(|i| value(i + 13, seed + 1)).collect();
    let packed = PackedQ8::from_f32(&weight, outputs, inputs);
    let x_rounded: Vec<f64> = x.chunks(inputs).flat_map(|row| rounded(row, false)).collect();
    let w_rounded: Vec<f64> = weight.chunks(inputs).flat_map(|row| rounded(row, true)).collect();
    for isa in Isa::available() {
        let mut out = vec![f32::NAN; rows * outputs];
        packed.multiply(isa, &x, &mut out);
        for (i, &ours) in out.iter().enumerate() {
            let (x, w) = (&x_rounded[i / outputs * inputs..], &w_rounded[i % outputs * inputs..][..inputs]);
            let products = || w.iter().zip(x).map(|(a, b)| a * b);
            let (exact, size): (f64, f64) = (products().sum(), products().map(f64::abs).sum());
            prop_assert!(
                (f64::from(ours) - exact).abs() <= 1e-5 * size + 1e-12,
                "{isa} at {i} of {rows}x{inputs}x{outputs}: {ours} for {exact}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_product_is_that_of_the_rounded_numbers(
        rows in 1usize..20, inputs in 1usize..140, outputs in 1usize..100, seed in 0u32..1000,
    ) {
        check(rows, inputs, outputs, seed)?;
    }
}

#[test]
fn many_rows_go_to_many_threads_and_agree() -> Result<(), TestCaseError> {
    check(201, 576, 77, 5)
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    for (x, w) in [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)] {
        let packed = PackedQ8::from_f32(&[w; 64 * 3], 3, 64);
        for isa in Isa::available() {
            let mut out = [0f32; 3];
            packed.multiply(isa, &[x; 64], &mut out);
            for ours in out {
                assert!((ours - 64.0 * x * w).abs() < 0.1, "{isa}: {ours}");
            }
        }
    }
}

#[test]
fn the_blocks_of_a_file_are_kept_bit_for_bit() {
    let (outputs, inputs) = (5, 96);
    let weight: Vec<f32> = (0..outputs * inputs).map(|i| value(i, 3)).collect();
    let bytes: Vec<u8> = weight
        .chunks(BLOCK)
        .flat_map(|block| {
            let mut numbers = [0i8; BLOCK];
            let scale = quantise::weight_block(block, &mut numbers);
            scale.into_iter().chain(numbers.map(|n| n as u8))
        })
        .collect();
    let packed = PackedQ8::from_file_blocks(&bytes, outputs, inputs);
    assert_eq!(packed.panels, PackedQ8::from_f32(&weight, outputs, inputs).panels);
}
