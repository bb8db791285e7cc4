//! Products of a few rows with a block of columns in f32, blocked for registers and caches.

use crate::vector::simd::Level;

/// Columns of one packed panel: two AVX2 registers, one of AVX-512.
pub const PANEL: usize = 16;
/// Number of rows that one call of the inner kernel multiplies.
pub const ROWS: usize = 6;

/// Pack rows into panels: panel `p` holds value `k` of the rows `16p..16p+16` contiguously, for each `k` in
/// turn. Missing rows of the last panel are zeros.
pub fn pack(rows: &[f32], d: usize, panels: &mut Vec<f32>) {
    let n = rows.len() / d;
    panels.clear();
    panels.resize(n.div_ceil(PANEL) * PANEL * d, 0.0);
    for (panel, rows) in panels.chunks_exact_mut(PANEL * d).zip(rows.chunks(PANEL * d)) {
        for (column, row) in rows.chunks_exact(d).enumerate() {
            for (k, &x) in row.iter().enumerate() {
                panel[k * PANEL + column] = x;
            }
        }
    }
}

/// Compute `out[r][c] = rows[r] . column c of panel`, each sum a chain of `d` additions.
///
/// # Panics
/// If `panel` does not hold 16 columns of `d` values, or a row does not have `d` values.
#[inline]
pub fn product(level: Level, rows: [&[f32]; ROWS], panel: &[f32], d: usize, out: &mut [[f32; PANEL]; ROWS]) {
    assert_eq!(panel.len(), d * PANEL);
    assert!(rows.iter().all(|row| row.len() == d));
    match level {
        Level::Portable => portable(rows, panel, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: these levels were detected on this processor (`Level::usable`); lengths as asserted.
        Level::Avx2 | Level::Avx2Vnni => unsafe { x86::avx2(rows, panel, d, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 | Level::Avx512Vnni | Level::Amx => unsafe { x86::avx512(rows, panel, d, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { arm::neon(rows, panel, d, out) },
        // Levels of other processors, which `usable` never returns.
        _ => portable(rows, panel, out),
    }
}

fn portable(rows: [&[f32]; ROWS], panel: &[f32], out: &mut [[f32; PANEL]; ROWS]) {
    for (row, out) in rows.iter().zip(out) {
        let mut sums = [0f32; PANEL];
        for (&x, column) in row.iter().zip(panel.chunks_exact(PANEL)) {
            for (sum, &y) in sums.iter_mut().zip(column) {
                *sum += x * y;
            }
        }
        *out = sums;
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{PANEL, ROWS};
    use std::arch::aarch64::*;

    /// 24 sums, four columns and one broadcast value use 29 of the 32 registers.
    #[target_feature(enable = "neon")]
    pub fn neon(rows: [&[f32]; ROWS], panel: &[f32], d: usize, out: &mut [[f32; PANEL]; ROWS]) {
        let mut sums = [[vdupq_n_f32(0.0); 4]; ROWS];
        for k in 0..d {
            // SAFETY: k < d, the panel holds 16 * d values and each row d (asserted by the caller).
            unsafe {
                let column: [float32x4_t; 4] =
                    [0, 4, 8, 12].map(|from| vld1q_f32(panel.as_ptr().add(k * PANEL + from)));
                for r in 0..ROWS {
                    let x = vdupq_n_f32(*rows[r].get_unchecked(k));
                    for v in 0..4 {
                        sums[r][v] = vfmaq_f32(sums[r][v], x, column[v]);
                    }
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sum) in out.chunks_exact_mut(4).zip(sums) {
                // SAFETY: four values.
                unsafe { vst1q_f32(out.as_mut_ptr(), sum) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{PANEL, ROWS};
    use std::arch::x86_64::*;

    /// Twelve sums, two columns and one broadcast value use fifteen of the sixteen registers.
    #[target_feature(enable = "avx2,fma")]
    pub fn avx2(rows: [&[f32]; ROWS], panel: &[f32], d: usize, out: &mut [[f32; PANEL]; ROWS]) {
        let mut low = [_mm256_setzero_ps(); ROWS];
        let mut high = [_mm256_setzero_ps(); ROWS];
        for k in 0..d {
            // SAFETY: k < d, the panel holds 16 * d values and each row d (asserted by the caller).
            unsafe {
                let a = _mm256_loadu_ps(panel.as_ptr().add(k * PANEL));
                let b = _mm256_loadu_ps(panel.as_ptr().add(k * PANEL + 8));
                for r in 0..ROWS {
                    let x = _mm256_broadcast_ss(rows[r].get_unchecked(k));
                    low[r] = _mm256_fmadd_ps(x, a, low[r]);
                    high[r] = _mm256_fmadd_ps(x, b, high[r]);
                }
            }
        }
        for r in 0..ROWS {
            // SAFETY: out[r] holds 16 values.
            unsafe {
                _mm256_storeu_ps(out[r].as_mut_ptr(), low[r]);
                _mm256_storeu_ps(out[r].as_mut_ptr().add(8), high[r]);
            }
        }
    }

    /// Six sums, each split into even and odd values, so that twelve chains hide the latency.
    #[target_feature(enable = "avx512f")]
    pub fn avx512(rows: [&[f32]; ROWS], panel: &[f32], d: usize, out: &mut [[f32; PANEL]; ROWS]) {
        let mut even = [_mm512_setzero_ps(); ROWS];
        let mut odd = [_mm512_setzero_ps(); ROWS];
        for k in (0..d - d % 2).step_by(2) {
            // SAFETY: k + 1 < d, the panel holds 16 * d values and each row d.
            unsafe {
                let a = _mm512_loadu_ps(panel.as_ptr().add(k * PANEL));
                let b = _mm512_loadu_ps(panel.as_ptr().add(k * PANEL + PANEL));
                for r in 0..ROWS {
                    even[r] = _mm512_fmadd_ps(_mm512_set1_ps(*rows[r].get_unchecked(k)), a, even[r]);
                    odd[r] = _mm512_fmadd_ps(_mm512_set1_ps(*rows[r].get_unchecked(k + 1)), b, odd[r]);
                }
            }
        }
        if d % 2 == 1 {
            // SAFETY: the panel's last 16 values begin at 16 * (d - 1).
            let a = unsafe { _mm512_loadu_ps(panel.as_ptr().add((d - 1) * PANEL)) };
            for r in 0..ROWS {
                even[r] = _mm512_fmadd_ps(_mm512_set1_ps(rows[r][d - 1]), a, even[r]);
            }
        }
        for r in 0..ROWS {
            // SAFETY: out[r] holds 16 values.
            unsafe { _mm512_storeu_ps(out[r].as_mut_ptr(), _mm512_add_ps(even[r], odd[r])) };
        }
    }
}
