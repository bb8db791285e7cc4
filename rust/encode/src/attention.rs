//! Attention of one sequence: per head, the scores of a block of queries against all keys, softmax, and the
//! weighted sum of the values.

use super::block::{row_blocks, Blocks, Next, ROWS, WIDEST};
use super::buffer::Buffer;
use super::buffer::Layout;
use super::simd::math::exp2;

/// Number of queries per block. Their scores stay in the L2 cache for any sequence length.
const QUERIES: usize = 48;

/// The attention heads of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    pub count: usize,
    /// Elements of a head, padded to whole vectors.
    pub width: usize,
}

/// Scratch buffers of one thread.
#[derive(Default)]
pub struct Scratch {
    keys: Buffer,
    values: Buffer,
    scores: Buffer,
    shares: Buffer,
}

impl Scratch {
    /// Return the number of words it holds.
    pub fn len(&self) -> usize {
        [&self.keys, &self.values, &self.scores, &self.shares].iter().map(|b| b.len()).sum()
    }
}

/// A bias for each head and distance `key - query`, for the longest sequence: `table[h]` has `2 * reach - 1`
/// values, with distance 0 at `reach - 1`, in units of log2.
pub struct Distances {
    values: Buffer,
    stride: usize,
    reach: usize,
}

impl Distances {
    /// Compute the table from `value(head, distance)`.
    pub fn new(heads: usize, reach: usize, value: impl Fn(usize, isize) -> f32) -> Self {
        // The last vector may extend beyond the longest sequence.
        let stride = 2 * reach + WIDEST;
        let mut values = Buffer::new(heads * stride);
        for head in 0..heads {
            for place in 0..2 * reach - 1 {
                values[head * stride + place] = value(head, place as isize - (reach as isize - 1));
            }
        }
        Self { values, stride, reach }
    }

    /// Return the biases of one query: key `j` is at `j`, for all keys and one more vector.
    pub(super) fn of(&self, head: usize, query: usize, length: usize) -> &[f32] {
        assert!(query < length && length <= self.reach);
        let start = head * self.stride + self.reach - 1 - query;
        &self.values[start..start + length + WIDEST]
    }
}

/// Attend within one sequence of `length` tokens. A row of `projected` holds the heads' queries, then the
/// keys, then the values (`3 * count * width` operands); queries are already scaled, so that a score is an
/// exponent of 2. A row of `out` takes `count * width` operands.
///
/// # Safety
/// The instructions of `S` must be available.
///
/// # Panics
/// If a slice is too short or a head is not a whole number of vectors.
#[inline(always)]
pub unsafe fn attend<S: Blocks, const LOW: bool>(
    heads: Heads,
    length: usize,
    projected: &[f32],
    distances: Option<&Distances>,
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    let layout = Layout::of::<S>(LOW);
    let width = layout.words(heads.width);
    let (stride, out_stride) = (3 * heads.count * width, heads.count * width);
    let padded = layout.pad(length);
    assert!(heads.width.is_multiple_of(S::N) && length > 0);
    assert!(projected.len() >= length * stride && out.len() >= length * out_stride);
    scratch.keys.reserve(padded * width);
    scratch.values.reserve(if LOW { length.div_ceil(2) } else { length } * heads.width);
    scratch.scores.reserve(QUERIES * padded);
    scratch.shares.reserve(QUERIES * padded / 2);
    for head in 0..heads.count {
        let keys = &projected[(heads.count + head) * width..];
        for first in (0..padded).step_by(S::N) {
            let group = &mut scratch.keys[first * width..(first + S::N) * width];
            let whole = if first + S::N <= length { width / S::N * S::N } else { 0 };
            for t in (0..whole).step_by(S::N) {
                // SAFETY: the caller has the instructions; `N` keys from `first` on have `N` words from `t` on, by
                // the assert, and the group has room for them.
                unsafe {
                    let from = keys.as_ptr().add(first * stride + t);
                    S::turn(from, stride, group.as_mut_ptr().add(t * S::N));
                }
            }
            for lane in 0..S::N {
                for t in whole..width {
                    let exists = first + lane < length;
                    group[t * S::N + lane] = if exists { keys[(first + lane) * stride + t] } else { 0.0 };
                }
            }
        }
        // SAFETY: the scratch has the room reserved above; each head is within its row, and the rows are
        // within the slices, by the asserts. `padded` and the head's width are whole vectors.
        unsafe {
            let values = projected.as_ptr().add((2 * heads.count + head) * width);
            if LOW {
                pairs::<S>(heads.width, length, values, stride, &mut scratch.values);
            } else {
                together::<S>(heads.width, length, values, stride, &mut scratch.values);
            }
            for query in (0..length).step_by(QUERIES) {
                let count = QUERIES.min(length - query);
                let mut inverse = [0.0f32; QUERIES];
                scores::<S, LOW>(
                    count,
                    width,
                    padded,
                    projected.as_ptr().add(query * stride + head * width),
                    stride,
                    &scratch.keys,
                    &mut scratch.scores,
                );
                for r in 0..count {
                    let row = scratch.scores.as_mut_ptr().add(r * padded);
                    let shares = scratch.shares.as_mut_ptr().add(r * padded / 2).cast::<u16>();
                    let bias = distances.map(|d| d.of(head, query + r, length));
                    inverse[r] = 1.0 / softmax::<S, LOW>(row, length, bias, shares);
                }
                let (a, lda, inner) = if LOW {
                    (scratch.shares.as_ptr(), padded / 2, length.div_ceil(2))
                } else {
                    (scratch.scores.as_ptr(), padded, length)
                };
                let (b, ks) = (scratch.values.as_ptr(), heads.width);
                let c = out.as_mut_ptr().add(query * out_stride + head * width);
                mix::<S, LOW>(heads.width, count, inner, a, lda, b, ks, &inverse, c, out_stride);
            }
        }
    }
}

