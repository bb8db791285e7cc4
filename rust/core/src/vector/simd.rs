//! SIMD levels of the fast products: detected at run time, or forced by a test.
//!
//! Every level gives the same final results: the fast products below only preselect, and the rows they keep
//! are scored again by the plain sum of [`super::vectors::reference_dot`].

use crate::error::{Error, Result};

/// An instruction set for the fast products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Portable,
    /// NEON, which every 64-bit ARM processor has.
    Neon,
    /// AVX2 and FMA.
    Avx2,
    /// AVX2 with the integer products of AVX-VNNI.
    Avx2Vnni,
    /// AVX-512 F and BW.
    Avx512,
    /// AVX-512 with the integer products of VNNI.
    Avx512Vnni,
    /// Byte matrix tiles in addition to AVX-512 VNNI: for products of many rows with many.
    Amx,
}

/// All levels, the plainest first.
const LEVELS: [Level; 7] = [
    Level::Portable,
    Level::Neon,
    Level::Avx2,
    Level::Avx2Vnni,
    Level::Avx512,
    Level::Avx512Vnni,
    Level::Amx,
];

impl Level {
    /// Return the best level of this machine for one query, without requesting tiles.
    pub fn best() -> Self {
        let mut below = LEVELS.into_iter().rev().skip(1);
        below.find(|level| level.here()).unwrap_or(Self::Portable)
    }

    /// Return the best level of this machine for products of many rows with many.
    pub fn widest() -> Self {
        if Self::Amx.here() {
            Self::Amx
        } else {
            Self::best()
        }
    }

    /// Return every level that this machine supports, the plainest first.
    pub fn all() -> Vec<Self> {
        LEVELS.into_iter().filter(|level| level.here()).collect()
    }

    /// Return whether this machine supports the level and, for tiles, whether the system permits them.
    pub fn here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use crate::cpu::has;
            let avx2 = || has!("avx2", "fma");
            let avx512 = || avx2() && has!("avx512f", "avx512bw");
            match self {
                Self::Portable => true,
                Self::Neon => false,
                Self::Avx2 => avx2(),
                Self::Avx2Vnni => avx2() && has!("avxvnni"),
                Self::Avx512 => avx512(),
                Self::Avx512Vnni => avx512() && has!("avx512vnni"),
                Self::Amx => Self::Avx512Vnni.here() && crate::tiles::byte_tiles(),
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            self == Self::Portable || (self == Self::Neon && crate::cpu::has!("neon"))
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        {
            self == Self::Portable
        }
    }

    /// Return the level called `name`; "auto" is [`Level::best`]. Unknown and unavailable levels are errors.
    pub fn named(name: &str) -> Result<Self> {
        if name == "auto" {
            return Ok(Self::best());
        }
        let Some(level) = LEVELS.into_iter().find(|level| level.name() == name) else {
            let names = LEVELS.map(Self::name).join(", ");
            return Err(Error::input(format!("simd must be one of auto, {names}, not {name:?}")));
        };
        if level.here() {
            Ok(level)
        } else {
            Err(Error::input(format!("this machine has no {name}")))
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx2Vnni => "avx2-vnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Amx => "amx",
        }
    }

    /// Return this level, or the best level of the machine if it does not support this one. This makes any
    /// value safe to use.
    pub fn usable(self) -> Self {
        if self.here() {
            self
        } else {
            Self::best()
        }
    }
}

