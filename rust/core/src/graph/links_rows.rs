//! Input of the walk's arrays, and rows that grow during construction.

use crate::sparse::Csr;
use crate::text::detection::Choice;
use crate::text::strings::Strings;

/// The texts of an index: `n` titles (may be empty), `n` texts, and the sentences of every unit. The
/// sentences of unit `u` are `first_sentence[u]..first_sentence[u + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub titles: Strings<'a>,
    pub texts: Strings<'a>,
    pub sentences: Strings<'a>,
    pub first_sentence: &'a [u64],
    /// The language of each unit.
    pub language: Choice,
}

/// Rows to which values are appended.
#[derive(Debug, Default)]
pub(crate) struct RowBuilder {
    pub values: Vec<u32>,
    ends: Vec<u64>,
}

impl RowBuilder {
    /// Return rows from their values and the end of each row.
    pub fn from_parts(values: Vec<u32>, ends: Vec<u64>) -> Self {
        Self { values, ends }
    }

    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    pub fn close(&mut self) {
        self.ends.push(self.values.len() as u64);
    }

    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        start..self.ends[row] as usize
    }

    pub fn row(&self, row: usize) -> &[u32] {
        &self.values[self.range(row)]
    }

    /// Append values as the next row.
    pub fn push(&mut self, row: &[u32]) {
        self.values.extend_from_slice(row);
        self.close();
    }

    /// Return the last row.
    pub fn last(&self) -> &[u32] {
        self.row(self.ends.len() - 1)
    }

    /// Return the last row, to replace its values.
    pub fn last_mut(&mut self) -> &mut [u32] {
        let range = self.range(self.ends.len() - 1);
        &mut self.values[range]
    }

    /// Append distinct values, sorted, as the next row.
    pub fn push_set(&mut self, row: &mut Vec<u32>) {
        row.sort_unstable();
        row.dedup();
        self.values.append(row);
        self.close();
    }

    pub fn reserve(&mut self, rows: usize, values: usize) {
        self.ends.reserve(rows);
        self.values.reserve(values);
    }

    pub fn append(&mut self, other: Self) {
        let base = self.values.len() as u64;
        self.values.extend_from_slice(&other.values);
        self.ends.extend(other.ends.iter().map(|end| base + end));
    }

    pub fn finish(self, columns: usize) -> Csr {
        let indptr = std::iter::once(0).chain(self.ends).collect();
        Csr { indptr, indices: self.values, columns }
    }
}
