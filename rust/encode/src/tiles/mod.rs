//! The encoder in bf16 by matrix tiles (AMX), and the same arithmetic for machines without them.
//!
//! Operands are stored in *panels of 32 columns* ([`Panels`]): panel `p` holds the columns `32 p` to `32 p +
//! 31` of all rows, 64 bytes per row, rows contiguous. A tile (16 rows of 64 bytes) is then a contiguous 1 KB
//! at any row: no padding between sequences, no strides, and the 32 x 32 block that a product leaves is
//! written as it will be read. A head of 32 is one panel, so that queries, keys and values need no gathering.
//!
//! `crate::tiles` requests the tiles from the system, `block` is their arithmetic (in hardware or not,
//! bit-identical), `product`, `norm` and `attention` are written once over it, `machine` compiles them for
//! each processor, `body` runs the layers.

#[cfg(target_arch = "x86_64")]
pub mod amx;
pub mod attention;
pub mod block;
pub mod body;
pub mod machine;
pub mod product;
#[cfg(test)]
mod tests;

/// Columns of a panel.
pub const PANEL: usize = 32;
/// Words (pairs of bf16) of a row of a panel.
pub const ROW: usize = 16;
/// Rows of a tile.
pub const TILE: usize = 16;

/// Words between panels for `rows` rows. A tile that begins at any row ends within; some lines are added
/// because the caches would map a power of two onto itself.
pub fn panel_stride(rows: usize) -> usize {
    (rows.next_multiple_of(32) + 32) * ROW + ROW
}

/// Operands to read: panels from some row on, `stride` words apart.
#[derive(Clone, Copy)]
pub struct Panels<'a> {
    pub words: &'a [f32],
    pub stride: usize,
}

/// Operands to write.
pub struct PanelsMut<'a> {
    pub words: &'a mut [f32],
    pub stride: usize,
}

impl Panels<'_> {
    /// Return whether whole tiles for `rows` rows of `panels` panels can be read.
    fn readable(&self, panels: usize, rows: usize) -> bool {
        self.words.len() >= (panels - 1) * self.stride + rows.next_multiple_of(TILE) * ROW
    }
}

impl PanelsMut<'_> {
    /// Return whether `rows` rows of `panels` panels have room.
    pub fn writable(&self, panels: usize, rows: usize) -> bool {
        self.words.len() >= (panels - 1) * self.stride + rows * ROW
    }
}
