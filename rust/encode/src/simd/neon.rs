//! Four lanes: NEON, which every 64-bit ARM processor has. bf16 is emulated (widened to f32).

use super::Lanes;
use std::arch::aarch64::*;

#[derive(Clone, Copy)]
pub struct Neon;

// The caller promises the instructions and the pointers of every function below.
impl Lanes for Neon {
    const N: usize = 4;
    /// With 6 rows: 24 sums, four columns and one broadcast word in 32 registers.
    const NV: usize = 4;
    type V = float32x4_t;

    #[inline(always)]
    unsafe fn load(p: *const f32) -> float32x4_t {
        vld1q_f32(p)
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: float32x4_t) {
        vst1q_f32(p, v)
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> float32x4_t {
        vdupq_n_f32(x)
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> float32x4_t {
        vld1q_dup_f32(p)
    }
    #[inline(always)]
    unsafe fn add(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vaddq_f32(a, b)
    }
    #[inline(always)]
    unsafe fn sub(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vsubq_f32(a, b)
    }
    #[inline(always)]
    unsafe fn mul(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vmulq_f32(a, b)
    }
    #[inline(always)]
    unsafe fn div(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vdivq_f32(a, b)
    }
    #[inline(always)]
    unsafe fn fma(a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        vfmaq_f32(c, a, b)
    }
    // `vmaxq_f32` returns NaN if either operand is NaN; the other machines return the second operand.
    #[inline(always)]
    unsafe fn max(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vbslq_f32(vcgtq_f32(a, b), a, b)
    }
    #[inline(always)]
    unsafe fn min(a: float32x4_t, b: float32x4_t) -> float32x4_t {
        vbslq_f32(vcltq_f32(a, b), a, b)
    }
    #[inline(always)]
    unsafe fn round(v: float32x4_t) -> float32x4_t {
        vrndnq_f32(v)
    }
    #[inline(always)]
    unsafe fn power(v: float32x4_t) -> float32x4_t {
        let exponent = vaddq_s32(vcvtq_s32_f32(v), vdupq_n_s32(127));
        vreinterpretq_f32_s32(vshlq_n_s32::<23>(exponent))
    }
    // In the order of vectors that are halved.
    #[inline(always)]
    unsafe fn total(v: float32x4_t) -> f32 {
        let halves = vadd_f32(vget_low_f32(v), vget_high_f32(v));
        vget_lane_f32::<0>(halves) + vget_lane_f32::<1>(halves)
    }
    #[inline(always)]
    unsafe fn largest(v: float32x4_t) -> f32 {
        vmaxnmvq_f32(v)
    }
    #[inline(always)]
    unsafe fn first(v: float32x4_t, n: usize, other: float32x4_t) -> float32x4_t {
        const PLACES: [u32; 4] = [0, 1, 2, 3];
        let places = vld1q_u32(PLACES.as_ptr());
        vbslq_f32(vcltq_u32(places, vdupq_n_u32(n as u32)), v, other)
    }
    #[inline(always)]
    unsafe fn dot2(acc: float32x4_t, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        let (a, b) = (vreinterpretq_u32_f32(a), vreinterpretq_u32_f32(b));
        let acc = vfmaq_f32(acc, upper(a), upper(b));
        vfmaq_f32(acc, lower(a), lower(b))
    }
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: float32x4_t) {
        let bits = vreinterpretq_u32_f32(v);
        let odd = vandq_u32(vshrq_n_u32::<16>(bits), vdupq_n_u32(1));
        let sum = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
        vst1_u16(p, vshrn_n_u32::<16>(sum))
    }
    #[inline(always)]
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
        let words = vsliq_n_u32::<16>(vmovl_u16(vld1_u16(a)), vmovl_u16(vld1_u16(b)));
        vst1q_f32(out, vreinterpretq_f32_u32(words));
    }
}

/// The upper bf16 of each word as f32.
///
/// # Safety
/// NEON, as below.
#[inline(always)]
pub unsafe fn upper(words: uint32x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vandq_u32(words, vdupq_n_u32(0xffff_0000)))
}

/// The lower bf16 of each word as f32.
#[inline(always)]
pub unsafe fn lower(words: uint32x4_t) -> float32x4_t {
    vreinterpretq_f32_u32(vshlq_n_u32::<16>(words))
}
