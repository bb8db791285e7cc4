//! Lanes as an array: portable, and of any width.

use crate::simd::{low, Lanes};

/// `N` lanes, `NV` vectors per register block. The compiler maps small widths to the vectors of the target.
/// With `FUSED` a multiplication and an addition are rounded once.
#[derive(Clone, Copy)]
pub struct Plain<const N: usize, const NV: usize, const FUSED: bool = false>;

/// Lanes for machines without an optimised implementation: 4 lanes suit SSE2 and NEON.
pub type Portable = Plain<4, 2>;

/// The lanes of [`super::wide::Wide`] on any machine.
pub type PortableWide = Plain<16, 1, true>;

#[inline(always)]
fn zip<const N: usize>(mut a: [f32; N], b: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    for i in 0..N {
        a[i] = f(a[i], b[i]);
    }
    a
}

// The caller promises `N` elements at each pointer.
impl<const N: usize, const NV: usize, const FUSED: bool> Lanes for Plain<N, NV, FUSED> {
    const N: usize = N;
    const NV: usize = NV;
    const ROWS: usize = if FUSED { 2 } else { 6 };
    type V = [f32; N];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> [f32; N] {
        p.cast::<[f32; N]>().read_unaligned()
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: [f32; N]) {
        p.cast::<[f32; N]>().write_unaligned(v)
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; N] {
        [x; N]
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> [f32; N] {
        [p.read(); N]
    }
    #[inline(always)]
    unsafe fn add(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn div(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| x / y)
    }
    // Rounded once only if those bits are needed: without the instruction that takes many.
    #[inline(always)]
    unsafe fn fma(mut a: [f32; N], b: [f32; N], c: [f32; N]) -> [f32; N] {
        if FUSED {
            fuse(&mut a, &b, &c);
            return a;
        }
        for i in 0..N {
            a[i] = a[i] * b[i] + c[i];
        }
        a
    }
    #[inline(always)]
    unsafe fn max(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| if x > y { x } else { y })
    }
    #[inline(always)]
    unsafe fn min(a: [f32; N], b: [f32; N]) -> [f32; N] {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    // Adding 1.5 * 2^23 leaves no bits below one, for |v| < 2^22; `round_ties_even` is a slow call.
    #[inline(always)]
    unsafe fn round(mut v: [f32; N]) -> [f32; N] {
        for x in &mut v {
            *x = (*x + 12_582_912.0) - 12_582_912.0;
        }
        v
    }
    #[inline(always)]
    unsafe fn power(mut v: [f32; N]) -> [f32; N] {
        for x in &mut v {
            *x = f32::from_bits(((*x as i32 + 127) as u32) << 23);
        }
        v
    }
    #[inline(always)]
    unsafe fn total(mut v: [f32; N]) -> f32 {
        // In the order of vectors that are halved.
        let mut apart = N;
        while apart > 1 {
            apart /= 2;
            for i in 0..apart {
                v[i] += v[i + apart];
            }
        }
        v[0]
    }
    #[inline(always)]
    unsafe fn largest(v: [f32; N]) -> f32 {
        v.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m })
    }
    #[inline(always)]
    unsafe fn first(mut v: [f32; N], n: usize, other: [f32; N]) -> [f32; N] {
        for i in 0..N {
            if i >= n {
                v[i] = other[i];
            }
        }
        v
    }
    #[inline(always)]
    unsafe fn dot2(mut acc: [f32; N], a: [f32; N], b: [f32; N]) -> [f32; N] {
        for i in 0..N {
            let (x, y) = (a[i].to_bits(), b[i].to_bits());
            acc[i] += f32::from_bits(x & 0xffff_0000) * f32::from_bits(y & 0xffff_0000);
            acc[i] += f32::from_bits(x << 16) * f32::from_bits(y << 16);
        }
        acc
    }
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: [f32; N]) {
        for (i, &x) in v.iter().enumerate() {
            p.add(i).write(low(x))
        }
    }
    #[inline(always)]
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
        for i in 0..N {
            // SAFETY: the caller's promise.
            unsafe {
                let bits = u32::from(a.add(i).read()) | u32::from(b.add(i).read()) << 16;
                out.add(i).write(f32::from_bits(bits));
            }
        }
    }
}

// A multiplication and an addition of f32 that are rounded once, on any machine and with any C library.
//
// Where the target has no instruction, `f32::mul_add` calls `fmaf` of the C library, and that of mingw-w64 10
// adds in f32: when the sum cancels, hardly a digit is right.

