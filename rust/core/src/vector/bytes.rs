//! Exact integer products of one query with rows of byte codes, identical on every machine.
//!
//! The query has 16 bits per value. If the processor multiplies bytes (VNNI), the query is split into two
//! bytes, `256 * high + low`, and the rows, which must be unsigned there, become `code + 128`.

use super::simd::Level;

/// The largest code of a query, whose high byte fits in a signed byte.
pub const LARGEST: i16 = 127 * 256 + 127;
/// Prefetch distance in bytes: several cache lines, so that several loads are in flight.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 3072;

/// Codes of a query, at most [`LARGEST`] in magnitude.
#[derive(Debug, Clone, Default)]
pub struct Query {
    wide: Vec<i16>,
    high: Vec<i8>,
    low: Vec<i8>,
    /// 128 times the sum of the codes, modulo 2^32: the contribution of the rows' offset.
    offset: i32,
}

impl Query {
    /// Return the codes of a vector of finite values, and the value of one step. The codes have as many bits
    /// as the exact sums allow.
    pub fn of(vector: &[f32]) -> (Self, f64) {
        let amplitude = amplitude(vector.len());
        let largest = vector.iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
        let scale = largest / amplitude;
        let by = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let mut codes = Self::default();
        for &x in vector {
            codes.push((f64::from(x) * by).round_ties_even().clamp(-amplitude, amplitude) as i16);
        }
        (codes, scale)
    }

    pub fn clear(&mut self) {
        self.wide.clear();
        self.high.clear();
        self.low.clear();
        self.offset = 0;
    }

    /// # Panics
    /// If the magnitude of the code exceeds [`LARGEST`].
    pub fn push(&mut self, code: i16) {
        assert!(code.unsigned_abs() <= LARGEST.unsigned_abs());
        // From -128 to 127, so that the rest is a multiple of 256.
        let low = code as i8;
        self.wide.push(code);
        self.low.push(low);
        self.high.push(((i32::from(code) - i32::from(low)) >> 8) as i8);
        self.offset = self.offset.wrapping_add(128 * i32::from(code));
    }

    pub(crate) fn len(&self) -> usize {
        self.wide.len()
    }
}

/// Return the largest code of a query of `d` values for which no sum of products overflows.
pub fn amplitude(d: usize) -> f64 {
    let room = i32::MAX as usize / (128 * d.max(1));
    room.clamp(1, LARGEST as usize) as f64
}