/// Copy the rows of values without gaps. At their original stride, most rows would share a few sets of the L1
/// cache.
#[inline(always)]
unsafe fn together<S: Blocks>(
    width: usize,
    length: usize,
    values: *const f32,
    stride: usize,
    out: &mut [f32],
) {
    for row in 0..length {
        for c in (0..width).step_by(S::N) {
            // SAFETY: `width` values in each of `length` rows, whole vectors, here and in `out`.
            unsafe { S::store(out.as_mut_ptr().add(row * width + c), S::load(values.add(row * stride + c))) };
        }
    }
}

/// Rows of values as pairs: word `c` of pair `j` is value `c` of rows `2 j` and `2 j + 1` (zero
/// beyond the last).
#[inline(always)]
unsafe fn pairs<S: Blocks>(width: usize, length: usize, values: *const f32, stride: usize, out: &mut [f32]) {
    let zeros = [0u16; WIDEST];
    for pair in 0..length.div_ceil(2) {
        for c in (0..width).step_by(S::N) {
            // SAFETY: `width` bf16 in each of `length` rows and `width` words for each pair.
            unsafe {
                let first = values.add(2 * pair * stride).cast::<u16>().add(c);
                let second = if 2 * pair + 1 < length {
                    values.add((2 * pair + 1) * stride).cast::<u16>().add(c)
                } else {
                    zeros.as_ptr()
                };
                S::pair(first, second, out.as_mut_ptr().add(pair * width + c));
            }
        }
    }
}

/// `out[r][j] = query r . key j` for all (padded) keys.
#[inline(always)]
unsafe fn scores<S: Blocks, const LOW: bool>(
    count: usize,
    width: usize,
    padded: usize,
    queries: *const f32,
    stride: usize,
    keys: &[f32],
    out: &mut [f32],
) {
    let panel = S::N * S::NV;
    for first in (0..padded).step_by(panel) {
        let vectors = panel.min(padded - first) / S::N;
        for (r, rows) in row_blocks::<S>(count) {
            // SAFETY: `count` queries at `stride`; keys are packed in groups of `N` by `width`
            // words; `out` has `count` rows of `padded`.
            unsafe {
                let a = queries.add(r * stride);
                let b = keys.as_ptr().add(first * width);
                let c = out.as_mut_ptr().add(r * padded + first);
                S::block::<LOW>(
                    rows,
                    vectors,
                    width,
                    a,
                    stride,
                    b,
                    S::N * width,
                    S::N,
                    c,
                    padded,
                    Next::NONE,
                );
            }
        }
    }
}

