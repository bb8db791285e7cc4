//! Memory layout of operands for a machine.

use super::simd::Lanes;

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