/// Compute `out[i] = query . rows[i]`. It is exact as long as no sum of |products| reaches 2^31, which the
/// caller ensures by limiting the query's codes.
///
/// # Panics
/// If `rows` is not exactly `out.len()` rows long.
pub fn dots(level: Level, query: &Query, rows: &[i8], out: &mut [i32]) {
    assert_eq!(rows.len(), out.len() * query.len());
    match level {
        Level::Portable => portable(&query.wide, rows, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels above Portable come from `Level::all` or `usable`, which checked the processor; the
        // lengths were compared above.
        Level::Avx2 => unsafe { x86::avx2(&query.wide, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2Vnni => unsafe { x86::avx2_vnni(query, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { x86::avx512(&query.wide, rows, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; machines with tiles have VNNI.
        Level::Avx512Vnni | Level::Amx => unsafe { x86::avx512_vnni(query, rows, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { arm::neon(&query.wide, rows, out) },
        // Levels of other processors, which `usable` never returns.
        _ => portable(&query.wide, rows, out),
    }
}

fn portable(query: &[i16], rows: &[i8], out: &mut [i32]) {
    let d = query.len();
    if d == 0 {
        return out.fill(0);
    }
    for (row, out) in rows.chunks_exact(d).zip(out) {
        *out = rest(query, row, 0);
    }
}

/// Compute the products from position `from` on.
#[inline(always)]
fn rest(query: &[i16], row: &[i8], from: usize) -> i32 {
    let pairs = query[from..].iter().zip(&row[from..]);
    pairs.fold(0i32, |sum, (&a, &b)| sum.wrapping_add(i32::from(a) * i32::from(b)))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{rest, Query, AHEAD};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    fn sum8(v: __m256i) -> i32 {
        let half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        let pair = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0b0100_1110));
        _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 0b1011_0001)))
    }

    /// Return the starts of four rows from `i` on. If fewer than four are left, the last one is repeated.
    #[inline(always)]
    fn four(i: usize, width: usize, d: usize) -> [usize; 4] {
        std::array::from_fn(|r| (i + r.min(width - 1)) * d)
    }

    /// Codes widened to 16 bits, multiplied and added in pairs. `rows.len() == out.len() * query.len()`,
    /// here and below.
    #[target_feature(enable = "avx2")]
    pub fn avx2(query: &[i16], rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 16;
        for i in (0..n).step_by(4) {
            let width = (n - i).min(4);
            let at = four(i, width, d);
            let mut sums = [_mm256_setzero_si256(); 4];
            for k in (0..body).step_by(16) {
                // SAFETY: k + 16 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm256_loadu_si256(query.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let x = _mm_loadu_si128(rows.as_ptr().add(at[r] + k).cast());
                        let products = _mm256_madd_epi16(q, _mm256_cvtepi8_epi16(x));
                        sums[r] = _mm256_add_epi32(sums[r], products);
                    }
                }
            }
            for r in 0..width {
                out[i + r] = sum8(sums[r]).wrapping_add(rest(query, &rows[at[r]..at[r] + d], body));
            }
        }
    }

    /// Like `avx2`, 32 codes at a time.
    #[target_feature(enable = "avx2,avx512f,avx512bw")]
    pub fn avx512(query: &[i16], rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 32;
        for i in (0..n).step_by(4) {
            let width = (n - i).min(4);
            let at = four(i, width, d);
            let mut sums = [_mm512_setzero_si512(); 4];
            for k in (0..body).step_by(32) {
                // SAFETY: k + 32 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = _mm512_loadu_si512(query.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let x = _mm256_loadu_si256(rows.as_ptr().add(at[r] + k).cast());
                        let products = _mm512_madd_epi16(q, _mm512_cvtepi8_epi16(x));
                        sums[r] = _mm512_add_epi32(sums[r], products);
                    }
                }
            }
            for r in 0..width {
                let tail = rest(query, &rows[at[r]..at[r] + d], body);
                out[i + r] = _mm512_reduce_add_epi32(sums[r]).wrapping_add(tail);
            }
        }
    }

    /// Return the contribution of the bytes after `body`, offset included, so that one subtraction serves the
    /// whole row.
    #[inline(always)]
    fn tail(query: &Query, row: &[i8], body: usize) -> i32 {
        let offset = query.wide[body..].iter().fold(0i32, |sum, &q| sum.wrapping_add(128 * i32::from(q)));
        rest(&query.wide, row, body).wrapping_add(offset).wrapping_sub(query.offset)
    }

    /// 64 codes at a time, in two byte products. Intermediate sums may exceed 2^31: they are correct modulo
    /// 2^32, and the final result fits.
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn avx512_vnni(query: &Query, rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 64;
        let flip = _mm512_set1_epi8(i8::MIN);
        for i in (0..n).step_by(4) {
            let width = (n - i).min(4);
            let at = four(i, width, d);
            let mut high = [_mm512_setzero_si512(); 4];
            let mut low = [_mm512_setzero_si512(); 4];
            for k in (0..body).step_by(64) {
                // SAFETY: k + 64 <= d and at[r] + d <= rows.len(): all loads are inside; prefetched addresses
                // need not be readable.
                unsafe {
                    let h = _mm512_loadu_si512(query.high.as_ptr().add(k).cast());
                    let l = _mm512_loadu_si512(query.low.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let p = rows.as_ptr().add(at[r] + k);
                        _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(AHEAD));
                        let x = _mm512_xor_si512(_mm512_loadu_si512(p.cast()), flip);
                        high[r] = _mm512_dpbusd_epi32(high[r], x, h);
                        low[r] = _mm512_dpbusd_epi32(low[r], x, l);
                    }
                }
            }
            for r in 0..width {
                let sum = _mm512_add_epi32(_mm512_slli_epi32::<8>(high[r]), low[r]);
                let tail = tail(query, &rows[at[r]..at[r] + d], body);
                out[i + r] = _mm512_reduce_add_epi32(sum).wrapping_add(tail);
            }
        }
    }

    /// Like `avx512_vnni`, 32 codes at a time.
    #[target_feature(enable = "avx2,avxvnni")]
    pub fn avx2_vnni(query: &Query, rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 32;
        let flip = _mm256_set1_epi8(i8::MIN);
        for i in (0..n).step_by(4) {
            let width = (n - i).min(4);
            let at = four(i, width, d);
            let mut high = [_mm256_setzero_si256(); 4];
            let mut low = [_mm256_setzero_si256(); 4];
            for k in (0..body).step_by(32) {
                // SAFETY: k + 32 <= d and at[r] + d <= rows.len(): all loads are inside; prefetched addresses
                // need not be readable.
                unsafe {
                    let h = _mm256_loadu_si256(query.high.as_ptr().add(k).cast());
                    let l = _mm256_loadu_si256(query.low.as_ptr().add(k).cast());
                    for r in 0..4 {
                        let p = rows.as_ptr().add(at[r] + k);
                        _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(AHEAD));
                        let x = _mm256_xor_si256(_mm256_loadu_si256(p.cast()), flip);
                        high[r] = _mm256_dpbusd_avx_epi32(high[r], x, h);
                        low[r] = _mm256_dpbusd_avx_epi32(low[r], x, l);
                    }
                }
            }
            for r in 0..width {
                let sum = _mm256_add_epi32(_mm256_slli_epi32::<8>(high[r]), low[r]);
                out[i + r] = sum8(sum).wrapping_add(tail(query, &rows[at[r]..at[r] + d], body));
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::rest;
    use std::arch::aarch64::*;

    /// Codes widened to 16 bits, multiplied and added in 32, 16 codes at a time. Four rows share each load of
    /// the query. `rows.len() == out.len() * query.len()`.
    #[target_feature(enable = "neon")]
    pub fn neon(query: &[i16], rows: &[i8], out: &mut [i32]) {
        let (d, n) = (query.len(), out.len());
        let body = d - d % 16;
        for i in (0..n).step_by(4) {
            let width = (n - i).min(4);
            // If fewer than four rows are left, the last one is read again.
            let at: [usize; 4] = std::array::from_fn(|r| (i + r.min(width - 1)) * d);
            let mut sums = [[vdupq_n_s32(0); 2]; 4];
            for k in (0..body).step_by(16) {
                // SAFETY: k + 16 <= d and at[r] + d <= rows.len(): all loads are inside.
                unsafe {
                    let q = [vld1q_s16(query.as_ptr().add(k)), vld1q_s16(query.as_ptr().add(k + 8))];
                    for r in 0..4 {
                        let x = vld1q_s8(rows.as_ptr().add(at[r] + k));
                        for (q, x) in [(q[0], vmovl_s8(vget_low_s8(x))), (q[1], vmovl_high_s8(x))] {
                            sums[r][0] = vmlal_s16(sums[r][0], vget_low_s16(q), vget_low_s16(x));
                            sums[r][1] = vmlal_high_s16(sums[r][1], q, x);
                        }
                    }
                }
            }
            for r in 0..width {
                let sum = vaddvq_s32(vaddq_s32(sums[r][0], sums[r][1]));
                out[i + r] = sum.wrapping_add(rest(query, &rows[at[r]..at[r] + d], body));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compare each level with the plain 64-bit sum.
    fn check(codes: &[i16], rows: &[i8]) {
        let mut query = Query::default();
        query.clear();
        codes.iter().for_each(|&code| query.push(code));
        let row =
            |row: &[i8]| -> i64 { codes.iter().zip(row).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum() };
        let plain: Vec<i64> = rows.chunks_exact(codes.len()).map(row).collect();
        for level in Level::all() {
            let mut out = vec![7; plain.len()];
            dots(level, &query, rows, &mut out);
            assert_eq!(out.iter().map(|&x| i64::from(x)).collect::<Vec<_>>(), plain, "{}", level.name());
        }
    }

    proptest! {
        #[test]
        fn integer_products_are_equal_at_every_level(
            d in 1usize..200, n in 0usize..9,
            query in prop::collection::vec(-LARGEST..=LARGEST, 200), codes in prop::collection::vec(-127i8..=127, 1800),
        ) {
            check(&query[..d], &codes[..n * d]);
        }
    }

    #[test]
    fn the_largest_products_fit() {
        for (d, code) in
            [(512, LARGEST), (64, -LARGEST), (65_536, 255), (65_536, -255), (131, 127), (131, -128)]
        {
            for byte in [127, -127] {
                check(&vec![code; d], &vec![byte; d * 2]);
            }
        }
    }
}
