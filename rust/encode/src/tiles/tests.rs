//! Every machine produces the bits of the portable implementation, which is close to the definitions.

use super::attention::Scratch;
use super::machine::Machine;
use super::product::{Linear, Part, Then};
use super::*;
use crate::attention::{Distances, Heads};
use crate::buffer::Layout;
use crate::norm::Norm;
use crate::simd::math::Activation;
use crate::simd::plain::fused;
use crate::simd::wide::operand;
use crate::testing::{numbers, on_each_tiles, same_bits, values, Walled};
use proptest::prelude::*;

/// Rows of `width` values (whole panels) as panels: whole tiles of rows, those beyond the last no numbers.
fn panels(rows: &[f32], width: usize) -> (Vec<f32>, usize) {
    let count = rows.len() / width;
    let stride = count.next_multiple_of(TILE) * ROW;
    let mut out = vec![f32::NAN; width / PANEL * stride];
    for (r, row) in rows.chunks_exact(width).enumerate() {
        for (c, pair) in row.chunks_exact(2).enumerate() {
            let word = u32::from(operand(pair[0])) | u32::from(operand(pair[1])) << 16;
            out[c / ROW * stride + r * ROW + c % ROW] = f32::from_bits(word);
        }
    }
    (out, stride)
}

/// What `tdpbf16ps` computes, as it is documented, over all steps.
fn pairs(x: &[f32], w: &[f32]) -> f32 {
    let value = |x: f32| f32::from_bits(u32::from(operand(x)) << 16);
    x.chunks(PANEL).zip(w.chunks(PANEL)).fold(0.0, |sum, (x, w)| {
        let mut parts = [0.0f32; 2];
        for (i, (&x, &w)) in x.iter().zip(w).enumerate() {
            parts[i % 2] = fused(value(x), value(w), parts[i % 2]);
        }
        sum + (parts[0] + parts[1])
    })
}

/// Numbers of all magnitudes that operands have.
fn wide(seed: u64, n: usize, reach: f32) -> Vec<f32> {
    let (x, e) = (numbers(seed, n), numbers(seed + 1000, n));
    x.iter().zip(&e).map(|(x, e)| x * (e * reach).round().exp2()).collect()
}

fn products<M: Machine>(layer: &Linear, part: &Part, rows: usize, x: &[f32], stride: usize) -> Vec<f32> {
    let count = part.outputs.len();
    // Buffers end at a wall: the input with the last whole tile, the output with the last row.
    let mut input = Walled::new(x);
    let input = Panels { words: input.get(), stride };
    let (mut low, mut active) = (vec![7.0; count * rows * ROW], vec![7.0; count * rows * ROW]);
    let mut out = Walled::new(&low);
    let mut added = Walled::new(&vec![0.5; rows * layer.panels() * PANEL]);
    let kinds = [Activation::Gelu, Activation::Silu];
    let kind = kinds[rows % 2];
    // SAFETY: the machine has the instructions.
    unsafe {
        let room = PanelsMut { words: out.get(), stride: rows * ROW };
        M::linear(layer, part, rows, input, Then::Operand(room));
        low.copy_from_slice(out.get());
        let room = PanelsMut { words: out.get(), stride: rows * ROW };
        M::linear(layer, part, rows, input, Then::Activated(kind, room));
        active.copy_from_slice(out.get());
        M::linear(layer, part, rows, input, Then::Added(added.get()));
    }
    let mut all = added.get().to_vec();
    all.extend(values(&low, true));
    all.extend(values(&active, true));
    all
}