/// Replace `a` by `a * b + c`. Not inlined: it is long, and in every kernel.
#[inline(never)]
fn fuse<const N: usize>(a: &mut [f32; N], b: &[f32; N], c: &[f32; N]) {
    for i in 0..N {
        a[i] = fused(a[i], b[i], c[i]);
    }
}

/// Return `a * b + c`, rounded once.
#[inline(always)]
pub(crate) fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        a.mul_add(b, c)
    } else {
        through_f64(a, b, c)
    }
}

/// The same in f64: the product is exact, and the sum is rounded to odd, so that rounding it again to f32 gives the
/// nearest (Boldo and Melquiond, 2008).
#[inline(always)]
fn through_f64(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // What the rounding of the sum dropped, exactly (Knuth's TwoSum); NaN if the sum is not finite.
    let added = sum - product;
    let dropped = (product - (sum - added)) + (c - added);
    let bits = sum.to_bits();
    let step = if (dropped > 0.0) == (sum > 0.0) { 1 } else { u64::MAX };
    let is_even = bits & 1 == 0;
    let odd = if is_even & (dropped.abs() > 0.0) { bits.wrapping_add(step) } else { bits };
    f64::from_bits(odd) as f32
}

#[cfg(test)]
mod tests {
    use super::{fused, through_f64};
    use proptest::prelude::*;

    /// Return the bits of `x`; NaN has many, of which any will do.
    fn bits(x: f32) -> u32 {
        if x.is_nan() {
            f32::NAN.to_bits()
        } else {
            x.to_bits()
        }
    }

    /// Fails unless both forms have the bits of the processor's instruction, if it has one.
    fn check(a: f32, b: f32, c: f32) {
        #[cfg(target_arch = "x86_64")]
        if crate::cpu::has!("fma") {
            use std::arch::x86_64::*;
            #[target_feature(enable = "fma")]
            fn instruction(a: f32, b: f32, c: f32) -> f32 {
                _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)))
            }
            // SAFETY: the processor has it.
            let want = bits(unsafe { instruction(a, b, c) });
            assert_eq!(bits(through_f64(a, b, c)), want, "{a:e} * {b:e} + {c:e}");
        }
        assert_eq!(bits(through_f64(a, b, c)), bits(fused(a, b, c)), "{a:e} * {b:e} + {c:e}");
    }

    #[test]
    fn known_sums_are_rounded_once() {
        let tiny = f32::from_bits(1);
        for (a, b, c, want) in [
            // A tie of the product that the addend breaks: rounded twice, it would be 1.000_488_3.
            (1.000_244_1, 1.000_244_1, 2f32.powi(-60), 1.000_488_4),
            (1.000_244_1, 1.000_244_1, -2f32.powi(-60), 1.000_488_3),
            // What remains when the leading digits cancel: 2^-24.
            (1.000_244_1, 1.000_244_1, -1.000_488_3, 2f32.powi(-24)),
            // Below the normal numbers.
            (tiny, 0.5, 0.0, 0.0),
            (tiny, 0.5, tiny, 2.0 * tiny),
            (tiny, 0.500_000_06, 0.0, tiny),
            (3.4e38, 2.0, -3.4e38, 3.4e38),
            (3.4e38, 3.4e38, 0.0, f32::INFINITY),
            (f32::INFINITY, 1.0, 1.0, f32::INFINITY),
            (-0.0, 1.0, -0.0, -0.0),
            (-0.0, 1.0, 0.0, 0.0),
        ] {
            check(a, b, c);
            assert_eq!(bits(through_f64(a, b, c)), bits(want), "{a:e} * {b:e} + {c:e}");
        }
        for (a, b, c) in
            [(f32::NAN, 1.0, 1.0), (f32::INFINITY, 0.0, 1.0), (f32::INFINITY, 1.0, f32::NEG_INFINITY)]
        {
            check(a, b, c);
            assert!(through_f64(a, b, c).is_nan());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn any_sum_is_that_of_the_instruction(a: u32, b: u32, c: u32) {
            check(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
        }

        #[test]
        fn sums_that_cancel_are_those_of_the_instruction(a in -2f32..2.0, b in -2f32..2.0, off in -4i32..4, few in 0u32..24) {
            // Fewer digits of `a` make ties frequent.
            let a = f32::from_bits(a.to_bits() >> few << few);
            let c = f32::from_bits((-a * b).to_bits().wrapping_add_signed(off));
            check(a, b, c);
            check(a, b, c * 2f32.powi(-24));
            check(a * 2f32.powi(-70), b * 2f32.powi(-75), f32::from_bits(off.unsigned_abs()));
        }
    }
}
