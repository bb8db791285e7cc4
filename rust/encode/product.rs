//! The matrix product: register blocks over packed columns, then what follows it while it is warm.
//!
//! Operands are words ([`Lanes`]): f32, or pairs of bf16 with `LOW`. The sum of one element of the
//! result runs over the inner dimension in order, alone, whatever block it falls in: so a row's
//! result does not depend on the rows beside it.

use super::buffer::Buffer;
use super::machine::Machine;
use super::simd::math::{activate, Activation};
use super::simd::{self, Lanes};

/// The most rows of a register block: 8 x 3 (AVX-512) or 6 x 2 (AVX2) sums, the columns and one spread word fit
/// the registers. 14 x 2 was slower: no register is left for what four words at a time need.
pub const ROWS: usize = 8;
/// Inner words between two looks at what is to be asked for ahead.
const WORDS: usize = 4;

/// Lines of memory that will be needed next: `lines` of them at every [`WORDS`] inner words.
///
/// With it the weights of the next panel come from the third cache while this one is multiplied. Spread over
/// all blocks of rows that takes the product from .65 to .87 of the peak (AVX-512, 112 rows; AVX2 .75 to
/// .9); the same lines within the panel's first blocks, or some words ahead in this panel, give half of it.
#[derive(Clone, Copy)]
pub struct Next {
    pub at: *const f32,
    pub lines: usize,
}

impl Next {
    /// Nothing.
    pub const NONE: Self = Self { at: std::ptr::null(), lines: 0 };
}

/// The blocks of rows, (first, how many), at most [`ROWS`] each and nearly equal: a last block of one or
/// two rows would wait for its own sums.
pub fn row_blocks<S: Lanes>(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(S::ROWS);
    (0..count).map(move |block| {
        let (first, end) = (block * rows / count, (block + 1) * rows / count);
        (first, end - first)
    })
}

/// The widest panel: 4 vectors of 16 lanes.
pub const WIDEST: usize = 64;

/// Words of a line of memory.
const LINE: usize = 16;

/// `c[r][v] = sum over k of a[r][k] * b[k][v]`, for `R` rows and `NV` vectors.
///
/// # Safety
/// The instructions of `S`; `k` words in each of `R` rows of `a` (stride `lda`), vectors at
/// `b + i * ks + v * vs` for `i < k`, and room for `R` rows (stride `ldc`) at `c`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn tile<S: Lanes, const LOW: bool, const R: usize, const NV: usize>(
    k: usize,
    mut a: *const f32,
    lda: usize,
    mut b: *const f32,
    vs: usize,
    ks: usize,
    c: *mut f32,
    ldc: usize,
    mut next: Next,
) {
    // SAFETY: the caller's promise covers each pointer below; asking needs nothing to be there.
    unsafe {
        let mut sums = [[S::splat(0.0); NV]; R];
        for _ in 0..k / WORDS {
            for i in 0..WORDS {
                word::<S, LOW, R, NV>(&mut sums, a.wrapping_add(i), lda, b.wrapping_add(i * ks), vs);
            }
            for _ in 0..next.lines {
                S::prefetch(next.at);
                next.at = next.at.wrapping_add(LINE);
            }
            a = a.wrapping_add(WORDS);
            b = b.wrapping_add(WORDS * ks);
        }
        for _ in 0..k % WORDS {
            word::<S, LOW, R, NV>(&mut sums, a, lda, b, vs);
            a = a.wrapping_add(1);
            b = b.wrapping_add(ks);
        }
        for r in 0..R {
            for v in 0..NV {
                S::store(c.add(r * ldc + v * S::N), sums[r][v]);
            }
        }
    }
}

/// One inner word of [`tile`].
///
/// # Safety
/// As [`tile`].
#[inline(always)]
unsafe fn word<S: Lanes, const LOW: bool, const R: usize, const NV: usize>(
    sums: &mut [[S::V; NV]; R],
    a: *const f32,
    lda: usize,
    b: *const f32,
    vs: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut column = [S::splat(0.0); NV];
        for v in 0..NV {
            column[v] = S::load(b.add(v * vs));
        }
        for r in 0..R {
            let x = S::spread(a.add(r * lda));
            for v in 0..NV {
                sums[r][v] =
                    if LOW { S::dot2(sums[r][v], x, column[v]) } else { S::fma(x, column[v], sums[r][v]) };
            }
        }
    }
}

