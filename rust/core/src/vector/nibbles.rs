//! Rows of vectors with four bits per value: packing, and exact integer products with a query of eight bits
//! per value, identical on every machine.
//!
//! Byte `k` of a row holds the values `2k` (its lower half) and `2k + 1`, each as `code + 8` with codes from -7
//! to 7. A row is padded with zeros to eight values. A query is stored as its even and its odd values, so that no
//! instruction set has to unpack more than halves of bytes.

use super::simd::Level;
use super::vectors::{reference_dot, Vectors};
use crate::error::Result;
use crate::memory::zeros;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use std::sync::Mutex;

/// Number of rows that a thread packs at a time.
const GRAIN: usize = 1024;
/// The largest code of a row, and of a query.
const MOST: f64 = 7.0;
const QUERY: f64 = 127.0;
/// Bytes of a query's halves are padded to this.
const LINE: usize = 64;
/// Prefetch distance in bytes.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 3072;

/// Return the bytes of a row of `d` values.
pub fn width(d: usize) -> usize {
    d.div_ceil(8) * 4
}

/// Packed rows: codes `u8[n, width(d)]`, and for each row the factor that restores its length.
#[derive(Debug, Default, PartialEq)]
pub struct Packed {
    pub codes: Vec<u8>,
    pub scale: Vec<f32>,
}

/// Pack every row, scaled by its largest value to -7..7. Rows are packed independently, so the bytes do not
/// depend on the number of threads.
pub fn pack(vectors: &Vectors, threads: usize, progress: &Progress) -> Result<Packed> {
    let (d, width) = (vectors.dim(), width(vectors.dim()));
    progress.expect(vectors.len() as u64);
    let mut codes = zeros(vectors.len() * width, "codes of vectors")?;
    let mut scale = zeros(vectors.len(), "codes of vectors")?;
    let parts: Vec<_> =
        codes.chunks_mut(GRAIN * width).zip(scale.chunks_mut(GRAIN)).map(Mutex::new).collect();
    map_ranges(vectors.len(), GRAIN, threads, progress, |rows| {
        let mut part = parts[rows.start / GRAIN].lock().unwrap_or_else(|e| e.into_inner());
        let (codes, scale) = &mut *part;
        let packed = codes.chunks_exact_mut(width).zip(scale.iter_mut());
        for (row, (codes, scale)) in vectors.rows(rows).chunks_exact(d).zip(packed) {
            *scale = pack_row(row, codes);
        }
        Ok(())
    })?;
    drop(parts);
    Ok(Packed { codes, scale })
}

fn pack_row(row: &[f32], codes: &mut [u8]) -> f32 {
    let largest = row.iter().fold(0f32, |most, x| most.max(x.abs()));
    let by = if largest > 0.0 { MOST / f64::from(largest) } else { 0.0 };
    let mut square = 0i64;
    let mut code = |at: usize| {
        let x = row.get(at).map_or(0.0, |&x| (f64::from(x) * by).round_ties_even().clamp(-MOST, MOST));
        square += (x * x) as i64;
        (x as i8 + 8) as u8
    };
    for (k, byte) in codes.iter_mut().enumerate() {
        *byte = code(2 * k) | code(2 * k + 1) << 4;
    }
    match square {
        0 => 0.0,
        _ => (reference_dot(row, row) / square as f64).sqrt() as f32,
    }
}

/// A query in codes of eight bits: value `i` is `scale` times its code.
#[derive(Debug, Clone, Default)]
pub struct Query {
    even: Vec<i8>,
    odd: Vec<i8>,
    /// Eight times the sum of the codes: the contribution of the rows' offset.
    offset: i32,
    pub scale: f64,
}

impl Query {
    /// Return the codes of a vector of finite values.
    pub fn of(vector: &[f32]) -> Self {
        let (codes, scale) = codes_of(vector);
        let at = |k: usize| codes.get(k).copied().unwrap_or(0);
        Self::new((0..codes.len().div_ceil(2)).map(|k| (at(2 * k), at(2 * k + 1))), scale)
    }

