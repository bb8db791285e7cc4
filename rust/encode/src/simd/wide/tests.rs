use super::*;
use crate::simd::math::{activate, Activation};
use crate::testing::{numbers, on_each_tiles, same_bits};

/// Every operation on sixteen values at a time, all results end to end.
fn everything<S: Wide>(x: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    let mut put = |v: S::V| {
        let mut lanes = [0.0f32; 16];
        // SAFETY: room for sixteen.
        unsafe { S::store(lanes.as_mut_ptr(), v) };
        out.extend(lanes);
    };
    let mut more = Vec::new();
    for (a, b) in x.chunks_exact(16).zip(x.chunks_exact(16).skip(1)) {
        // SAFETY: the machine has the instructions; sixteen values each.
        unsafe {
            let (a, b) = (S::load(a.as_ptr()), S::load(b.as_ptr()));
            put(S::fma(a, b, b));
            put(S::exp2(S::max(S::min(a, S::splat(99.0)), S::splat(-99.0))));
            put(gelu::<S>(a));
            for kind in [Activation::GeluTanh, Activation::Relu, Activation::Silu] {
                put(activate::<S, true>(kind, a));
            }
            put(S::floor(S::max(S::min(a, S::splat(4e6)), S::splat(-4e6))));
            let (lower, upper) = S::widen(a);
            put(lower);
            put(upper);
            more.push(S::sum(a));
            let mut low = [0u16; 32];
            S::store_operands(low.as_mut_ptr(), a, b);
            more.extend(low.map(f32::from));
            // Far below, as operands: all zero.
            S::store_operands(low.as_mut_ptr(), S::exp2(S::min(a, S::splat(99.0))), b);
            more.extend(low.map(f32::from));
        }
    }
    out.extend(more);
    out
}

#[test]
fn every_operation_has_the_same_bits_on_every_machine() {
    for seed in 0..20 {
        let scale = [1.0f32, 8.0, 100.0, 1e-6, 1e-17, 1e30][seed % 6];
        let mut x: Vec<f32> = numbers(seed as u64, 160).iter().map(|x| x * scale).collect();
        // Ties of the rounding, whole numbers, and the edge of the operands that are zero.
        x.extend((0..16u32).map(|i| f32::from_bits(0x3f80_8000 + (i << 15))));
        x.extend((0..16).map(|i| i as f32 - 8.0));
        x.extend((0..16).map(|i| (i as f32 - 8.0).mul_add(0.01, 1.0) * 2f32.powi(-55)));
        same_bits(&on_each_tiles!(everything, &x), "operations");
    }
}

fn turned<S: Wide>(x: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; 256];
    // SAFETY: the machine has the instructions; both have 256 words.
    unsafe { S::transpose(x.as_ptr(), out.as_mut_ptr()) };
    out
}

#[test]
fn words_are_transposed() {
    // Words of every kind, NaN included.
    let x: Vec<f32> = (0..256u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect();
    for (name, got) in on_each_tiles!(turned, &x) {
        for (i, &y) in got.iter().enumerate() {
            assert_eq!(y.to_bits(), x[i % 16 * 16 + i / 16].to_bits(), "{name} at {i}");
        }
    }
}

#[test]
fn powers_and_gelu_are_close_to_the_exact_ones() {
    let x: Vec<f32> = (-4000..4000).map(|i| i as f32 / 100.0).collect();
    for x in x.chunks_exact(16) {
        let (mut powers, mut gelus) = ([0.0f32; 16], [0.0f32; 16]);
        // SAFETY: plain lanes need nothing; sixteen values each.
        unsafe {
            type S = crate::simd::plain::PortableWide;
            S::store(powers.as_mut_ptr(), S::exp2(S::load(x.as_ptr())));
            S::store(gelus.as_mut_ptr(), gelu::<S>(S::load(x.as_ptr())));
        }
        for i in 0..16 {
            let exact = f64::from(x[i]);
            assert!((f64::from(powers[i]) / exact.exp2() - 1.0).abs() < 8e-5, "2^{}", x[i]);
            let want = crate::simd::tests::exact_gelu(exact);
            assert!((f64::from(gelus[i]) - want).abs() < 2e-4 + 3e-5 * exact.abs(), "gelu({})", x[i]);
        }
    }
}

#[test]
fn small_operands_are_zero_and_not_a_number_stays_so() {
    assert_eq!(operand(2f32.powi(-55)), SMALLEST);
    assert_eq!((operand(2f32.powi(-56)), operand(-2f32.powi(-56)), operand(-0.0)), (0, 0, 0));
    let bad = f32::from_bits(u32::from(operand(f32::NAN)) << 16);
    assert!(bad.is_nan() && operand(f32::INFINITY) == 0x7f80);
}