/// [`tile`] for 1 to [`ROWS`] rows and 1 to `S::NV` vectors, known at run time. Compiled once for each
/// machine, as [`Machine::block`].
///
/// # Safety
/// As [`tile`].
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn any_tile<S: Lanes, const LOW: bool>(
    rows: usize,
    vectors: usize,
    k: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    vs: usize,
    ks: usize,
    c: *mut f32,
    ldc: usize,
    next: Next,
) {
    macro_rules! go {
        ($r:literal, $v:literal) => {
            // SAFETY: the caller's promise.
            unsafe { tile::<S, LOW, $r, $v>(k, a, lda, b, vs, ks, c, ldc, next) }
        };
    }
    macro_rules! rows {
        ($v:literal) => {
            match rows {
                1 => go!(1, $v),
                2 => go!(2, $v),
                3 => go!(3, $v),
                4 => go!(4, $v),
                5 => go!(5, $v),
                6 => go!(6, $v),
                // Not compiled for a machine with smaller blocks.
                7 if S::ROWS > 6 => go!(7, $v),
                8 if S::ROWS > 6 => go!(8, $v),
                _ => unreachable!("a block has at most S::ROWS rows"),
            }
        };
    }
    if vectors == 1 || S::NV == 1 {
        rows!(1)
    } else if vectors == 2 || S::NV == 2 {
        rows!(2)
    } else if vectors == 3 || S::NV == 3 {
        rows!(3)
    } else {
        rows!(4)
    }
}

/// How a machine wants its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub lanes: usize,
    /// Vectors of a whole panel.
    pub vectors: usize,
    /// Pairs of bf16 instead of f32.
    pub low: bool,
    /// Panels of 32 columns (`encode::tiles`) instead of rows.
    pub tiles: bool,
}

impl Layout {
    pub fn of<S: Lanes>(low: bool) -> Self {
        Self { lanes: S::N, vectors: S::NV, low, tiles: false }
    }

    /// For the kernels of `encode::tiles`.
    pub fn tiles() -> Self {
        Self { lanes: super::tiles::PANEL, vectors: 1, low: true, tiles: true }
    }

    /// `n` elements as whole vectors.
    pub fn pad(&self, n: usize) -> usize {
        n.next_multiple_of(self.lanes)
    }

    /// Words of `n` (padded) elements.
    pub fn words(&self, n: usize) -> usize {
        if self.low {
            n / 2
        } else {
            n
        }
    }
}

/// A linear layer `y = W x + b`, packed: panels of columns (outputs), in each all inner words in
/// order, in each of those the panel's columns.
pub struct Linear {
    packed: Buffer,
    bias: Buffer,
    layout: Layout,
    /// Inner words.
    inner: usize,
    /// Padded outputs.
    outputs: usize,
}

