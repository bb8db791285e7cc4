//! Squares computed with x86 vectors and tiles.

use super::layout::{Line, Square, LINE, SIDE};
use std::arch::asm;
use std::arch::x86_64::*;

/// A square by blocks of `$rows` rows and two vectors of `$lanes` columns.
macro_rules! square {
    ($name:ident, $features:literal, $rows:literal, $lanes:literal, $load:ident, $store:ident,
     $spread:ident, |$sum:ident, $a:ident, $b:ident| $product:expr) => {
        /// # Safety
        /// Needs 32 rows of `lines` lines, as many lines of two panels, and 32 values of `begin`.
        #[target_feature(enable = $features)]
        pub unsafe fn $name(rows: &[Line], panels: &[Line], lines: usize, begin: &[i32], out: &mut Square) {
            debug_assert!(rows.len() == SIDE * lines && panels.len() == SIDE * lines && begin.len() == SIDE);
            let words = lines * LINE;
            let row: *const i32 = rows.as_ptr().cast();
            for column in (0..SIDE).step_by(2 * $lanes) {
                // Offset of these columns' words in the first line: panel, then position in it.
                let at = |c: usize| (c / LINE) * words * LINE + c % LINE;
                let panel: *const i32 = panels.as_ptr().cast();
                for first in (0..SIDE).step_by($rows) {
                    // SAFETY: words of rows below 32, lines of two panels, columns below 32.
                    unsafe {
                        let (p, q) = (panel.add(at(column)), panel.add(at(column + $lanes)));
                        let start = [
                            $load(begin.as_ptr().add(column).cast()),
                            $load(begin.as_ptr().add(column + $lanes).cast()),
                        ];
                        let mut sums = [start; $rows];
                        for w in 0..words {
                            let columns = [$load(p.add(w * LINE).cast()), $load(q.add(w * LINE).cast())];
                            for r in 0..$rows {
                                let $a = $spread(row.add((first + r) * words + w).read());
                                for v in 0..2 {
                                    let ($sum, $b) = (sums[r][v], columns[v]);
                                    sums[r][v] = $product;
                                }
                            }
                        }
                        for r in 0..$rows {
                            let to = out.0[first + r].as_mut_ptr();
                            $store(to.add(column).cast(), sums[r][0]);
                            $store(to.add(column + $lanes).cast(), sums[r][1]);
                        }
                    }
                }
            }
        }
    };
}

square!(avx2, "avx2", 4, 8, _mm256_loadu_si256, _mm256_storeu_si256, _mm256_set1_epi32, |sum, a, b| {
    _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
});
square!(
    avx2_vnni,
    "avx2,avxvnni",
    4,
    8,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_set1_epi32,
    |sum, a, b| _mm256_dpbusd_avx_epi32(sum, a, b)
);
square!(
    avx512,
    "avx512f,avx512bw",
    8,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    |sum, a, b| _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
);
square!(
    avx512_vnni,
    "avx512f,avx512bw,avx512vnni",
    8,
    16,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_set1_epi32,
    |sum, a, b| _mm512_dpbusd_epi32(sum, a, b)
);

/// Tiles 0 to 3 are the sums, 4 and 5 rows, 6 and 7 columns.
///
/// # Safety
/// Tiles must be in use, as [`crate::tiles::On`] configures them; 32 rows and panels' lines.
pub unsafe fn amx(rows: &[Line], panels: &[Line], lines: usize, out: &mut Square) {
    debug_assert!(rows.len() == SIDE * lines && panels.len() == SIDE * lines);
    let row = lines * size_of::<Line>();
    let (mut a, mut b): (*const u8, *const u8) = (rows.as_ptr().cast(), panels.as_ptr().cast());
    let c: *mut u8 = out.0.as_mut_ptr().cast();
    // SAFETY: each load reads 16 lines of the rows (one per row) or of a panel; `a` and `b` pass the end only
    // after the last step. The stores fill the square.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            options(nomem, nostack, preserves_flags)
        );
        for _ in 0..lines {
            asm!(
                "tileloadd tmm4, [{a} + {row}]", "tileloadd tmm6, [{b} + {line}]",
                "tdpbssd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{d} + {line}]",
                "tdpbssd tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{e} + {row}]",
                "tdpbssd tmm2, tmm5, tmm6",
                "tdpbssd tmm3, tmm5, tmm7",
                a = in(reg) a, e = in(reg) a.wrapping_add(LINE * row),
                b = in(reg) b, d = in(reg) b.wrapping_add(LINE * row),
                row = in(reg) row, line = in(reg) size_of::<Line>(),
                options(nostack, preserves_flags, readonly)
            );
            a = a.wrapping_add(size_of::<Line>());
            b = b.wrapping_add(LINE * size_of::<Line>());
        }
        asm!(
            "tilestored [{c} + {s}], tmm0", "tilestored [{c} + {s} + 64], tmm1",
            "tilestored [{d} + {s}], tmm2", "tilestored [{d} + {s} + 64], tmm3",
            c = in(reg) c, d = in(reg) c.add(LINE * SIDE * 4), s = in(reg) SIDE * 4,
            options(nostack, preserves_flags)
        );
    }
}

/// [`super::reaching`] with vectors of `$lanes` values; `$mask` extracts the bits of a comparison.
macro_rules! reaching {
    ($name:ident, $features:literal, $lanes:literal, $load:ident, $ints:ident, $convert:ident, $spread:ident,
     $product:ident, $fused:ident, |$upper:ident, $floor:ident| $mask:expr) => {
        /// # Safety
        /// Each slice must hold 32 values.
        #[target_feature(enable = $features)]
        pub unsafe fn $name(
            square: &Square,
            scales: &[f32],
            floors: &[f32],
            columns: &[f32],
            spreads: &[f32],
            out: &mut [u32; SIDE],
        ) {
            for r in 0..SIDE {
                let (scale, $floor) = ($spread(scales[r]), $spread(floors[r]));
                out[r] = (0..SIDE).step_by($lanes).fold(0, |mask, c| {
                    // SAFETY: c + $lanes <= 32.
                    let (sums, column, spread) = unsafe {
                        (
                            $ints(square.0[r].as_ptr().add(c).cast()),
                            $load(columns.as_ptr().add(c)),
                            $load(spreads.as_ptr().add(c)),
                        )
                    };
                    let $upper = $fused($product($convert(sums), column), scale, spread);
                    mask | $mask << c
                });
            }
        }
    };
}

reaching!(
    reaching_avx2,
    "avx2,fma",
    8,
    _mm256_loadu_ps,
    _mm256_loadu_si256,
    _mm256_cvtepi32_ps,
    _mm256_set1_ps,
    _mm256_mul_ps,
    _mm256_fmadd_ps,
    |upper, floor| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(upper, floor)) as u32
);
reaching!(
    reaching_avx512,
    "avx512f,avx512bw",
    16,
    _mm512_loadu_ps,
    _mm512_loadu_si512,
    _mm512_cvtepi32_ps,
    _mm512_set1_ps,
    _mm512_mul_ps,
    _mm512_fmadd_ps,
    |upper, floor| u32::from(_mm512_cmp_ps_mask::<_CMP_GE_OQ>(upper, floor))
);
