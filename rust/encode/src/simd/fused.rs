//! A multiplication and an addition of f32 that are rounded once, on any machine and with any C library.
//!
//! Where the target has no instruction, `f32::mul_add` calls `fmaf` of the C library, and that of mingw-w64 10
//! adds in f32: when the sum cancels, hardly a digit is right.

/// Return `a * b + c`, rounded once.
#[inline(always)]
pub fn fused(a: f32, b: f32, c: f32) -> f32 {
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
