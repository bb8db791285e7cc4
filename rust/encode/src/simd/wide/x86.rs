//! The sixteen lanes of AVX-512, and of AVX2 in pairs.

use super::{power_part, Wide, SMALLEST, UPPER};
use crate::simd::avx2::Avx2;
use crate::simd::avx512::{Avx512, Avx512Bf16};
use crate::simd::pair::Pair;
use std::arch::x86_64::*;

impl Wide for Pair<Avx2> {
    #[inline(always)]
    unsafe fn sum(v: [__m256; 2]) -> f32 {
        let x = _mm256_add_ps(v[0], v[1]);
        let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
    }
    #[inline(always)]
    unsafe fn floor(v: [__m256; 2]) -> [__m256; 2] {
        [_mm256_floor_ps(v[0]), _mm256_floor_ps(v[1])]
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: [__m256; 2]) {
        let both = _mm256_packs_epi32(_mm256_cvtps_epi32(v[0]), _mm256_cvtps_epi32(v[1]));
        let both = _mm256_permute4x64_epi64::<0xd8>(both);
        let bytes = _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256::<1>(both));
        _mm_storeu_si128(p.cast(), bytes);
    }
    #[inline(always)]
    unsafe fn plus(sums: *const i32, weights: *const i32, zero: i32) -> [__m256; 2] {
        [eight(sums, weights, zero), eight(sums.add(8), weights.add(8), zero)]
    }
    #[inline(always)]
    unsafe fn widen(words: [__m256; 2]) -> ([__m256; 2], [__m256; 2]) {
        let upper = _mm256_castsi256_ps(_mm256_set1_epi32(UPPER as i32));
        let (a, b) = (_mm256_castps_si256(words[0]), _mm256_castps_si256(words[1]));
        let (a, b) = (_mm256_slli_epi32::<16>(a), _mm256_slli_epi32::<16>(b));
        (
            [_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)],
            [_mm256_and_ps(words[0], upper), _mm256_and_ps(words[1], upper)],
        )
    }
}

/// Half of [`Wide::plus`].
#[inline(always)]
unsafe fn eight(sums: *const i32, weights: *const i32, zero: i32) -> __m256 {
    let weights = _mm256_loadu_si256(weights.cast());
    let more = _mm256_mullo_epi32(weights, _mm256_set1_epi32(zero));
    _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_loadu_si256(sums.cast()), more))
}

macro_rules! sixteen {
    ($name:ident, $pack:item) => {
        // The caller promises the instructions and the pointers of every function below.
        impl Wide for $name {
            #[inline(always)]
            unsafe fn ask(p: *const f32) {
                // It never faults.
                _mm_prefetch::<_MM_HINT_T1>(p.cast())
            }
            #[inline(always)]
            unsafe fn floor(v: __m512) -> __m512 {
                _mm512_roundscale_ps::<9>(v)
            }
            #[inline(always)]
            unsafe fn sum(v: __m512) -> f32 {
                let x = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
                let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
                let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
                _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
            }
            #[inline(always)]
            unsafe fn store_operands(p: *mut u16, a: __m512, b: __m512) {
                // SAFETY: see above.
                unsafe {
                    let x = pack(a, b);
                    let size = _mm512_add_epi16(x, x); // the sign leaves
                    let smallest = _mm512_set1_epi16((2 * SMALLEST) as i16);
                    let large = _mm512_cmpge_epu16_mask(size, smallest);
                    _mm512_storeu_si512(p.cast(), _mm512_maskz_mov_epi16(large, x));
                }
                $pack
            }
            #[inline(always)]
            unsafe fn exp2(y: __m512) -> __m512 {
                // `scalef` multiplies by 2^floor(y). `reduce` in place of the subtraction would round y - floor(y) down.
                let part = _mm512_sub_ps(y, _mm512_roundscale_ps::<9>(y));
                _mm512_scalef_ps(power_part::<Self>(part), y)
            }
            #[inline(always)]
            unsafe fn store_bytes(p: *mut u8, v: __m512) {
                _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)))
            }
            #[inline(always)]
            unsafe fn plus(sums: *const i32, weights: *const i32, zero: i32) -> __m512 {
                let weights = _mm512_loadu_si512(weights.cast());
                let more = _mm512_mullo_epi32(weights, _mm512_set1_epi32(zero));
                _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_loadu_si512(sums.cast()), more))
            }
            #[inline(always)]
            unsafe fn widen(words: __m512) -> (__m512, __m512) {
                let bits = _mm512_castps_si512(words);
                let upper = _mm512_and_si512(bits, _mm512_set1_epi32(UPPER as i32));
                let lower = _mm512_slli_epi32::<16>(bits);
                (_mm512_castsi512_ps(lower), _mm512_castsi512_ps(upper))
            }
            #[inline(always)]
            unsafe fn transpose(from: *const f32, to: *mut f32) {
                transpose(from, to)
            }
        }
    };
}

