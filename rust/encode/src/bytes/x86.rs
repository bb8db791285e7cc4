//! Products of bytes by AVX2, AVX-VNNI, AVX-512 and its VNNI.

use super::dot::Dot;
use std::arch::x86_64::*;

/// AVX2: `vpmaddubsw` adds two products into 16 bits, `vpmaddwd` the two sums into 32.
#[derive(Clone, Copy)]
pub struct Avx2;
/// AVX-VNNI: `vpdpbusd` on 256 bits, common in laptops.
#[derive(Clone, Copy)]
pub struct AvxVnni;
/// As AVX2, on 512 bits (AVX-512 BW).
#[derive(Clone, Copy)]
pub struct Avx512;
/// AVX-512 VNNI: `vpdpbusd` on 512 bits.
#[derive(Clone, Copy)]
pub struct Avx512Vnni;

macro_rules! dot {
    (
        $name:ident, $vector:ty, $lanes:literal, $rows:literal,
        $zero:ident, $load:ident, $spread:ident, $store:ident, |$acc:ident, $a:ident, $b:ident| $dot:expr
    ) => {
        // SAFETY (of every block below): the caller promises the instructions and the pointers.
        impl Dot for $name {
            type On = ();
            type I = $vector;
            const N: usize = $lanes;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn on() {}
            #[inline(always)]
            unsafe fn zero() -> $vector {
                // SAFETY: see above.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn load(p: *const i32) -> $vector {
                // SAFETY: see above.
                unsafe { $load(p.cast()) }
            }
            #[inline(always)]
            unsafe fn spread(p: *const i32) -> $vector {
                // SAFETY: see above.
                unsafe { $spread(p.read()) }
            }
            #[inline(always)]
            unsafe fn store(p: *mut i32, v: $vector) {
                // SAFETY: see above.
                unsafe { $store(p.cast(), v) }
            }
            #[inline(always)]
            unsafe fn dot($acc: $vector, $a: $vector, $b: $vector) -> $vector {
                // SAFETY: see above.
                unsafe { $dot }
            }
        }
    };
}

dot!(
    Avx2,
    __m256i,
    8,
    5,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_set1_epi32,
    _mm256_storeu_si256,
    |acc, a, b| {
        let pairs = _mm256_maddubs_epi16(a, b);
        _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
);
dot!(
    AvxVnni,
    __m256i,
    8,
    6,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_set1_epi32,
    _mm256_storeu_si256,
    |acc, a, b| _mm256_dpbusd_avx_epi32(acc, a, b)
);
dot!(
    Avx512,
    __m512i,
    16,
    8,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_set1_epi32,
    _mm512_storeu_si512,
    |acc, a, b| {
        let pairs = _mm512_maddubs_epi16(a, b);
        _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
    }
);
dot!(
    Avx512Vnni,
    __m512i,
    16,
    8,
    _mm512_setzero_si512,
    _mm512_loadu_si512,
    _mm512_set1_epi32,
    _mm512_storeu_si512,
    |acc, a, b| _mm512_dpbusd_epi32(acc, a, b)
);
