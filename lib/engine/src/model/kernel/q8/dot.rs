//! The integer products, for each instruction set.
//!
//! What the compiler does not find by itself: `vpdpbusd` (AVX-512 VNNI) multiplies 64 bytes and adds them up in fours,
//! `vpmaddubsw` (AVX2) 32 bytes in pairs. Processors with AVX-512 but without VNNI use the latter.

use super::quantise::Activations;
use super::{BLOCK, OFFSET, PANEL, PANEL_BLOCK_BYTES, PANELS, SCALE_BYTES};
use crate::model::kernel::isa::{Isa, Kind};

/// Groups of four inputs in a block.
const GROUPS: usize = BLOCK / 4;

/// The sums of one row with two panels.
type Sums = [f32; PANELS * PANEL];

/// The blocks of two neighbouring panels.
#[derive(Clone, Copy)]
pub(super) struct Panels<'a>([&'a [[u8; PANEL_BLOCK_BYTES]]; PANELS]);

impl<'a> From<(&'a [u8], &'a [u8])> for Panels<'a> {
    fn from((a, b): (&'a [u8], &'a [u8])) -> Panels<'a> {
        Panels([a.as_chunks().0, b.as_chunks().0])
    }
}

/// Some rows of activations, as far as a pair of panels goes through them.
#[derive(Clone, Copy)]
struct Rows<'a> {
    numbers: &'a [[i8; BLOCK]],
    scales: &'a [f32],
    starts: &'a [i32],
    blocks: usize,
}

impl<'a> Rows<'a> {
    fn from(x: &'a Activations, row: usize) -> Rows<'a> {
        let at = row * x.blocks;
        Rows {
            numbers: &x.numbers.as_chunks().0[at..],
            scales: &x.scales[at..],
            starts: &x.starts[at..],
            blocks: x.blocks,
        }
    }

    /// The blocks of the first `R` rows: numbers, scales, starts.
    #[allow(clippy::type_complexity)]
    #[inline(always)]
    fn each<const R: usize>(&self) -> [(&'a [[i8; BLOCK]], &'a [f32], &'a [i32]); R] {
        std::array::from_fn(|r| {
            let part = r * self.blocks..(r + 1) * self.blocks;
            (&self.numbers[part.clone()], &self.scales[part.clone()], &self.starts[part])
        })
    }
}

/// Writes to `sums` the products of rows `first..first + sums.len()` of `x` with two panels.
pub(super) fn multiply_panels(
    isa: Isa,
    panels: Panels<'_>,
    x: &Activations,
    first: usize,
    sums: &mut [Sums],
) {
    let rows = Rows::from(x, first);
    assert!(panels.0.iter().all(|panel| panel.len() == x.blocks), "panels are as long as the rows");
    match isa.kind() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: this kind has AVX-512, and VNNI was asked for.
        Kind::Avx512 if is_x86_feature_detected!("avx512vnni") => unsafe {
            vnni::multiply(panels, rows, sums)
        },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: both kinds have AVX2 and FMA; every processor with AVX2 has F16C.
        Kind::Avx512 | Kind::Avx2 => unsafe { avx2::multiply(panels, rows, sums) },
        Kind::Portable => portable::multiply(panels, rows, sums),
    }
}

/// The scales of a panel's block.
fn scales(block: &[u8; PANEL_BLOCK_BYTES]) -> &[u8; SCALE_BYTES] {
    block.first_chunk().expect("scales come first")
}

/// Its numbers, in groups of four inputs.
fn groups(block: &[u8; PANEL_BLOCK_BYTES]) -> &[[u8; 4 * PANEL]; GROUPS] {
    block[SCALE_BYTES..].as_chunks().0.first_chunk().expect("all groups are there")
}

/// Goes through `sums` in groups of rows whose sums fill the registers, largest first: `group!(R)` is the code for `R`.
macro_rules! by_rows {
    ($panels:ident, $rows:ident, $sums:ident, $group:ident, [$($r:literal),*]) => {{
        let mut at = 0;
        while at < $sums.len() {
            let rows = Rows {
                numbers: &$rows.numbers[at * $rows.blocks..],
                scales: &$rows.scales[at * $rows.blocks..],
                starts: &$rows.starts[at * $rows.blocks..],
                ..$rows
            };
            let sums = &mut $sums[at..];
            at += match sums.len() {
                $(len if len >= $r => { $group::<$r>($panels, rows, sums); $r })*
                _ => unreachable!("a group of one row fits"),
            };
        }
    }};
}

#[cfg(target_arch = "x86_64")]
mod vnni {
    use super::*;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx2,fma,f16c")]
    pub(super) fn multiply(panels: Panels<'_>, rows: Rows<'_>, sums: &mut [Sums]) {
        by_rows!(panels, rows, sums, group, [6, 4, 3, 2, 1]);
    }

