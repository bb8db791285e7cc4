//! Layers of a graph transformer over a few texts (40-cgrag 4.4.2), and the network that weighs edges: what a
//! trained LeSeGR computes for a question. Sums run in one fixed order, on any machine and any number of threads.

use crate::error::{Error, Result};
use crate::memory::filled;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::sparse::CsrView;
use crate::wide::wide;

/// Rows that a thread takes at a time.
const GRAIN: usize = 32;
const WHAT: &str = "values of a graph layer";

/// A product with a matrix of `inputs` x `outputs`, laid out row by row, and a bias.
#[derive(Debug, Clone, Copy)]
pub struct Linear<'a> {
    weights: &'a [f32],
    bias: &'a [f32],
}

impl<'a> Linear<'a> {
    /// Checks the shape and that all values are finite.
    pub fn new(weights: &'a [f32], bias: &'a [f32], inputs: usize) -> Result<Self> {
        if bias.is_empty() || inputs == 0 || inputs.checked_mul(bias.len()) != Some(weights.len()) {
            return Err(Error::input(format!(
                "{} weights are no matrix of {inputs} x {}",
                weights.len(),
                bias.len()
            )));
        }
        if weights.iter().chain(bias).any(|x| !x.is_finite()) {
            return Err(Error::input("weights hold NaN or an infinity"));
        }
        Ok(Self { weights, bias })
    }

    fn outputs(&self) -> usize {
        self.bias.len()
    }

    fn inputs(&self) -> usize {
        self.weights.len() / self.bias.len()
    }

    /// Of whole rows, without the bias.
    fn product(&self, rows: &[f32], threads: usize, progress: &Progress) -> Result<Vec<f32>> {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let parts = map_ranges(rows.len() / inputs, GRAIN, threads, progress, |range| {
            let mut out = filled(0.0, range.len() * outputs, WHAT)?;
            multiply(
                &rows[range.start * inputs..range.end * inputs],
                inputs,
                self.weights,
                outputs,
                &mut out,
            );
            Ok(out)
        })?;
        Ok(parts.concat())
    }
}

/// Rows and outputs whose sums stay in registers.
const HIGH: usize = 4;
const WIDE: usize = 16;

/// Block by block of rows and outputs. Each sum runs over the inputs in their order.
#[inline(always)]
fn multiply_body(rows: &[f32], inputs: usize, weights: &[f32], outputs: usize, out: &mut [f32]) {
    for (rows, out) in rows.chunks(HIGH * inputs).zip(out.chunks_mut(HIGH * outputs)) {
        let high = rows.len() / inputs;
        for first in (0..outputs).step_by(WIDE) {
            let width = WIDE.min(outputs - first);
            let mut sums = [[0f32; WIDE]; HIGH];
            if high == HIGH && width == WIDE {
                let (x0, rest) = rows.split_at(inputs);
                let (x1, rest) = rest.split_at(inputs);
                let (x2, x3) = rest.split_at(inputs);
                let [mut a, mut b, mut c, mut d] = sums;
                let inputs = x0.iter().zip(x1).zip(x2.iter().zip(x3));
                for (((x0, x1), (x2, x3)), weights) in inputs.zip(weights.chunks_exact(outputs)) {
                    let weights = &weights[first..first + WIDE];
                    for k in 0..WIDE {
                        a[k] += x0 * weights[k];
                        b[k] += x1 * weights[k];
                        c[k] += x2 * weights[k];
                        d[k] += x3 * weights[k];
                    }
                }
                sums = [a, b, c, d];
            } else {
                for (k, weights) in weights.chunks_exact(outputs).enumerate() {
                    let weights = &weights[first..first + width];
                    for (row, sums) in sums.iter_mut().enumerate().take(high) {
                        let x = rows[row * inputs + k];
                        sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
                    }
                }
            }
            for (row, sums) in sums.iter().enumerate().take(high) {
                out[row * outputs + first..][..width].copy_from_slice(&sums[..width]);
            }
        }
    }
}
wide!(multiply, multiply_body, (rows: &[f32], inputs: usize, weights: &[f32], outputs: usize, out: &mut [f32]));

/// A layer: what a text makes of itself, of its neighbours (values), and how it attends to them.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    pub own: Linear<'a>,
    pub value: Linear<'a>,
    pub query: Linear<'a>,
    pub key: Linear<'a>,
    pub heads: usize,
}

