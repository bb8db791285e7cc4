//! Weights that follow from counts: they are computed when an index is first read, and not stored.

use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::text::languages::{Language, Script};
use crate::text::strings::Strings;
use std::collections::BTreeMap;

pub const K1: f64 = 1.2;
pub const B: f64 = 0.75;
/// Document frequencies whose idf is computed once.
const COMMON: usize = 1 << 10;

/// A language counts as having at least this many units: if it has one or two, how many of them have a word says nothing,
/// and no query would find the only passage in a language.
const FEW: usize = 16;
/// Lengths and counts below these have a row and a column in the table of saturations.
const LENGTHS: usize = 1 << 10;
const TIMES: usize = 1 << 5;

/// BM25's saturations, count / (count + norm of the length).
#[derive(Debug, Clone, PartialEq)]
pub struct Saturations {
    mean: f64,
    /// By count, then by length. A question needs few counts and few lengths, so what it needs is in the cache.
    table: Box<[f64; LENGTHS * TIMES]>,
}

impl Saturations {
    /// Compute the table for the lengths of all units.
    pub fn new(lengths: &[u32]) -> Result<Self> {
        // The sum is exact: a sum of integers below 2^53.
        let sum: f64 = lengths.iter().map(|&length| f64::from(length)).sum();
        let mean = (sum / lengths.len().max(1) as f64).max(1e-9);
        let mut table = zeros::<f64>(LENGTHS * TIMES, "the table of saturations")?;
        for (at, value) in table.iter_mut().enumerate() {
            *value = divided(mean, (at % LENGTHS) as u32, (at / LENGTHS) as u32);
        }
        let table = table.into_boxed_slice().try_into();
        Ok(Self { mean, table: table.map_err(|_| Error::Internal("a table has another size".to_owned()))? })
    }

    /// Return the saturation of a keyword with a count in a unit of a length.
    #[inline]
    pub fn of(&self, length: u32, count: u32) -> f64 {
        match (length as usize) < LENGTHS && (count as usize) < TIMES {
            true => self.table[count as usize * LENGTHS + length as usize],
            false => divided(self.mean, length, count),
        }
    }

    /// Return k1 (1 - b + b length / mean length).
    pub fn norm(&self, length: u32) -> f64 {
        norm(self.mean, length)
    }
}

fn norm(mean: f64, length: u32) -> f64 {
    K1 * (1.0 - B + B * (f64::from(length) / mean))
}

#[inline(never)]
fn divided(mean: f64, length: u32, count: u32) -> f64 {
    let count = f64::from(count);
    count / (count + norm(mean, length))
}

/// What the weights are computed from.
#[derive(Debug, Clone, Copy)]
pub struct Counts<'a> {
    pub keywords: Strings<'a>,
    /// Offsets of the units of each keyword, name and subject.
    pub keyword_units: &'a [u64],
    pub name_units: &'a [u64],
    pub subject_units: &'a [u64],
    pub unit_length: &'a [u32],
    /// The language of each unit; empty if all are English.
    pub unit_language: &'a [u8],
}

/// Weights of units and of what they have.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    pub saturations: Saturations,
    /// ln(1 + (n - df + 0.5) / (df + 0.5)).
    pub keyword_idf: Vec<f64>,
    pub name_idf: Vec<f64>,
    pub subject_idf: Vec<f64>,
}

impl Weights {
    pub fn new(counts: &Counts<'_>) -> Result<Self> {
        let n = counts.unit_length.len();
        let mut weights = Self {
            saturations: Saturations::new(counts.unit_length)?,
            keyword_idf: of_rows(n, counts.keyword_units),
            name_idf: of_rows(n, counts.name_units),
            subject_idf: of_rows(n, counts.subject_units),
        };
        weights.by_language(counts)?;
        Ok(weights)
    }

    /// Compute the idf of stems that only one language has, among the units in this language: otherwise each
    /// of its words would be rare in an index that is mostly in another language. For the same reason a Latin word as it
    /// is written counts among the units whose words are: a German passage that passes for English has no stems, and all
    /// of its words would be rare.
    fn by_language(&mut self, counts: &Counts<'_>) -> Result<()> {
        let mut units = [0usize; 256];
        counts.unit_language.iter().for_each(|&number| units[usize::from(number)] += 1);
        let (mut of_code, mut whole) = (BTreeMap::new(), 0);
        for (number, &count) in (0u8..=255).zip(&units).filter(|(_, &count)| count > 0) {
            let language = Language::numbered(number)?;
            of_code.insert(language.code(), count);
            whole += if language.marks_latin() { 0 } else { count };
        }
        if of_code.len() < 2 {
            return Ok(());
        }
        for (id, (idf, range)) in self.keyword_idf.iter_mut().zip(counts.keyword_units.windows(2)).enumerate()
        {
            let keyword = counts.keywords.get(id);
            let found = match keyword.split_once('@') {
                Some((_, code)) => of_code.get(code).copied(),
                None => (Script::of_word(keyword) == Some(Script::Latin)).then_some(whole),
            };
            if let Some(count) = found {
                let df = range[1].saturating_sub(range[0]);
                let least = FEW.min(counts.unit_language.len());
                *idf = inverse_document_frequency(count.max(df as usize).max(least), df);
            }
        }
        Ok(())
    }
}

/// Return the idf of what `df` of `n` units have.
fn inverse_document_frequency(n: usize, df: u64) -> f64 {
    let (n, df) = (n as f64, df as f64);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

/// Return the idf of each row of units.
fn of_rows(n: usize, indptr: &[u64]) -> Vec<f64> {
    let common: Vec<f64> = (0..COMMON as u64).map(|df| inverse_document_frequency(n, df)).collect();
    let idf = |row: &[u64]| {
        let df = row[1].saturating_sub(row[0]);
        common.get(df as usize).copied().unwrap_or_else(|| inverse_document_frequency(n, df))
    };
    indptr.windows(2).map(idf).collect()
}
