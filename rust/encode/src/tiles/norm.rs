//! Layer normalisation of rows, in place and as operands in panels.

use super::{PanelsMut, PANEL, ROW};
use crate::norm::Norm;
use crate::simd::wide::Wide;

impl Norm {
    /// Normalise `rows` rows of `x`, padded to whole panels, and write them to `out` as operands.
    ///
    /// # Safety
    /// The instructions of `S`.
    ///
    /// # Panics
    /// If a slice is too short.
    #[inline(always)]
    pub unsafe fn panels<S: Wide>(&self, rows: usize, x: &mut [f32], out: PanelsMut<'_>) {
        let padded = self.weight.len();
        assert!(padded.is_multiple_of(PANEL) && x.len() >= rows * padded && self.width <= padded);
        assert!(rows == 0 || out.writable(padded / PANEL, rows));
        let scale = 1.0 / self.width as f32;
        for row in 0..rows {
            // SAFETY: each row has `padded` values, whole panels, and so have weight and bias; `out` has
            // room for the row in each panel, by the assert.
            unsafe {
                let line = x.as_mut_ptr().add(row * padded);
                let (mut even, mut odd) = (S::splat(0.0), S::splat(0.0));
                for j in (0..padded).step_by(PANEL) {
                    even = S::add(even, S::load(line.add(j)));
                    odd = S::add(odd, S::load(line.add(j + 16)));
                }
                let mean = S::splat(S::sum(S::add(even, odd)) * scale);
                let (mut even, mut odd) = (S::splat(0.0), S::splat(0.0));
                for j in (0..padded).step_by(PANEL) {
                    let mut a = S::sub(S::load(line.add(j)), mean);
                    let mut b = S::sub(S::load(line.add(j + 16)), mean);
                    if j + PANEL > self.width {
                        let left = self.width.saturating_sub(j);
                        a = S::first(a, left.min(16), S::splat(0.0));
                        b = S::first(b, left.saturating_sub(16), S::splat(0.0));
                    }
                    (even, odd) = (S::fma(a, a, even), S::fma(b, b, odd));
                }
                let variance = S::sum(S::add(even, odd)) * scale;
                let spread = S::splat(1.0 / (variance + self.eps).sqrt());
                for j in (0..padded).step_by(PANEL) {
                    let (weight, bias) = (self.weight.as_ptr().add(j), self.bias.as_ptr().add(j));
                    let a = S::mul(S::sub(S::load(line.add(j)), mean), spread);
                    let a = S::fma(a, S::load(weight), S::load(bias));
                    let b = S::mul(S::sub(S::load(line.add(j + 16)), mean), spread);
                    let b = S::fma(b, S::load(weight.add(16)), S::load(bias.add(16)));
                    S::store(line.add(j), a);
                    S::store(line.add(j + 16), b);
                    let to = out.words.as_mut_ptr().add(j / PANEL * out.stride + row * ROW);
                    S::store_operands(to.cast(), a, b);
                }
            }
        }
    }
}
