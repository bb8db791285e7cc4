//! Sixteen lanes with the same bits on every machine.
//!
//! What is computed in bf16 by tiles (`encode::tiles`) has one result whatever computes it. The rules
//! behind that: [`Wide::N`] is 16, `fma` rounds once, sums of lanes are added in the order of
//! [`Wide::sum`], and a bf16 below [`SMALLEST`] is zero, so that every product of two and every sum of such
//! products is zero or a multiple of 2^-124: no number below the normal ones arises, which some
//! instructions flush to zero and others keep.

use super::plain::Plain;
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
    /// Asks for the line at `p`, which need not be readable, to come near (into the second cache), where
    /// that helps.
    ///
    /// # Safety
    /// The instructions of the type.
    #[inline(always)]
    unsafe fn ask(_p: *const f32) {}

    /// The greatest whole number that is not above, for magnitudes below 2^22.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn floor(v: Self::V) -> Self::V;

    /// The sum of the lanes: of lanes 8 apart, then 4, 2, 1.
    ///
    /// # Safety
    /// See the trait.
    #[inline(always)]
    unsafe fn sum(v: Self::V) -> f32 {
        let mut x = [0.0f32; 16];
        // SAFETY: the caller's promise.
        unsafe { Self::store(x.as_mut_ptr(), v) };
        for apart in [8, 4, 2, 1] {
            for i in 0..apart {
                x[i] += x[i + apart];
            }
        }
        x[0]
    }

    /// 32 operands (see [`operand`]) of two vectors, in order.
    ///
    /// # Safety
    /// See the trait; room for 32 bf16 at `p`.
    #[inline(always)]
    unsafe fn store_operands(p: *mut u16, a: Self::V, b: Self::V) {
        let mut x = [0.0f32; 32];
        // SAFETY: the caller's promise.
        unsafe {
            Self::store(x.as_mut_ptr(), a);
            Self::store(x.as_mut_ptr().add(16), b);
            for (i, &x) in x.iter().enumerate() {
                p.add(i).write(operand(x));
            }
        }
    }

    /// `2^y` by [`POWERS`] for -100 < y < 100; NaN of NaN. Beyond, below 2^-99 or above 2^99.
    ///
    /// # Safety
    /// See the trait.
    #[inline(always)]
    unsafe fn exp2(y: Self::V) -> Self::V {
        // SAFETY: the caller's promise. `max` and `min` give the second operand where one is NaN.
        unsafe {
            let y = Self::min(Self::splat(120.0), Self::max(Self::splat(-120.0), y));
            let whole = Self::floor(y);
            Self::mul(power_part::<Self>(Self::sub(y, whole)), Self::power(whole))
        }
    }

    /// The lower and the upper bf16 of each word as f32.
    ///
    /// # Safety
    /// See the trait.
    unsafe fn widen(words: Self::V) -> (Self::V, Self::V);

    /// The transposed 16 x 16 words of rows that lie end to end.
    ///
    /// # Safety
    /// See the trait; 256 words each.
    #[inline(always)]
    unsafe fn transpose(from: *const f32, to: *mut f32) {
        for i in 0..16 {
            for j in 0..16 {
                // SAFETY: the caller's promise. As integers: a signalling NaN would be quieted.
                unsafe { to.cast::<u32>().add(j * 16 + i).write(from.cast::<u32>().add(i * 16 + j).read()) };
            }
        }
    }
}

