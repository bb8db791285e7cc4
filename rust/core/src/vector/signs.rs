//! Rows of vectors with one bit per value, its sign. Products with a query use tables, and products of two
//! rows count the differing bits. Both are exact integers, identical on every machine.
//!
//! Bit `i` of byte `k` is set if value `8k + i` is positive; the others are negative. A row is padded with
//! zeros to whole bytes and represents a vector of length 1.

use super::nibbles::codes_of;
use crate::error::{Error, Result};

/// Rows of `d` signs.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'a> {
    bits: &'a [u8],
    d: usize,
    width: usize,
}

/// Return the signs of rows of `d` values.
pub fn pack(values: &[f32], d: usize) -> Vec<u8> {
    let byte =
        |values: &[f32]| values.iter().zip(0..8).fold(0, |byte, (&x, i)| byte | u8::from(x > 0.0) << i);
    values.chunks_exact(d.max(1)).flat_map(|row| row.chunks(8).map(byte)).collect()
}

impl<'a> Signs<'a> {
    /// Check the shape.
    pub fn new(bits: &'a [u8], d: usize) -> Result<Self> {
        let width = d.div_ceil(8);
        if d == 0 || !bits.len().is_multiple_of(width) {
            return Err(Error::input(format!(
                "{} bytes are not a multiple of rows of {d} signs",
                bits.len()
            )));
        }
        Ok(Self { bits, d, width })
    }

    pub fn len(&self) -> usize {
        self.bits.len() / self.width
    }

    pub fn is_empty(&self) -> bool {
        self.bits.is_empty()
    }

    pub fn dim(&self) -> usize {
        self.d
    }

    #[inline]
    fn row(&self, id: usize) -> &'a [u8] {
        &self.bits[id * self.width..][..self.width]
    }

    /// Return the product of two rows, which is their cosine.
    #[inline]
    pub fn between(&self, a: usize, b: usize) -> f64 {
        let differ = f64::from(differing(self.row(a), self.row(b)));
        (self.d as f64 - 2.0 * differ) / self.d as f64
    }

    /// Return the product of a row with a query.
    #[inline]
    pub fn score(&self, query: &Query, id: usize) -> f64 {
        let bytes = self.row(id).iter().zip(query.table.chunks_exact(256));
        let sum: i32 = bytes.map(|(&byte, table)| i32::from(table[usize::from(byte)])).sum();
        query.scale * f64::from(sum)
    }

    /// Return a row as a vector, all of whose values are plus or minus the same number.
    pub fn decode(&self, id: usize) -> impl Iterator<Item = f32> + 'a {
        let (row, step) = (self.row(id), (self.d as f64).sqrt().recip() as f32);
        (0..self.d).map(move |k| if row[k / 8] >> (k % 8) & 1 == 1 { step } else { -step })
    }
}

/// A query: a table for each byte of a row, with the sum of the query's eight codes for every combination of
/// signs.
#[derive(Debug, Clone, Default)]
pub struct Query {
    table: Vec<i16>,
    scale: f64,
}

impl Query {
    /// Return the tables of a vector of finite values.
    pub fn of(vector: &[f32]) -> Self {
        let (codes, scale) = codes_of(vector);
        let mut table = vec![0i16; codes.len().div_ceil(8) * 256];
        for (codes, table) in codes.chunks(8).zip(table.chunks_exact_mut(256)) {
            table[0] = -codes.iter().map(|&code| i16::from(code)).sum::<i16>();
            for byte in 1usize..256 {
                let code = codes.get(byte.trailing_zeros() as usize).copied().unwrap_or(0);
                table[byte] = table[byte & (byte - 1)] + 2 * i16::from(code);
            }
        }
        Self { table, scale: scale / (vector.len().max(1) as f64).sqrt() }
    }
}

#[inline(always)]
fn differing_body(a: &[u8], b: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
    let (x, y) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = x.remainder().iter().zip(y.remainder()).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    rest + x.zip(y).map(|(a, b)| (word(a) ^ word(b)).count_ones()).sum::<u32>()
}

/// Return the number of bits in which two rows differ.
#[inline]
fn differing(a: &[u8], b: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "popcnt")]
        fn counted(a: &[u8], b: &[u8]) -> u32 {
            differing_body(a, b)
        }
        static COUNTS: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        if *COUNTS.get_or_init(|| crate::cpu::has!("popcnt")) {
            // SAFETY: the processor counts bits; the body itself is safe code.
            return unsafe { counted(a, b) };
        }
    }
    differing_body(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::reference_dot;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_equal_those_of_decoded_rows(
            d in 1usize..150, bytes in prop::collection::vec(any::<u8>(), 40),
            query in prop::collection::vec(-1f32..1.0, 150),
        ) {
            let width = d.div_ceil(8);
            let mut bits = bytes[..2 * width].to_vec();
            for row in bits.chunks_exact_mut(width) {
                row[width - 1] &= 0xFF >> (8 * width - d); // padding
            }
            let signs = Signs::new(&bits, d).unwrap();
            let rows: Vec<Vec<f32>> = (0..2).map(|id| signs.decode(id).collect()).collect();
            prop_assert!((signs.between(0, 1) - reference_dot(&rows[0], &rows[1])).abs() < 1e-5);
            prop_assert_eq!(signs.between(0, 0), 1.0);
            let (codes, scale) = codes_of(&query[..d]);
            for (id, row) in rows.iter().enumerate() {
                let sum: i64 = codes.iter().zip(row).map(|(&q, &x)| i64::from(q) * if x > 0.0 { 1 } else { -1 }).sum();
                let found = signs.score(&Query::of(&query[..d]), id);
                prop_assert_eq!(found, scale / (d as f64).sqrt() * sum as f64);
            }
        }
    }

    #[test]
    fn a_bit_is_set_for_each_positive_value() {
        let row = [1.0, -1.0, 0.0, 0.5, -0.5, 2.0, 1.0, -3.0, 4.0];
        assert_eq!(pack(&[row, row.map(|x| -x)].concat(), 9), [0b0110_1001, 1, 0b1001_0010, 0]);
    }

    #[test]
    fn rows_must_be_whole() {
        assert!(Signs::new(&[0; 7], 17).is_err() && Signs::new(&[], 0).is_err());
        assert_eq!(Signs::new(&[0; 6], 17).unwrap().len(), 2);
    }
}
