use super::math::{activate, exp2, Activation};
use super::*;
use crate::testing::{numbers, on_each_machine};

fn through<S: Lanes>(x: &[f32], f: impl Fn(S::V) -> S::V) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    for i in (0..x.len()).step_by(S::N) {
        // SAFETY: the machine has the instructions; lengths are multiples of 16.
        unsafe { S::store(out.as_mut_ptr().add(i), f(S::load(x.as_ptr().add(i)))) };
    }
    out
}

fn basics<S: Lanes, const LOW: bool>(a: &[f32], b: &[f32]) {
    let word = |x: u16, y: u16| f32::from_bits(u32::from(x) | u32::from(y) << 16);
    // SAFETY: the machine has the instructions; `a` and `b` have 64 values.
    unsafe {
        let (x, y) = (S::load(a.as_ptr()), S::load(b.as_ptr()));
        let mut out = [0.0f32; 16];
        let mut get = |v: S::V| {
            S::store(out.as_mut_ptr(), v);
            out[..S::N].to_vec()
        };
        let each = |f: fn(f32, f32) -> f32| (0..S::N).map(|i| f(a[i], b[i])).collect::<Vec<_>>();
        assert_eq!(get(S::add(x, y)), each(|p, q| p + q));
        assert_eq!(get(S::sub(x, y)), each(|p, q| p - q));
        assert_eq!(get(S::mul(x, y)), each(|p, q| p * q));
        assert_eq!(get(S::div(x, y)), each(|p, q| p / q));
        assert_eq!(get(S::max(x, y)), each(f32::max));
        assert_eq!(get(S::min(x, y)), each(f32::min));
        assert_eq!(get(S::round(S::mul(x, S::splat(50.0)))), each(|p, _| (p * 50.0).round_ties_even()));
        assert_eq!(get(S::power(S::round(S::mul(x, S::splat(100.0))))), {
            (0..S::N).map(|i| ((a[i] * 100.0).round_ties_even()).exp2()).collect::<Vec<_>>()
        });
        for n in 0..=S::N {
            let want: Vec<f32> = (0..S::N).map(|i| if i < n { a[i] } else { b[i] }).collect();
            assert_eq!(get(S::first(x, n, y)), want);
        }
        assert_eq!(get(S::spread(b.as_ptr().add(5))), vec![b[5]; S::N]);
        let sum: f64 = a[..S::N].iter().map(|&v| f64::from(v)).sum();
        assert!((f64::from(S::total(x)) - sum).abs() < 1e-5);
        assert_eq!(S::largest(x), a[..S::N].iter().copied().fold(f32::MIN, f32::max));
        let close = get(S::fma(x, y, S::splat(0.25)));
        assert!((0..S::N).all(|i| (close[i] - (a[i] * b[i] + 0.25)).abs() < 1e-6));

        let mut halves = [0u16; 64];
        S::store_low(halves.as_mut_ptr(), x);
        S::store_low(halves.as_mut_ptr().add(32), y);
        for i in 0..S::N {
            assert_eq!((halves[i], halves[32 + i]), (low(a[i]), low(b[i])));
        }
        let mut words = [0.0f32; 16];
        S::pair(halves.as_ptr(), halves.as_ptr().add(32), words.as_mut_ptr());
        for i in 0..S::N {
            assert_eq!(words[i].to_bits(), word(halves[i], halves[32 + i]).to_bits());
        }
        let pairs = S::load(words.as_ptr());
        let got = get(S::dot2(S::splat(0.5), pairs, pairs));
        for i in 0..S::N {
            let (p, q) = (halves[i], halves[32 + i]);
            let f = |h: u16| f64::from(f32::from_bits(u32::from(h) << 16));
            assert!((f64::from(got[i]) - (0.5 + f(p) * f(p) + f(q) * f(q))).abs() < 1e-6);
        }
    }
}

fn turned<S: Lanes, const LOW: bool>(words: &[f32], stride: usize) {
    let mut got = vec![0.0; S::N * S::N];
    // SAFETY: the machine has the instructions, and `words` has the rows.
    unsafe { S::turn(words.as_ptr(), stride, got.as_mut_ptr()) };
    for (i, j) in (0..S::N).flat_map(|i| (0..S::N).map(move |j| (i, j))) {
        assert_eq!(got[j * S::N + i].to_bits(), words[i * stride + j].to_bits(), "{i}, {j} of {}", S::N);
    }
}

#[test]
fn rows_become_columns() {
    for stride in [16, 23] {
        let mut words = numbers(stride as u64, 16 * stride);
        words[stride + 2] = f32::from_bits(0x7f80_0001); // a signalling NaN keeps its bits
        on_each_machine!(turned, &words, stride);
    }
}

#[test]
fn every_operation_is_what_it_says() {
    for seed in 0..20 {
        let (a, b) = (numbers(seed, 64), numbers(seed + 100, 64));
        on_each_machine!(basics, &a, &b);
    }
}

#[test]
fn rounding_to_bf16_is_to_nearest_even() {
    for (x, want) in [(1.0f32, 0x3f80), (1.003_906_2, 0x3f80), (1.011_718_8, 0x3f82), (-0.0, 0x8000)] {
        assert_eq!(low(x), want, "{x}");
    }
    assert_eq!(word(1.0, -2.0).to_bits(), 0xc000_3f80);
}

