//! Cache-line-aligned buffers of floats, so that no load of a whole line crosses two lines, and
//! the layout of operands in them.

use super::simd::Lanes;
use std::ops::{Deref, DerefMut};

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([f32; 16]);

/// A fixed number of f32 (or of words, see [`super::simd::Lanes`]), initially zero.
#[derive(Clone, Default)]
pub struct Buffer {
    lines: Vec<Line>,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize) -> Self {
        Self { lines: vec![Line([0.0; 16]); length.div_ceil(16)], length }
    }

    /// Make the buffer at least this long, with arbitrary content.
    pub fn reserve(&mut self, length: usize) {
        if length > self.length {
            *self = Self::new(length);
        }
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: `Line` is 16 f32 without padding, and there are at least `length` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

/// Memory layout of operands for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub lanes: usize,
    /// Vectors per whole panel.
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

    /// Return the layout for the kernels of `encode::tiles`.
    pub fn tiles() -> Self {
        Self { lanes: super::tiles::PANEL, vectors: 1, low: true, tiles: true }
    }

    /// Return `n` rounded up to whole vectors.
    pub fn pad(&self, n: usize) -> usize {
        n.next_multiple_of(self.lanes)
    }

    /// Return the words of `n` (padded) elements.
    pub fn words(&self, n: usize) -> usize {
        if self.low {
            n / 2
        } else {
            n
        }
    }
}
