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

fn check<M: Machine, const LOW: bool>(length: usize, count: usize, width: usize, biased: bool, seed: u64) {
    let layout = Layout::of::<M>(LOW);
    let padded = layout.pad(width);
    let x: Vec<f32> =
        numbers(seed, length * 3 * count * width).iter().map(|x| operand(2.0 * x, LOW)).collect();
    // Each head is a row to `operands`, which pads it.
    let mut projected = Walled::new(&operands(&x, width, padded, LOW));
    let mut out = Walled::new(&vec![f32::NAN; length * count * layout.words(padded)]);
    let bias = |head: usize, distance: isize| (head as f32 + 1.0) / (1.0 + distance.unsigned_abs() as f32);
    let distances = biased.then(|| Distances::new(count, length + 3, bias));
    let mut scratch = Scratch::default();
    let heads = Heads { count, width: padded };
    // SAFETY: the machine has the instructions.
    unsafe { M::attend::<LOW>(heads, length, projected.get(), distances.as_ref(), &mut scratch, out.get()) };
    let want = plain(length, count, width, &x, |head, d| if biased { f64::from(bias(head, d)) } else { 0.0 });
    let got = values(out.get(), LOW);
    for (r, (got, want)) in got.chunks_exact(padded).zip(want.chunks_exact(width)).enumerate() {
        for (c, &value) in got.iter().enumerate() {
            let want = want.get(c).copied().unwrap_or(0.0);
            // The rounding of a score grows with the number of its products.
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
    // One key has such a high score that every other share is almost zero.
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
        attend::<crate::simd::plain::Portable, false>(heads, 4, &x, None, &mut Scratch::default(), &mut out)
    };
    // The other shares are at most 2^-126, but not zero.
    assert!(out.iter().all(|x| (0.0..1e-30).contains(x)), "{out:?}");
}
