//! Rows of f32 quantised to bytes: each group of a row has its own scale and zero point.

use super::{GROUP, STEP, TOP};
use crate::buffer::Buffer;
use crate::simd::wide::Wide;

/// Lower limit of a row's range, so that its inverse stays finite.
const LEAST: f32 = 1e-30;

/// Rows of bytes: a value is `scale * (byte - zero)`, with the scale and the zero of its group.
#[derive(Default)]
pub struct Rows {
    words: Buffer,
    /// Words of a row: whole steps.
    pub stride: usize,
    /// Groups of a row.
    pub groups: usize,
    /// For each row and group.
    pub scale: Vec<f32>,
    pub zero: Vec<i32>,
}

impl Rows {
    pub fn words(&self) -> *const i32 {
        self.words.as_ptr().cast()
    }

    /// Return the number of words it holds.
    pub fn len(&self) -> usize {
        self.words.len() + self.scale.len() + self.zero.len()
    }

    /// Return whether whole tiles for this many rows can be read.
    pub fn readable(&self, rows: usize) -> bool {
        self.words.len() >= rows.next_multiple_of(16) * self.stride && self.scale.len() >= rows * self.groups
    }

    /// Quantise `rows` rows of `x`, `factors.len()` values each, every value times its channel's factor, in
    /// each group to the steps from 0 to [`TOP`] from their minimum (or 0) to their maximum (or 0). A non-finite value makes
    /// the group's scale NaN, and so everything that is computed from it.
    ///
    /// # Safety
    /// The instructions of `S` must be available.
    ///
    /// # Panics
    /// If a slice is too short or rows are not whole vectors.
    #[inline(always)]
    pub unsafe fn quantise<S: Wide>(&mut self, rows: usize, x: &[f32], factors: &[f32]) {
        let width = factors.len();
        assert!(width.is_multiple_of(16) && x.len() >= rows * width);
        self.stride = width.div_ceil(4 * STEP) * STEP;
        self.words.reserve(rows.next_multiple_of(32) * self.stride);
        self.groups = width.div_ceil(GROUP);
        let scales = rows * self.groups;
        self.scale.resize(scales.max(self.scale.len()), 0.0);
        self.zero.resize(scales.max(self.zero.len()), 0);
        for place in 0..scales {
            let (row, from) = (place / self.groups, place % self.groups * GROUP);
            let group = from..width.min(from + GROUP);
            // SAFETY: rows and factors have `width` values, whole vectors; the row's words have room for as
            // many bytes.
            unsafe {
                let line = x.as_ptr().add(row * width);
                let none = S::splat(0.0);
                let (mut least, mut most, mut bad) = (none, none, none);
                for j in group.clone().step_by(16) {
                    let v = S::mul(S::load(line.add(j)), S::load(factors.as_ptr().add(j)));
                    (least, most) = (S::min(least, v), S::max(most, v));
                    bad = S::fma(v, none, bad);
                }
                let above = |x: f32| if x > 0.0 { x } else { 0.0 };
                let (low, high) = (above(S::largest(S::sub(none, least))), above(S::largest(most)));
                let range = low + high;
                let range = if range > LEAST { range } else { LEAST };
                let inverse = f32::from(TOP) / range;
                let zero = (low * inverse).round_ties_even();
                self.scale[place] = range / f32::from(TOP) + S::sum(bad);
                self.zero[place] = zero as i32;
                let (by, zero, top) = (S::splat(inverse), S::splat(zero), S::splat(f32::from(TOP)));
                let to = self.words.as_mut_ptr().add(row * self.stride).cast::<u8>();
                for j in group.step_by(16) {
                    let v = S::mul(S::load(line.add(j)), S::load(factors.as_ptr().add(j)));
                    let v = S::add(S::round(S::mul(v, by)), zero);
                    S::store_bytes(to.add(j), S::min(top, S::max(none, v)));
                }
            }
        }
    }
}
