//! Writing keys and values into the paged pool.

use super::attention::{Geometry, Heads};
use super::tile::{KEYS, MAX_HEAD_DIM};

/// Rotates the keys of all rows and writes them to their slots.
///
/// `qkv` is `[rows, qkv_width]`; `pool` holds tiles `[kv_heads, head_dim, 16]`. A row whose slot opens a tile first
/// clears it: what a former owner of the block left behind must not outlive it, be it NaN.
pub fn write_keys(heads: &Heads, qkv: &[f32], rows: &[RowPlace], pool: &mut [f32]) {
    let geometry = &heads.geometry;
    let (dim, size) = (geometry.head_dim, geometry.tile_len());
    let mut rotated = [0f32; MAX_HEAD_DIM];
    let rotated = &mut rotated[..dim];
    for (qkv, row) in qkv.chunks_exact(geometry.qkv_width()).zip(rows) {
        let keys = &qkv[geometry.heads * dim..][..geometry.kv_heads * dim];
        for (head, key) in keys.chunks_exact(dim).enumerate() {
            heads.rotate(key, row.position as usize, 1.0, rotated);
            let tile = &mut pool[row.tile(head, geometry) * size..][..size];
            if row.lane() == 0 {
                tile.fill(0.0);
            }
            for (column, &value) in tile.chunks_exact_mut(KEYS).zip(rotated.iter()) {
                column[row.lane()] = value;
            }
        }
    }
}

/// Writes the values of all rows to their slots; `pool` holds tiles `[kv_heads, 16, head_dim]`.
pub fn write_values(heads: &Heads, qkv: &[f32], rows: &[RowPlace], pool: &mut [f32]) {
    let geometry = &heads.geometry;
    let (dim, size) = (geometry.head_dim, geometry.tile_len());
    for (qkv, row) in qkv.chunks_exact(geometry.qkv_width()).zip(rows) {
        let values = &qkv[(geometry.heads + geometry.kv_heads) * dim..];
        for (head, value) in values.chunks_exact(dim).enumerate() {
            let tile = &mut pool[row.tile(head, geometry) * size..][..size];
            if row.lane() == 0 {
                tile.fill(0.0);
            }
            tile[row.lane() * dim..][..dim].copy_from_slice(value);
        }
    }
}

/// Where one row of a step stands in its sequence and in the pool.
#[derive(Clone, Copy, Debug)]
pub struct RowPlace {
    /// The position in its sequence.
    pub position: u32,
    /// The slot in the pool, `block × block_tokens + offset`.
    pub slot: u32,
}

impl RowPlace {
    /// The tile of one key head. Slots are numbered through, so a block of several tiles is a run of tiles.
    fn tile(self, head: usize, geometry: &Geometry) -> usize {
        self.slot as usize / KEYS * geometry.kv_heads + head
    }

    /// The key within its tile.
    fn lane(self) -> usize {
        self.slot as usize % KEYS
    }
}
