//! Every processor produces the bits of the portable implementation, which is close to the definitions.

use super::machine::*;
use super::product::Linear;
use super::rows::Rows;
use super::{GROUP, GROUP_WORDS};
use crate::kernel::Kernel;
use crate::product::Then;
use crate::simd::math::Activation;
use crate::testing::{numbers, same_bits, Walled};
use proptest::prelude::*;

/// Calls `$f::<processor>(args)` for every processor that multiplies bytes here, the portable one first.
macro_rules! on_each {
    ($f:ident, $($arg:expr),*) => {{
        let mut all = Vec::new();
        for kernel in Kernel::all() {
            if kernel.forms().contains(&crate::kernel::Form::Int8) {
                all.push((kernel.name(), on_bytes!(kernel, $f, $($arg),*)));
            }
        }
        assert_eq!(all[0].0, "portable");
        all
    }};
}

/// Apply the layer to rows with the dimensions of `x`, in its four variants.
fn results<B: Bytes>(layer: &Linear, rows: usize, outputs: usize, x: &[f32]) -> Vec<f32> {
    let mut input = Walled::new(x);
    let mut bytes = Rows::default();
    let mut out = Walled::new(&vec![7.0; rows * outputs]);
    let mut added = Walled::new(&vec![0.5; rows * outputs]);
    let mut highest = Walled::new(&vec![0.25; outputs]);
    let mut all = Vec::new();
    // SAFETY: the processor is one that this machine has.
    unsafe {
        B::quantise(&mut bytes, rows, input.get(), layer.factors());
        B::linear(layer, rows, &bytes, Then::Operand(out.get()));
        all.extend_from_slice(out.get());
        let kind = [Activation::Gelu, Activation::Silu][rows % 2];
        B::linear(layer, rows, &bytes, Then::Activated(kind, out.get()));
        all.extend_from_slice(out.get());
        B::linear(layer, rows, &bytes, Then::Added(added.get()));
        B::linear(layer, rows, &bytes, Then::Highest(highest.get()));
    }
    all.extend_from_slice(added.get());
    all.extend_from_slice(highest.get());
    all
}

fn check(rows: usize, outputs: usize, inputs: usize, reach: f32, seed: u64) {
    let (weights, bias) = (numbers(seed, outputs * inputs), numbers(seed + 1, outputs));
    let mut x = numbers(seed + 2, rows * inputs);
    // An outlier channel.
    x.iter_mut().step_by(inputs).for_each(|x| *x *= reach);
    let mut most = vec![1.0; inputs];
    most[0] = reach;
    let layer = Linear::new(&weights, &bias, outputs, inputs, &most);
    let all = on_each!(results, &layer, rows, outputs, &x);
    same_bits(&all, &format!("{rows} rows, {outputs} x {inputs}"));
    for r in 0..rows {
        for j in 0..outputs {
            let (x, w) = (&x[r * inputs..][..inputs], &weights[j * inputs..][..inputs]);
            let want = x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w)).sum::<f64>();
            let want = want + f64::from(bias[j]);
            let got = f64::from(all[0].1[r * outputs + j]);
            // Steps of about 1/191 and 1/80 of the maximum, over that many products.
            let off = 0.02 * f64::from(reach.max(1.0)) * (inputs as f64).sqrt() + 0.02;
            assert!((got - want).abs() < off, "{rows} rows, {outputs} x {inputs}: {got} is not {want}");
            let sum = all[0].1[2 * rows * outputs + r * outputs + j];
            assert_eq!(sum.to_bits(), (all[0].1[r * outputs + j] + 0.5).to_bits());
        }
    }
    for j in 0..outputs {
        let most = (0..rows).fold(0.25f32, |most, r| most.max(all[0].1[r * outputs + j]));
        assert_eq!(all[0].1[3 * rows * outputs + j].to_bits(), most.to_bits());
    }
}

