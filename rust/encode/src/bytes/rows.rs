//! Rows of f32 quantised to bytes: each group of a row has its own scale and zero point.

use super::dot::BLOCK;
use super::{GROUP, GROUP_WORDS, TOP};
use crate::buffer::Buffer;
use crate::simd::wide::Wide;

/// Lower limit of a row's range, so that its inverse stays finite.
const LEAST: f32 = 1e-30;

/// Rows of bytes, group by group: the words of the first group of all rows, then those of the second. A value is
/// `scale * (byte - zero)`, with the scale and the zero of its row and group.
#[derive(Default)]
pub struct Rows {
    words: Buffer,
    /// Rows for which each group has room: whole blocks.
    room: usize,
    /// Groups of a row.
    pub groups: usize,
    /// At [`Rows::place`].
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

    /// Return the place of a row's group. Its words begin at [`GROUP_WORDS`] times that.
    pub fn place(&self, row: usize, group: usize) -> usize {
        group * self.room + row
    }

    /// Return whether whole blocks of this many rows can be read.
    pub fn readable(&self, rows: usize) -> bool {
        let places = self.room * self.groups;
        let filled = self.scale.len().min(self.zero.len());
        self.room >= rows && self.words.len() >= places * GROUP_WORDS && filled >= places
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
        self.room = rows.next_multiple_of(BLOCK);
        self.groups = width.div_ceil(GROUP);
        let places = self.room * self.groups;
        self.words.reserve(places * GROUP_WORDS);
        self.scale.resize(places.max(self.scale.len()), 0.0);
        self.zero.resize(places.max(self.zero.len()), 0);
        for (row, number) in (0..rows).flat_map(|row| (0..self.groups).map(move |group| (row, group))) {
            let (place, from) = (self.place(row, number), number * GROUP);
            let group = from..width.min(from + GROUP);
            // SAFETY: rows and factors have `width` values, whole vectors; the group's words have room for as
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
                let to = self.words.as_mut_ptr().add(place * GROUP_WORDS).cast::<u8>();
                for j in group.step_by(16) {
                    let v = S::mul(S::load(line.add(j)), S::load(factors.as_ptr().add(j)));
                    let v = S::add(S::round(S::mul(v, by)), zero);
                    S::store_bytes(to.add(j - from), S::min(top, S::max(none, v)));
                }
            }
        }
    }
}
