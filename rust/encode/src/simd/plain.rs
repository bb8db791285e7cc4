//! Lanes as an array: portable, and of any width.

use super::fused::fused;
use super::{low, Lanes};

/// `N` lanes, `NV` vectors per register block. The compiler maps small widths to the vectors of the target.
/// With `FUSED` a multiplication and an addition are rounded once.
#[derive(Clone, Copy)]
pub struct Plain<const N: usize, const NV: usize, const FUSED: bool = false>;

/// Lanes for machines without an optimised implementation: 4 lanes suit SSE2 and NEON.
pub type Portable = Plain<4, 2>;

/// The lanes of [`super::wide::Wide`] on any machine.
pub type PortableWide = Plain<16, 4, true>;

#[inline(always)]
fn zip<const N: usize>(mut a: [f32; N], b: [f32; N], f: impl Fn(f32, f32) -> f32) -> [f32; N] {
    for i in 0..N {
        a[i] = f(a[i], b[i]);
    }
    a
}

// SAFETY (of every block below): the caller promises `N` elements at each pointer.
impl<const N: usize, const NV: usize, const FUSED: bool> Lanes for Plain<N, NV, FUSED> {
    const N: usize = N;
    const NV: usize = NV;
    type V = [f32; N];

    #[inline(always)]
    unsafe fn load(p: *const f32) -> [f32; N] {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[f32; N]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: [f32; N]) {
        // SAFETY: the caller's promise.
        unsafe { p.cast::<[f32; N]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> [f32; N] {
        [x; N]
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> [f32; N] {
        // SAFETY: the caller's promise.
        [unsafe { p.read() }; N]
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
        for i in 0..N {
            a[i] = if FUSED { fused(a[i], b[i], c[i]) } else { a[i] * b[i] + c[i] };
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
            // SAFETY: the caller's promise.
            unsafe { p.add(i).write(low(x)) }
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
