//! Layer normalisation: `(x - mean) / sqrt(variance + eps) * weight + bias`, per row.

use super::buffer::Buffer;
use super::product::Layout;
use super::simd::Lanes;

/// The weights, padded with zeros, so that padding stays zero.
pub struct Norm {
    weight: Buffer,
    bias: Buffer,
    width: usize,
    eps: f32,
}

impl Norm {
    /// For rows of `weight.len()` values, which the layout pads.
    ///
    /// # Panics
    /// Where the two differ in length.
    pub fn new(layout: Layout, weight: &[f32], bias: &[f32], eps: f32) -> Self {
        assert_eq!(weight.len(), bias.len());
        let padded = |x: &[f32]| {
            let mut own = Buffer::new(layout.pad(x.len()));
            own[..x.len()].copy_from_slice(x);
            own
        };
        Self { weight: padded(weight), bias: padded(bias), width: weight.len(), eps }
    }

    /// Normalises `rows` padded rows of `x` in place, and with `LOW` writes them to `low` as bf16.
    ///
    /// # Safety
    /// The instructions of `S`.
    ///
    /// # Panics
    /// Where a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Lanes, const LOW: bool>(&self, rows: usize, x: &mut [f32], low: &mut [f32]) {
        let padded = self.weight.len();
        assert!(padded % S::N == 0 && x.len() >= rows * padded);
        assert!(!LOW || low.len() >= rows * padded / 2);
        let scale = 1.0 / self.width as f32;
        for row in 0..rows {
            // SAFETY: each row has `padded` values, whole vectors, and so have weight and bias; the
            // low row begins at word `row * padded / 2` and has `padded` bf16.
            unsafe {
                let line = x.as_mut_ptr().add(row * padded);
                let mut sum = S::splat(0.0);
                for j in (0..padded).step_by(S::N) {
                    sum = S::add(sum, S::load(line.add(j)));
                }
                let mean = S::splat(S::total(sum) * scale);
                let mut squares = S::splat(0.0);
                for j in (0..padded).step_by(S::N) {
                    let mut d = S::sub(S::load(line.add(j)), mean);
                    if j + S::N > self.width {
                        d = S::first(d, self.width - j, S::splat(0.0));
                    }
                    squares = S::fma(d, d, squares);
                }
                let spread = S::splat(1.0 / (S::total(squares) * scale + self.eps).sqrt());
                let under = low.as_mut_ptr().wrapping_add(row * padded / 2).cast::<u16>();
                for j in (0..padded).step_by(S::N) {
                    let d = S::mul(S::sub(S::load(line.add(j)), mean), spread);
                    let weight = S::load(self.weight.as_ptr().add(j));
                    let y = S::fma(d, weight, S::load(self.bias.as_ptr().add(j)));
                    S::store(line.add(j), y);
                    if LOW {
                        S::store_low(under.add(j), y);
                    }
                }
            }
        }
    }
}
