//! Transposed and renumbered rows.
//!
//! The transpose of the rows "distinct words of each unit" holds the units of each word. These are KET-RAG's
//! edges Ek (Algorithm 3, line 20).

use crate::error::{Error, Result};
use crate::memory::{filled, room, zeros};
use crate::progress::Progress;
use crate::sparse::{Csr, CsrView};

/// Number of rows between two checks of the progress.
const GLANCE: usize = 1 << 14;

/// Purpose of the allocations, for error messages.
const COUNTS: &str = "the counts of columns";
const TURNED: &str = "the new rows";

/// Return the number of rows in which each column occurs. The ids of each row must strictly ascend.
pub fn document_frequency(rows: CsrView<'_>, progress: &Progress) -> Result<Vec<u64>> {
    let mut counts: Vec<u64> = zeros(rows.columns, COUNTS)?;
    for row in 0..rows.rows() {
        if row % GLANCE == 0 {
            progress.check()?;
        }
        let ids = rows.row(row);
        if ids.windows(2).any(|two| two[1] <= two[0]) {
            return Err(Error::input(format!("the ids of row {row} are not strictly ascending")));
        }
        ids.iter().for_each(|&column| counts[column as usize] += 1);
    }
    Ok(counts)
}

/// Return the same rows restricted to the columns `kept` (old ids, strictly ascending), renumbered by their
/// position in `kept`.
pub fn renumber(rows: CsrView<'_>, kept: &[u32]) -> Result<Csr> {
    if kept.windows(2).any(|w| w[1] <= w[0]) {
        return Err(Error::input("the kept ids are not strictly ascending"));
    }
    if kept.last().is_some_and(|&last| last as usize >= rows.columns) {
        return Err(Error::input(format!("a kept id is not below {}", rows.columns)));
    }
    if kept.len() == rows.columns {
        let (indptr, indices) = (rows.indptr.all().to_vec(), rows.indices.all().to_vec());
        return Ok(Csr { indptr, indices, columns: rows.columns });
    }
    let mut new_id = filled(u32::MAX, rows.columns, "the new numbers of columns")?;
    for (new, &old) in (0u32..).zip(kept) {
        new_id[old as usize] = new;
    }
    let mut indptr = room(rows.rows() + 1, TURNED)?;
    indptr.push(0);
    let mut indices = room(rows.nnz(), TURNED)?;
    for row in 0..rows.rows() {
        let ids = rows.row(row).iter().map(|&old| new_id[old as usize]);
        indices.extend(ids.filter(|&new| new != u32::MAX));
        indptr.push(indices.len() as u64);
    }
    indices.shrink_to_fit();
    Ok(Csr { indptr, indices, columns: kept.len() })
}

/// Transpose rows with strictly ascending ids. The ids of the result's rows ascend, too.
pub fn transpose(rows: CsrView<'_>, progress: &Progress) -> Result<Csr> {
    if u32::try_from(rows.rows()).is_err() {
        return Err(Error::input(format!("{} rows: ids have 32 bits", rows.rows())));
    }
    let mut next = document_frequency(rows, progress)?;
    let mut indptr = room(rows.columns + 1, TURNED)?;
    indptr.push(0);
    for start in &mut next {
        let end = indptr[indptr.len() - 1] + *start;
        *start = indptr[indptr.len() - 1];
        indptr.push(end);
    }
    let mut indices: Vec<u32> = zeros(rows.nnz(), TURNED)?;
    for row in 0..rows.rows() {
        if row % GLANCE == 0 {
            progress.check()?;
        }
        for &column in rows.row(row) {
            let place = &mut next[column as usize];
            indices[*place as usize] = row as u32;
            *place += 1;
        }
    }
    Ok(Csr { indptr, indices, columns: rows.rows() })
}