/// `x'[i] = own(w_i h_i) + sum over j of softmax_j(query(h_i) . key(f_ij h_j) / sqrt(width)) value(f_ij h_j)`,
/// head by head, for rows `h`; `factors` lie beside the ids of `edges`, `weights` beside the rows.
pub fn layer(
    h: &[f32],
    edges: CsrView<'_>,
    (factors, weights): (&[f32], &[f32]),
    layer: &Layer<'_>,
    (relu, threads): (bool, usize),
    progress: &Progress,
) -> Result<Vec<f32>> {
    let (inputs, outputs) = (layer.own.inputs(), layer.own.outputs());
    let all = [layer.own, layer.value, layer.query, layer.key];
    let n = edges.rows();
    if all.iter().any(|one| one.inputs() != inputs || one.outputs() != outputs) {
        return Err(Error::input("the matrices of a layer differ in their shapes"));
    }
    if layer.heads == 0 || !outputs.is_multiple_of(layer.heads) {
        return Err(Error::input(format!("{outputs} outputs are not of {} heads", layer.heads)));
    }
    if n.checked_mul(inputs) != Some(h.len()) || edges.columns != n || weights.len() != n {
        return Err(Error::input(format!(
            "{} values and {} weights are not of {n} texts",
            h.len(),
            weights.len()
        )));
    }
    if factors.len() != edges.indices.len() {
        return Err(Error::input(format!("{} edges have {} factors", edges.indices.len(), factors.len())));
    }
    let [own, value, query, key] = all.map(|one| one.product(h, threads, progress));
    let (own, value, query, key) = (own?, value?, query?, key?);
    let width = outputs / layer.heads;
    let scale = 1.0 / (width as f64).sqrt();
    let parts = map_ranges(n, GRAIN, threads, progress, |range| {
        let mut out = filled(0.0, range.len() * outputs, WHAT)?;
        let mut scores: Vec<f64> = Vec::new();
        for (row, out) in range.zip(out.chunks_exact_mut(outputs)) {
            let at = row * outputs;
            for (k, out) in out.iter_mut().enumerate() {
                *out = weights[row] * own[at + k] + layer.own.bias[k];
            }
            let places = edges.range(row);
            for head in 0..layer.heads {
                let part = head * width..(head + 1) * width;
                scores.clear();
                for place in places.clone() {
                    let from = edges.indices[place] as usize * outputs;
                    let factor = factors[place];
                    let dot = part.clone().fold(0.0, |sum, k| {
                        let asked = query[at + k] + layer.query.bias[k];
                        sum + f64::from(asked) * f64::from(factor * key[from + k] + layer.key.bias[k])
                    });
                    scores.push(dot * scale);
                }
                let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                scores.iter_mut().for_each(|s| *s = (*s - most).exp());
                let sum: f64 = scores.iter().sum();
                for (place, score) in places.clone().zip(&scores) {
                    let from = edges.indices[place] as usize * outputs;
                    let (factor, share) = (factors[place], (score / sum) as f32);
                    for k in part.clone() {
                        out[k] += share * (factor * value[from + k] + layer.value.bias[k]);
                    }
                }
            }
            if relu {
                out.iter_mut().for_each(|x| *x = x.max(0.0));
            }
        }
        Ok(out)
    })?;
    Ok(parts.concat())
}