/// `2^(score - highest)` in place of the scores (as bf16 in `shares` with `LOW`), zero beyond
/// `length`; returns their sum.
#[inline(always)]
unsafe fn softmax<S: Blocks, const LOW: bool>(
    row: *mut f32,
    length: usize,
    bias: Option<&[f32]>,
    shares: *mut u16,
) -> f32 {
    // SAFETY: the row has `length` values padded to whole vectors, `shares` as many bf16, and a
    // bias reaches a vector beyond `length`.
    unsafe {
        let mut highest = S::splat(-3e38);
        for j in (0..length).step_by(S::N) {
            let mut s = S::load(row.add(j));
            if let Some(bias) = bias {
                s = S::add(s, S::load(bias.as_ptr().add(j)));
                S::store(row.add(j), s);
            }
            if j + S::N > length {
                s = S::first(s, length - j, S::splat(-3e38));
            }
            highest = S::max(highest, s);
        }
        let highest = S::splat(S::largest(highest));
        let mut sum = S::splat(0.0);
        for j in (0..length).step_by(S::N) {
            let mut e = exp2::<S>(S::sub(S::load(row.add(j)), highest));
            if j + S::N > length {
                e = S::first(e, length - j, S::splat(0.0));
            }
            sum = S::add(sum, e);
            if LOW {
                S::store_low(shares.add(j), e);
            } else {
                S::store(row.add(j), e);
            }
        }
        S::total(sum)
    }
}

