//! A matrix of a graph transformer, packed for the machine's widest f32 products. The sum of an element runs
//! over the inputs in order, whatever block it belongs to.

use super::buffer::Buffer;
use super::choice::exact_way;
use super::kernel::{on_rows, Form, Kernel};
use super::machine::Machine;
use super::product::{Linear, Then};
use crate::error::{Error, Result};
use crate::memory::room;
use crate::parallel::map_ranges_with;
use crate::progress::Progress;
use std::ops::Range;

/// Rows that are multiplied together: with the results they stay in the L2 cache.
const GRAIN: usize = 96;
const WHAT: &str = "values of a graph layer";

/// A product with a matrix of `inputs` x `outputs`, with a separate bias.
pub struct Matrix {
    packed: Linear,
    kernel: Kernel,
    weights: Vec<f32>,
    bias: Vec<f32>,
    inputs: usize,
    /// Inputs and outputs padded to whole vectors.
    padded: (usize, usize),
}

impl Matrix {
    /// Pack `weights`, stored input by input. Checks the shape and that all values are finite.
    pub fn new(weights: &[f32], bias: &[f32], inputs: usize) -> Result<Self> {
        let outputs = bias.len();
        if bias.is_empty() || inputs == 0 || inputs.checked_mul(outputs) != Some(weights.len()) {
            return Err(Error::input(format!(
                "{} weights are not a matrix of {inputs} x {outputs}",
                weights.len()
            )));
        }
        if weights.iter().chain(bias).any(|x| !x.is_finite()) {
            return Err(Error::input("weights hold NaN or an infinity"));
        }
        let kernel = exact_way().kernel;
        let layout = kernel.layout(Form::F32);
        let (wide, high) = (layout.pad(inputs), layout.pad(outputs));
        let mut turned = vec![0.0; wide * high];
        for (input, row) in weights.chunks_exact(outputs).enumerate() {
            for (output, &weight) in row.iter().enumerate() {
                turned[output * wide + input] = weight;
            }
        }
        // Later steps scale the product before the bias is added.
        let packed = Linear::new(layout, &turned, &vec![0.0; high], high, wide);
        let (weights, bias) = (weights.to_vec(), bias.to_vec());
        Ok(Self { packed, kernel, weights, bias, inputs, padded: (wide, high) })
    }

    pub fn inputs(&self) -> usize {
        self.inputs
    }

    pub fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Return the concatenated products of `count` rows, without the bias. `fill` writes the values of a row.
    pub fn product(
        &self,
        count: usize,
        threads: usize,
        progress: &Progress,
        fill: impl Fn(usize, &mut [f32]) + Sync,
    ) -> Result<Vec<f32>> {
        let (wide, high) = self.padded;
        let outputs = self.outputs();
        let buffers = || (Buffer::new(GRAIN * wide), Buffer::new(GRAIN * high));
        let parts = map_ranges_with(count, GRAIN, threads, progress, buffers, |(rows, made), range| {
            for (row, own) in range.clone().zip(rows.chunks_exact_mut(wide)) {
                fill(row, &mut own[..self.inputs]);
            }
            self.multiply(range.len(), rows, made);
            let mut out = room(range.len() * outputs, WHAT)?;
            made.chunks_exact(high).take(range.len()).for_each(|row| out.extend_from_slice(&row[..outputs]));
            Ok(out)
        })?;
        Ok(parts.concat())
    }

    fn multiply(&self, rows: usize, input: &[f32], out: &mut [f32]) {
        /// # Safety
        /// The instructions of `S`.
        unsafe fn run<S: Machine, const LOW: bool>(
            linear: &Linear,
            rows: usize,
            input: &[f32],
            out: &mut [f32],
        ) {
            // SAFETY: the caller's promise.
            unsafe { S::linear::<LOW>(linear, rows, input, Then::Operand(out)) }
        }
        // SAFETY: `kernel` is available on this machine, and the layout belongs to it.
        unsafe { on_rows!(self.kernel, false, run, &self.packed, rows, input, out) }
    }

    /// Return the product of the matrix with a vector over some outputs (`part`): a number per input, and the
    /// one of the bias.
    pub fn toward(&self, part: Range<usize>, vector: &[f32]) -> (Vec<f64>, f64) {
        let vector = &vector[part.clone()];
        let rows = self.weights.chunks_exact(self.outputs());
        (rows.map(|row| dot(&row[part.clone()], vector)).collect(), dot(&self.bias[part], vector))
    }
}

/// Lanes of [`dot`].
const LANES: usize = 8;

/// Return the sum of products in f64, in one order on every machine: eight sums side by side, then the rest.
pub fn dot<T: Copy + Into<f64>>(a: &[T], b: &[f32]) -> f64 {
    let mut sums = [0f64; LANES];
    let (x, y) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(&a, &b)| a.into() * f64::from(b)).sum();
    for (x, y) in x.zip(y) {
        for lane in 0..LANES {
            sums[lane] += x[lane].into() * f64::from(y[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition_whatever_the_block() {
        for (inputs, outputs) in [(1, 1), (3, 5), (17, 33), (64, 16)] {
            let weights: Vec<f32> = (0..inputs * outputs).map(|k| (k * 7 % 11) as f32 / 4.0 - 1.0).collect();
            let matrix = Matrix::new(&weights, &vec![0.5; outputs], inputs).unwrap();
            let rows: Vec<f32> = (0..200 * inputs).map(|k| (k * 5 % 13) as f32 / 8.0 - 0.7).collect();
            let fill = |row: usize, out: &mut [f32]| out.copy_from_slice(&rows[row * inputs..][..inputs]);
            let all = matrix.product(200, 2, &Progress::none(), fill).unwrap();
            for row in [0, 1, 95, 96, 199] {
                let alone = matrix.product(1, 1, &Progress::none(), |_, out| fill(row, out)).unwrap();
                assert_eq!(alone, all[row * outputs..(row + 1) * outputs]);
                for (output, got) in alone.iter().enumerate() {
                    let column: Vec<f32> = (0..inputs).map(|k| weights[k * outputs + output]).collect();
                    let want = dot(&rows[row * inputs..(row + 1) * inputs], &column);
                    assert!((f64::from(*got) - want).abs() < 1e-4);
                }
            }
            let vector: Vec<f32> = (0..outputs).map(|k| k as f32 - 2.0).collect();
            let (toward, bias) = matrix.toward(1..outputs, &vector);
            for (input, got) in toward.iter().enumerate() {
                let row = &weights[input * outputs..(input + 1) * outputs];
                assert_eq!(*got, dot(&row[1..], &vector[1..]));
            }
            assert_eq!(bias, vector[1..].iter().map(|x| f64::from(*x) / 2.0).sum::<f64>());
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(Matrix::new(&[1.0; 3], &[0.0; 2], 2).is_err());
        assert!(Matrix::new(&[f32::NAN, 1.0], &[0.0; 1], 2).is_err());
        assert!(Matrix::new(&[1.0; 2], &[f32::INFINITY], 2).is_err());
        assert!(Matrix::new(&[], &[], 2).is_err());
    }
}
