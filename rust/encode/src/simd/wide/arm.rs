//! The sixteen lanes of NEON: four vectors.

use super::Wide;
use crate::simd::neon::{lower, upper, Neon};
use crate::simd::pair::Pair;
use std::arch::aarch64::*;

impl Wide for Pair<Pair<Neon>> {
    #[inline(always)]
    unsafe fn floor(v: Self::V) -> Self::V {
        v.map(|half| half.map(|four| vrndmq_f32(four)))
    }
    #[inline(always)]
    unsafe fn widen(words: Self::V) -> (Self::V, Self::V) {
        let bits = words.map(|half| half.map(|four| vreinterpretq_u32_f32(four)));
        (bits.map(|half| half.map(|four| lower(four))), bits.map(|half| half.map(|four| upper(four))))
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: Self::V) {
        let [low, high] = v.map(|half| {
            let [a, b] = half.map(|four| vmovn_u32(vcvtnq_u32_f32(four)));
            vmovn_u16(vcombine_u16(a, b))
        });
        vst1q_u8(p, vcombine_u8(low, high))
    }
    #[inline(always)]
    unsafe fn plus(sums: *const i32, weights: *const i32, zero: i32) -> Self::V {
        let four = |from: usize| {
            let (sums, weights) = (vld1q_s32(sums.add(from)), vld1q_s32(weights.add(from)));
            vcvtq_f32_s32(vmlaq_s32(sums, weights, vdupq_n_s32(zero)))
        };
        [[four(0), four(4)], [four(8), four(12)]]
    }
}
