//! A checked compressed-sparse-row pattern, owned or borrowed from a mapped file.

use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::memory::{room, zeros};

/// What memory is asked for, in errors.
const ROWS: &str = "the transpose of rows";

/// Rows of column ids: row `i` is `indices[indptr[i]..indptr[i + 1]]`. Values, where a matrix has
/// them, lie beside it in a slice of the same length as `indices`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csr {
    pub indptr: Vec<u64>,
    pub indices: Vec<u32>,
    pub columns: usize,
}

/// A [`Csr`] that borrows its arrays. `new` checks them once, so that `row` need not.
///
/// Rows of a mapped file are verified when they are first read: by `row` and `range`, so `indices` is
/// read at places that one of these two gave.
#[derive(Debug, Clone, Copy)]
pub struct CsrView<'a> {
    pub indptr: &'a [u64],
    pub indices: &'a [u32],
    pub columns: usize,
    guards: [Option<Guard<'a>>; 2],
}

impl Csr {
    /// Rows given one by one; ids must lie below `columns`.
    pub fn from_rows<R: AsRef<[u32]>>(rows: &[R], columns: usize) -> Result<Self> {
        let mut indptr = Vec::with_capacity(rows.len() + 1);
        indptr.push(0);
        let mut indices = Vec::with_capacity(rows.iter().map(|r| r.as_ref().len()).sum());
        for row in rows {
            indices.extend_from_slice(row.as_ref());
            indptr.push(indices.len() as u64);
        }
        let csr = Self { indptr, indices, columns };
        CsrView::new(&csr.indptr, &csr.indices, columns)?;
        Ok(csr)
    }

    pub fn view(&self) -> CsrView<'_> {
        CsrView::unchecked(&self.indptr, &self.indices, self.columns)
    }
}

impl<'a> CsrView<'a> {
    /// Checks that `indptr` starts at 0, never falls and ends at the length of `indices`, and that
    /// every id lies below `columns`.
    pub fn new(indptr: &'a [u64], indices: &'a [u32], columns: usize) -> Result<Self> {
        let Some((&first, &last)) = indptr.first().zip(indptr.last()) else {
            return Err(Error::input("indptr is empty: it needs one entry more than there are rows"));
        };
        if first != 0 {
            return Err(Error::input(format!("indptr starts at {first}, not at 0")));
        }
        if let Some(i) = indptr.windows(2).position(|w| w[1] < w[0]) {
            return Err(Error::input(format!("indptr falls after row {i}")));
        }
        if last != indices.len() as u64 {
            return Err(Error::input(format!(
                "indptr ends at {last}, but there are {} indices",
                indices.len()
            )));
        }
        if columns as u64 > 1 << 32 {
            return Err(Error::input(format!("{columns} columns: ids have 32 bits")));
        }
        // A maximum over the whole slice is vectorised; the position is looked for only on failure.
        if indices.iter().copied().max().is_some_and(|m| m as usize >= columns) {
            let at = indices.iter().position(|&x| x as usize >= columns).unwrap_or(0);
            return Err(Error::input(format!(
                "index {} at position {at} is not below the number of columns, {columns}",
                indices[at]
            )));
        }
        Ok(Self::unchecked(indptr, indices, columns))
    }

    /// For arrays that are known to be good. Where they are not, a read panics or gives wrong rows; it
    /// never leaves the slices.
    pub fn unchecked(indptr: &'a [u64], indices: &'a [u32], columns: usize) -> Self {
        Self { indptr, indices, columns, guards: [None; 2] }
    }

    /// For stored arrays that were checked before they were written: `indptr` is verified, `indices` will
    /// be by its guard, row by row. Only what costs nothing is checked.
    pub fn stored(
        indptr: &'a [u64],
        (indices, guard): (&'a [u32], Option<Guard<'a>>),
        columns: usize,
    ) -> Result<Self> {
        if indptr.first().zip(indptr.last()) != Some((&0, &(indices.len() as u64))) {
            return Err(Error::input(format!("indptr does not go from 0 to {}", indices.len())));
        }
        Ok(Self { indptr, indices, columns, guards: [guard, None] })
    }

    /// Verifies with each row also the values that lie beside its ids.
    pub fn beside(mut self, guard: Option<Guard<'a>>) -> Self {
        self.guards[1] = guard;
        self
    }

    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    #[inline]
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let range = self.indptr[row] as usize..self.indptr[row + 1] as usize;
        for guard in self.guards.iter().flatten() {
            guard.check(range.clone());
        }
        range
    }

    #[inline]
    pub fn row(&self, row: usize) -> &'a [u32] {
        &self.indices[self.range(row)]
    }

    /// An error that names the first row whose ids do not strictly ascend.
    pub fn require_sorted(&self) -> Result<()> {
        for row in 0..self.rows() {
            if self.row(row).windows(2).any(|w| w[1] <= w[0]) {
                return Err(Error::input(format!("the ids of row {row} are not strictly ascending")));
            }
        }
        Ok(())
    }

    /// Columns become rows. The ids of each new row ascend. The second value maps each new
    /// position to the old one, to carry values along.
    pub fn transpose_with_positions(&self) -> Result<(Csr, Vec<u64>)> {
        let mut positions: Vec<u64> = zeros(self.nnz(), ROWS)?;
        let turned = self.turned(|new, old| positions[new] = old as u64)?;
        Ok((turned, positions))
    }

    pub fn transpose(&self) -> Result<Csr> {
        self.turned(|_, _| ())
    }

    /// `carry` is called with the new and the old position of each value.
    #[inline(always)]
    fn turned(&self, mut carry: impl FnMut(usize, usize)) -> Result<Csr> {
        let mut indptr: Vec<u64> = zeros(self.columns + 1, ROWS)?;
        for &column in self.indices {
            indptr[column as usize + 1] += 1;
        }
        for column in 0..self.columns {
            indptr[column + 1] += indptr[column];
        }
        let mut next = room(indptr.len(), ROWS)?;
        next.extend_from_slice(&indptr);
        let mut indices: Vec<u32> = zeros(self.nnz(), ROWS)?;
        for row in 0..self.rows() {
            for old in self.range(row) {
                let slot = &mut next[self.indices[old] as usize];
                indices[*slot as usize] = row as u32;
                carry(*slot as usize, old);
                *slot += 1;
            }
        }
        Ok(Csr { indptr, indices, columns: self.rows() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn broken_arrays_are_refused() {
        assert!(CsrView::new(&[], &[], 1).is_err());
        assert!(CsrView::new(&[1, 1], &[0], 1).is_err());
        assert!(CsrView::new(&[0, 2, 1], &[0, 0], 1).is_err());
        assert!(CsrView::new(&[0, 1], &[0, 0], 1).is_err());
        assert!(CsrView::new(&[0, 1], &[3], 3).is_err());
        assert!(CsrView::new(&[0, u64::MAX], &[3], 9).is_err());
        assert!(CsrView::new(&[0, 2], &[2, 2], 3).unwrap().require_sorted().is_err());
    }

    proptest! {
        #[test]
        fn transposing_twice_changes_nothing(rows in prop::collection::vec(prop::collection::btree_set(0u32..20, 0..9), 0..20)) {
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            let csr = Csr::from_rows(&rows, 20).unwrap();
            let (turned, positions) = csr.view().transpose_with_positions().unwrap();
            turned.view().require_sorted().unwrap();
            for column in 0..20 {
                for k in turned.view().range(column) {
                    prop_assert_eq!(csr.indices[positions[k] as usize] as usize, column);
                }
            }
            prop_assert_eq!(turned.view().transpose().unwrap(), csr);
        }
    }
}
