//! Combine rows of two graphs in a given order: an update merges the rows kept from an index with the new
//! ones.

use super::{Csr, CsrView};
use crate::error::{Error, Result};

/// Marks a number that was removed.
pub const GONE: u32 = u32::MAX;
/// Number of columns for rows with unrestricted values.
pub const ANY: usize = 1 << 32;

/// Rows with new numbers for their values; an empty list keeps the values.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub rows: CsrView<'a>,
    pub numbers: &'a [u32],
}

impl<'a> Source<'a> {
    /// `numbers` is empty or has a number for every value.
    pub fn new(indptr: &'a [u64], indices: &'a [u32], numbers: &'a [u32]) -> Result<Self> {
        let columns = if numbers.is_empty() { ANY } else { numbers.len() };
        Ok(Self { rows: CsrView::new(indptr, indices, columns)?, numbers })
    }
}

/// Return row `wanted[i]` of the concatenated rows of `first` and `second`. No wanted row may hold a value
/// that is [`GONE`].
pub fn splice(first: Source<'_>, second: Source<'_>, wanted: &[u32], columns: usize) -> Result<Csr> {
    let split = first.rows.rows();
    let from = |row: u32| -> Result<(&[u32], &[u32])> {
        let row = row as usize;
        let (source, row) = if row < split { (&first, row) } else { (&second, row - split) };
        if row >= source.rows.rows() {
            return Err(Error::input(format!("row {row} of {} is wanted", source.rows.rows())));
        }
        Ok((source.rows.row(row), source.numbers))
    };
    let mut indptr = Vec::with_capacity(wanted.len() + 1);
    indptr.push(0u64);
    let mut total = 0;
    for &row in wanted {
        total += from(row)?.0.len() as u64;
        indptr.push(total);
    }
    let mut indices: Vec<u32> = Vec::with_capacity(total as usize);
    for &row in wanted {
        let (row, numbers) = from(row)?;
        if numbers.is_empty() {
            indices.extend_from_slice(row);
        } else {
            indices.extend(row.iter().map(|&id| numbers[id as usize]));
        }
    }
    if columns <= GONE as usize && indices.iter().any(|&id| id as usize >= columns) {
        return Err(Error::input("a row that stays has a value that is gone"));
    }
    Ok(Csr { indptr, indices, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_both_in_the_order_wanted() {
        let first = Source::new(&[0, 2, 3], &[0, 1, 2], &[5, 6, GONE]).unwrap();
        let second = Source::new(&[0, 0, 2], &[0, 1], &[4, 7]).unwrap();
        let found = splice(first, second, &[3, 0, 2], 8).unwrap();
        assert_eq!((found.indptr, found.indices), (vec![0, 2, 4, 4], vec![4, 7, 5, 6]));
        assert!(splice(first, second, &[1], 8).unwrap_err().to_string().contains("gone"));
        assert!(matches!(splice(first, second, &[4], 8), Err(Error::Input(_))));
        assert!(Source::new(&[0, 1], &[3], &[1, 2]).is_err());
        let plain = Source::new(&[0, 2], &[9, 9], &[]).unwrap();
        assert_eq!(splice(plain, plain, &[1, 0], ANY).unwrap().indices, [9, 9, 9, 9]);
    }
}
