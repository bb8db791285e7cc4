//! Layer normalisation of rows, in place and as operands in panels.

use super::{PanelsMut, PANEL, ROW};
use crate::encode::norm::Norm;
use crate::encode::simd::wide::Wide;

impl Norm {
    /// Normalises `rows` rows of `x`, padded to whole panels, and writes them to `out` as operands.
    ///
    /// # Safety
    /// The instructions of `S`.
    ///
    /// # Panics
    /// Where a slice is too short.
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
                let mut sums = [S::splat(0.0); 2];
                for j in (0..padded).step_by(PANEL) {
                    sums[0] = S::add(sums[0], S::load(line.add(j)));
                    sums[1] = S::add(sums[1], S::load(line.add(j + 16)));
                }
                let mean = S::splat(S::sum(S::add(sums[0], sums[1])) * scale);
                let mut squares = [S::splat(0.0); 2];
                for j in (0..padded).step_by(16) {
                    let mut d = S::sub(S::load(line.add(j)), mean);
                    if j + 16 > self.width {
                        d = S::first(d, self.width.saturating_sub(j), S::splat(0.0));
                    }
                    squares[j / 16 % 2] = S::fma(d, d, squares[j / 16 % 2]);
                }
                let variance = S::sum(S::add(squares[0], squares[1])) * scale;
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
