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
            M::linear::<LOW>(&layer, 1, &input.get()[r * words..(r + 1) * words], Then::Operand(alone.get()));
            assert!(values(alone.get(), LOW) == got[r * n..(r + 1) * n], "a row depends on its neighbours");
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
    let layer =
        Linear::new(Layout { lanes: 4, vectors: 2, low: false, tiles: false }, &[0.0; 16], &[0.0; 4], 4, 4);
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