/// `sigmoid(third(relu(second(relu(first(c_i - c_j))))))` for each edge j to i; `third` has one output.
pub fn weigh(
    edges: CsrView<'_>,
    vectors: &[f32],
    [first, second, third]: [Linear<'_>; 3],
    threads: usize,
    progress: &Progress,
) -> Result<Vec<f32>> {
    let d = first.inputs();
    let n = edges.rows();
    let fits =
        second.inputs() == first.outputs() && third.inputs() == second.outputs() && third.outputs() == 1;
    if !fits || n.checked_mul(d) != Some(vectors.len()) || edges.columns != n {
        return Err(Error::input(format!(
            "the network of {d} inputs does not fit {n} texts with {} values",
            vectors.len()
        )));
    }
    progress.expect(n as u64);
    let parts = map_ranges(n, GRAIN, threads, progress, |range| {
        let mut rows: Vec<f32> = Vec::new();
        for text in range {
            let own = &vectors[text * d..(text + 1) * d];
            for &other in edges.row(text) {
                let other = &vectors[other as usize * d..][..d];
                rows.extend(own.iter().zip(other).map(|(a, b)| a - b));
            }
        }
        let none = Progress::none();
        for linear in [first, second] {
            rows = linear.product(&rows, 1, &none)?;
            for row in rows.chunks_exact_mut(linear.outputs()) {
                row.iter_mut().zip(linear.bias).for_each(|(x, b)| *x = (*x + b).max(0.0));
            }
        }
        let last = third.product(&rows, 1, &none)?;
        let sigmoid = |x: f32| (1.0 / (1.0 + (-f64::from(x + third.bias[0])).exp())) as f32;
        Ok(last.into_iter().map(sigmoid).collect::<Vec<f32>>())
    })?;
    Ok(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;

    #[test]
    fn a_text_without_neighbours_makes_of_itself_what_it_can() {
        let (w, b) = ([1.0f32, 0.0, 0.0, 1.0], [0.5f32, -3.0]);
        let linear = Linear::new(&w, &b, 2).unwrap();
        let one = Layer { own: linear, value: linear, query: linear, key: linear, heads: 1 };
        let edges = Csr::from_rows(&[vec![], vec![0u32]], 2).unwrap();
        let h = [1.0, 2.0, 4.0, 1.0];
        let run = |relu, threads| {
            layer(&h, edges.view(), (&[0.5], &[1.0, 0.5]), &one, (relu, threads), &Progress::none()).unwrap()
        };
        // The only neighbour has all of the attention: half of [1, 2], and the bias.
        assert_eq!(run(false, 1), [1.5, -1.0, 2.5 + 1.0, -2.5 - 2.0]);
        assert_eq!(run(true, 2), [1.5, 0.0, 3.5, 0.0]);
    }

    #[test]
    fn rows_by_four_and_one_by_one_are_the_same() {
        let weights: Vec<f32> = (0..6).map(|x| x as f32 - 2.5).collect();
        let linear = Linear::new(&weights, &[0.0; 3], 2).unwrap();
        let rows: Vec<f32> = (0..14).map(|x| (x * 7 % 5) as f32).collect();
        let all = linear.product(&rows, 1, &Progress::none()).unwrap();
        for (row, want) in rows.chunks(2).zip(all.chunks(3)) {
            assert_eq!(linear.product(row, 1, &Progress::none()).unwrap(), want);
        }
    }

    #[test]
    fn edges_are_weighed_from_0_to_1() {
        let (w, b, last) = ([1.0f32, -1.0], [0.0f32, 0.0], [1.0f32, 0.0]);
        let first = Linear::new(&w, &b, 1).unwrap();
        let second = Linear::new(&[1.0, 0.0, 0.0, 1.0], &b, 2).unwrap();
        let third = Linear::new(&last, &[0.0], 2).unwrap();
        let edges = Csr::from_rows(&[vec![1u32], vec![0]], 2).unwrap();
        let got = weigh(edges.view(), &[3.0, 1.0], [first, second, third], 2, &Progress::none()).unwrap();
        assert_eq!(got, [(1.0 / (1.0 + (-2.0f64).exp())) as f32, 0.5]);
        assert!(weigh(edges.view(), &[3.0], [first, second, third], 1, &Progress::none()).is_err());
        assert!(weigh(edges.view(), &[3.0, 1.0], [first, third, second], 1, &Progress::none()).is_err());
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(Linear::new(&[1.0; 3], &[0.0; 2], 2).is_err());
        assert!(Linear::new(&[f32::NAN, 1.0], &[0.0; 1], 2).is_err());
        assert!(Linear::new(&[], &[], 2).is_err());
        let linear = Linear::new(&[1.0; 4], &[0.0; 2], 2).unwrap();
        let edges = Csr::from_rows(&[vec![0u32]], 1).unwrap();
        let none = Progress::none();
        let with = |heads, h: &[f32], factors: &[f32]| {
            let one = Layer { own: linear, value: linear, query: linear, key: linear, heads };
            layer(h, edges.view(), (factors, &[1.0]), &one, (false, 1), &none).map(drop)
        };
        assert!(with(1, &[1.0, 2.0], &[1.0]).is_ok());
        assert!(with(3, &[1.0, 2.0], &[1.0]).is_err());
        assert!(with(0, &[1.0, 2.0], &[1.0]).is_err());
        assert!(with(1, &[1.0], &[1.0]).is_err());
        assert!(with(1, &[1.0, 2.0], &[]).is_err());
    }
}
