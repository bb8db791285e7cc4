//! The units of each chunk.

use crate::items::Items;
use crate::sparse::Mask;

/// The units of chunk `c` are `first_unit[c]..first_unit[c + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Chunks<'a> {
    first_unit: Items<'a, u64>,
}

impl<'a> Chunks<'a> {
    /// `first_unit` has one more offset than there are chunks.
    pub(super) fn new(first_unit: Items<'a, u64>) -> Self {
        Self { first_unit }
    }

    pub fn len(&self) -> usize {
        self.first_unit.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn units(&self, chunk: usize) -> std::ops::Range<u32> {
        let [start, end] = self.first_unit.pair(chunk);
        start as u32..end as u32
    }

    /// Return the chunks that have a unit which passes the filter.
    pub fn left(&self, mask: &Mask) -> Mask {
        Mask::from_fn(self.len(), |chunk| self.units(chunk).any(|unit| mask.has(unit)))
    }
}
