//! Sixteen lanes: AVX-512 (F, BW, DQ, VL), and the same with the bf16 instructions.

use super::Lanes;
use std::arch::x86_64::*;

/// bf16 is emulated: it widens to f32.
#[derive(Clone, Copy)]
pub struct Avx512;

/// With AVX-512 BF16: two products a lane and instruction.
#[derive(Clone, Copy)]
pub struct Avx512Bf16;

macro_rules! sixteen {
    ($name:ident, $dot2:item, $store_low:item) => {
        // The caller promises the instructions and the pointers of every function below.
        impl Lanes for $name {
            const N: usize = 16;
            const NV: usize = 3;
            const ROWS: usize = 8;
            type V = __m512;

            #[inline(always)]
            unsafe fn load(p: *const f32) -> __m512 {
                _mm512_loadu_ps(p)
            }
            #[inline(always)]
            unsafe fn store(p: *mut f32, v: __m512) {
                _mm512_storeu_ps(p, v)
            }
            #[inline(always)]
            unsafe fn splat(x: f32) -> __m512 {
                _mm512_set1_ps(x)
            }
            #[inline(always)]
            unsafe fn spread(p: *const f32) -> __m512 {
                _mm512_set1_ps(p.read())
            }
            #[inline(always)]
            unsafe fn add(a: __m512, b: __m512) -> __m512 {
                _mm512_add_ps(a, b)
            }
            #[inline(always)]
            unsafe fn sub(a: __m512, b: __m512) -> __m512 {
                _mm512_sub_ps(a, b)
            }
            #[inline(always)]
            unsafe fn mul(a: __m512, b: __m512) -> __m512 {
                _mm512_mul_ps(a, b)
            }
            #[inline(always)]
            unsafe fn div(a: __m512, b: __m512) -> __m512 {
                _mm512_div_ps(a, b)
            }
            #[inline(always)]
            unsafe fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
                _mm512_fmadd_ps(a, b, c)
            }
            #[inline(always)]
            unsafe fn max(a: __m512, b: __m512) -> __m512 {
                _mm512_max_ps(a, b)
            }
            #[inline(always)]
            unsafe fn min(a: __m512, b: __m512) -> __m512 {
                _mm512_min_ps(a, b)
            }
            #[inline(always)]
            unsafe fn round(v: __m512) -> __m512 {
                _mm512_roundscale_ps::<0>(v)
            }
            #[inline(always)]
            unsafe fn power(v: __m512) -> __m512 {
                _mm512_scalef_ps(_mm512_set1_ps(1.0), v)
            }
            #[inline(always)]
            unsafe fn total(v: __m512) -> f32 {
                _mm512_reduce_add_ps(v)
            }
            #[inline(always)]
            unsafe fn largest(v: __m512) -> f32 {
                _mm512_reduce_max_ps(v)
            }
            #[inline(always)]
            unsafe fn first(v: __m512, n: usize, other: __m512) -> __m512 {
                _mm512_mask_mov_ps(other, ((1u32 << n) - 1) as u16, v)
            }
            #[inline(always)]
            unsafe fn prefetch(p: *const f32) {
                // A prefetch never faults.
                _mm_prefetch::<_MM_HINT_T1>(p.cast())
            }
            #[inline(always)]
            unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
                    let lower = _mm512_cvtepu16_epi32(_mm256_loadu_si256(a.cast()));
                    let upper = _mm512_cvtepu16_epi32(_mm256_loadu_si256(b.cast()));
                    let words = _mm512_or_si512(lower, _mm512_slli_epi32::<16>(upper));
                    _mm512_storeu_si512(out.cast(), words);
            }
            $dot2
            $store_low
        }
    };
}

sixteen!(
    Avx512,
    #[inline(always)]
    unsafe fn dot2(acc: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let (a, b) = (_mm512_castps_si512(a), _mm512_castps_si512(b));
            let mask = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            let upper = _mm512_fmadd_ps(
                _mm512_castsi512_ps(_mm512_and_si512(a, mask)),
                _mm512_castsi512_ps(_mm512_and_si512(b, mask)),
                acc,
            );
            let a = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(a));
            let b = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(b));
            _mm512_fmadd_ps(a, b, upper)
        }
    },
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: __m512) {
        let bits = _mm512_castps_si512(v);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
        _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(sum)));
    }
);

sixteen!(
    Avx512Bf16,
    #[inline(always)]
    unsafe fn dot2(acc: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above; both types are 64 bytes of which every pattern is valid.
        unsafe {
            let a = std::mem::transmute::<__m512, __m512bh>(a);
            let b = std::mem::transmute::<__m512, __m512bh>(b);
            _mm512_dpbf16_ps(acc, a, b)
        }
    },
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: __m512) {
        // Both types are 32 bytes of which every pattern is valid.
        let packed = std::mem::transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(v));
        _mm256_storeu_si256(p.cast(), packed);
    }
);