/// `c[r] = inverse[r] * sum over j of a[r][j] * b[j]`, as operands.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn mix<S: Blocks, const LOW: bool>(
    width: usize,
    count: usize,
    inner: usize,
    a: *const f32,
    lda: usize,
    b: *const f32,
    ks: usize,
    inverse: &[f32; QUERIES],
    c: *mut f32,
    stride: usize,
) {
    let mut sums = [0.0f32; ROWS * WIDEST];
    let panel = S::N * S::NV;
    for first in (0..width).step_by(panel) {
        let vectors = panel.min(width - first) / S::N;
        for (r, rows) in row_blocks::<S>(count) {
            // SAFETY: `count` rows of `inner` words at `a`, `inner` rows of `width` words at `b`,
            // and `count` rows of `width` operands at `c`.
            unsafe {
                let (a, b) = (a.add(r * lda), b.add(first));
                let to = sums.as_mut_ptr();
                S::block::<LOW>(rows, vectors, inner, a, lda, b, S::N, ks, to, WIDEST, Next::NONE);
                for i in 0..rows {
                    let line = c.add((r + i) * stride);
                    let scale = S::splat(inverse[r + i]);
                    for v in 0..vectors {
                        let y = S::mul(S::load(sums.as_ptr().add(i * WIDEST + v * S::N)), scale);
                        if LOW {
                            S::store_low(line.cast::<u16>().add(first + v * S::N), y);
                        } else {
                            S::store(line.add(first + v * S::N), y);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::testing::{numbers, on_each_machine, operand, operands, values, Walled};
    use proptest::prelude::*;

    /// Softmax attention by definition, in f64: rows of (queries, keys, values) by head.
    fn plain(
        length: usize,
        count: usize,
        width: usize,
        x: &[f32],
        bias: impl Fn(usize, isize) -> f64,
    ) -> Vec<f64> {
        let at = |row: usize, part: usize, head: usize, c: usize| {
            f64::from(x[row * 3 * count * width + (part * count + head) * width + c])
        };
        let mut out = vec![0.0; length * count * width];
        for head in 0..count {
            for i in 0..length {
                let score = |j: usize| {
                    (0..width).map(|c| at(i, 0, head, c) * at(j, 1, head, c)).sum::<f64>()
                        + bias(head, j as isize - i as isize)
                };
                let scores: Vec<f64> = (0..length).map(score).collect();
                let most = scores.iter().copied().fold(f64::MIN, f64::max);
                let shares: Vec<f64> = scores.iter().map(|s| (s - most).exp2()).collect();
                let total: f64 = shares.iter().sum();
                for c in 0..width {
                    let sum: f64 = (0..length).map(|j| shares[j] * at(j, 2, head, c)).sum();
                    out[i * count * width + head * width + c] = sum / total;
                }
            }
        }
        out
    }

    fn check<M: Machine, const LOW: bool>(
        length: usize,
        count: usize,
        width: usize,
        biased: bool,
        seed: u64,
    ) {
        let layout = Layout::of::<M>(LOW);
        let padded = layout.pad(width);
        let x: Vec<f32> =
            numbers(seed, length * 3 * count * width).iter().map(|x| operand(2.0 * x, LOW)).collect();
        // Each head is a row to `operands`, which pads it.
        let mut projected = Walled::new(&operands(&x, width, padded, LOW));
        let mut out = Walled::new(&vec![f32::NAN; length * count * layout.words(padded)]);
        let bias =
            |head: usize, distance: isize| (head as f32 + 1.0) / (1.0 + distance.unsigned_abs() as f32);
        let distances = biased.then(|| Distances::new(count, length + 3, bias));
        let mut scratch = Scratch::default();
        let heads = Heads { count, width: padded };
        // SAFETY: the machine has the instructions.
        unsafe {
            M::attend::<LOW>(heads, length, projected.get(), distances.as_ref(), &mut scratch, out.get())
        };
        let want =
            plain(length, count, width, &x, |head, d| if biased { f64::from(bias(head, d)) } else { 0.0 });
        let got = values(out.get(), LOW);
        for (r, (got, want)) in got.chunks_exact(padded).zip(want.chunks_exact(width)).enumerate() {
            for (c, &value) in got.iter().enumerate() {
                let want = want.get(c).copied().unwrap_or(0.0);
                // The rounding error of a score grows with the number of its products.
                let close = if LOW { 2e-2 } else { 1e-5 * (width as f64 / 32.0).max(1.0) };
                assert!(
                    (f64::from(value) - want).abs() < close,
                    "{length} {count} {width} row {r}: {value} {want}"
                );
            }
        }
    }

    #[test]
    fn every_length_around_the_blocks() {
        for length in (1..=20).chain([31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 128, 129]) {
            on_each_machine!(check, length, 2, 5, false, length as u64);
        }
    }

    #[test]
    fn the_longest_inputs() {
        on_each_machine!(check, 512, 1, 32, true, 5);
        on_each_machine!(check, 511, 1, 9, false, 6);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn attention_is_that_of_the_definition(length in 1usize..80, count in 1usize..4, width in 1usize..70, biased: bool, seed: u32) {
            on_each_machine!(check, length, count, width, biased, u64::from(seed));
        }
    }

    #[test]
    fn equal_scores_and_large_ones_stay_finite() {
        // One key has such a high score that all other shares are almost zero.
        let mut x = vec![0.0f32; 4 * 3 * 4];
        for (row, scale) in [(0usize, 300.0f32), (1, -300.0), (2, 0.0), (3, 100.0)] {
            x[row * 12..row * 12 + 4].fill(1.0);
            x[row * 12 + 4..row * 12 + 8].fill(scale);
            x[row * 12 + 8..row * 12 + 12].fill(row as f32);
        }
        let mut out = vec![f32::NAN; 16];
        let heads = Heads { count: 1, width: 4 };
        // SAFETY: plain lanes need nothing.
        unsafe {
            attend::<crate::simd::plain::Portable, false>(
                heads,
                4,
                &x,
                None,
                &mut Scratch::default(),
                &mut out,
            )
        };
        // The other shares are at most 2^-126, but not zero.
        assert!(out.iter().all(|x| (0.0..1e-30).contains(x)), "{out:?}");
    }
}