fn check_products(rows: usize, outputs: usize, inputs: usize, part: Option<Part>, seed: u64) {
    let (n, k) = (outputs * PANEL, inputs * PANEL);
    let (weights, bias) = (wide(seed, n * k, 20.0), numbers(seed + 1, n));
    let layer = Linear::new(&weights, &bias, n, k);
    let part = part.unwrap_or_else(|| layer.whole());
    let (from, to) = (part.inputs.start * PANEL, part.inputs.end * PANEL);
    let x = wide(seed + 2, rows * (to - from), 20.0);
    let (input, stride) = panels(&x, to - from);
    let all = on_each_tiles!(products, &layer, &part, rows, &input, stride);
    same_bits(&all, &format!("{rows} rows, {part:?}"));
    let got = &all[0].1;
    for r in 0..rows {
        for j in 0..n {
            let inside = part.outputs.contains(&(j / PANEL));
            let mut want = 0.5;
            if inside {
                let sum = pairs(&x[r * (to - from)..][..to - from], &weights[j * k + from..j * k + to]);
                want = (sum + if part.bias { bias[j] } else { 0.0 }) + 0.5;
            }
            assert_eq!(got[r * n + j].to_bits(), f32::to_bits(want), "{rows} rows, {part:?}: {r}, {j}");
        }
    }
}

#[test]
fn products_are_those_of_the_instruction_at_every_edge() {
    for rows in (1..=34).chain([47, 48, 49, 63, 64, 65, 97]) {
        check_products(rows, 2, 3, None, rows as u64);
    }
    for (outputs, inputs) in [(1, 1), (5, 1), (1, 40), (3, 33)] {
        check_products(20, outputs, inputs, None, 3);
    }
    let part = Part { outputs: 1..3, inputs: 2..5, bias: false };
    check_products(33, 4, 6, Some(part), 4);
}

fn normalised<M: Machine>(norm: &Norm, rows: usize, x: &[f32]) -> Vec<f32> {
    let width = x.len() / rows;
    let mut own = Walled::new(x);
    let mut low = Walled::new(&vec![7.0; x.len() / 2]);
    let out = PanelsMut { words: low.get(), stride: rows * ROW };
    // SAFETY: the machine has the instructions.
    unsafe { M::norm(norm, rows, own.get(), out) };
    let mut all = own.get().to_vec();
    for (r, row) in all.chunks_exact(width).enumerate() {
        let (words, _) = panels(row, width);
        for p in 0..width / PANEL {
            let got = &low.get()[(p * rows + r) * ROW..][..ROW];
            let want = &words[p * TILE * ROW..][..ROW];
            assert!(got.iter().zip(want).all(|(a, b)| a.to_bits() == b.to_bits()), "operands of row {r}");
        }
    }
    all.extend(values(low.get(), true));
    all
}

/// Softmax attention from its definition, in f64, of operands.
fn defined(length: usize, heads: Heads, x: &[f32], bias: impl Fn(usize, isize) -> f64) -> Vec<f64> {
    let width = heads.count * heads.width;
    let value = |row: usize, part: usize, head: usize, c: usize| {
        f64::from(f32::from_bits(
            u32::from(operand(x[row * 3 * width + part * width + head * heads.width + c])) << 16,
        ))
    };
    let mut out = vec![0.0; length * width];
    for head in 0..heads.count {
        for i in 0..length {
            let score = |j: usize| {
                let products = (0..heads.width).map(|c| value(i, 0, head, c) * value(j, 1, head, c));
                products.sum::<f64>() + bias(head, j as isize - i as isize)
            };
            let scores: Vec<f64> = (0..length).map(score).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|s| (s - most).exp2()).sum();
            for c in 0..heads.width {
                let sum: f64 = (0..length).map(|j| (scores[j] - most).exp2() * value(j, 2, head, c)).sum();
                out[i * width + head * heads.width + c] = sum / total;
            }
        }
    }
    out
}

fn attended<M: Machine>(
    length: usize,
    heads: Heads,
    x: &[f32],
    stride: usize,
    bias: Option<&Distances>,
) -> Vec<f32> {
    let mut input = Walled::new(x);
    let all = heads.count * heads.width / PANEL;
    let mut out = Walled::new(&vec![7.0; all * length * ROW]);
    let mut room = PanelsMut { words: out.get(), stride: length * ROW };
    let input = Panels { words: input.get(), stride };
    // SAFETY: the machine has the instructions.
    unsafe { M::attend(heads, length, input, bias, &mut Scratch::default(), &mut room) };
    values(out.get(), true)
}

