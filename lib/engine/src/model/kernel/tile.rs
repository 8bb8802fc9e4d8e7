//! The heart of attention: a few query rows against sixteen keys.

use super::isa::versions;
use super::math::{exp, fma};

/// Keys of a tile: one AVX-512 register, and the block size that the layout is built on.
pub(super) const KEYS: usize = 16;

/// Head widths that the kernel is compiled for.
pub(super) const HEAD_DIMS: [usize; 5] = [16, 32, 64, 96, MAX_HEAD_DIM];

/// The widest of them.
pub(super) const MAX_HEAD_DIM: usize = 128;

/// The state of the online softmax of some query rows.
pub(super) struct Rows<'a> {
    /// The queries, rotated and scaled, `[rows, head_dim]`.
    pub(super) q: &'a [f32],
    /// How many of this tile's keys each row sees.
    pub(super) visible: &'a [usize],
    /// The largest score so far.
    pub(super) max: &'a mut [f32],
    /// The sum of the weights so far, relative to `max`.
    pub(super) sum: &'a mut [f32],
    /// The weighted sum of the values so far, `[rows, head_dim]`.
    pub(super) acc: &'a mut [f32],
}

versions! {
    /// Adds one tile to the state of all rows. Keys are `[head_dim, 16]`, values `[16, head_dim]`; `head_dim` is one of
    /// [`HEAD_DIMS`].
    pub(super) fn add_tile(head_dim: usize, k: &[f32], v: &[f32], rows: &mut Rows<'_>) = add_tile_body
}

#[inline(always)]
fn add_tile_body<const V: u8>(head_dim: usize, k: &[f32], v: &[f32], rows: &mut Rows<'_>) {
    match head_dim {
        16 => add_rows::<V, 16>(k, v, rows),
        32 => add_rows::<V, 32>(k, v, rows),
        64 => add_rows::<V, 64>(k, v, rows),
        96 => add_rows::<V, 96>(k, v, rows),
        128 => add_rows::<V, 128>(k, v, rows),
        other => unreachable!("head width {other} was refused when the backend was made"),
    }
}

/// Cuts the rows into groups whose scores stay in registers.
#[inline(always)]
fn add_rows<const V: u8, const D: usize>(k: &[f32], v: &[f32], rows: &mut Rows<'_>) {
    let (k, v) = (arrays::<KEYS, D>(k), arrays::<D, KEYS>(v));
    let mut at = 0;
    while at < rows.visible.len() {
        at += match rows.visible.len() - at {
            1 => add_group::<V, D, 1>(k, v, rows, at),
            2 => add_group::<V, D, 2>(k, v, rows, at),
            3 => add_group::<V, D, 3>(k, v, rows, at),
            4 | 7 | 8 => add_group::<V, D, 4>(k, v, rows, at),
            5 => add_group::<V, D, 5>(k, v, rows, at),
            _ => add_group::<V, D, 6>(k, v, rows, at),
        };
    }
}

/// The first `N` rows of `M` values of a slice, as arrays: lengths the compiler knows.
#[inline(always)]
fn arrays<const M: usize, const N: usize>(slice: &[f32]) -> &[[f32; M]; N] {
    slice.as_chunks::<M>().0.first_chunk::<N>().expect("a tile is whole")
}

#[inline(always)]
fn arrays_mut<const M: usize, const N: usize>(slice: &mut [f32]) -> &mut [[f32; M]; N] {
    slice.as_chunks_mut::<M>().0.first_chunk_mut::<N>().expect("the state has a row for each query")
}

/// Adds the tile to rows `at..at + R`; returns `R`.
#[inline(always)]
fn add_group<const V: u8, const D: usize, const R: usize>(
    k: &[[f32; KEYS]; D],
    v: &[[f32; D]; KEYS],
    rows: &mut Rows<'_>,
    at: usize,
) -> usize {
    let q = arrays::<D, R>(&rows.q[at * D..]);
    let mut weights = scores::<V, D, R>(q, k);
    let mut correction = [0f32; R];
    for r in 0..R {
        let state = (&mut rows.max[at + r], &mut rows.sum[at + r]);
        correction[r] = softmax_row::<V>(&mut weights[r], rows.visible[at + r], state);
    }
    let acc = arrays_mut::<D, R>(&mut rows.acc[at * D..]);
    let mut from = 0;
    while from < D {
        let mut part = [[0f32; 16]; R];
        for r in 0..R {
            for i in 0..16 {
                part[r][i] = acc[r][from + i] * correction[r];
            }
        }
        for key in 0..KEYS {
            for r in 0..R {
                for i in 0..16 {
                    part[r][i] = fma::<V>(weights[r][key], v[key][from + i], part[r][i]);
                }
            }
        }
        for r in 0..R {
            acc[r][from..from + 16].copy_from_slice(&part[r]);
        }
        from += 16;
    }
    R
}

/// Scores of `R` rows against all keys. With few rows, two chains of additions hide the latency of one.
#[inline(always)]
fn scores<const V: u8, const D: usize, const R: usize>(
    q: &[[f32; D]; R],
    k: &[[f32; KEYS]; D],
) -> [[f32; KEYS]; R] {
    let mut even = [[0f32; KEYS]; R];
    if R > 4 {
        for i in 0..D {
            add_products::<V, D, R>(q, k, i, &mut even);
        }
        return even;
    }
    let mut odd = [[0f32; KEYS]; R];
    let mut i = 0;
    while i < D {
        add_products::<V, D, R>(q, k, i, &mut even);
        add_products::<V, D, R>(q, k, i + 1, &mut odd);
        i += 2;
    }
    for r in 0..R {
        for j in 0..KEYS {
            even[r][j] += odd[r][j];
        }
    }
    even
}

#[inline(always)]
fn add_products<const V: u8, const D: usize, const R: usize>(
    q: &[[f32; D]; R],
    k: &[[f32; KEYS]; D],
    i: usize,
    sums: &mut [[f32; KEYS]; R],
) {
    for r in 0..R {
        for j in 0..KEYS {
            sums[r][j] = fma::<V>(q[r][i], k[i][j], sums[r][j]);
        }
    }
}

/// One step of the online softmax (Milakov and Gimelshein, 2018): turns scores into weights relative to the new
/// maximum, updates maximum and sum, and gives the factor by which what was summed before shrinks.
#[inline(always)]
fn softmax_row<const V: u8>(s: &mut [f32; KEYS], visible: usize, state: (&mut f32, &mut f32)) -> f32 {
    if visible < KEYS {
        for (key, score) in s.iter_mut().enumerate() {
            *score = if key < visible { *score } else { f32::NEG_INFINITY };
        }
    }
    let (max, sum) = state;
    let new_max = max.max(lane_max(s)).max(-1e30);
    let correction = exp::<V>(*max - new_max);
    for score in s.iter_mut() {
        let weight = exp::<V>(*score - new_max);
        *score = if *score == f32::NEG_INFINITY { 0.0 } else { weight };
    }
    *sum = *sum * correction + lane_sum(s);
    *max = new_max;
    correction
}

#[inline(always)]
fn lane_max(s: &[f32; KEYS]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let mut m = [0f32; 8];
    for j in 0..8 {
        m[j] = larger(s[j], s[j + 8]);
    }
    for j in 0..4 {
        m[j] = larger(m[j], m[j + 4]);
    }
    larger(larger(m[0], m[1]), larger(m[2], m[3]))
}

#[inline(always)]
fn lane_sum(s: &[f32; KEYS]) -> f32 {
    let mut t = [0f32; 8];
    for j in 0..8 {
        t[j] = s[j] + s[j + 8];
    }
    for j in 0..4 {
        t[j] += t[j + 4];
    }
    (t[0] + t[1]) + (t[2] + t[3])
}
