//! Products of bytes by AVX2, AVX-VNNI, AVX-512 and its VNNI.

use super::dot::{Dot, Scales};
use super::{GROUP_WORDS, HALF_WORDS, PANEL, STEP};
use crate::simd::wide::Wide;
use std::arch::{asm, x86_64::*};

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
        // The caller promises the instructions and the pointers of every function below.
        impl Dot for $name {
            type On = ();
            type I = $vector;
            const N: usize = $lanes;
            const ROWS: usize = $rows;

            #[inline(always)]
            unsafe fn on() {}
            #[inline(always)]
            unsafe fn zero() -> $vector {
                $zero()
            }
            #[inline(always)]
            unsafe fn load(p: *const i32) -> $vector {
                $load(p.cast())
            }
            #[inline(always)]
            unsafe fn spread(p: *const i32) -> $vector {
                $spread(p.read())
            }
            #[inline(always)]
            unsafe fn store(p: *mut i32, v: $vector) {
                $store(p.cast(), v)
            }
            #[inline(always)]
            unsafe fn dot($acc: $vector, $a: $vector, $b: $vector) -> $vector {
                $dot
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
        for from in (0..PANEL).step_by(16) {
            for row in (0..rows).step_by(4) {
                // SAFETY: the caller's promise; there are more rows up to a whole block, in all that is read and written.
                unsafe {
                    let (a, b) = (a.add(row * stride), b.add(from / 16 * steps * HALF_WORDS));
                    four(steps * STEP, a, b, of.from(row, from), total.add(row * PANEL + from));
                }
            }
        }
    }
);

/// Adds the products of two words of row `$row` and the weights of sixteen outputs, in ymm9, ymm10, ymm15 and memory, to
/// `$low` and `$high`.
///
/// A compiler keeps some of the sums in memory. In this order the units that multiply are busy for 0.92 of the time.
macro_rules! row {
    ($row:literal, $low:literal, $high:literal) => {
        concat!(
            "vpbroadcastd ymm11, [{a} + ",
            $row,
            "*{row}]\n",
            "vpmaddubsw ymm13, ymm11, ymm9\n",
            "vpbroadcastd ymm12, [{a} + ",
            $row,
            "*{row} + 4]\n",
            "vpmaddubsw ymm14, ymm12, ymm15\n",
            "vpmaddubsw ymm11, ymm11, ymm10\n",
            "vpaddw ymm13, ymm13, ymm14\n",
            "vpmaddubsw ymm12, ymm12, [{b} + 96]\n",
            "vpmaddwd ymm13, ymm13, ymm8\n",
            "vpaddw ymm11, ymm11, ymm12\n",
            "vpaddd ",
            $low,
            ", ",
            $low,
            ", ymm13\n",
            "vpmaddwd ymm11, ymm11, ymm8\n",
            "vpaddd ",
            $high,
            ", ",
            $high,
            ", ymm11\n",
        )
    };
}

/// [`Dot::group`] for four rows and sixteen outputs. Two words at a time: the sums of their pairs fit in 16 bits, so
/// that three instructions in place of four go to the two units that multiply.
///
/// # Safety
/// As [`Dot::group`]; an even number of words, rows [`GROUP_WORDS`] apart.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn four(words: usize, a: *const i32, b: *const i32, of: Scales, total: *mut f32) {
    let ones = _mm256_set1_epi16(1);
    let weights = [Avx2::load(of.weights), Avx2::load(of.weights.add(8))];
    let mut sums = [[_mm256_setzero_si256(); 2]; 4];
    for r in 0..4 {
        // The sum of a group's weights fits in 16 bits, too, so that this is the product of words.
        let zero = Avx2::spread(of.zero.add(r));
        sums[r] = [_mm256_madd_epi16(weights[0], zero), _mm256_madd_epi16(weights[1], zero)];
    }
    asm!(
        "2:",
        "vmovdqu ymm9, [{b}]",
        "vmovdqu ymm10, [{b} + 32]",
        "vmovdqu ymm15, [{b} + 64]",
        row!("0", "ymm0", "ymm1"),
        row!("1", "ymm2", "ymm3"),
        row!("2", "ymm4", "ymm5"),
        row!("3", "ymm6", "ymm7"),
        "add {a}, 8",
        "add {b}, 128",
        "dec {pairs}",
        "jnz 2b",
        a = inout(reg) a => _,
        b = inout(reg) b => _,
        pairs = inout(reg) words / 2 => _,
        row = const GROUP_WORDS * 4,
        inout("ymm0") sums[0][0],
        inout("ymm1") sums[0][1],
        inout("ymm2") sums[1][0],
        inout("ymm3") sums[1][1],
        inout("ymm4") sums[2][0],
        inout("ymm5") sums[2][1],
        inout("ymm6") sums[3][0],
        inout("ymm7") sums[3][1],
        in("ymm8") ones,
        out("ymm9") _, out("ymm10") _, out("ymm11") _, out("ymm12") _,
        out("ymm13") _, out("ymm14") _, out("ymm15") _,
        options(nostack, readonly)
    );
    for r in 0..4 {
        let row_scale = _mm256_set1_ps(of.row_scale.add(r).read());
        for v in 0..2 {
            let scale = _mm256_mul_ps(_mm256_loadu_ps(of.scale.add(8 * v)), row_scale);
            let so_far = _mm256_loadu_ps(of.so_far.add(r * of.stride + 8 * v));
            let value = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[r][v]), scale, so_far);
            _mm256_storeu_ps(total.add(r * PANEL + 8 * v), value);
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
    |acc, a, b| _mm512_dpbusd_epi32(acc, a, b),
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
        for row in (0..rows).step_by(8) {
            // There are more rows up to a whole block, in all that is read and written.
            eight(steps * STEP, a.add(row * stride), b, of.from(row, 0), total.add(row * PANEL));
        }
    }
);