#[test]
fn products_at_every_edge_have_the_same_bits() {
    for rows in (1..=34).chain([47, 63, 64, 65, 97]) {
        check(rows, 48, 80, 1.0, rows as u64);
    }
    for (outputs, inputs) in [(16, 16), (32, 64), (96, 16), (16, 400), (112, 144)] {
        check(9, outputs, inputs, 3.0, (outputs + inputs) as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn products_have_the_same_bits(rows in 1usize..70, outputs in 1usize..6, inputs in 1usize..10, reach in 0.1f32..40.0, seed: u32) {
        check(rows, 16 * outputs, 16 * inputs, reach, seed.into());
    }
}

/// The sums of four products at their maximum: 16 bits hold them.
#[test]
fn the_largest_bytes_do_not_overflow() {
    let (outputs, inputs) = (32, 128);
    for sign in [1.0, -1.0] {
        for other in [1.0, 0.99, 0.5, 0.0, -1.0] {
            for many in 1..8 {
                let weight = |i: usize| sign * if i % 8 < many { 1.0 } else { other };
                let weights: Vec<f32> = (0..outputs * inputs).map(weight).collect();
                let layer = Linear::new(&weights, &vec![0.0; outputs], outputs, inputs, &vec![1.0; inputs]);
                let x = vec![1.0; 3 * inputs];
                let all = on_each!(results, &layer, 3, outputs, &x);
                same_bits(&all, "largest");
                let want: f32 = (0..inputs).map(weight).sum();
                for got in &all[0].1[..3 * outputs] {
                    assert!((got - want).abs() <= 0.02 * want.abs() + 0.6, "{got} is not {want}");
                }
            }
        }
    }
}

/// The bytes of a row do not depend on neighbouring rows, and values are restored to within half a step.
fn bytes_of<B: Bytes>(rows: usize, x: &[f32], factors: &[f32]) -> Vec<f32> {
    let width = factors.len();
    let mut made = Rows::default();
    // SAFETY: the processor is one that this machine has.
    unsafe { B::quantise(&mut made, rows, Walled::new(x).get(), factors) };
    assert!(made.readable(rows) && made.groups == 1 && width <= GROUP);
    let mut all = Vec::new();
    for place in (0..rows).map(|row| made.place(row, 0)) {
        // SAFETY: `width` bytes of the row were written.
        let row =
            unsafe { std::slice::from_raw_parts(made.words().add(place * GROUP_WORDS).cast::<u8>(), width) };
        all.extend([made.scale[place], made.zero[place] as f32]);
        all.extend(row.iter().map(|&b| f32::from(b)));
    }
    all
}

#[test]
fn values_come_back_within_half_a_step() {
    for (seed, shift, size) in
        [(1, 0.0, 1.0), (2, 3.0, 1.0), (3, -9.0, 0.1), (4, 0.0, 1e-20), (5, 0.0, 1e30), (6, 0.0, 0.0)]
    {
        let (rows, width) = (5, 48);
        let x: Vec<f32> = numbers(seed, rows * width).iter().map(|x| (x + shift) * size).collect();
        let factors: Vec<f32> = numbers(seed + 9, width).iter().map(|f| f.abs() + 0.1).collect();
        let all = on_each!(bytes_of, rows, &x, &factors);
        same_bits(&all, "bytes");
        for (r, row) in all[0].1.chunks_exact(width + 2).enumerate() {
            for j in 0..width {
                let want = x[r * width + j] * factors[j];
                let got = row[0] * (row[2 + j] - row[1]);
                assert!((got - want).abs() <= 0.51 * row[0] + 1e-30, "{got} is not {want}");
            }
        }
    }
}

#[test]
fn what_is_no_finite_number_does_not_become_one() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 3.4e38] {
        for place in [0, 17, 47] {
            let mut x = numbers(3, 3 * 48);
            x[48 + place] = bad;
            let layer = Linear::new(&numbers(4, 16 * 48), &[0.0; 16], 16, 48, &[1.0; 48]);
            for (name, got) in on_each!(results, &layer, 3, 16, &x) {
                let row = |r: usize| &got[r * 16..(r + 1) * 16];
                assert!(row(0).iter().chain(row(2)).all(|y| y.is_finite()), "{name}: {bad}");
                assert!(bad == 3.4e38 || row(1).iter().all(|y| !y.is_finite()), "{name}: {bad}");
            }
        }
    }
}
