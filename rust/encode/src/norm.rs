//! Layer normalisation: `(x - mean) / sqrt(variance + eps) * weight + bias`, per row.

use super::buffer::Buffer;
use super::buffer::Layout;
use super::simd::Lanes;
use super::tiles::{PanelsMut, PANEL, ROW};
use crate::simd::wide::Wide;

/// The weights, padded with zeros, so that padding stays zero.
pub struct Norm {
    pub(super) weight: Buffer,
    pub(super) bias: Buffer,
    pub(super) width: usize,
    pub(super) eps: f32,
}

impl Norm {
    /// For rows of `weight.len()` values, padded by the layout.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn new(layout: Layout, weight: &[f32], bias: &[f32], eps: f32) -> Self {
        assert_eq!(weight.len(), bias.len());
        let padded = |x: &[f32]| {
            let mut own = Buffer::new(layout.pad(x.len()));
            own[..x.len()].copy_from_slice(x);
            own
        };
        Self { weight: padded(weight), bias: padded(bias), width: weight.len(), eps }
    }

    /// Normalise `rows` padded rows of `x` in place, and with `LOW` write them to `low` as bf16.
    ///
    /// # Safety
    /// The instructions of `S` must be available.
    ///
    /// # Panics
    /// If a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Lanes, const LOW: bool>(&self, rows: usize, x: &mut [f32], low: &mut [f32]) {
        let padded = self.weight.len();
        assert!(padded.is_multiple_of(S::N) && x.len() >= rows * padded);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::testing::{numbers, on_each_machine, operand, values, Walled};
    use proptest::prelude::*;

    fn check<M: Machine, const LOW: bool>(rows: usize, width: usize, shift: f32, seed: u64) {
        let layout = Layout::of::<M>(LOW);
        let padded = layout.pad(width);
        let (weight, bias) = (numbers(seed, width), numbers(seed + 1, width));
        let x: Vec<f32> = numbers(seed + 2, rows * width).iter().map(|x| x + shift).collect();
        let mut own = vec![0.0; rows * padded];
        for (line, row) in own.chunks_exact_mut(padded).zip(x.chunks_exact(width)) {
            line[..width].copy_from_slice(row);
        }
        let (mut own, mut low) = (Walled::new(&own), Walled::new(&vec![0.0; rows * padded / 2]));
        let norm = Norm::new(layout, &weight, &bias, 1e-5);
        // SAFETY: the machine has the instructions.
        unsafe { M::norm::<LOW>(&norm, rows, own.get(), low.get()) };
        for (r, row) in x.chunks_exact(width).enumerate() {
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / width as f64;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / width as f64;
            for j in 0..padded {
                let want = if j < width {
                    let d = (f64::from(row[j]) - mean) / (variance + 1e-5).sqrt();
                    d * f64::from(weight[j]) + f64::from(bias[j])
                } else {
                    0.0
                };
                let got = own.get()[r * padded + j];
                assert!((f64::from(got) - want).abs() < 2e-4, "{rows} x {width}: {got} is not {want}");
                if LOW {
                    assert_eq!(values(low.get(), true)[r * padded + j], operand(got, true));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn rows_are_normalised(rows in 1usize..4, width in 1usize..100, shift in -3.0f32..3.0, seed: u32) {
            on_each_machine!(check, rows, width, shift, u64::from(seed));
        }
    }
}