/// What becomes of a product.
pub enum Then<'a> {
    /// `y` as an operand (f32, or bf16 in a low layout).
    Operand(&'a mut [f32]),
    /// The activation of `y`, as an operand.
    Activated(Activation, &'a mut [f32]),
    /// `out += y` in f32.
    Added(&'a mut [f32]),
}

impl Linear {
    /// From `weights`, `outputs` rows of `inputs` values (both padded by the layout), and a bias
    /// for each output. All are finite.
    ///
    /// # Panics
    /// Where the lengths do not fit.
    pub fn new(layout: Layout, weights: &[f32], bias: &[f32], outputs: usize, inputs: usize) -> Self {
        assert!(inputs.is_multiple_of(layout.lanes) && outputs.is_multiple_of(layout.lanes));
        assert!(weights.len() == outputs * inputs && bias.len() == outputs);
        let inner = layout.words(inputs);
        let mut packed = Buffer::new(outputs * inner);
        let panel = layout.lanes * layout.vectors;
        for start in (0..outputs).step_by(panel) {
            let width = panel.min(outputs - start);
            let place = &mut packed[start * inner..(start + width) * inner];
            for j in 0..width {
                let row = &weights[(start + j) * inputs..(start + j + 1) * inputs];
                if layout.low {
                    for (k, pair) in row.chunks_exact(2).enumerate() {
                        place[k * width + j] = simd::word(pair[0], pair[1]);
                    }
                } else {
                    for (k, &x) in row.iter().enumerate() {
                        place[k * width + j] = x;
                    }
                }
            }
        }
        let mut own = Buffer::new(outputs);
        own.copy_from_slice(bias);
        Self { packed, bias: own, layout, inner, outputs }
    }

    /// Words in a row of the input.
    pub fn inputs(&self) -> usize {
        self.inner
    }

    /// Words in a row of the result as an operand.
    pub fn out_words(&self) -> usize {
        self.layout.words(self.outputs)
    }

    /// `rows` rows of `input`, laid end to end. Rows of the result are laid end to end too.
    ///
    /// # Safety
    /// The instructions of `S`.
    ///
    /// # Panics
    /// Where `S` and `LOW` are not the layout's, or a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Machine, const LOW: bool>(&self, rows: usize, input: &[f32], then: Then<'_>) {
        assert!(self.layout == Layout::of::<S>(LOW));
        assert!(input.len() >= rows * self.inner);
        let (kind, out) = match then {
            Then::Operand(out) => (None, out),
            Then::Activated(kind, out) => (Some(kind), out),
            Then::Added(out) => {
                // SAFETY: the caller's promise.
                unsafe { self.added::<S, LOW>(rows, input, out) };
                return;
            }
        };
        let stride = self.out_words();
        assert!(out.len() >= rows * stride);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: `count` whole rows of input from `row` on and `width` packed columns from
                // `start` on exist, by the asserts and by `new`; the tile holds the largest block;
                // `width` is whole vectors, `bias` has `outputs` values, and `out` a row of
                // `outputs` operands for each row, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for r in 0..count {
                        let line = out.as_mut_ptr().add((row + r) * stride);
                        for v in (0..width).step_by(S::N) {
                            let mut y = S::load(sums.0.as_ptr().add(r * WIDEST + v));
                            y = S::add(y, S::load(self.bias.as_ptr().add(start + v)));
                            if let Some(kind) = kind {
                                y = activate::<S, LOW>(kind, y);
                            }
                            if LOW {
                                S::store_low(line.cast::<u16>().add(start + v), y);
                            } else {
                                S::store(line.add(start + v), y);
                            }
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// The instructions of `S`.
    #[inline(always)]
    unsafe fn added<S: Machine, const LOW: bool>(&self, rows: usize, input: &[f32], out: &mut [f32]) {
        assert!(out.len() >= rows * self.outputs);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: as in `run`; `out` has a row of `outputs` f32 for each row, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for r in 0..count {
                        let line = out.as_mut_ptr().add((row + r) * self.outputs + start);
                        for v in (0..width).step_by(S::N) {
                            let y = S::load(sums.0.as_ptr().add(r * WIDEST + v));
                            let y = S::add(y, S::load(self.bias.as_ptr().add(start + v)));
                            S::store(line.add(v), S::add(y, S::load(line.add(v))));
                        }
                    }
                }
            }
        }
    }

    /// The products of `count` rows with the columns of one panel, into a tile of stride [`WIDEST`].
    ///
    /// # Safety
    /// The instructions of `S`; the rows and the panel exist.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn sums<S: Machine, const LOW: bool>(
        &self,
        rows: usize,
        row: usize,
        count: usize,
        start: usize,
        width: usize,
        input: &[f32],
        sums: &mut [f32; ROWS * WIDEST],
    ) {
        // SAFETY: the caller's promise; a tile has room for every block.
        unsafe {
            let a = input.as_ptr().add(row * self.inner);
            let b = self.packed.as_ptr().add(start * self.inner);
            let c = sums.as_mut_ptr();
            // The next panel's lines, spread over the blocks of this one: this block's share of them.
            let (panel, looks) = (width * self.inner, (self.inner / WORDS).max(1));
            let lines = (panel / LINE).div_ceil(rows.div_ceil(S::ROWS) * looks).min(16);
            let at = b.wrapping_add(panel + row.div_ceil(S::ROWS) * looks * lines * LINE);
            let next = Next { at, lines };
            S::block::<LOW>(count, width / S::N, self.inner, a, self.inner, b, S::N, width, c, WIDEST, next);
        }
    }
}

/// A block's sums, on a line of their own.
#[repr(align(64))]
struct Tile([f32; ROWS * WIDEST]);

#[cfg(test)]
mod tests;
