//! Which instructions to use: found at run time, or forced by a test.
//!
//! Every level gives the same final results: the fast products below only preselect, and what
//! they keep is scored again by the plain sum of [`super::vectors::reference_dot`].

use crate::error::{Error, Result};

/// A set of instructions for the fast products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F and BW; VNNI is not needed.
    Avx512,
}

impl Level {
    /// The best level of this machine.
    pub fn best() -> Self {
        *Self::all().last().unwrap_or(&Self::Portable)
    }

    /// Every level that this machine has, the plainest first.
    pub fn all() -> Vec<Self> {
        let mut levels = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                levels.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    levels.push(Self::Avx512);
                }
            }
        }
        levels
    }

    /// The level called `name` ("auto", "portable", "avx2", "avx512"), if this machine has it.
    pub fn named(name: &str) -> Result<Self> {
        let level = match name {
            "auto" => return Ok(Self::best()),
            "portable" => Self::Portable,
            "avx2" => Self::Avx2,
            "avx512" => Self::Avx512,
            _ => {
                return Err(Error::input(format!(
                    "simd must be one of auto, portable, avx2, avx512, not {name:?}"
                )))
            }
        };
        if Self::all().contains(&level) {
            Ok(level)
        } else {
            Err(Error::input(format!("this machine has no {name}")))
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// This level, or the best below it that the machine has: makes any value safe to act on.
    pub(crate) fn usable(self) -> Self {
        if Self::all().contains(&self) {
            self
        } else {
            Self::best()
        }
    }
}

/// `out[i] = query . rows[i]` in f32, for rows of `query.len()` values laid end to end. Each sum
/// is a tree whose chains have at most `len / 8 + 8` links: see [`dot_error`].
///
/// # Panics
/// Where `rows` is not exactly `out.len()` rows long.
pub(crate) fn dots(level: Level, query: &[f32], rows: &[f32], out: &mut [f32]) {
    assert_eq!(rows.len(), out.len() * query.len());
    match level {
        Level::Portable => portable(query, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels above Portable come from `Level::all` or `usable`, which asked the
        // processor; the lengths were compared above.
        Level::Avx2 => unsafe { x86::dots_avx2(query, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { x86::dots_avx512(query, rows, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => portable(query, rows, out),
    }
}

/// `out[i] = query . rows[i]` in integers, exact as long as no sum of |products| reaches 2^31,
/// which the caller sees to by the size of the query's codes.
pub(crate) fn dots_i8(level: Level, query: &[i16], rows: &[i8], out: &mut [i32]) {
    assert_eq!(rows.len(), out.len() * query.len());
    match level {
        Level::Portable => portable_i8(query, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: see `dots`.
        Level::Avx2 => unsafe { x86::dots_i8_avx2(query, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: see `dots`.
        Level::Avx512 => unsafe { x86::dots_i8_avx512(query, rows, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => portable_i8(query, rows, out),
    }
}

/// How far [`dots`] can lie from the exact product of vectors of `d` values whose norms multiply
/// to `norms`: the usual bound `gamma(links) * |a| |b|` (Higham, Accuracy and Stability, 3.1),
/// here with twice the unit roundoff in place of gamma's denominator, the plain f64 sum's own
/// error, and what underflow can lose.
pub(crate) fn dot_error(d: usize, norms: f64, longest_chain: usize) -> f64 {
    const ROUNDOFF: f64 = 5.960_464_477_539_063e-8; // 2^-24
    let links = longest_chain as f64 + 2.0;
    let gamma = links * ROUNDOFF / (1.0 - (links * ROUNDOFF).min(0.5));
    (gamma + d as f64 * 2.3e-16) * norms * (1.0 + 1e-6) + d as f64 * 3e-45
}

/// The longest chain of additions in [`dots`].
pub(crate) fn dots_chain(d: usize) -> usize {
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

fn portable_i8(query: &[i16], rows: &[i8], out: &mut [i32]) {
    let d = query.len();
    if d == 0 {
        return out.fill(0);
    }
    for (row, out) in rows.chunks_exact(d).zip(out) {
        *out =
            query.iter().zip(row).fold(0i32, |sum, (&a, &b)| sum.wrapping_add(i32::from(a) * i32::from(b)));
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

    #[target_feature(enable = "avx2")]
    fn sum8_i32(v: __m256i) -> i32 {
        let half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        let pair = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0b0100_1110));
        _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 0b1011_0001)))
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

    /// As `dots_avx2`, sixteen values at a time.
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

    /// Codes widened to 16 bits, multiplied and added in pairs.
    #[target_feature(enable = "avx2")]
    pub fn dots_i8_avx2(query: &[i16], rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 16;
        let mut i = 0;
        while i < n {
            let width = (n - i).min(4);
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [_mm256_setzero_si256(); 4];
            let mut k = 0;
            while k < body {
                // SAFETY: k + 16 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm256_loadu_si256(query.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let x = _mm_loadu_si128(rows.as_ptr().add(at[r] + k).cast());
                        let products = _mm256_madd_epi16(q, _mm256_cvtepi8_epi16(x));
                        sums[r] = _mm256_add_epi32(sums[r], products);
                    }
                }
                k += 16;
            }
            for r in 0..width {
                let rest = (body..d)
                    .fold(0i32, |sum, k| sum.wrapping_add(i32::from(query[k]) * i32::from(rows[at[r] + k])));
                out[i + r] = sum8_i32(sums[r]).wrapping_add(rest);
            }
            i += width;
        }
    }

    /// As `dots_i8_avx2`, thirty-two codes at a time.
    #[target_feature(enable = "avx2,avx512f,avx512bw")]
    pub fn dots_i8_avx512(query: &[i16], rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 32;
        let mut i = 0;
        while i < n {
            let width = (n - i).min(4);
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [_mm512_setzero_si512(); 4];
            let mut k = 0;
            while k < body {
                // SAFETY: k + 32 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm512_loadu_si512(query.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let x = _mm256_loadu_si256(rows.as_ptr().add(at[r] + k).cast());
                        let products = _mm512_madd_epi16(q, _mm512_cvtepi8_epi16(x));
                        sums[r] = _mm512_add_epi32(sums[r], products);
                    }
                }
                k += 32;
            }
            for r in 0..width {
                let rest = (body..d)
                    .fold(0i32, |sum, k| sum.wrapping_add(i32::from(query[k]) * i32::from(rows[at[r] + k])));
                out[i + r] = _mm512_reduce_add_epi32(sums[r]).wrapping_add(rest);
            }
            i += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::vectors::reference_dot;
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

        #[test]
        fn integer_products_are_equal_at_every_level(
            d in 0usize..100, n in 0usize..9,
            query in prop::collection::vec(-16000i16..=16000, 100), codes in prop::collection::vec(-127i8..=127, 900),
        ) {
            let mut plain = vec![0; n];
            portable_i8(&query[..d], &codes[..n * d], &mut plain);
            for level in Level::all() {
                let mut out = vec![7; n];
                dots_i8(level, &query[..d], &codes[..n * d], &mut out);
                prop_assert_eq!(&out, &plain);
            }
        }
    }

    #[test]
    fn levels_have_names() {
        assert_eq!(Level::named("portable"), Ok(Level::Portable));
        assert_eq!(Level::named("auto"), Ok(Level::best()));
        assert!(Level::named("sse9").is_err());
        assert_eq!(Level::best().usable(), Level::best());
    }
}
