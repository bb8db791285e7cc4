//! Matrix products: register blocks over packed columns, followed by the next step while the result is in the
//! cache.
//!
//! Operands are words ([`Lanes`]): f32, or pairs of bf16 with `LOW`. The sum of one element of the result
//! runs over the inner dimension in order, whatever block it belongs to, so a row's result does not depend on
//! neighbouring rows.

use super::block::{row_blocks, Blocks, Next, LINE, ROWS, WIDEST, WORDS};
use super::buffer::Buffer;
use super::layout::Layout;
use super::simd;
use super::simd::math::{activate, Activation};

/// A linear layer `y = W x + b`, packed: panels of columns (outputs), in each panel all inner words in order,
/// for each inner word the panel's columns.
pub struct Linear {
    packed: Buffer,
    bias: Buffer,
    layout: Layout,
    /// Inner words.
    inner: usize,
    /// Padded outputs.
    outputs: usize,
}

/// What happens to a product.
pub enum Then<'a> {
    /// `y` as an operand (f32, or bf16 in a low layout).
    Operand(&'a mut [f32]),
    /// The activation of `y`, as an operand.
    Activated(Activation, &'a mut [f32]),
    /// `out += y` in f32.
    Added(&'a mut [f32]),
    /// `out` becomes the greatest `y` of all rows, in f32: one row for all of them. It keeps what is greater.
    Highest(&'a mut [f32]),
}

impl Linear {
    /// Pack `weights`, `outputs` rows of `inputs` values (both padded by the layout), and a bias for each
    /// output. All are finite.
    ///
    /// # Panics
    /// If the lengths do not match.
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

    /// Return the number of words in a row of the input.
    pub fn inputs(&self) -> usize {
        self.inner
    }

    /// Return the number of words in a row of the result as an operand.
    pub fn out_words(&self) -> usize {
        self.layout.words(self.outputs)
    }

    /// Multiply `rows` concatenated rows of `input`. Rows of the result are concatenated, too.
    ///
    /// # Safety
    /// The instructions of `S` must be available.
    ///
    /// # Panics
    /// If `S` and `LOW` are not the layout's, or a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], then: Then<'_>) {
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
            Then::Highest(out) => {
                // SAFETY: the caller's promise.
                unsafe { self.highest::<S, LOW>(rows, input, out) };
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
    unsafe fn added<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], out: &mut [f32]) {
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

    /// # Safety
    /// The instructions of `S`.
    #[inline(always)]
    unsafe fn highest<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], out: &mut [f32]) {
        assert!(out.len() >= self.outputs);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: as in `run`; `out` has `outputs` f32, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for v in (0..width).step_by(S::N) {
                        let place = out.as_mut_ptr().add(start + v);
                        let bias = S::load(self.bias.as_ptr().add(start + v));
                        let mut most = S::load(place);
                        for r in 0..count {
                            most = S::max(most, S::add(S::load(sums.0.as_ptr().add(r * WIDEST + v)), bias));
                        }
                        S::store(place, most);
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
    unsafe fn sums<S: Blocks, const LOW: bool>(
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
            // The next panel's lines, spread over the blocks of this one: the share of this block.
            let (panel, looks) = (width * self.inner, (self.inner / WORDS).max(1));
            let lines = (panel / LINE).div_ceil(rows.div_ceil(S::ROWS) * looks).min(16);
            let done = row.div_ceil(S::ROWS) * looks * lines * LINE;
            let next = Next { at: b.wrapping_add(panel + done), lines: if done < panel { lines } else { 0 } };
            S::block::<LOW>(count, width / S::N, self.inner, a, self.inner, b, S::N, width, c, WIDEST, next);
        }
    }
}

/// A block's sums, aligned to a cache line.
#[repr(align(64))]
struct Tile([f32; ROWS * WIDEST]);

#[cfg(test)]
mod tests;
