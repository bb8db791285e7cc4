//! Matrix products by tiles, and the steps that follow them.
//!
//! The sums of a block of 32 x 32 are stored, and converted to output row by row *between the products of the
//! next block*: tiles are busy, the vector units are not, and the processor's out-of-order window is too
//! short to overlap them (with the activation: 842 to 1,326 GFLOP/s with 512 rows).

use super::block::{Between, Tiles, STEP_WORDS, TILE_WORDS};
use super::{Panels, PanelsMut, PANEL, ROW, TILE};
use crate::buffer::Buffer;
use crate::simd::math::{activate, Activation};
use crate::simd::wide::{gelu, operand, Wide};
use std::ops::Range;

/// A linear layer `y = W x + b`, packed: for each 32 outputs, for each 32 inputs, two tiles of 16 outputs, in
/// which row `p` holds for each output the pair of inputs `2 p` and `2 p + 1`.
pub struct Linear {
    packed: Buffer,
    bias: Buffer,
    /// Inputs and outputs by 32.
    steps: usize,
    panels: usize,
}

/// The part of a layer's outputs and inputs, in panels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub outputs: Range<usize>,
    pub inputs: Range<usize>,
    /// Whether the bias is added.
    pub bias: bool,
}

/// What happens to a product.
pub enum Then<'a> {
    /// `y` as operands; panel 0 is the part's first.
    Operand(PanelsMut<'a>),
    /// The activation of `y`, as operands.
    Activated(Activation, PanelsMut<'a>),
    /// `out += y` in f32, rows of all outputs.
    Added(&'a mut [f32]),
}

impl Linear {
    /// From `weights`, `outputs` rows of `inputs` values (whole panels), and a bias for each output. All are
    /// finite.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn new(weights: &[f32], bias: &[f32], outputs: usize, inputs: usize) -> Self {
        assert!(outputs.is_multiple_of(PANEL) && inputs.is_multiple_of(PANEL));
        assert!(weights.len() == outputs * inputs && bias.len() == outputs);
        let (steps, panels) = (inputs / PANEL, outputs / PANEL);
        let mut packed = Buffer::new(outputs * inputs / 2);
        for (at, word) in packed.iter_mut().enumerate() {
            let (j, p, half) = (at % 16, at / 16 % ROW, at / TILE_WORDS % 2);
            let (step, panel) = (at / STEP_WORDS % steps, at / STEP_WORDS / steps);
            let from = (panel * PANEL + half * 16 + j) * inputs + step * PANEL + 2 * p;
            let (first, second) = (operand(weights[from]), operand(weights[from + 1]));
            *word = f32::from_bits(u32::from(first) | u32::from(second) << 16);
        }
        let mut own = Buffer::new(outputs);
        own.copy_from_slice(bias);
        Self { packed, bias: own, steps, panels }
    }

    pub fn whole(&self) -> Part {
        Part { outputs: 0..self.panels, inputs: 0..self.steps, bias: true }
    }

    /// Panels of outputs.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// `rows` rows of `input`, whose panels are those of the part's inputs.
    ///
    /// # Safety
    /// The instructions of `M`.
    ///
    /// # Panics
    /// Where a slice is too short or the layer has no such part.
    #[inline(always)]
    pub unsafe fn run<M: Tiles>(&self, part: &Part, rows: usize, input: Panels<'_>, then: Then<'_>) {
        assert!(part.outputs.end <= self.panels && part.inputs.end <= self.steps);
        if rows == 0 || part.outputs.is_empty() || part.inputs.is_empty() {
            return;
        }
        assert!(input.readable(part.inputs.len(), rows));
        let count = part.outputs.len();
        // Each `then` has room for `rows` rows of the part's outputs.
        match then {
            Then::Operand(out) => {
                assert!(out.writable(count, rows));
                let then = Operand { out: out.words.as_mut_ptr(), stride: out.stride };
                self.blocks::<M, _>(part, rows, input, then);
            }
            Then::Activated(Activation::Gelu, out) => {
                assert!(out.writable(count, rows));
                let then = Gelu { out: out.words.as_mut_ptr(), stride: out.stride };
                self.blocks::<M, _>(part, rows, input, then);
            }
            Then::Activated(kind, out) => {
                assert!(out.writable(count, rows));
                let then = Other { kind, out: out.words.as_mut_ptr(), stride: out.stride };
                self.blocks::<M, _>(part, rows, input, then);
            }
            Then::Added(out) => {
                let stride = self.panels * PANEL;
                assert!(out.len() >= rows * stride);
                let first = part.outputs.start * PANEL;
                self.blocks::<M, _>(part, rows, input, Add { x: out.as_mut_ptr().add(first), stride });
            }
        }
    }

    /// # Safety
    /// The instructions of `M`; whole tiles of `rows` rows to read, and room for what `then` writes.
    #[inline(always)]
    unsafe fn blocks<M: Tiles, T: Follow>(&self, part: &Part, rows: usize, input: Panels<'_>, then: T) {
        let mut sums = [Sums([0.0; 2 * TILE * PANEL]), Sums([0.0; 2 * TILE * PANEL])];
        let places = sums.each_mut().map(|s| s.0.as_mut_ptr());
        let steps = part.inputs.len();
        let zeros = [0.0f32; PANEL];
        let mut wait = Waiting::<M, T> {
            then,
            row: 0,
            panel: 0,
            rows: 0,
            sums: places[0],
            bias: zeros.as_ptr(),
            each: (2 * TILE).div_ceil(steps),
            next: self.packed.as_ptr(),
            // Lines of the next panel's weights to prefetch at each step.
            lines: (STEP_WORDS / 16).div_ceil(rows.div_ceil(2 * TILE)).min(8),
            lanes: std::marker::PhantomData,
        };
        let mut side = 0;
        // The part's weights exist, by the assert in `run`.
        let _on = M::on();
        for panel in part.outputs.clone() {
            let b = self.packed.as_ptr().add((panel * self.steps + part.inputs.start) * STEP_WORDS);
            wait.next = b.wrapping_add(self.steps * STEP_WORDS);
            let mut row = 0;
            while row < rows {
                let (count, a) = ((rows - row).min(2 * TILE), input.words.as_ptr().add(row * ROW));
                M::block(count, steps, a, input.stride, b, places[side], PANEL, &mut wait);
                wait.row = row;
                wait.panel = panel - part.outputs.start;
                wait.rows = count;
                wait.sums = places[side];
                wait.bias = if part.bias { self.bias.as_ptr().add(panel * PANEL) } else { zeros.as_ptr() };
                side ^= 1;
                row += count;
            }
        }
        wait.follow(0, 2 * TILE);
    }
}

/// A block's sums, aligned to a cache line.
#[repr(align(64))]
struct Sums([f32; 2 * TILE * PANEL]);

/// A finished block whose next step is pending.
struct Waiting<S, T> {
    then: T,
    row: usize,
    panel: usize,
    rows: usize,
    sums: *const f32,
    bias: *const f32,
    /// Rows to turn into output at each step.
    each: usize,
    next: *const f32,
    lines: usize,
    lanes: std::marker::PhantomData<S>,
}

impl<S: Wide, T: Follow> Waiting<S, T> {
    /// # Safety
    /// The instructions of `S`, and what `T` needs.
    #[inline(always)]
    unsafe fn follow(&self, from: usize, many: usize) {
        for r in from..(from + many).min(self.rows) {
            // SAFETY: the sums have 32 rows of 32, the bias has 32 values.
            unsafe {
                let at = self.sums.add(r * PANEL);
                let a = S::add(S::load(at), S::load(self.bias));
                let b = S::add(S::load(at.add(16)), S::load(self.bias.add(16)));
                self.then.row::<S>(self.row + r, self.panel, a, b);
            }
        }
    }
}

impl<S: Wide, T: Follow> Between for Waiting<S, T> {
    #[inline(always)]
    unsafe fn step(&mut self, step: usize) {
        // Asking for a line needs nothing to be there.
        for _ in 0..self.lines {
            S::ask(self.next);
            self.next = self.next.wrapping_add(16);
        }
        if self.rows > step * self.each {
            self.follow(step * self.each, self.each);
        }
    }
}

/// What becomes of a row of 32 sums.
trait Follow: Copy {
    /// # Safety
    /// The instructions of `S`, and room for this row of this panel.
    unsafe fn row<S: Wide>(&self, row: usize, panel: usize, a: S::V, b: S::V);
}

#[derive(Clone, Copy)]
struct Operand {
    out: *mut f32,
    stride: usize,
}

#[derive(Clone, Copy)]
struct Gelu {
    out: *mut f32,
    stride: usize,
}

#[derive(Clone, Copy)]
struct Other {
    kind: Activation,
    out: *mut f32,
    stride: usize,
}

#[derive(Clone, Copy)]
struct Add {
    x: *mut f32,
    stride: usize,
}

impl Follow for Operand {
    #[inline(always)]
    unsafe fn row<S: Wide>(&self, row: usize, panel: usize, a: S::V, b: S::V) {
        S::store_operands(self.out.add(panel * self.stride + row * ROW).cast(), a, b)
    }
}

impl Follow for Gelu {
    #[inline(always)]
    unsafe fn row<S: Wide>(&self, row: usize, panel: usize, a: S::V, b: S::V) {
        let to = self.out.add(panel * self.stride + row * ROW);
        S::store_operands(to.cast(), gelu::<S>(a), gelu::<S>(b));
    }
}

impl Follow for Other {
    #[inline(always)]
    unsafe fn row<S: Wide>(&self, row: usize, panel: usize, a: S::V, b: S::V) {
        let to = self.out.add(panel * self.stride + row * ROW);
        let (a, b) = (activate::<S, true>(self.kind, a), activate::<S, true>(self.kind, b));
        S::store_operands(to.cast(), a, b);
    }
}

impl Follow for Add {
    #[inline(always)]
    unsafe fn row<S: Wide>(&self, row: usize, panel: usize, a: S::V, b: S::V) {
        let x = self.x.add(row * self.stride + panel * PANEL);
        S::store(x, S::add(a, S::load(x)));
        S::store(x.add(16), S::add(b, S::load(x.add(16))));
    }
}