/// Compute `out[i] = query . rows[i]` in f32, for concatenated rows of `query.len()` values. Each sum is a
/// tree whose chains have at most `len / 8 + 8` links: see [`dot_error`].
///
/// # Panics
/// If `rows` is not exactly `out.len()` rows long.
pub fn dots(level: Level, query: &[f32], rows: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len() * query.len());
    match level {
        Level::Portable => portable(query, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels above Portable come from `Level::all` or `usable`, which checked the processor; the
        // lengths were compared above.
        Level::Avx2 | Level::Avx2Vnni => unsafe { x86::dots_avx2(query, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 | Level::Avx512Vnni | Level::Amx => unsafe { x86::dots_avx512(query, rows, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { arm::dots_neon(query, rows, out) },
        // Levels of other processors, which `usable` never returns.
        _ => portable(query, rows, out),
    }
}

/// Return a bound on the distance of [`dots`] from the exact product of vectors of `d` values whose norms
/// multiply to `norms`: the usual `gamma(links) * |a| |b|` (Higham, Accuracy and Stability, 3.1), here with
/// twice the unit roundoff in place of gamma's denominator, plus the error of the plain f64 sum and of
/// underflow.
pub fn dot_error(d: usize, norms: f64, longest_chain: usize) -> f64 {
    const ROUNDOFF: f64 = 5.960_464_477_539_063e-8; // 2^-24
    let links = longest_chain as f64 + 2.0;
    let gamma = links * ROUNDOFF / (1.0 - (links * ROUNDOFF).min(0.5));
    (gamma + d as f64 * 2.3e-16) * norms * (1.0 + 1e-6) + d as f64 * 3e-45
}

/// Return the longest chain of additions in [`dots`].
pub fn dots_chain(d: usize) -> usize {
    d / 8 + 16
}

fn portable(query: &[f32], rows: &[f32], out: &mut [f32]) {
    let d = query.len();
    if d == 0 {
        return out.fill(0.0);
    }
    for (row, out) in rows.chunks_exact(d).zip(out) {
        let mut lanes = [0f32; 16];
        let (a, b) = (query.chunks_exact(16), row.chunks_exact(16));
        let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
        for (a, b) in a.zip(b) {
            for lane in 0..16 {
                lanes[lane] += a[lane] * b[lane];
            }
        }
        for width in [8, 4, 2, 1] {
            for lane in 0..width {
                lanes[lane] += lanes[lane + width];
            }
        }
        *out = lanes[0] + rest;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2,fma")]
    fn sum8(v: __m256) -> f32 {
        let half = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
        _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)))
    }

    /// Four rows share each load of the query. `rows.len() == out.len() * query.len()`.
    #[target_feature(enable = "avx2,fma")]
    pub fn dots_avx2(query: &[f32], rows: &[f32], out: &mut [f32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 8;
        let mut i = 0;
        while i < n {
            let width = (n - i).min(4);
            // Fewer than four rows are left: the last is read again.
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [_mm256_setzero_ps(); 4];
            let mut k = 0;
            while k < body {
                // SAFETY: k + 8 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm256_loadu_ps(query.as_ptr().add(k));
                    for r in 0..4 {
                        let x = _mm256_loadu_ps(rows.as_ptr().add(at[r] + k));
                        sums[r] = _mm256_fmadd_ps(q, x, sums[r]);
                    }
                }
                k += 8;
            }
            for r in 0..width {
                let rest: f32 = (body..d).map(|k| query[k] * rows[at[r] + k]).sum();
                out[i + r] = sum8(sums[r]) + rest;
            }
            i += width;
        }
    }

    /// Like `dots_avx2`, sixteen values at a time.
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw")]
    pub fn dots_avx512(query: &[f32], rows: &[f32], out: &mut [f32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 16;
        let mut i = 0;
        while i < n {
            let width = (n - i).min(4);
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [_mm512_setzero_ps(); 4];
            let mut k = 0;
            while k < body {
                // SAFETY: k + 16 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm512_loadu_ps(query.as_ptr().add(k));
                    for r in 0..4 {
                        let x = _mm512_loadu_ps(rows.as_ptr().add(at[r] + k));
                        sums[r] = _mm512_fmadd_ps(q, x, sums[r]);
                    }
                }
                k += 16;
            }
            for r in 0..width {
                let rest: f32 = (body..d).map(|k| query[k] * rows[at[r] + k]).sum();
                out[i + r] = _mm512_reduce_add_ps(sums[r]) + rest;
            }
            i += width;
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    /// Four rows share each load of the query, eight values at a time. `rows.len() == out.len() * query.len()`.
    #[target_feature(enable = "neon")]
    pub fn dots_neon(query: &[f32], rows: &[f32], out: &mut [f32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 8;
        let mut i = 0;
        while i < n {
            let width = (n - i).min(4);
            // Fewer than four rows are left: the last is read again.
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [[vdupq_n_f32(0.0); 2]; 4];
            let mut k = 0;
            while k < body {
                // SAFETY: k + 8 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = [vld1q_f32(query.as_ptr().add(k)), vld1q_f32(query.as_ptr().add(k + 4))];
                    for r in 0..4 {
                        let row = rows.as_ptr().add(at[r] + k);
                        sums[r][0] = vfmaq_f32(sums[r][0], q[0], vld1q_f32(row));
                        sums[r][1] = vfmaq_f32(sums[r][1], q[1], vld1q_f32(row.add(4)));
                    }
                }
                k += 8;
            }
            for r in 0..width {
                let rest: f32 = (body..d).map(|k| query[k] * rows[at[r] + k]).sum();
                out[i + r] = vaddvq_f32(vaddq_f32(sums[r][0], sums[r][1])) + rest;
            }
            i += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::reference_dot;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_level_stays_within_the_stated_error(
            d in 1usize..70, n in 0usize..9, seed in prop::collection::vec(-1f32..1.0, 800),
        ) {
            let query = &seed[..d];
            let rows: Vec<f32> = (0..n * d).map(|i| seed[(i * 7 + d) % 800]).collect();
            let norm = |x: &[f32]| reference_dot(x, x).sqrt();
            for level in Level::all() {
                let mut out = vec![9.0; n];
                dots(level, query, &rows, &mut out);
                for (i, row) in rows.chunks_exact(d).enumerate() {
                    let bound = dot_error(d, norm(query) * norm(row), dots_chain(d));
                    prop_assert!((f64::from(out[i]) - reference_dot(query, row)).abs() <= bound);
                }
            }
        }
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(Level::named("portable"), Ok(Level::Portable));
        assert_eq!(Level::named("auto"), Ok(Level::best()));
        assert!(Level::named("sse9").is_err());
        for level in Level::all() {
            assert_eq!(Level::named(level.name()), Ok(level));
            assert_eq!(level.usable(), level);
        }
        assert!(Level::best() != Level::Amx);
    }
}