sixteen!(
    Avx512,
    #[inline(always)]
    unsafe fn pack(a: __m512, b: __m512) -> __m512i {
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(a)), half(b))
    }
);

sixteen!(
    Avx512Bf16,
    #[inline(always)]
    unsafe fn pack(a: __m512, b: __m512) -> __m512i {
        // Both types are 64 bytes of which every pattern is valid.
        std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(b, a))
    }
);

/// Sixteen bf16, rounded to nearest, ties to even.
#[inline(always)]
unsafe fn half(v: __m512) -> __m256i {
    let bits = _mm512_castps_si512(v);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(sum))
}

// Closures would not be compiled for the instructions.
#[inline(always)]
unsafe fn row(from: *const f32, i: usize) -> __m512i {
    // And the words.
    _mm512_loadu_si512(from.add(i * 16).cast())
}
#[inline(always)]
unsafe fn put(to: *mut f32, i: usize, v: __m512i) {
    // SAFETY: as in `row`.
    unsafe { _mm512_storeu_si512(to.add(i * 16).cast(), v) }
}

/// By words, pairs of words, then quarters.
#[inline(always)]
unsafe fn transpose(from: *const f32, to: *mut f32) {
    let mut a: [__m512i; 16] = [_mm512_setzero_si512(); 16];
    for i in 0..4 {
        let (p, q) = (row(from, 4 * i), row(from, 4 * i + 1));
        let (r, s) = (row(from, 4 * i + 2), row(from, 4 * i + 3));
        let (pq, rs) = (_mm512_unpacklo_epi32(p, q), _mm512_unpacklo_epi32(r, s));
        a[4 * i] = _mm512_unpacklo_epi64(pq, rs);
        a[4 * i + 1] = _mm512_unpackhi_epi64(pq, rs);
        let (pq, rs) = (_mm512_unpackhi_epi32(p, q), _mm512_unpackhi_epi32(r, s));
        a[4 * i + 2] = _mm512_unpacklo_epi64(pq, rs);
        a[4 * i + 3] = _mm512_unpackhi_epi64(pq, rs);
    }
    // a[4 i + c]: of rows 4 i to 4 i + 3 the words c, c + 4, c + 8 and c + 12, a quarter each.
    for c in 0..4 {
        let (p, q, r, s) = (a[c], a[4 + c], a[8 + c], a[12 + c]);
        let (x, y) = (_mm512_shuffle_i32x4::<0x88>(p, q), _mm512_shuffle_i32x4::<0xdd>(p, q));
        let (z, w) = (_mm512_shuffle_i32x4::<0x88>(r, s), _mm512_shuffle_i32x4::<0xdd>(r, s));
        put(to, c, _mm512_shuffle_i32x4::<0x88>(x, z));
        put(to, 8 + c, _mm512_shuffle_i32x4::<0xdd>(x, z));
        put(to, 4 + c, _mm512_shuffle_i32x4::<0x88>(y, w));
        put(to, 12 + c, _mm512_shuffle_i32x4::<0xdd>(y, w));
    }
}