/// The polynomial of [`POWERS`].
#[inline(always)]
pub unsafe fn power_part<S: Lanes>(f: S::V) -> S::V {
    // SAFETY: the caller has the instructions of `S`.
    unsafe {
        let mut p = S::fma(S::splat(POWERS[3]), f, S::splat(POWERS[2]));
        p = S::fma(p, f, S::splat(POWERS[1]));
        S::fma(p, f, S::splat(POWERS[0]))
    }
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
        0.796_171_2,
        -0.129_738_94,
        0.017_827_567,
        -0.001_689_022_3,
        0.000_102_474_37,
        -3.540_981_2e-6,
        5.254_278e-8,
    ];
    // SAFETY: the caller's promise.
    unsafe {
        let held = S::max(S::min(x, S::splat(3.9)), S::splat(-3.9));
        let square = S::mul(held, held);
        let mut p = S::splat(ERF[6]);
        for k in (0..6).rev() {
            p = S::fma(p, square, S::splat(ERF[k]));
        }
        let half = S::mul(x, S::splat(0.5));
        S::fma(S::mul(p, held), half, half)
    }
}

impl Wide for Plain<16, 4, true> {
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

/// Two vectors of eight lanes as one of sixteen.
#[derive(Clone, Copy)]
pub struct Pair<S>(std::marker::PhantomData<S>);

macro_rules! halves {
    ($($name:ident($($arg:ident),+);)+) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: Self::V),+) -> Self::V {
                // SAFETY: the caller's promise.
                unsafe { [S::$name($($arg[0]),+), S::$name($($arg[1]),+)] }
            }
        )+
    };
}

// SAFETY (of every block below): the caller's promise of 16 elements covers 8 at the pointer and 8 after.
impl<S: Lanes> Lanes for Pair<S> {
    const N: usize = 16;
    const NV: usize = 2;
    type V = [S::V; 2];

