//! Matrix products: register blocks over packed columns, followed by the next step while the result is in the
//! cache.
//!
//! Operands are words ([`Lanes`]): f32, or pairs of bf16 with `LOW`. The sum of one element of the result
//! runs over the inner dimension in order, whatever block it belongs to, so a row's result does not depend on
//! neighbouring rows.

use super::block::{row_blocks, Blocks, Next, LINE, ROWS, WIDEST, WORDS};
use super::buffer::Buffer;
use super::buffer::Layout;
use super::simd;
use super::simd::math::{activate, Activation};

/// A linear layer `y = W x + b`, packed: panels of columns (outputs), in each panel all inner words in order,
/// for each inner word the panel's columns.
pub struct Linear {
    packed: Buffer,
    bias: Buffer,
    layout: Layout,
    /// Inner words.
    inner: usize,
    /// Padded outputs.
    outputs: usize,
}

/// What happens to a product.
pub enum Then<'a> {
    /// `y` as an operand (f32, or bf16 in a low layout).
    Operand(&'a mut [f32]),
    /// The activation of `y`, as an operand.
    Activated(Activation, &'a mut [f32]),
    /// `out += y` in f32.
    Added(&'a mut [f32]),
    /// `out` becomes the greatest `y` of all rows, in f32: one row for all of them. It keeps what is greater.
    Highest(&'a mut [f32]),
}

impl Linear {
    /// Pack `weights`, `outputs` rows of `inputs` values (both padded by the layout), and a bias for each
    /// output. All are finite.
    ///
    /// # Panics
    /// If the lengths do not match.
    pub fn new(layout: Layout, weights: &[f32], bias: &[f32], outputs: usize, inputs: usize) -> Self {
        assert!(inputs.is_multiple_of(layout.lanes) && outputs.is_multiple_of(layout.lanes));
        assert!(weights.len() == outputs * inputs && bias.len() == outputs);
        let inner = layout.words(inputs);
        let mut packed = Buffer::new(outputs * inner);
        let panel = layout.lanes * layout.vectors;
        for start in (0..outputs).step_by(panel) {
            let width = panel.min(outputs - start);
            let place = &mut packed[start * inner..(start + width) * inner];
            for j in 0..width {
                let row = &weights[(start + j) * inputs..(start + j + 1) * inputs];
                if layout.low {
                    for (k, pair) in row.chunks_exact(2).enumerate() {
                        place[k * width + j] = simd::word(pair[0], pair[1]);
                    }
                } else {
                    for (k, &x) in row.iter().enumerate() {
                        place[k * width + j] = x;
                    }
                }
            }
        }
        let mut own = Buffer::new(outputs);
        own.copy_from_slice(bias);
        Self { packed, bias: own, layout, inner, outputs }
    }

    /// Return the number of words in a row of the input.
    pub fn inputs(&self) -> usize {
        self.inner
    }

    /// Return the number of words in a row of the result as an operand.
    pub fn out_words(&self) -> usize {
        self.layout.words(self.outputs)
    }

    /// Multiply `rows` concatenated rows of `input`. Rows of the result are concatenated, too.
    ///
    /// # Safety
    /// The instructions of `S` must be available.
    ///
    /// # Panics
    /// If `S` and `LOW` are not the layout's, or a slice is too short.
    #[inline(always)]
    pub unsafe fn run<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], then: Then<'_>) {
        assert!(self.layout == Layout::of::<S>(LOW));
        assert!(input.len() >= rows * self.inner);
        let (kind, out) = match then {
            Then::Operand(out) => (None, out),
            Then::Activated(kind, out) => (Some(kind), out),
            Then::Added(out) => {
                self.added::<S, LOW>(rows, input, out);
                return;
            }
            Then::Highest(out) => {
                self.highest::<S, LOW>(rows, input, out);
                return;
            }
        };
        let stride = self.out_words();
        assert!(out.len() >= rows * stride);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: `count` whole rows of input from `row` on and `width` packed columns from
                // `start` on exist, by the asserts and by `new`; the tile holds the largest block;
                // `width` is whole vectors, `bias` has `outputs` values, and `out` a row of
                // `outputs` operands for each row, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for r in 0..count {
                        let line = out.as_mut_ptr().add((row + r) * stride);
                        for v in (0..width).step_by(S::N) {
                            let mut y = S::load(sums.0.as_ptr().add(r * WIDEST + v));
                            y = S::add(y, S::load(self.bias.as_ptr().add(start + v)));
                            if let Some(kind) = kind {
                                y = activate::<S, LOW>(kind, y);
                            }
                            if LOW {
                                S::store_low(line.cast::<u16>().add(start + v), y);
                            } else {
                                S::store(line.add(start + v), y);
                            }
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// The instructions of `S`.
    #[inline(always)]
    unsafe fn added<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], out: &mut [f32]) {
        assert!(out.len() >= rows * self.outputs);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: as in `run`; `out` has a row of `outputs` f32 for each row, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for r in 0..count {
                        let line = out.as_mut_ptr().add((row + r) * self.outputs + start);
                        for v in (0..width).step_by(S::N) {
                            let y = S::load(sums.0.as_ptr().add(r * WIDEST + v));
                            let y = S::add(y, S::load(self.bias.as_ptr().add(start + v)));
                            S::store(line.add(v), S::add(y, S::load(line.add(v))));
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// The instructions of `S`.
    #[inline(always)]
    unsafe fn highest<S: Blocks, const LOW: bool>(&self, rows: usize, input: &[f32], out: &mut [f32]) {
        assert!(out.len() >= self.outputs);
        let mut sums = Tile([0.0; ROWS * WIDEST]);
        let panel = S::N * S::NV;
        for start in (0..self.outputs).step_by(panel) {
            let width = panel.min(self.outputs - start);
            for (row, count) in row_blocks::<S>(rows) {
                // SAFETY: as in `run`; `out` has `outputs` f32, by the assert.
                unsafe {
                    self.sums::<S, LOW>(rows, row, count, start, width, input, &mut sums.0);
                    for v in (0..width).step_by(S::N) {
                        let place = out.as_mut_ptr().add(start + v);
                        let bias = S::load(self.bias.as_ptr().add(start + v));
                        let mut most = S::load(place);
                        for r in 0..count {
                            most = S::max(most, S::add(S::load(sums.0.as_ptr().add(r * WIDEST + v)), bias));
                        }
                        S::store(place, most);
                    }
                }
            }
        }
    }

    /// The products of `count` rows with the columns of one panel, into a tile of stride [`WIDEST`].
    ///
    /// # Safety
    /// The instructions of `S`; the rows and the panel exist.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn sums<S: Blocks, const LOW: bool>(
        &self,
        rows: usize,
        row: usize,
        count: usize,
        start: usize,
        width: usize,
        input: &[f32],
        sums: &mut [f32; ROWS * WIDEST],
    ) {
        // A tile has room for every block.
        let a = input.as_ptr().add(row * self.inner);
        let b = self.packed.as_ptr().add(start * self.inner);
        let c = sums.as_mut_ptr();
        // The next panel's lines, spread over the blocks of this one: the share of this block.
        let (panel, looks) = (width * self.inner, (self.inner / WORDS).max(1));
        let lines = (panel / LINE).div_ceil(rows.div_ceil(S::ROWS) * looks).min(16);
        let done = row.div_ceil(S::ROWS) * looks * lines * LINE;
        let next = Next { at: b.wrapping_add(panel + done), lines: if done < panel { lines } else { 0 } };
        S::block::<LOW>(count, width / S::N, self.inner, a, self.inner, b, S::N, width, c, WIDEST, next);
    }
}

/// A block's sums, aligned to a cache line.
#[repr(align(64))]
struct Tile([f32; ROWS * WIDEST]);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::testing::{numbers, on_each_machine, operand, operands, values, Walled};
    use proptest::prelude::*;

    fn check<M: Machine, const LOW: bool>(rows: usize, outputs: usize, inputs: usize, seed: u64) {
        let layout = Layout::of::<M>(LOW);
        let (n, k) = (layout.pad(outputs), layout.pad(inputs));
        let weights = numbers(seed, outputs * inputs);
        let bias = numbers(seed + 1, outputs);
        let x = numbers(seed + 2, rows * inputs);
        let start = numbers(seed + 3, rows * n);
        let mut padded_weights = vec![0.0; n * k];
        for (i, row) in weights.chunks_exact(inputs).enumerate() {
            padded_weights[i * k..i * k + inputs].copy_from_slice(row);
        }
        let mut padded_bias = bias.clone();
        padded_bias.resize(n, 0.0);
        let layer = Linear::new(layout, &padded_weights, &padded_bias, n, k);
        let mut input = Walled::new(&operands(&x, inputs, k, LOW));
        let mut out = Walled::new(&vec![f32::NAN; rows * layer.out_words()]);
        let mut added = Walled::new(&start);
        // SAFETY: the machine has the instructions.
        unsafe {
            M::linear::<LOW>(&layer, rows, input.get(), Then::Operand(out.get()));
            M::linear::<LOW>(&layer, rows, input.get(), Then::Added(added.get()));
        }
        let got = values(out.get(), LOW);
        let added = added.get();
        for r in 0..rows {
            for j in 0..n {
                let mut want = 0.0f64;
                if j < outputs {
                    want = f64::from(bias[j]);
                    for t in 0..inputs {
                        let (w, x) = (weights[j * inputs + t], x[r * inputs + t]);
                        want += f64::from(operand(w, LOW)) * f64::from(operand(x, LOW));
                    }
                }
                let close = 1e-6 * (inputs as f64 + 4.0);
                let rounding = if LOW { want.abs() / 256.0 } else { 0.0 };
                assert!(
                    (f64::from(got[r * n + j]) - want).abs() <= close + rounding,
                    "{rows} {outputs} {inputs}"
                );
                let sum = want + f64::from(start[r * n + j]);
                assert!((f64::from(added[r * n + j]) - sum).abs() <= close, "{rows} {outputs} {inputs}");
            }
        }
        // The activation uses the same sums, and a single row has the same bits.
        let mut active = Walled::new(&vec![f32::NAN; rows * layer.out_words()]);
        let words = layout.words(k);
        // SAFETY: the machine has the instructions.
        unsafe {
            M::linear::<LOW>(&layer, rows, input.get(), Then::Activated(Activation::Relu, active.get()));
            for r in 0..rows {
                let mut alone = Walled::new(&vec![f32::NAN; layer.out_words()]);
                M::linear::<LOW>(
                    &layer,
                    1,
                    &input.get()[r * words..(r + 1) * words],
                    Then::Operand(alone.get()),
                );
                assert!(
                    values(alone.get(), LOW) == got[r * n..(r + 1) * n],
                    "a row depends on its neighbours"
                );
            }
        }
        if !LOW {
            let mut highest = Walled::new(&vec![0.25; n]);
            // SAFETY: the machine has the instructions.
            unsafe { M::linear::<LOW>(&layer, rows, input.get(), Then::Highest(highest.get())) };
            for (j, most) in highest.get().iter().enumerate() {
                assert_eq!(*most, (0..rows).fold(0.25, |most, r| got[r * n + j].max(most)));
            }
        }
        let positive: Vec<f32> = got.iter().map(|x| x.max(0.0)).collect();
        assert_eq!(values(active.get(), LOW), positive);
    }

    #[test]
    fn every_remainder_of_the_blocks() {
        for rows in 1..=2 * ROWS {
            on_each_machine!(check, rows, 33, 7, 1);
        }
        for outputs in (1..=2 * WIDEST + 1).step_by(3) {
            on_each_machine!(check, 7, outputs, 9, 2);
        }
        for inputs in 1..=35 {
            on_each_machine!(check, 7, 20, inputs, 3);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn products_are_those_of_the_definition(rows in 1usize..20, outputs in 1usize..150, inputs in 1usize..90, seed: u32) {
            on_each_machine!(check, rows, outputs, inputs, u64::from(seed));
        }
    }

    #[test]
    #[should_panic]
    fn a_short_input_is_refused() {
        let layer = Linear::new(
            Layout { lanes: 4, vectors: 2, low: false, tiles: false },
            &[0.0; 16],
            &[0.0; 4],
            4,
            4,
        );
        // SAFETY: plain lanes need nothing.
        unsafe { layer.run::<crate::simd::plain::Portable, false>(2, &[0.0; 7], Then::Added(&mut [0.0; 8])) }
    }

    /// Appends the bits of a layer's sums on one machine to `all`.
    fn bits<M: Machine, const LOW: bool>(rows: usize, outputs: usize, inputs: usize, all: &Results) {
        let layout = Layout::of::<M>(LOW);
        // Padded to 16 on every machine.
        let (n, k) = (outputs.next_multiple_of(16), inputs.next_multiple_of(16));
        let mut weights = numbers(8, n * k);
        weights.iter_mut().skip(outputs * k).for_each(|x| *x = 0.0);
        let layer = Linear::new(layout, &weights, &numbers(9, n), n, k);
        let input = operands(&numbers(10, rows * k), k, k, LOW);
        let mut out = vec![0.0; rows * n];
        // SAFETY: the machine has the instructions.
        unsafe { M::linear::<LOW>(&layer, rows, &input, Then::Added(&mut out)) };
        let out = out.iter().map(|x| x.to_bits()).collect();
        all.borrow_mut().push((std::any::type_name::<M>(), LOW, out));
    }

    type Results = std::cell::RefCell<Vec<(&'static str, bool, Vec<u32>)>>;

    #[test]
    fn sums_have_the_same_bits_on_every_machine() {
        for (rows, outputs, inputs) in [(1, 16, 16), (7, 130, 65), (13, 200, 384)] {
            let all = Results::default();
            on_each_machine!(bits, rows, outputs, inputs, &all);
            let all = all.into_inner();
            for low in [false, true] {
                // Plain lanes round each product of two f32, the others do not.
                let mut same = all.iter().filter(|a| a.1 == low && (low || !a.0.contains("Plain")));
                let Some(first) = same.next() else { continue };
                for other in same {
                    assert!(other.2 == first.2, "{} and {} differ", other.0, first.0);
                }
            }
        }
    }
}
