//! Floats that begin on a cache line, so that no vector load of a whole line touches two.

use std::ops::{Deref, DerefMut};

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([f32; 16]);

/// A fixed number of f32 (or of words, see [`super::simd::Lanes`]), zero at first.
#[derive(Clone, Default)]
pub struct Buffer {
    lines: Vec<Line>,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize) -> Self {
        Self { lines: vec![Line([0.0; 16]); length.div_ceil(16)], length }
    }

    /// At least this long, with any content.
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