    halves! {
        add(a, b);
        sub(a, b);
        mul(a, b);
        div(a, b);
        fma(a, b, c);
        max(a, b);
        min(a, b);
        round(v);
        power(v);
        dot2(acc, a, b);
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { [S::load(p), S::load(p.add(8))] }
    }
    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: see above.
        unsafe {
            S::store(p, v[0]);
            S::store(p.add(8), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: see above.
        unsafe { [S::splat(x); 2] }
    }
    #[inline(always)]
    unsafe fn spread(p: *const f32) -> Self::V {
        // SAFETY: see above.
        unsafe { [S::spread(p); 2] }
    }
    #[inline(always)]
    unsafe fn total(v: Self::V) -> f32 {
        // SAFETY: see above.
        unsafe { S::total(S::add(v[0], v[1])) }
    }
    #[inline(always)]
    unsafe fn largest(v: Self::V) -> f32 {
        // SAFETY: see above.
        unsafe { S::largest(S::max(v[0], v[1])) }
    }
    #[inline(always)]
    unsafe fn first(v: Self::V, n: usize, other: Self::V) -> Self::V {
        // SAFETY: see above.
        unsafe { [S::first(v[0], n.min(8), other[0]), S::first(v[1], n.saturating_sub(8), other[1])] }
    }
    #[inline(always)]
    unsafe fn store_low(p: *mut u16, v: Self::V) {
        // SAFETY: see above.
        unsafe {
            S::store_low(p, v[0]);
            S::store_low(p.add(8), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn pair(a: *const u16, b: *const u16, out: *mut f32) {
        // SAFETY: see above.
        unsafe {
            S::pair(a, b, out);
            S::pair(a.add(8), b.add(8), out.add(8));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::super::avx2::Avx2;
    use super::super::avx512::{Avx512, Avx512Bf16};
    use super::{power_part, Pair, Wide, SMALLEST, UPPER};
    use std::arch::x86_64::*;

    impl Wide for Pair<Avx2> {
        #[inline(always)]
        unsafe fn floor(v: [__m256; 2]) -> [__m256; 2] {
            // SAFETY: the caller's promise.
            unsafe { [_mm256_floor_ps(v[0]), _mm256_floor_ps(v[1])] }
        }
        #[inline(always)]
        unsafe fn widen(words: [__m256; 2]) -> ([__m256; 2], [__m256; 2]) {
            // SAFETY: the caller's promise.
            unsafe {
                let upper = _mm256_castsi256_ps(_mm256_set1_epi32(UPPER as i32));
                let (a, b) = (_mm256_castps_si256(words[0]), _mm256_castps_si256(words[1]));
                let (a, b) = (_mm256_slli_epi32::<16>(a), _mm256_slli_epi32::<16>(b));
                (
                    [_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)],
                    [_mm256_and_ps(words[0], upper), _mm256_and_ps(words[1], upper)],
                )
            }
        }
    }

    macro_rules! sixteen {
        ($name:ident, $pack:item) => {
            // SAFETY (of every block below): the caller promises the instructions and the pointers.
            impl Wide for $name {
                #[inline(always)]
                unsafe fn ask(p: *const f32) {
                    // SAFETY: see above; it never faults.
                    unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
                }
                #[inline(always)]
                unsafe fn floor(v: __m512) -> __m512 {
                    // SAFETY: see above.
                    unsafe { _mm512_roundscale_ps::<9>(v) }
                }
                #[inline(always)]
                unsafe fn sum(v: __m512) -> f32 {
                    // SAFETY: see above.
                    unsafe {
                        let x = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
                        let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
                        let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
                        _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
                    }
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
                    // SAFETY: see above. `scalef` multiplies by 2^floor(y). `reduce` in place of the
                    // subtraction would round y - floor(y) down.
                    unsafe {
                        let part = _mm512_sub_ps(y, _mm512_roundscale_ps::<9>(y));
                        _mm512_scalef_ps(power_part::<Self>(part), y)
                    }
                }
                #[inline(always)]
                unsafe fn widen(words: __m512) -> (__m512, __m512) {
                    // SAFETY: see above.
                    unsafe {
                        let bits = _mm512_castps_si512(words);
                        let upper = _mm512_and_si512(bits, _mm512_set1_epi32(UPPER as i32));
                        let lower = _mm512_slli_epi32::<16>(bits);
                        (_mm512_castsi512_ps(lower), _mm512_castsi512_ps(upper))
                    }
                }
                #[inline(always)]
                unsafe fn transpose(from: *const f32, to: *mut f32) {
                    // SAFETY: see above.
                    unsafe { transpose(from, to) }
                }
            }
        };
    }

    sixteen!(
        Avx512,
        #[inline(always)]
        unsafe fn pack(a: __m512, b: __m512) -> __m512i {
            // SAFETY: see above.
            unsafe { _mm512_inserti64x4::<1>(_mm512_castsi256_si512(half(a)), half(b)) }
        }
    );

    sixteen!(
        Avx512Bf16,
        #[inline(always)]
        unsafe fn pack(a: __m512, b: __m512) -> __m512i {
            // SAFETY: see above; both types are 64 bytes of which every pattern is valid.
            unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(b, a)) }
        }
    );

    /// Sixteen bf16, rounded to nearest, ties to even.
    #[inline(always)]
    unsafe fn half(v: __m512) -> __m256i {
        // SAFETY: the caller has the instructions.
        unsafe {
            let bits = _mm512_castps_si512(v);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            let sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
            _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(sum))
        }
    }

    // Closures would not be compiled for the instructions.
    #[inline(always)]
    unsafe fn row(from: *const f32, i: usize) -> __m512i {
        // SAFETY: the caller has the instructions and the words.
        unsafe { _mm512_loadu_si512(from.add(i * 16).cast()) }
    }
    #[inline(always)]
    unsafe fn put(to: *mut f32, i: usize, v: __m512i) {
        // SAFETY: as in `row`.
        unsafe { _mm512_storeu_si512(to.add(i * 16).cast(), v) }
    }

    /// By words, pairs of words, then quarters.
    #[inline(always)]
    unsafe fn transpose(from: *const f32, to: *mut f32) {
        // SAFETY: the caller promises 256 words at both, and the instructions.
        unsafe {
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
    }
}

#[cfg(test)]
mod tests;
