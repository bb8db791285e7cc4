//! Transposed and renumbered rows, on any number of threads.
//!
//! The transpose of the rows "distinct words of each unit" holds the units of each word. These are KET-RAG's
//! edges Ek (Algorithm 3, line 20).

use crate::error::{Error, Result};
use crate::memory::{filled, room, zeros};
use crate::parallel::{map_ranges, threads as cores};
use crate::progress::Progress;
use crate::sparse::{Csr, CsrView};
use std::sync::{Mutex, PoisonError};

/// Number of postings that one thread counts at a time.
const COUNT_GRAIN: usize = 1 << 16;

/// Purpose of the allocations, for error messages.
const COUNTS: &str = "the counts of columns";
const TURNED: &str = "the new rows";

/// Columns are transposed in blocks of about this many postings. Smaller blocks, whose write positions fit in
/// the L2 cache, were slower because each block scans all rows (25 M postings of 300,000 rows on one core:
/// 0.42 s in blocks of 2^23, 0.88 s of 2^20, 0.53 s in one).
const BLOCK: usize = 1 << 23;

/// Return the number of rows in which each column occurs. The ids of each row must strictly ascend.
pub fn document_frequency(rows: CsrView<'_>, threads: usize, progress: &Progress) -> Result<Vec<u64>> {
    // At most as many parts as threads, because each part holds one number per column.
    let parts = cores(threads).min(rows.nnz() / COUNT_GRAIN).max(1);
    let grain = rows.rows().div_ceil(parts);
    let parts = map_ranges(rows.rows(), grain, threads, progress, |range| {
        let mut counts: Vec<u32> = zeros(rows.columns, COUNTS)?;
        let mut seen = 0;
        for row in range {
            let ids = rows.row(row);
            seen += ids.len() + 1;
            if seen > COUNT_GRAIN {
                progress.check()?;
                seen = 0;
            }
            let mut sorted = true;
            let mut least = 0u32;
            for &column in ids {
                sorted &= column >= least;
                least = column.wrapping_add(1);
                counts[column as usize] += 1;
            }
            if !sorted {
                return Err(Error::input(format!("the ids of row {row} are not strictly ascending")));
            }
        }
        Ok(counts)
    })?;
    let mut total: Vec<u64> = zeros(rows.columns, COUNTS)?;
    for part in parts {
        for (sum, count) in total.iter_mut().zip(part) {
            *sum += u64::from(count);
        }
    }
    Ok(total)
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
pub fn transpose(rows: CsrView<'_>, threads: usize, progress: &Progress) -> Result<Csr> {
    if u32::try_from(rows.rows()).is_err() {
        return Err(Error::input(format!("{} rows: ids have 32 bits", rows.rows())));
    }
    let df = document_frequency(rows, threads, progress)?;
    let mut indptr = room(rows.columns + 1, TURNED)?;
    indptr.push(0u64);
    let mut sum = 0;
    for count in df {
        sum += count;
        indptr.push(sum);
    }
    if rows.nnz() <= BLOCK {
        progress.check()?;
        return turn_at_once(rows, indptr);
    }
    let mut indices: Vec<u32> = zeros(rows.nnz(), TURNED)?;
    {
        let blocks = blocks(&indptr, cores(threads));
        let mut rest = &mut indices[..];
        let mut parts = Vec::with_capacity(blocks.len());
        for columns in blocks {
            let (ids, later) = rest.split_at_mut((indptr[columns.end] - indptr[columns.start]) as usize);
            rest = later;
            parts.push(Mutex::new(Block { columns, ids }));
        }
        let grain = parts.len().div_ceil(cores(threads));
        map_ranges(parts.len(), grain, threads, progress, |range| {
            let mut reached: Vec<u32> = Vec::new();
            for part in &parts[range] {
                let mut block = part.lock().unwrap_or_else(PoisonError::into_inner);
                if reached.is_empty() {
                    let before = |&c: &u32| (c as usize) < block.columns.start;
                    reached =
                        (0..rows.rows()).map(|row| rows.row(row).partition_point(before) as u32).collect();
                }
                block.turn(rows, &indptr, &mut reached, progress)?;
            }
            Ok(())
        })?;
    }
    Ok(Csr { indptr, indices, columns: rows.rows() })
}

/// Transpose in one pass, for few entries: blocks and threads would cost more time than they save.
fn turn_at_once(rows: CsrView<'_>, indptr: Vec<u64>) -> Result<Csr> {
    let mut next: Vec<u32> = room(indptr.len(), TURNED)?;
    next.extend(indptr.iter().map(|&start| start as u32));
    let mut indices: Vec<u32> = zeros(rows.nnz(), TURNED)?;
    for row in 0..rows.rows() {
        for &column in rows.row(row) {
            let place = &mut next[column as usize];
            indices[*place as usize] = row as u32;
            *place += 1;
        }
    }
    Ok(Csr { indptr, indices, columns: rows.rows() })
}

/// Return ranges of columns with about the same number of entries each.
fn blocks(indptr: &[u64], threads: usize) -> Vec<std::ops::Range<usize>> {
    let columns = indptr.len() - 1;
    let nnz = indptr[columns] as usize;
    let wanted = nnz.div_ceil(BLOCK).max(threads.min(nnz / COUNT_GRAIN)).max(1);
    let mut ranges = Vec::with_capacity(wanted);
    let mut start = 0;
    for k in 1..=wanted {
        let target = (nnz as u128 * k as u128 / wanted as u128) as u64;
        let end = if k == wanted { columns } else { indptr.partition_point(|&p| p < target) };
        if end > start {
            ranges.push(start..end.min(columns));
            start = end.min(columns);
        }
    }
    ranges
}

/// The rows of the transpose for some columns.
struct Block<'a> {
    columns: std::ops::Range<usize>,
    ids: &'a mut [u32],
}

impl Block<'_> {
    /// Fill the block. `reached` is the number of entries of each row that earlier blocks have used.
    fn turn(
        &mut self,
        rows: CsrView<'_>,
        indptr: &[u64],
        reached: &mut [u32],
        progress: &Progress,
    ) -> Result<()> {
        let base = indptr[self.columns.start];
        let mut next: Vec<u64> = indptr[self.columns.clone()].iter().map(|p| p - base).collect();
        for (row, reached) in reached.iter_mut().enumerate() {
            if row % COUNT_GRAIN == 0 {
                progress.check()?;
            }
            let entries = rows.range(row);
            let first = entries.start + *reached as usize;
            let mut taken = 0;
            for &column in &rows.indices[first..entries.end] {
                let Some(slot) = next.get_mut(column as usize - self.columns.start) else { break };
                self.ids[*slot as usize] = row as u32;
                *slot += 1;
                taken += 1;
            }
            *reached += taken;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_of(rows: &[Vec<u32>], columns: usize) -> Csr {
        Csr::from_rows(rows, columns).unwrap()
    }

    #[test]
    fn large_graphs_are_turned_in_blocks() {
        // One column holds a third of all entries and is therefore a block by itself.
        let rows: Vec<Vec<u32>> =
            (0..700_000u32).map(|i| vec![0, 1 + i % 97, 100 + i.wrapping_mul(48_271) % 50_000]).collect();
        let csr = rows_of(&rows, 50_100);
        assert!(blocks(&csr.view().transpose().unwrap().indptr, 5).len() > 2);
        let want = csr.view().transpose().unwrap();
        for threads in [1, 2, 5] {
            assert!(transpose(csr.view(), threads, &Progress::none()).unwrap() == want);
        }
    }
}
