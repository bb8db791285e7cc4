//! Sixteen lanes with the same bits on every machine.
//!
//! Results computed in bf16 by tiles (`encode::tiles`) are the same on all hardware. The rules that ensure
//! this: [`Wide::N`] is 16, `fma` rounds once, sums of lanes are added in the order of [`Wide::sum`], and a
//! bf16 below [`SMALLEST`] is zero, so that every product of two and every sum of such products is zero or a
//! multiple of 2^-124: subnormal numbers, which some instructions flush to zero and others keep, do not
//! occur.

use super::plain::PortableWide;
use super::{low, Lanes};

/// The smallest magnitude of an operand that is not zero, 2^-55, as the bits of a bf16.
pub const SMALLEST: u16 = (127 - 55) << 7;

/// The bf16 nearest to `x`, ties to even; zero below [`SMALLEST`].
#[inline(always)]
pub fn operand(x: f32) -> u16 {
    let bits = low(x);
    if bits & 0x7fff < SMALLEST {
        0
    } else {
        bits
    }
}

/// The upper bf16 of a word.
const UPPER: u32 = 0xffff_0000;

/// `2^f = p0 + p1 f + p2 f^2 + p3 f^3` on 0..1 with a relative error of 7.5e-5, far below that of
/// bf16; minimax, fitted for this file.
pub const POWERS: [f32; 4] = [0.999_925_23, 0.695_833_47, 0.226_067_2, 0.078_024_57];

/// Sixteen lanes of f32; all methods have the same bits on every machine.
///
/// # Safety
/// As [`Lanes`].
pub trait Wide: Lanes {
    /// Prefetch the line at `p`, which need not be readable, into the L2 cache, if that helps.
    ///
    /// # Safety
    /// The instructions of the type.
    #[inline(always)]
    unsafe fn ask(_p: *const f32) {}

    /// Round down to a whole number, for magnitudes below 2^22.
    unsafe fn floor(v: Self::V) -> Self::V;

    /// The sum of the lanes: of lanes 8 apart, then 4, 2, 1.
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        let mut x = [0.0f32; 16];
        Self::store(x.as_mut_ptr(), v);
        for apart in [8, 4, 2, 1] {
            for i in 0..apart {
                x[i] += x[i + apart];
            }
        }
        x[0]
    }

    /// 32 operands (see [`operand`]) of two vectors, in order.
    #[inline(always)]
    unsafe fn store_operands(p: *mut u16, a: Self::V, b: Self::V) {
        let mut x = [0.0f32; 32];
        Self::store(x.as_mut_ptr(), a);
        Self::store(x.as_mut_ptr().add(16), b);
        for (i, &x) in x.iter().enumerate() {
            p.add(i).write(operand(x));
        }
    }

    /// `2^y` by [`POWERS`] for -100 < y < 100; NaN of NaN. Beyond, below 2^-99 or above 2^99.
    #[inline(always)]
    unsafe fn exp2(y: Self::V) -> Self::V {
        // `max` and `min` return the second operand if one is NaN.
        let y = Self::min(Self::splat(120.0), Self::max(Self::splat(-120.0), y));
        let whole = Self::floor(y);
        Self::mul(power_part::<Self>(Self::sub(y, whole)), Self::power(whole))
    }

    /// The lower and the upper bf16 of each word as f32.
    unsafe fn widen(words: Self::V) -> (Self::V, Self::V);

    /// Sixteen bytes of whole numbers in 0..=255; of NaN any byte.
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: Self::V) {
        let mut x = [0.0f32; 16];
        Self::store(x.as_mut_ptr(), v);
        p.cast::<[u8; 16]>().write_unaligned(x.map(|x| x as u8));
    }

    /// `sums + zero * weights` of sixteen whole numbers, nearest f32.
    #[inline(always)]
    unsafe fn plus(sums: *const i32, weights: *const i32, zero: i32) -> Self::V {
        let mut x = [0.0f32; 16];
        for (i, x) in x.iter_mut().enumerate() {
            let all = sums.add(i).read();
            *x = all.wrapping_add(zero.wrapping_mul(weights.add(i).read())) as f32;
        }
        Self::load(x.as_ptr())
    }

    /// The transposed 16 x 16 words of rows that lie end to end.
    #[inline(always)]
    unsafe fn transpose(from: *const f32, to: *mut f32) {
        for i in 0..16 {
            for j in 0..16 {
                // As integers: a signalling NaN would be quieted.
                to.cast::<u32>().add(j * 16 + i).write(from.cast::<u32>().add(i * 16 + j).read());
            }
        }
    }
}

/// The polynomial of [`POWERS`].
#[inline(always)]
pub unsafe fn power_part<S: Lanes>(f: S::V) -> S::V {
    // Of `S`.
    let mut p = S::fma(S::splat(POWERS[3]), f, S::splat(POWERS[2]));
    p = S::fma(p, f, S::splat(POWERS[1]));
    S::fma(p, f, S::splat(POWERS[0]))
}

/// `x / 2 * (1 + x P(x^2))` with `x` held within -3.9..=3.9 in the odd polynomial for erf(x / sqrt 2);
/// its error is at most 1.5e-4.
///
/// # Safety
/// The instructions of `S`.
#[inline(always)]
pub unsafe fn gelu<S: Wide>(x: S::V) -> S::V {
    // Minimax for the error of gelu; fitted for this file.
    const ERF: [f32; 7] = [
        0.796_171_2, -0.129_738_94, 0.017_827_567, -0.001_689_022_3, 0.000_102_474_37, -3.540_981_2e-6,
        5.254_278e-8,
    ];
    let held = S::max(S::min(x, S::splat(3.9)), S::splat(-3.9));
    let square = S::mul(held, held);
    let mut p = S::splat(ERF[6]);
    for k in (0..6).rev() {
        p = S::fma(p, square, S::splat(ERF[k]));
    }
    let half = S::mul(x, S::splat(0.5));
    S::fma(S::mul(p, held), half, half)
}

impl Wide for PortableWide {
    #[inline(always)]
    unsafe fn floor(mut v: [f32; 16]) -> [f32; 16] {
        for x in &mut v {
            let near = (*x + 12_582_912.0) - 12_582_912.0;
            *x = if near > *x { near - 1.0 } else { near };
        }
        v
    }
    #[inline(always)]
    unsafe fn widen(words: [f32; 16]) -> ([f32; 16], [f32; 16]) {
        (words.map(|x| f32::from_bits(x.to_bits() << 16)), words.map(|x| f32::from_bits(x.to_bits() & UPPER)))
    }
}

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;