/// Adds the products of a word of row `$row` and the weights of 32 outputs, in zmm16 and zmm17, to `$low` and `$high`;
/// `$x` is free.
macro_rules! wide_row {
    ($row:literal, $word:literal, $x:literal, $low:literal, $high:literal) => {
        concat!(
            "vpbroadcastd ", $x, ", [{a} + ", $row, "*{row} + ", $word, "]\n", "vpdpbusd ", $low, ", ", $x,
            ", zmm16\n", "vpdpbusd ", $high, ", ", $x, ", zmm17\n",
        )
    };
}

/// Adds the products of a word of eight rows; `$b` is the place of its weights.
macro_rules! wide_word {
    ($word:literal, $b:literal) => {
        concat!(
            "vmovdqu32 zmm16, [{b} + ",
            $b,
            "]\n",
            "vmovdqu32 zmm17, [{c} + ",
            $b,
            "]\n",
            wide_row!("0", $word, "zmm18", "zmm0", "zmm1"),
            wide_row!("1", $word, "zmm19", "zmm2", "zmm3"),
            wide_row!("2", $word, "zmm20", "zmm4", "zmm5"),
            wide_row!("3", $word, "zmm21", "zmm6", "zmm7"),
            wide_row!("4", $word, "zmm18", "zmm8", "zmm9"),
            wide_row!("5", $word, "zmm19", "zmm10", "zmm11"),
            wide_row!("6", $word, "zmm20", "zmm12", "zmm13"),
            wide_row!("7", $word, "zmm21", "zmm14", "zmm15"),
        )
    };
}

/// [`Dot::group`] for eight rows and 32 outputs, whose sums become values without leaving the registers. In memory
/// they cost as much time as the products: a group has sixteen for each sum.
///
/// # Safety
/// As [`Dot::group`]; an even number of words, rows [`GROUP_WORDS`] apart.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
#[inline]
unsafe fn eight(words: usize, a: *const i32, b: *const i32, of: Scales, total: *mut f32) {
    let weights = [Avx512Vnni::load(of.weights), Avx512Vnni::load(of.weights.add(16))];
    let mut sums = [[_mm512_setzero_si512(); 2]; 8];
    for r in 0..8 {
        // The sum of a group's weights fits in 16 bits, too, so that this is the product of words.
        let zero = Avx512Vnni::spread(of.zero.add(r));
        sums[r] = [_mm512_madd_epi16(weights[0], zero), _mm512_madd_epi16(weights[1], zero)];
    }
    asm!(
        "2:",
        wide_word!("0", "0"),
        wide_word!("4", "64"),
        "add {a}, 8",
        "add {b}, 128",
        "add {c}, 128",
        "dec {pairs}",
        "jnz 2b",
        a = inout(reg) a => _,
        b = inout(reg) b => _,
        c = inout(reg) b.add(words * 16) => _,
        pairs = inout(reg) words / 2 => _,
        row = const GROUP_WORDS * 4,
        inout("zmm0") sums[0][0],
        inout("zmm1") sums[0][1],
        inout("zmm2") sums[1][0],
        inout("zmm3") sums[1][1],
        inout("zmm4") sums[2][0],
        inout("zmm5") sums[2][1],
        inout("zmm6") sums[3][0],
        inout("zmm7") sums[3][1],
        inout("zmm8") sums[4][0],
        inout("zmm9") sums[4][1],
        inout("zmm10") sums[5][0],
        inout("zmm11") sums[5][1],
        inout("zmm12") sums[6][0],
        inout("zmm13") sums[6][1],
        inout("zmm14") sums[7][0],
        inout("zmm15") sums[7][1],
        out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
        out("zmm20") _, out("zmm21") _,
        options(nostack, readonly)
    );
    for v in 0..2 {
        let scale = _mm512_loadu_ps(of.scale.add(16 * v));
        for r in 0..8 {
            let scale = _mm512_mul_ps(scale, _mm512_set1_ps(of.row_scale.add(r).read()));
            let so_far = _mm512_loadu_ps(of.so_far.add(r * of.stride + 16 * v));
            let value = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r][v]), scale, so_far);
            _mm512_storeu_ps(total.add(r * PANEL + 16 * v), value);
        }
    }
}