/// `scale` stretches the scores; `shift` moves all of a query's together.
fn check_attention(length: usize, heads: Heads, scale: f32, shift: f32, biased: bool, seed: u64) {
    let width = heads.count * heads.width;
    let mut x = numbers(seed, length * 3 * width);
    for row in x.chunks_exact_mut(3 * width) {
        for head in 0..heads.count {
            let at = head * heads.width;
            row[at..at + heads.width].iter_mut().for_each(|x| *x *= scale);
            (row[at], row[width + at]) = (1.0, shift);
        }
    }
    let (input, stride) = panels(&x, 3 * width);
    let bias = |head: usize, distance: isize| (head as f32 + 1.0) / (1.0 + distance.unsigned_abs() as f32);
    let distances = biased.then(|| Distances::new(heads.count, length + 3, bias));
    let all = on_each_tiles!(attended, length, heads, &input, stride, distances.as_ref());
    let what = format!("{length} tokens, {heads:?}, {scale}, {shift}");
    same_bits(&all, &what);
    let want = defined(length, heads, &x, |head, d| if biased { f64::from(bias(head, d)) } else { 0.0 });
    for (i, want) in want.iter().enumerate() {
        let (row, c) = (i / width, i % width);
        let got = all[0].1[c / PANEL * length * PANEL + row * PANEL + c % PANEL];
        assert!((f64::from(got) - want).abs() < 2e-2, "{what}: {got} is not {want} at {row}, {c}");
    }
}

#[test]
fn attention_of_every_length_around_the_tiles() {
    for length in (1..=34).chain([47, 48, 49, 63, 64, 65, 96, 97, 129]) {
        check_attention(length, Heads { count: 2, width: 32 }, 1.0, 0.0, false, length as u64);
    }
    check_attention(512, Heads { count: 1, width: 32 }, 1.0, 0.0, true, 1);
    check_attention(70, Heads { count: 2, width: 96 }, 1.0, 0.0, true, 2);
}

#[test]
fn scores_far_from_zero_are_done_again_with_their_maximum_subtracted() {
    for shift in [-300.0, -70.0, -11.0, 58.0, 62.0, 127.0, 129.0, 1000.0, -1e5] {
        for scale in [1.0, 3.0] {
            check_attention(37, Heads { count: 2, width: 32 }, scale, shift, false, 5);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn norms_have_the_same_bits(rows in 1usize..5, width in 1usize..150, shift in -3.0f32..3.0, seed: u32) {
        let padded = width.next_multiple_of(PANEL);
        let norm = Norm::new(Layout::tiles(), &numbers(seed.into(), width), &numbers(9, width), 1e-5);
        let mut x = vec![0.0; rows * padded];
        for (line, row) in x.chunks_exact_mut(padded).zip(numbers(seed.into(), rows * width).chunks_exact(width)) {
            line[..width].iter_mut().zip(row).for_each(|(x, y)| *x = y + shift);
        }
        let all = on_each_tiles!(normalised, &norm, rows, &x);
        same_bits(&all, "norm");
    }

    #[test]
    fn products_have_the_same_bits(rows in 1usize..70, outputs in 1usize..4, inputs in 1usize..5, seed: u32) {
        check_products(rows, outputs, inputs, None, seed.into());
    }
}

#[test]
#[should_panic]
fn an_input_without_whole_tiles_is_refused() {
    let layer = Linear::new(&[0.0; PANEL * PANEL], &[0.0; PANEL], PANEL, PANEL);
    let input = Panels { words: &[0.0; 15 * ROW], stride: 15 * ROW };
    // SAFETY: plain lanes need nothing.
    unsafe {
        type S = crate::simd::plain::PortableWide;
        S::linear(&layer, &layer.whole(), 15, input, Then::Added(&mut [0.0; 15 * PANEL]));
    }
}
