//! Products of bytes with NEON. The byte products of newer processors (`udot`, `usdot`) have no stable
//! intrinsics.

use super::dot::Dot;
use std::arch::aarch64::*;

/// Products in 16 bits: of an unsigned and a signed byte they fit, and so do the sums of two that are adjacent
/// (see [`super::product`]).
#[derive(Clone, Copy)]
pub struct Neon;

// The caller promises the instructions and the pointers of every function below.
impl Dot for Neon {
    type On = ();
    type I = int32x4_t;
    const N: usize = 4;
    const ROWS: usize = 8;

    #[inline(always)]
    unsafe fn on() {}
    #[inline(always)]
    unsafe fn zero() -> int32x4_t {
        vdupq_n_s32(0)
    }
    #[inline(always)]
    unsafe fn load(p: *const i32) -> int32x4_t {
        vld1q_s32(p)
    }
    #[inline(always)]
    unsafe fn spread(p: *const i32) -> int32x4_t {
        vld1q_dup_s32(p)
    }
    #[inline(always)]
    unsafe fn store(p: *mut i32, v: int32x4_t) {
        vst1q_s32(p, v)
    }
    #[inline(always)]
    unsafe fn dot(acc: int32x4_t, a: int32x4_t, b: int32x4_t) -> int32x4_t {
        let (a, b) = (vreinterpretq_u8_s32(a), vreinterpretq_s8_s32(b));
        let low = vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(a))), vmovl_s8(vget_low_s8(b)));
        let high = vmulq_s16(vreinterpretq_s16_u16(vmovl_high_u8(a)), vmovl_high_s8(b));
        vpadalq_s16(acc, vpaddq_s16(low, high))
    }
}