    /// `R · 2` integer sums and as many float ones stay in registers.
    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx512vnni,avx2,fma,f16c")]
    #[inline]
    fn group<const R: usize>(panels: Panels<'_>, rows: Rows<'_>, out: &mut [Sums]) {
        let each = rows.each::<R>();
        let mut sums = [[_mm512_setzero_ps(); PANELS]; R];
        for (b, blocks) in panels.0[0].iter().zip(panels.0[1]).enumerate() {
            let blocks = [blocks.0, blocks.1];
            let mut integers: [_; R] = std::array::from_fn(|r| [_mm512_set1_epi32(each[r].2[b]); PANELS]);
            for g in 0..GROUPS {
                let weights = blocks.map(|block| load(&groups(block)[g]));
                for r in 0..R {
                    let x = _mm512_set1_epi32(four(&each[r].0[b], g));
                    for p in 0..PANELS {
                        integers[r][p] = _mm512_dpbusd_epi32(integers[r][p], weights[p], x);
                    }
                }
            }
            let scales = blocks.map(|block| _mm512_cvtph_ps(load_half(scales(block))));
            for r in 0..R {
                let x = _mm512_set1_ps(each[r].1[b]);
                for p in 0..PANELS {
                    let value = _mm512_cvtepi32_ps(integers[r][p]);
                    sums[r][p] = _mm512_fmadd_ps(value, _mm512_mul_ps(scales[p], x), sums[r][p]);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out.as_chunks_mut::<PANEL>().0.iter_mut().zip(sums) {
                // SAFETY: the sums of a panel are one register.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sum) };
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: 64 bytes can be read.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load_half(bytes: &[u8; SCALE_BYTES]) -> __m256i {
        // SAFETY: 32 bytes can be read.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::*;
    use std::arch::x86_64::*;

    /// Registers of a row's sums.
    const PARTS: usize = PANELS * PANEL / 8;

    #[target_feature(enable = "avx2,fma,f16c")]
    pub(super) fn multiply(panels: Panels<'_>, rows: Rows<'_>, sums: &mut [Sums]) {
        by_rows!(panels, rows, sums, group, [2, 1]);
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    #[inline]
    fn group<const R: usize>(panels: Panels<'_>, rows: Rows<'_>, out: &mut [Sums]) {
        let each = rows.each::<R>();
        for part in 0..PARTS {
            let (panel, half) = (panels.0[part / 2], part % 2);
            let mut sums = [_mm256_setzero_ps(); R];
            for (b, block) in panel.iter().enumerate() {
                let mut integers = [_mm256_setzero_si256(); R];
                for g in 0..GROUPS {
                    let offset = _mm256_set1_epi8(OFFSET as u8 as i8);
                    let weights = _mm256_xor_si256(load(&groups(block)[g], half), offset);
                    for r in 0..R {
                        let x = _mm256_set1_epi32(four(&each[r].0[b], g));
                        // The unsigned factor is |x|, the signed one takes its sign; no pair of products overflows.
                        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(weights, x));
                        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                        integers[r] = _mm256_add_epi32(integers[r], fours);
                    }
                }
                let scales = half_scales(scales(block), half);
                for r in 0..R {
                    let scale = _mm256_mul_ps(scales, _mm256_set1_ps(each[r].1[b]));
                    sums[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integers[r]), scale, sums[r]);
                }
            }
            for r in 0..R {
                // SAFETY: a row of sums has room for all parts.
                unsafe { _mm256_storeu_ps(out[r].as_mut_ptr().add(part * 8), sums[r]) };
            }
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[u8; 64], half: usize) -> __m256i {
        // SAFETY: `half` is 0 or 1, and 32 bytes can be read from either.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().add(32 * half).cast()) }
    }

    #[target_feature(enable = "avx2,f16c")]
    #[inline]
    fn half_scales(bytes: &[u8; SCALE_BYTES], half: usize) -> __m256 {
        // SAFETY: `half` is 0 or 1, and 16 bytes can be read from either.
        _mm256_cvtph_ps(unsafe { _mm_loadu_si128(bytes.as_ptr().add(16 * half).cast()) })
    }
}

/// Four activations as the instructions take them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn four(numbers: &[i8; BLOCK], group: usize) -> i32 {
    i32::from_le_bytes(numbers.as_chunks::<4>().0[group].map(|n| n as u8))
}

mod portable {
    use super::*;

    pub(super) fn multiply(panels: Panels<'_>, rows: Rows<'_>, sums: &mut [Sums]) {
        by_rows!(panels, rows, sums, group, [1]);
    }

    fn group<const R: usize>(panels: Panels<'_>, rows: Rows<'_>, out: &mut [Sums]) {
        for (out, (numbers, x_scales, starts)) in out.iter_mut().zip(rows.each::<R>()) {
            for (panel, out) in panels.0.iter().zip(out.chunks_exact_mut(PANEL)) {
                out.fill(0.0);
                for (b, block) in panel.iter().enumerate() {
                    let mut integers = [starts[b]; PANEL];
                    for (weights, x) in groups(block).iter().zip(numbers[b].as_chunks::<4>().0) {
                        for (sum, weights) in integers.iter_mut().zip(weights.as_chunks::<4>().0) {
                            for i in 0..4 {
                                *sum += i32::from(weights[i]) * i32::from(x[i]);
                            }
                        }
                    }
                    for ((out, &integer), scale) in
                        out.iter_mut().zip(&integers).zip(scales(block).as_chunks::<2>().0)
                    {
                        *out += integer as f32 * (half::f16::from_le_bytes(*scale).to_f32() * x_scales[b]);
                    }
                }
            }
        }
    }
}
