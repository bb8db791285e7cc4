//! A linear layer on bytes.

use super::dot::{Dot, Scales, BLOCK};
use super::rows::Rows;
use super::{GROUP, GROUP_STEPS, GROUP_WORDS, HALF_WORDS, PANEL, STEP, STEP_WORDS, TOP};
use crate::buffer::Buffer;
use crate::product::Then;
use crate::simd::math::{activate, Activation};
use crate::simd::wide::{gelu, Wide};

/// The largest weight, and the largest sum of the weights of one sign among four, the lower or the upper two of two
/// adjacent words. Rounding adds at most 2, and [`TOP`] times that still fits in 16 bits.
const LARGEST: f32 = 127.0;
const LARGEST_SUM: f32 = (i16::MAX / TOP as i16 - 2) as f32;
/// Minimum magnitude of a channel. Smaller magnitudes are not scaled further.
const QUIET: f32 = 1e-3;
const FAINT: f32 = 1e-5;

/// A linear layer `y = W x + b`, packed: for each 32 outputs and each group of inputs two halves of 16, in which
/// word `p` holds the inputs `4 p` to `4 p + 3` of the group for each output.
pub struct Linear {
    packed: Buffer,
    /// For each panel, group and output: the scale of the group's sum, and minus the sum of its weights.
    scale: Buffer,
    sums: Vec<i32>,
    /// For each output.
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
        let groups = inputs.div_ceil(GROUP);
        let mut made = Self {
            packed: Buffer::new(panels * steps * STEP_WORDS),
            scale: Buffer::new(panels * groups * PANEL),
            sums: vec![0; panels * groups * PANEL],
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
            let (panel, half, column) = (j / PANEL, j / 16 % 2, j % 16);
            for (group, row) in row.chunks(GROUP).enumerate() {
                let scale = scale(row);
                let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
                let place = (panel * groups + group) * PANEL + j % PANEL;
                made.scale[place] = scale;
                let own_steps = GROUP_STEPS.min(steps - group * GROUP_STEPS);
                let start =
                    (panel * steps + group * GROUP_STEPS) * STEP_WORDS + half * own_steps * HALF_WORDS;
                for (k, w) in row.iter().enumerate() {
                    let byte = (w * inverse).round_ties_even() as i8;
                    made.sums[place] -= i32::from(byte);
                    let word = start + k / 4 * 16 + column;
                    // SAFETY: the word is within the panel and group of this weight, which are packed.
                    unsafe { bytes.add(word * 4 + k % 4).write(byte) };
                }
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
        assert!(input.readable(rows));
        assert!(input.groups == self.steps.div_ceil(GROUP_STEPS));
        // `out` has a row of `outputs` for each row, by the assert in `blocks`.
        match then {
            Then::Operand(out) => self.blocks::<S, D, _>(rows, input, out, Plain),
            Then::Activated(kind, out) => self.blocks::<S, D, _>(rows, input, out, kind),
            Then::Added(out) => self.blocks::<S, D, _>(rows, input, out, Add),
            Then::Highest(out) => self.blocks::<S, D, _>(rows, input, out, Highest),
        }
    }

    /// # Safety
    /// As [`Linear::run`]; `then` may read what is in `out`.
    #[inline(always)]
    unsafe fn blocks<S: Wide, D: Dot, F: Follow>(&self, rows: usize, input: &Rows, out: &mut [f32], then: F) {
        let stride = if F::ONE_ROW { 0 } else { self.outputs };
        assert!(out.len() >= self.outputs && out.len() >= rows * stride);
        let (mut sums, mut total) = (Sums([0; BLOCK * PANEL]), Total([0.0; BLOCK * PANEL]));
        // Panels, rows, sums and totals exist.
        let _on = D::on();
        for start in (0..self.outputs).step_by(PANEL) {
            let panel = start / PANEL;
            let columns = PANEL.min(self.outputs - start);
            for row in (0..rows).step_by(BLOCK) {
                let count = BLOCK.min(rows - row);
                for group in 0..input.groups {
                    let first = group * GROUP_STEPS;
                    let b = self.packed.as_ptr().add((panel * self.steps + first) * STEP_WORDS);
                    let at = input.place(row, group);
                    let a = input.words().add(at * GROUP_WORDS);
                    let steps = GROUP_STEPS.min(self.steps - first);
                    let place = (panel * input.groups + group) * PANEL;
                    let total = total.0.as_mut_ptr();
                    let of = Scales {
                        scale: self.scale.as_ptr().add(place),
                        weights: self.sums.as_ptr().add(place),
                        row_scale: input.scale.as_ptr().add(at),
                        zero: input.zero.as_ptr().add(at),
                        so_far: if group == 0 { self.bias.as_ptr().add(start) } else { total },
                        stride: if group == 0 { 0 } else { PANEL },
                    };
                    let sums = sums.0.as_mut_ptr();
                    D::group::<S>(count, steps, a, GROUP_WORDS, b.cast(), of, sums, total);
                }
                for column in (0..columns).step_by(16) {
                    for r in 0..count {
                        let to = out.as_mut_ptr().add((row + r) * stride + start + column);
                        let y = S::load(total.0.as_ptr().add(r * PANEL + column));
                        S::store(to, then.then::<S>(y, to));
                    }
                }
            }
        }
    }
}

/// Return the scale of a group's weights: the smallest one with which no four products added in 16 bits
/// overflow.
fn scale(group: &[f32]) -> f32 {
    let side = |four: [f32; 4], sign: f32| four.iter().map(|w| (sign * w).max(0.0)).sum::<f32>();
    let sum = group
        .chunks_exact(8)
        .flat_map(|w| [[w[0], w[1], w[4], w[5]], [w[2], w[3], w[6], w[7]]])
        .map(|four| side(four, 1.0).max(side(four, -1.0)))
        .fold(0.0, f32::max);
    let one = group.iter().fold(0.0, |most: f32, w| most.max(w.abs()));
    (sum / LARGEST_SUM).max(one / LARGEST)
}

/// The operation that follows on sixteen results.
trait Follow: Copy {
    /// Whether the results of all rows share one row.
    const ONE_ROW: bool = false;

    /// # Safety
    /// The instructions of `S`, sixteen values at `p`.
    unsafe fn then<S: Wide>(self, y: S::V, p: *const f32) -> S::V;
}

#[derive(Clone, Copy)]
struct Plain;

#[derive(Clone, Copy)]
struct Add;

#[derive(Clone, Copy)]
struct Highest;

impl Follow for Plain {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, _: *const f32) -> S::V {
        y
    }
}

impl Follow for Add {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, p: *const f32) -> S::V {
        S::add(y, S::load(p))
    }
}

impl Follow for Highest {
    const ONE_ROW: bool = true;

    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, p: *const f32) -> S::V {
        S::max(S::load(p), y)
    }
}

impl Follow for Activation {
    #[inline(always)]
    unsafe fn then<S: Wide>(self, y: S::V, _: *const f32) -> S::V {
        match self {
            Self::Gelu => gelu::<S>(y),
            kind => activate::<S, true>(kind, y),
        }
    }
}

#[repr(align(64))]
struct Sums([i32; BLOCK * PANEL]);

#[repr(align(64))]
struct Total([f32; BLOCK * PANEL]);
