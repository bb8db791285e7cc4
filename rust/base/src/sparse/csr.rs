//! A checked compressed-sparse-row pattern, owned or borrowed from a mapped file.

use crate::error::{Error, Result};
use crate::guard::Guard;
use crate::items::Items;
use crate::memory::{room, zeros};

/// Purpose of the allocations, for error messages.
const ROWS: &str = "the transpose of rows";

/// Rows of column ids: row `i` is `indices[indptr[i]..indptr[i + 1]]`. The values of a matrix are in a
/// separate slice of the same length as `indices`.
///
/// ```
/// use ketrag_base::sparse::{Csr, CsrView};
///
/// let rows = Csr::from_rows(&[vec![0, 2], vec![1]], 3)?;
/// assert_eq!(rows.view().row(0), [0, 2]);
/// assert!(CsrView::new(&[0, 1], &[7], 3).is_err()); // column 7 of 3
/// # Ok::<(), ketrag_base::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Csr {
    pub indptr: Vec<u64>,
    pub indices: Vec<u32>,
    pub columns: usize,
}

/// A [`Csr`] that borrows its arrays. `new` checks them once, so `row` does not need to.
///
/// Offsets and ids in a file are verified and unpacked on first access.
#[derive(Debug, Clone, Copy)]
pub struct CsrView<'a> {
    pub indptr: Items<'a, u64>,
    pub indices: Items<'a, u32>,
    pub columns: usize,
    beside: Option<Guard<'a>>,
}

impl Csr {
    /// Build rows from slices; ids must be less than `columns`.
    pub fn from_rows<R: AsRef<[u32]>>(rows: &[R], columns: usize) -> Result<Self> {
        let mut indptr = room(rows.len().saturating_add(1), "rows of ids")?;
        indptr.push(0);
        let mut indices = room(rows.iter().map(|r| r.as_ref().len()).sum(), "rows of ids")?;
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
    /// Check that `indptr` starts at 0, never falls and ends at the length of `indices`, and that every id is
    /// less than `columns`.
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
        // The maximum over the whole slice is vectorised; the position is only needed on failure.
        if indices.iter().copied().max().is_some_and(|m| m as usize >= columns) {
            let at = indices.iter().position(|&x| x as usize >= columns).unwrap_or(0);
            return Err(Error::input(format!(
                "index {} at position {at} is not below the number of columns, {columns}",
                indices[at]
            )));
        }
        Ok(Self::unchecked(indptr, indices, columns))
    }

    /// For arrays that are known to be valid. If they are not, a read panics or returns wrong rows, but never
    /// reads outside the slices.
    pub fn unchecked(indptr: &'a [u64], indices: &'a [u32], columns: usize) -> Self {
        Self { indptr: Items::from(indptr), indices: Items::from(indices), columns, beside: None }
    }

    /// For stored arrays that were checked before they were written. Their guards verify both row by row.
    /// Only checks that cost nothing are repeated.
    pub fn stored(indptr: Items<'a, u64>, indices: Items<'a, u32>, columns: usize) -> Result<Self> {
        if indptr.first().zip(indptr.last()) != Some((&0, &(indices.len() as u64))) {
            return Err(Error::input(format!("indptr does not go from 0 to {}", indices.len())));
        }
        Ok(Self { indptr, indices, columns, beside: None })
    }

    /// Also verify the positions that `range` returns in a parallel array of values.
    pub fn beside(mut self, guard: Option<Guard<'a>>) -> Self {
        self.beside = guard;
        self
    }

    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Return the number of ids of a row, without reading them.
    #[inline]
    pub fn len_of(&self, row: usize) -> usize {
        let [start, end] = self.indptr.pair(row);
        end.saturating_sub(start) as usize
    }