fn functions<S: Lanes, const LOW: bool>(x: &[f32]) {
    let got = through::<S>(x, |v| {
        // SAFETY: the machine has the instructions.
        unsafe { exp2::<S>(v) }
    });
    for (&x, y) in x.iter().zip(got) {
        let want = f64::from(x.max(-126.0)).exp2();
        assert!((f64::from(y) / want - 1.0).abs() < 3e-7, "2^{x} is not {y}");
    }
    let tanh_gelu = |x: f64| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh());
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let checks: [(Activation, &dyn Fn(f64) -> f64); 4] = [
        (Activation::Gelu, &exact_gelu),
        (Activation::GeluTanh, &tanh_gelu),
        (Activation::Relu, &|x: f64| x.max(0.0)),
        (Activation::Silu, &silu),
    ];
    for (kind, want) in checks {
        let got = through::<S>(x, |v| {
            // SAFETY: the machine has the instructions.
            unsafe { activate::<S, LOW>(kind, v) }
        });
        for (&x, y) in x.iter().zip(got) {
            let error = (f64::from(y) - want(f64::from(x))).abs();
            let bound = if LOW { 5e-5 } else { 4e-7 } * (1.0 + f64::from(x).abs());
            assert!(error <= bound, "{kind:?}({x}) is not {y}: off by {error:e}");
        }
    }
}

/// By the series of erf (Abramowitz and Stegun 7.1.6); its terms are all positive.
pub fn exact_gelu(x: f64) -> f64 {
    let z = x / std::f64::consts::SQRT_2;
    if z.abs() > 6.0 {
        return x.max(0.0);
    }
    let (mut term, mut sum, mut n) = (z, z, 0.0);
    while term.abs() > 1e-18 {
        n += 1.0;
        term *= 2.0 * z * z / (2.0 * n + 1.0);
        sum += term;
    }
    0.5 * x * (1.0 + std::f64::consts::FRAC_2_SQRT_PI * (-z * z).exp() * sum)
}

#[test]
fn functions_are_close_to_the_exact_ones() {
    let mut x: Vec<f32> = (-4800..4800).map(|i| i as f32 / 400.0).collect();
    x.extend([0.0, -0.0, 1e-30, -1e-30, 4.0, -4.0, 100.0, -100.0, -500.0, -1e30, 120.0, 126.0]);
    x.resize(x.len().next_multiple_of(16), 0.5);
    on_each_machine!(functions, &x);
}

/// Pairs of bf16 of all magnitudes between 2^-40 and 2^40, as words.
fn wide_pairs(seed: u64, n: usize) -> Vec<f32> {
    let (x, e) = (numbers(seed, 2 * n), numbers(seed + 1000, 2 * n));
    let wide: Vec<f32> = x.iter().zip(&e).map(|(x, e)| x * (e * 40.0).round().exp2()).collect();
    wide.chunks_exact(2).map(|pair| word(pair[0], pair[1])).collect()
}

fn bf16_bits<S: Lanes, const LOW: bool>(seed: u64) {
    let (a, b) = (wide_pairs(seed, 64), wide_pairs(seed + 1, 64));
    let start = numbers(seed + 2, 64);
    // Products of bf16 are exact in f32, so that each of the two sums is rounded once everywhere.
    let half = |w: f32, upper: bool| {
        f32::from_bits(if upper { w.to_bits() & 0xffff_0000 } else { w.to_bits() << 16 })
    };
    let want: Vec<u32> = (0..64)
        .map(|i| {
            let first = half(a[i], true) * half(b[i], true) + start[i];
            (half(a[i], false) * half(b[i], false) + first).to_bits()
        })
        .collect();
    let mut got = vec![0.0f32; 64];
    // Every kind of remainder: ties, next to ties, and the carry into the exponent.
    let mut x: Vec<f32> = a.iter().map(|w| f32::from_bits(w.to_bits().wrapping_mul(0x9e37_79b9))).collect();
    for (i, x) in x.iter_mut().enumerate() {
        let tail = [0x8000u32, 0x7fff, 0x8001, 0xffff, 0, 1, 0x18000, 0x1ffff][i % 8];
        let bits = (b[i].to_bits() & 0xfffe_0000) | tail;
        if !x.is_normal() || i / 8 % 2 == 0 {
            *x = f32::from_bits(bits);
        }
        if !x.is_normal() {
            *x = 1.0;
        }
    }
    let mut halves = [0u16; 64];
    // SAFETY: the machine has the instructions; all have 64 elements.
    unsafe {
        for i in (0..64).step_by(S::N) {
            let load = |p: &[f32]| S::load(p.as_ptr().add(i));
            S::store(got.as_mut_ptr().add(i), S::dot2(load(&start), load(&a), load(&b)));
            S::store_low(halves.as_mut_ptr().add(i), load(&x));
        }
    }
    assert_eq!(got.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), want);
    assert_eq!(halves.to_vec(), x.iter().map(|&x| low(x)).collect::<Vec<_>>());
}

#[test]
fn bf16_has_the_same_bits_on_every_machine() {
    for seed in 0..40 {
        on_each_machine!(bf16_bits, seed * 7);
    }
}