    /// Return the codes of a packed row.
    pub fn of_row(row: &[u8], scale: f32) -> Self {
        Self::new(row.iter().map(|&byte| ((byte & 15) as i8 - 8, (byte >> 4) as i8 - 8)), f64::from(scale))
    }

    fn new(pairs: impl ExactSizeIterator<Item = (i8, i8)>, scale: f64) -> Self {
        let length = pairs.len().next_multiple_of(LINE);
        let (mut even, mut odd): (Vec<i8>, Vec<i8>) = pairs.unzip();
        let sum: i32 = even.iter().chain(&odd).map(|&code| i32::from(code)).sum();
        even.resize(length, 0);
        odd.resize(length, 0);
        Self { even, odd, offset: 8 * sum, scale }
    }
}

/// Return the eight-bit codes of a vector, and the value of one step.
pub fn codes_of(vector: &[f32]) -> (Vec<i8>, f64) {
    let largest = vector.iter().fold(0f64, |most, x| most.max(f64::from(x.abs())));
    let scale = largest / QUERY;
    let by = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let code = |&x: &f32| (f64::from(x) * by).round_ties_even().clamp(-QUERY, QUERY) as i8;
    (vector.iter().map(code).collect(), scale)
}

/// Compute `out[i] = query . rows[i]` in codes, exactly: with at most 2^16 values every sum fits.
///
/// # Panics
/// If `rows` is not exactly `out.len()` rows of `width` bytes, or the query is shorter than these.
pub fn dots(level: Level, query: &Query, rows: &[u8], width: usize, out: &mut [i32]) {
    assert_eq!(rows.len(), out.len() * width);
    assert!(query.even.len() >= width && query.odd.len() == query.even.len());
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels above Portable come from `Level::all` or `usable`, which checked the processor; the
        // lengths were compared above.
        Level::Avx2 => unsafe { x86::avx2(query, rows, width, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2Vnni => unsafe { x86::avx2_vnni(query, rows, width, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { x86::avx512(query, rows, width, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above; machines with tiles have VNNI.
        Level::Avx512Vnni | Level::Amx => unsafe { x86::avx512_vnni(query, rows, width, out) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Level::Neon => unsafe { arm::neon(query, rows, width, out) },
        _ => portable(query, rows, width, out),
    }
}

fn portable(query: &Query, rows: &[u8], width: usize, out: &mut [i32]) {
    for (row, out) in rows.chunks_exact(width.max(1)).zip(out) {
        *out = rest(query, row, 0) - query.offset;
    }
}

/// Compute the products from byte `from` on, without the offset.
#[inline(always)]
fn rest(query: &Query, row: &[u8], from: usize) -> i32 {
    let halves = query.even[from..].iter().zip(&query.odd[from..]);
    row[from..].iter().zip(halves).fold(0, |sum, (&byte, (&even, &odd))| {
        sum + i32::from(byte & 15) * i32::from(even) + i32::from(byte >> 4) * i32::from(odd)
    })
}

/// Return the starts of four rows from `i` on. If fewer than four are left, the last is read again.
#[inline(always)]
fn four(i: usize, count: usize, width: usize) -> [usize; 4] {
    std::array::from_fn(|r| (i + r.min(count - 1)) * width)
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{four, rest, Query, AHEAD};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx2")]
    fn sum8(v: __m256i) -> i32 {
        let half = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        let pair = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0b0100_1110));
        _mm_cvtsi128_si32(_mm_add_epi32(pair, _mm_shuffle_epi32(pair, 0b1011_0001)))
    }

    /// Define a kernel for registers of `$bytes` bytes. `$add` adds the products of both halves of a register's
    /// bytes to a sum.
    macro_rules! kernel {
        ($name:ident, $features:literal, $bytes:literal, $zero:ident, $load:ident, $and:ident, $shift:ident,
         $set:ident, $total:ident, $add:ident) => {
            #[target_feature(enable = $features)]
            pub fn $name(query: &Query, rows: &[u8], width: usize, out: &mut [i32]) {
                let (n, body) = (out.len(), width - width % $bytes);
                let half = $set(15);
                for i in (0..n).step_by(4) {
                    let count = (n - i).min(4);
                    let at = four(i, count, width);
                    let mut sums = [$zero(); 4];
                    for k in (0..body).step_by($bytes) {
                        // SAFETY: k + $bytes <= width, at[r] + width <= rows.len() and the query has `width` bytes
                        // or more: all loads are inside; prefetched addresses need not be readable.
                        unsafe {
                            let even = $load(query.even.as_ptr().add(k).cast());
                            let odd = $load(query.odd.as_ptr().add(k).cast());
                            for r in 0..4 {
                                let p = rows.as_ptr().add(at[r] + k);
                                _mm_prefetch::<_MM_HINT_T0>(p.wrapping_add(AHEAD).cast());
                                let x = $load(p.cast());
                                let (low, high) = ($and(x, half), $and($shift::<4>(x), half));
                                sums[r] = $add(sums[r], low, even, high, odd);
                            }
                        }
                    }
                    for r in 0..count {
                        let tail = rest(query, &rows[at[r]..at[r] + width], body);
                        out[i + r] = $total(sums[r]) + tail - query.offset;
                    }
                }
            }
        };
    }

    /// Products of bytes in pairs: at most 2 * 15 * 127 each, so the sum of both fits 16 bits.
    #[target_feature(enable = "avx2")]
    fn add256(sum: __m256i, low: __m256i, even: __m256i, high: __m256i, odd: __m256i) -> __m256i {
        let pairs = _mm256_add_epi16(_mm256_maddubs_epi16(low, even), _mm256_maddubs_epi16(high, odd));
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }

    #[target_feature(enable = "avx2,avxvnni")]
    fn add256_vnni(sum: __m256i, low: __m256i, even: __m256i, high: __m256i, odd: __m256i) -> __m256i {
        _mm256_dpbusd_avx_epi32(_mm256_dpbusd_avx_epi32(sum, low, even), high, odd)
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw")]
    fn add512(sum: __m512i, low: __m512i, even: __m512i, high: __m512i, odd: __m512i) -> __m512i {
        let pairs = _mm512_add_epi16(_mm512_maddubs_epi16(low, even), _mm512_maddubs_epi16(high, odd));
        _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    fn add512_vnni(sum: __m512i, low: __m512i, even: __m512i, high: __m512i, odd: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, low, even), high, odd)
    }

    kernel!(
        avx2, "avx2", 32, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_and_si256, _mm256_srli_epi16,
        _mm256_set1_epi8, sum8, add256
    );
    kernel!(
        avx2_vnni, "avx2,avxvnni", 32, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_and_si256,
        _mm256_srli_epi16, _mm256_set1_epi8, sum8, add256_vnni
    );
    kernel!(
        avx512, "avx2,avx512f,avx512bw", 64, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_and_si512,
        _mm512_srli_epi16, _mm512_set1_epi8, _mm512_reduce_add_epi32, add512
    );
    kernel!(
        avx512_vnni,
        "avx2,avx512f,avx512bw,avx512vnni",
        64,
        _mm512_setzero_si512,
        _mm512_loadu_si512,
        _mm512_and_si512,
        _mm512_srli_epi16,
        _mm512_set1_epi8,
        _mm512_reduce_add_epi32,
        add512_vnni
    );
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::{four, rest, Query};
    use std::arch::aarch64::*;

    /// 16 bytes at a time: four products of at most 15 * 127 are added in 16 bits, then in 32.
    #[target_feature(enable = "neon")]
    pub fn neon(query: &Query, rows: &[u8], width: usize, out: &mut [i32]) {
        let (n, body) = (out.len(), width - width % 16);
        for i in (0..n).step_by(4) {
            let count = (n - i).min(4);
            let at = four(i, count, width);
            let mut sums = [vdupq_n_s32(0); 4];
            for k in (0..body).step_by(16) {
                // SAFETY: k + 16 <= width, at[r] + width <= rows.len() and the query has `width` bytes or more: all
                // loads are inside.
                unsafe {
                    let even = vld1q_s8(query.even.as_ptr().add(k));
                    let odd = vld1q_s8(query.odd.as_ptr().add(k));
                    for r in 0..4 {
                        let x = vld1q_u8(rows.as_ptr().add(at[r] + k));
                        let low = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
                        let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(x));
                        let mut pairs = vmull_s8(vget_low_s8(low), vget_low_s8(even));
                        pairs = vmlal_s8(pairs, vget_low_s8(high), vget_low_s8(odd));
                        pairs = vmlal_high_s8(pairs, low, even);
                        pairs = vmlal_high_s8(pairs, high, odd);
                        sums[r] = vpadalq_s16(sums[r], pairs);
                    }
                }
            }
            for r in 0..count {
                let tail = rest(query, &rows[at[r]..at[r] + width], body);
                out[i + r] = vaddvq_s32(sums[r]) + tail - query.offset;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The literal definition, in 64 bits.
    fn plain(query: &[i8], row: &[u8]) -> i64 {
        let code = |k: usize| i64::from(row[k / 2] >> (4 * (k % 2)) & 15) - 8;
        query.iter().enumerate().map(|(k, &q)| i64::from(q) * code(k)).sum()
    }

    fn check(vector: &[f32], rows: &[u8]) {
        let (codes, _) = codes_of(vector);
        let (query, width) = (Query::of(vector), width(vector.len()));
        let wanted: Vec<i64> = rows.chunks_exact(width).map(|row| plain(&codes, row)).collect();
        for level in Level::all() {
            let mut out = vec![7; wanted.len()];
            dots(level, &query, rows, width, &mut out);
            assert_eq!(out.iter().map(|&x| i64::from(x)).collect::<Vec<_>>(), wanted, "{}", level.name());
        }
    }

    proptest! {
        #[test]
        fn products_are_equal_at_every_level(
            d in 1usize..300, n in 0usize..9,
            query in prop::collection::vec(-1f32..1.0, 300), bytes in prop::collection::vec(any::<u8>(), 1400),
        ) {
            check(&query[..d], &bytes[..n * width(d)]);
        }

        #[test]
        fn a_packed_row_is_near_its_vector(
            d in 1usize..70, values in prop::collection::vec(-3f32..3.0, 140),
        ) {
            let vectors = Vectors::new(&values[..2 * d], d).unwrap();
            let packed = pack(&vectors, 1, &Progress::none()).unwrap();
            for (id, row) in packed.codes.chunks_exact(width(d)).enumerate() {
                let own = Query::of_row(row, packed.scale[id]);
                let mut product = [0];
                dots(Level::Portable, &own, row, width(d), &mut product);
                let (vector, scale) = (vectors.row(id), f64::from(packed.scale[id]));
                let length = reference_dot(vector, vector).sqrt();
                // Lengths are preserved.
                prop_assert!((f64::from(product[0]) * scale * scale - length * length).abs() <= 1e-6 * length * length);
                let largest = vector.iter().fold(0f64, |m, x| m.max(f64::from(x.abs())));
                for (k, &x) in vector.iter().enumerate() {
                    let code = f64::from(row[k / 2] >> (4 * (k % 2)) & 15) - 8.0;
                    prop_assert!((code * largest / 7.0 - f64::from(x)).abs() <= largest / 14.0 + 1e-6);
                }
            }
        }
    }

    #[test]
    fn the_largest_products_fit() {
        for d in [64, 384, 1000, 65_536] {
            for byte in [0xFF, 0x11, 0x88, 0x00] {
                for x in [1.0, -1.0] {
                    check(&vec![x; d], &vec![byte; 3 * width(d)]);
                }
            }
        }
    }

    #[test]
    fn zero_vectors_stay_zero() {
        let packed = pack(&Vectors::new(&[0.0; 9], 3).unwrap(), 1, &Progress::none()).unwrap();
        assert_eq!(packed, Packed { codes: vec![0x88; 12], scale: vec![0.0; 3] });
    }
}