    #[inline]
    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let [start, end] = self.indptr.pair(row);
        let range = start as usize..end as usize;
        if let Some(guard) = &self.beside {
            guard.check(range.clone());
        }
        range
    }

    #[inline]
    pub fn row(&self, row: usize) -> &'a [u32] {
        self.indices.get(self.range(row))
    }

    /// Return an error that names the first row whose ids do not strictly ascend.
    pub fn require_sorted(&self) -> Result<()> {
        for row in 0..self.rows() {
            if self.row(row).windows(2).any(|w| w[1] <= w[0]) {
                return Err(Error::input(format!("the ids of row {row} are not strictly ascending")));
            }
        }
        Ok(())
    }

    /// Return an error unless this is an undirected simple graph: square, the ids of each row strictly
    /// ascending, every edge present in both directions, and no self-loops.
    pub fn require_undirected(&self) -> Result<()> {
        let n = self.rows();
        if self.columns != n {
            return Err(Error::input(format!(
                "the graph has {n} rows but {} columns: an undirected one is square",
                self.columns
            )));
        }
        self.require_sorted()?;
        let indices = self.indices.all();
        // Rows are read in ascending order, so each row meets its ids from first to last.
        let mut next: Vec<u64> = room(n, "the check of a graph")?;
        next.extend_from_slice(&self.indptr[0..n]);
        for node in 0..n {
            for &other in self.row(node) {
                let at = &mut next[other as usize];
                let end = self.indptr[other as usize + 1];
                if other as usize == node {
                    return Err(Error::input(format!("node {node} has an edge to itself")));
                }
                if *at >= end || indices[*at as usize] as usize != node {
                    return Err(self.one_way(node, other as usize));
                }
                *at += 1;
            }
        }
        Ok(())
    }

    /// Return the error if `node` is not the next id of row `other`: one of the two lacks an edge.
    fn one_way(&self, node: usize, other: usize) -> Error {
        let has = |from: usize, to: usize| self.row(from).binary_search(&(to as u32)).is_ok();
        // The next id of `other` is smaller than `node`: that smaller one lacks the edge back.
        let (from, to) = match has(other, node) {
            false => (node, other),
            true => {
                let row = self.row(other).iter().map(|&id| id as usize);
                (other, row.take_while(|&id| id < node).find(|&id| !has(id, other)).unwrap_or(node))
            }
        };
        Error::input(format!("the edge from {from} to {to} has none back: the graph must be undirected"))
    }

    /// Transpose the rows. The ids of each new row ascend. The second value maps each new position to the old
    /// one, so that values can be moved along.
    pub fn transpose_with_positions(&self) -> Result<(Csr, Vec<u64>)> {
        let mut positions: Vec<u64> = zeros(self.nnz(), ROWS)?;
        let turned = self.turned(|new, old| positions[new] = old as u64)?;
        Ok((turned, positions))
    }

    /// Transpose the rows and move values, which are parallel to the ids, along.
    pub fn transpose_with(&self, values: &[u32]) -> Result<(Csr, Vec<u32>)> {
        if values.len() != self.nnz() {
            return Err(Error::input(format!("{} values for {} ids", values.len(), self.nnz())));
        }
        let mut moved: Vec<u32> = zeros(self.nnz(), ROWS)?;
        let turned = self.turned(|new, old| moved[new] = values[old])?;
        Ok((turned, moved))
    }

    pub fn transpose(&self) -> Result<Csr> {
        self.turned(|_, _| ())
    }

    /// `carry` is called with the new and the old position of each value.
    #[inline(always)]
    fn turned(&self, mut carry: impl FnMut(usize, usize)) -> Result<Csr> {
        let mut indptr: Vec<u64> = zeros(self.columns + 1, ROWS)?;
        let columns = self.indices.all();
        for &column in columns {
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
                let slot = &mut next[columns[old] as usize];
                indices[*slot as usize] = row as u32;
                carry(*slot as usize, old);
                *slot += 1;
            }
        }
        Ok(Csr { indptr, indices, columns: self.rows() })
    }
}

// Combines rows of two graphs in a given order. An update merges the rows reused from an index with the new
// ones.

/// Marks a number that was removed.
pub const GONE: u32 = u32::MAX;
/// Number of columns for rows with unrestricted values.
pub const ANY: usize = 1 << 32;

/// Rows, with new numbers for their values. An empty list keeps the values unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    pub rows: CsrView<'a>,
    pub numbers: &'a [u32],
}

impl<'a> Source<'a> {
    /// `numbers` is empty or has one number per value.
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
            return Err(Error::input(format!(
                "row {row} was requested, but there are {} rows",
                source.rows.rows()
            )));
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
        return Err(Error::input("a kept row holds a removed value"));
    }
    Ok(Csr { indptr, indices, columns })
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

    #[test]
    fn what_is_not_undirected_is_named() {
        let said = |rows: &[&[u32]], columns| {
            Csr::from_rows(rows, columns).unwrap().view().require_undirected().map_err(|e| e.to_string())
        };
        assert_eq!(said(&[], 0), Ok(()));
        assert_eq!(said(&[&[1, 2], &[0], &[0], &[]], 4), Ok(()));
        for (rows, columns, word) in [
            (&[&[1][..], &[]][..], 2, "from 0 to 1"),
            (&[&[], &[0]], 2, "from 1 to 0"),
            (&[&[2], &[2], &[1]], 3, "from 0 to 2"),
            (&[&[2], &[], &[0, 1]], 3, "from 2 to 1"),
            (&[&[], &[2], &[0, 1]], 3, "from 2 to 0"),
            (&[&[0]], 1, "itself"),
            (&[&[1, 1], &[0, 0]], 2, "ascending"),
            (&[&[1]], 2, "square"),
        ] {
            let text = said(rows, columns).unwrap_err();
            assert!(text.contains(word), "{rows:?}: {text}");
        }
    }

    proptest! {
        #[test]
        fn undirected_is_equal_to_its_transpose_without_the_diagonal(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..4, 0..4), 4),
            mirror: bool,
        ) {
            let mut rows: Vec<_> = rows;
            if mirror {
                for i in 0..4 {
                    for j in rows[i].clone() {
                        rows[j as usize].insert(i as u32);
                    }
                    rows[i].remove(&(i as u32));
                }
            }
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            let csr = Csr::from_rows(&rows, 4).unwrap();
            let want = csr.view().transpose().unwrap() == csr && (0..4).all(|i| !rows[i].contains(&(i as u32)));
            prop_assert_eq!(csr.view().require_undirected().is_ok(), want);
        }

        #[test]
        fn transposing_twice_changes_nothing(rows in prop::collection::vec(prop::collection::btree_set(0u32..20, 0..9), 0..20)) {
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            let csr = Csr::from_rows(&rows, 20).unwrap();
            let (turned, positions) = csr.view().transpose_with_positions().unwrap();
            let values: Vec<u32> = (0..csr.indices.len() as u32).map(|at| at * 7).collect();
            let moved = positions.iter().map(|&at| values[at as usize]).collect();
            prop_assert_eq!(csr.view().transpose_with(&values).unwrap(), (turned.clone(), moved));
            prop_assert!(csr.view().transpose_with(&[values, vec![0]].concat()).is_err());
            turned.view().require_sorted().unwrap();
            for column in 0..20 {
                for k in turned.view().range(column) {
                    prop_assert_eq!(csr.indices[positions[k] as usize] as usize, column);
                }
            }
            prop_assert_eq!(turned.view().transpose().unwrap(), csr);
        }
    }

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
