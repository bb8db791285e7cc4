//! Products of bytes by AVX2, AVX-VNNI, AVX-512 and its VNNI.

use super::dot::{Dot, Scales};
use super::{HALF_WORDS, PANEL, STEP};
use crate::simd::wide::Wide;
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
        $(, $own:item)?
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
            $($own)?
        }
    };
}

dot!(
    Avx2,
    __m256i,
    8,
    4,
    _mm256_setzero_si256,
    _mm256_loadu_si256,
    _mm256_set1_epi32,
    _mm256_storeu_si256,
    |acc, a, b| {
        let pairs = _mm256_maddubs_epi16(a, b);
        _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    },
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn group<S: Wide>(
        rows: usize,
        steps: usize,
        a: *const i32,
        stride: usize,
        b: *const i32,
        of: Scales,
        _sums: *mut i32,
        total: *mut f32,
    ) {
        let count = rows.div_ceil(Self::ROWS);
        for from in (0..PANEL).step_by(16) {
            for i in 0..count {
                let (row, end) = (i * rows / count, (i + 1) * rows / count);
                // SAFETY: the caller's promise.
                unsafe {
                    let (a, b) = (a.add(row * stride), b.add(from / 16 * steps * HALF_WORDS));
                    let (of, total) = (of.from(row, from), total.add(row * PANEL + from));
                    match end - row {
                        1 => values::<1>(steps * STEP, a, stride, b, of, total),
                        2 => values::<2>(steps * STEP, a, stride, b, of, total),
                        3 => values::<3>(steps * STEP, a, stride, b, of, total),
                        _ => values::<4>(steps * STEP, a, stride, b, of, total),
                    }
                }
            }
        }
    }
);

/// [`Dot::group`] for `R` rows and sixteen outputs. Two words at a time: the sums of their pairs fit in 16 bits, so
/// that three instructions in place of four go to the two units that multiply.
///
/// # Safety
/// As [`Dot::group`]; an even number of words.
#[inline(always)]
unsafe fn values<const R: usize>(
    words: usize,
    mut a: *const i32,
    stride: usize,
    mut b: *const i32,
    of: Scales,
    total: *mut f32,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let ones = _mm256_set1_epi16(1);
        let mut sums = [[_mm256_setzero_si256(); 2]; R];
        for _ in 0..words / 2 {
            let first = [Avx2::load(b), Avx2::load(b.add(8))];
            let second = [Avx2::load(b.add(16)), Avx2::load(b.add(24))];
            for r in 0..R {
                let (x, y) = (Avx2::spread(a.add(r * stride)), Avx2::spread(a.add(r * stride + 1)));
                for v in 0..2 {
                    let pairs = _mm256_maddubs_epi16(x, first[v]);
                    let pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(y, second[v]));
                    sums[r][v] = _mm256_add_epi32(sums[r][v], _mm256_madd_epi16(pairs, ones));
                }
            }
            a = a.wrapping_add(2);
            b = b.wrapping_add(32);
        }
        for r in 0..R {
            // The sum of a group's weights fits in 16 bits, too, so that this is the product of words.
            let zero = _mm256_set1_epi32(of.zero.add(r * of.groups).read());
            let row_scale = _mm256_set1_ps(of.row_scale.add(r * of.groups).read());
            for v in 0..2 {
                let weights = _mm256_loadu_si256(of.weights.add(8 * v).cast());
                let sum = _mm256_sub_epi32(sums[r][v], _mm256_madd_epi16(weights, zero));
                let scale = _mm256_mul_ps(_mm256_loadu_ps(of.scale.add(8 * v)), row_scale);
                let so_far = _mm256_loadu_ps(of.so_far.add(r * of.stride + 8 * v));
                let value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), scale, so_far);
                _mm256_storeu_ps(total.add(r * PANEL + 8 * v), value);
            }
        }
    }
}
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
