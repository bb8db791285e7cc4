//! A linear layer on bytes.

use super::dot::{Dot, BLOCK};
use super::rows::Rows;
use super::{HALF_WORDS, PANEL, STEP, STEP_WORDS};
use crate::buffer::Buffer;
use crate::product::Then;
use crate::simd::math::{activate, Activation};
use crate::simd::wide::{gelu, Wide};

/// The largest sum of two adjacent weights of one sign: 255 times 128, after rounding, fits in 16 bits.
const LARGEST: f32 = 127.0;
/// Magnitudes below which a channel is not scaled further.
const QUIET: f32 = 1e-3;
const FAINT: f32 = 1e-5;

/// A linear layer `y = W x + b`, packed: for each 32 outputs two halves of 16, in which word `p` holds the
/// inputs `4 p` to `4 p + 3` of each output.
pub struct Linear {
    packed: Buffer,
    /// For each output: the scale of its sums, the sum of its weights, its bias.
    scale: Buffer,
    sums: Vec<i32>,
    bias: Buffer,
    /// Factor of each input before it becomes a byte.
    factors: Buffer,
    steps: usize,
    outputs: usize,
}

impl Linear {
    /// Pack `weights`, `outputs` rows of `inputs` values (both multiples of 16), with a bias for each output
    /// and the largest expected magnitude of each input. All are finite.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn new(weights: &[f32], bias: &[f32], outputs: usize, inputs: usize, most: &[f32]) -> Self {
        assert!(outputs.is_multiple_of(16) && inputs.is_multiple_of(16) && most.len() == inputs);
        assert!(weights.len() == outputs * inputs && bias.len() == outputs);
        let mut heavy = vec![FAINT; inputs];
        for row in weights.chunks_exact(inputs) {
            for (h, w) in heavy.iter_mut().zip(row) {
                *h = h.max(w.abs());
            }
        }
        let stretch: Vec<f32> = most.iter().zip(&heavy).map(|(a, w)| (a.max(QUIET) / w).sqrt()).collect();
        let (steps, panels) = (inputs.div_ceil(4 * STEP), outputs.div_ceil(PANEL));
        let mut made = Self {
            packed: Buffer::new(panels * steps * STEP_WORDS),
            scale: Buffer::new(panels * PANEL),
            sums: vec![0; panels * PANEL],
            bias: Buffer::new(panels * PANEL),
            factors: Buffer::new(inputs),
            steps,
            outputs,
        };
        made.bias[..outputs].copy_from_slice(bias);
        for (f, s) in made.factors.iter_mut().zip(&stretch) {
            *f = 1.0 / s;
        }
        let bytes = made.packed.as_mut_ptr().cast::<i8>();
        let mut row = vec![0.0; inputs];
        for (j, weights) in weights.chunks_exact(inputs).enumerate() {
            for (to, (w, s)) in row.iter_mut().zip(weights.iter().zip(&stretch)) {
                *to = w * s;
            }
            let side =
                |sign: f32| row.chunks_exact(2).map(move |p| (sign * p[0]).max(0.0) + (sign * p[1]).max(0.0));
            let most = side(1.0).chain(side(-1.0)).fold(0.0, f32::max);
            let inverse = if most > 0.0 { LARGEST / most } else { 0.0 };
            made.scale[j] = most / LARGEST;
            for (k, w) in row.iter().enumerate() {
                let byte = (w * inverse).round_ties_even() as i8;
                made.sums[j] += i32::from(byte);
                let (panel, half, column) = (j / PANEL, j / 16 % 2, j % 16);
                let word = panel * steps * STEP_WORDS + half * steps * HALF_WORDS + k / 4 * 16 + column;
                // SAFETY: the word is within the panel and step of this weight, which are packed.
                unsafe { bytes.add(word * 4 + k % 4).write(byte) };
            }
        }
        made
    }

    pub fn factors(&self) -> &[f32] {
        &self.factors
    }

    /// Multiply `rows` rows of `input`; rows of the result are concatenated.
    ///
    /// # Safety
    /// The instructions of `S` and `D` must be available.
    ///
    /// # Panics
    /// If a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Wide, D: Dot>(&self, rows: usize, input: &Rows, then: Then<'_>) {
        assert!(input.stride == self.steps * STEP && input.readable(rows));
        // SAFETY: the caller's promise; `out` has a row of `outputs` for each row, by the assert in `blocks`.
        unsafe {
            match then {
                Then::Operand(out) => self.blocks::<S, D, _>(rows, input, out, Plain),
                Then::Activated(kind, out) => self.blocks::<S, D, _>(rows, input, out, kind),
                Then::Added(out) => self.blocks::<S, D, _>(rows, input, out, Add),
            }
        }
    }

    /// # Safety
    /// As [`Linear::run`]; `then` may read what is in `out`.
    #[inline(always)]
    unsafe fn blocks<S: Wide, D: Dot, F: Follow>(&self, rows: usize, input: &Rows, out: &mut [f32], then: F) {
        assert!(out.len() >= rows * self.outputs);
        let mut sums = Sums([0; BLOCK * PANEL]);
        let panel = self.steps * STEP_WORDS;
        // SAFETY: the caller's promise; panels, rows and sums exist.
        unsafe {
            let _on = D::on();
            for start in (0..self.outputs).step_by(PANEL) {
                let b = self.packed.as_ptr().add(start / PANEL * panel);
                for row in (0..rows).step_by(BLOCK) {
                    let count = BLOCK.min(rows - row);
                    let a = input.words().add(row * input.stride);
                    D::block(count, self.steps, a, input.stride, b.cast(), sums.0.as_mut_ptr());
                    for column in (start..(start + PANEL).min(self.outputs)).step_by(16) {
                        let (scale, bias) = (
                            S::load(self.scale.as_ptr().add(column)),
                            S::load(self.bias.as_ptr().add(column)),
                        );
                        let weights = self.sums.as_ptr().add(column);
                        for r in 0..count {
                            let sums = sums.0.as_ptr().add(r * PANEL + column - start);
                            let y = S::less(sums, weights, input.zero[row + r]);
                            let y = S::fma(y, S::mul(scale, S::splat(input.scale[row + r])), bias);
                            let to = out.as_mut_ptr().add((row + r) * self.outputs + column);
                            S::store(to, then.then::<S>(y, to));
                        }
                    }
                }
            }
        }
    }
}

/// What follows sixteen results.
trait Follow: Copy {
    /// # Safety
    /// The instructions of `S`, sixteen values at `p`.
    unsafe fn then<S: Wide>(self, y: S::V, p: *const f32) -> S::V;
}

#[derive(Clone, Copy)]
struct Plain;

#[derive(Clone, Copy)]
struct Add;

impl Follow for Plain {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, _: *const f32) -> S::V {
        y
    }
}

impl Follow for Add {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, p: *const f32) -> S::V {
        // SAFETY: the caller's promise.
        unsafe { S::add(y, S::load(p)) }
    }
}

impl Follow for Activation {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, _: *const f32) -> S::V {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Gelu => gelu::<S>(y),
                kind => activate::<S, true>(kind, y),
            }
        }
    }
}

#[repr(align(64))]
struct Sums([i32; BLOCK * PANEL]);
