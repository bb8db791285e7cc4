//! Eight lanes: AVX2 and FMA. bf16 is emulated (widened to f32), for tests and comparisons.

use super::Lanes;
use std::arch::x86_64::*;

#[derive(Clone, Copy)]
pub struct Avx2;

// The caller promises the instructions and the pointers of every function below.
impl Lanes for Avx2 {
    const N: usize = 8;
    const NV: usize = 2;
    type V = __m256;

    #[inline(always)]
    unsafe fn load(p: *const f32) -> __m256 {
        _mm256_loadu_ps(p)
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: __m256) {
        _mm256_storeu_ps(p, v)
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> __m256 {
        _mm256_set1_ps(x)
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> __m256 {
        _mm256_broadcast_ss(&*p)
    }
    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        _mm256_add_ps(a, b)
    }
    #[inline(always)]
    unsafe fn sub(a: __m256, b: __m256) -> __m256 {
        _mm256_sub_ps(a, b)
    }
    #[inline(always)]
    unsafe fn mul(a: __m256, b: __m256) -> __m256 {
        _mm256_mul_ps(a, b)
    }
    #[inline(always)]
    unsafe fn div(a: __m256, b: __m256) -> __m256 {
        _mm256_div_ps(a, b)
    }
    #[inline(always)]
    unsafe fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
        _mm256_fmadd_ps(a, b, c)
    }
    #[inline(always)]
    unsafe fn max(a: __m256, b: __m256) -> __m256 {
        _mm256_max_ps(a, b)
    }
    #[inline(always)]
    unsafe fn min(a: __m256, b: __m256) -> __m256 {
        _mm256_min_ps(a, b)
    }
    #[inline(always)]
    unsafe fn round(v: __m256) -> __m256 {
        _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v)
    }
    #[inline(always)]
    unsafe fn power(v: __m256) -> __m256 {
        let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent))
    }
    #[inline(always)]
    unsafe fn total(v: __m256) -> f32 {
        let x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
    }
    #[inline(always)]
    unsafe fn largest(v: __m256) -> f32 {
        let x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
        let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps::<1>(x, x)))
    }
    #[inline(always)]
    unsafe fn first(v: __m256, n: usize, other: __m256) -> __m256 {
        let place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mine = _mm256_cmpgt_epi32(_mm256_set1_epi32(n as i32), place);
        _mm256_blendv_ps(other, v, _mm256_castsi256_ps(mine))
    }
    #[inline(always)]
    unsafe fn dot2(acc: __m256, a: __m256, b: __m256) -> __m256 {
        let upper = _mm256_castsi256_ps(_mm256_set1_epi32(0xffff_0000_u32 as i32));
        let lower_a = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(a)));
        let lower_b = _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_castps_si256(b)));
        let acc = _mm256_fmadd_ps(_mm256_and_ps(a, upper), _mm256_and_ps(b, upper), acc);
        _mm256_fmadd_ps(lower_a, lower_b, acc)
    }
    #[inline(always)]
    unsafe fn turn(from: *const f32, stride: usize, to: *mut f32) {
        turn(from, stride, to, Self::N)
    }
    #[inline(always)]
    unsafe fn prefetch(p: *const f32) {
        // A prefetch never faults.
        _mm_prefetch::<_MM_HINT_T1>(p.cast())
    }
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: __m256) {
        let bits = _mm256_castps_si256(v);
        let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
        let sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        let upper = _mm256_srli_epi32::<16>(sum);
        let packed = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256::<1>(upper));
        _mm_storeu_si128(p.cast(), packed);
    }
    #[inline(always)]
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
        let lower = _mm256_cvtepu16_epi32(_mm_loadu_si128(a.cast()));
        let upper = _mm256_cvtepu16_epi32(_mm_loadu_si128(b.cast()));
        let words = _mm256_or_si256(lower, _mm256_slli_epi32::<16>(upper));
        _mm256_storeu_si256(out.cast(), words);
    }
}

/// Eight rows of eight words, transposed: by words, pairs of words, then halves. Rows of the result are `out` apart.
///
/// # Safety
/// AVX2; the rows exist at `from` and `to`.
#[inline(always)]
pub unsafe fn turn(from: *const f32, stride: usize, to: *mut f32, out: usize) {
    let mut rows = [_mm256_setzero_ps(); 8];
    for i in 0..4 {
        // Rows i and i + 4 side by side: words 0 to 3, then 4 to 7.
        let (a, b) = (from.add(i * stride), from.add((i + 4) * stride));
        for half in 0..2 {
            let low = _mm256_castps128_ps256(_mm_loadu_ps(a.add(4 * half)));
            rows[4 * half + i] = _mm256_insertf128_ps::<1>(low, _mm_loadu_ps(b.add(4 * half)));
        }
    }
    for half in 0..2 {
        let [a, b, c, d] = [rows[4 * half], rows[4 * half + 1], rows[4 * half + 2], rows[4 * half + 3]];
        let (p, q) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
        let (r, s) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
        let columns = [
            _mm256_shuffle_ps::<0x44>(p, q),
            _mm256_shuffle_ps::<0xee>(p, q),
            _mm256_shuffle_ps::<0x44>(r, s),
            _mm256_shuffle_ps::<0xee>(r, s),
        ];
        for (j, column) in columns.into_iter().enumerate() {
            _mm256_storeu_ps(to.add((4 * half + j) * out), column);
        }
    }
}
