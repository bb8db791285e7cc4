//! The text-keyword graph: transposed postings without rare or frequent keywords.
//!
//! `unit_words` holds the distinct words of each unit (or sentence), ascending; its transpose holds the units
//! of each word, which are KET-RAG's edges Ek (Algorithm 3, line 20), or the sentences of a keyword.

use crate::error::{Error, Result};
use crate::memory::{filled, room, zeros};
use crate::parallel::{map_ranges, threads as cores};
use crate::progress::Progress;
use crate::sparse::{Csr, CsrView};
use std::sync::{Mutex, PoisonError};

/// Postings that one thread counts at a time.
const COUNT_GRAIN: usize = 1 << 16;

/// Purpose of the allocations, for error messages.
const COUNTS: &str = "the counts of columns";
const TURNED: &str = "the new rows";

/// Columns are transposed in blocks of about this many postings. Smaller blocks, whose write positions fit in
/// the L2 cache, were slower because each block scans all rows (25 M postings of 300,000 rows on one core:
/// 0.42 s in blocks of 2^23, 0.88 s of 2^20, 0.53 s in one).
const BLOCK: usize = 1 << 23;

/// A graph of keywords and units, in both directions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bipartite {
    /// Row `u`: the keywords of unit `u`, ascending.
    pub unit_keywords: Csr,
    /// Row `k`: the units of keyword `k`, ascending.
    pub keyword_units: Csr,
    /// Keyword `k` is word `kept[k]` of the input; ascending.
    pub kept: Vec<u32>,
}

/// Which words become keywords.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pruning {
    /// Words in fewer units are left out. 0 and 1 keep every word that occurs.
    pub min_df: u32,
    /// Words in more than this share of the units are left out. 1 keeps all.
    pub max_df_ratio: f64,
}

impl Default for Pruning {
    fn default() -> Self {
        Self { min_df: 1, max_df_ratio: 1.0 }
    }
}

/// Return the keyword graph of `unit_words` (units x words, ids strictly ascending in each row). Words that
/// occur nowhere, or that `pruning` leaves out, have no keyword.
pub fn bipartite(
    unit_words: CsrView<'_>,
    pruning: Pruning,
    threads: usize,
    progress: &Progress,
) -> Result<Bipartite> {
    let ratio = pruning.max_df_ratio;
    if !(0.0..=1.0).contains(&ratio) {
        return Err(Error::input(format!("max_df_ratio must be between 0 and 1, not {ratio}")));
    }
    let df = document_frequency(unit_words, threads, progress)?;
    let most = (ratio * unit_words.rows() as f64 + 1e-9).floor() as u64;
    let least = u64::from(pruning.min_df.max(1));
    let kept: Vec<u32> =
        (0u32..).zip(&df).filter(|&(_, &n)| (least..=most).contains(&n)).map(|(w, _)| w).collect();
    let unit_keywords = renumber(unit_words, &kept)?;
    let df = kept.iter().map(|&word| df[word as usize]);
    let nothing = vec![(); unit_keywords.indices.len()];
    let (keyword_units, _) = turn_all(unit_keywords.view(), &nothing, df, threads, progress)?;
    Ok(Bipartite { unit_keywords, keyword_units, kept })
}

/// Return the number of rows in which each column occurs; the ids of each row must strictly ascend.
pub fn document_frequency(rows: CsrView<'_>, threads: usize, progress: &Progress) -> Result<Vec<u64>> {
    // At most as many parts as threads, since each holds one number per column.
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
        let (indptr, indices) = (rows.indptr.to_vec(), rows.indices.to_vec());
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

/// Transpose rows with strictly ascending ids; the ids of the result's rows ascend, too.
pub fn transpose(rows: CsrView<'_>, threads: usize, progress: &Progress) -> Result<Csr> {
    let nothing = vec![(); rows.nnz()];
    Ok(transpose_values(rows, &nothing, threads, progress)?.0)
}

/// Like [`transpose`], with a value per entry that moves with it.
pub fn transpose_values<T: Copy + Default + Send + Sync>(
    rows: CsrView<'_>,
    values: &[T],
    threads: usize,
    progress: &Progress,
) -> Result<(Csr, Vec<T>)> {
    if values.len() != rows.nnz() {
        return Err(Error::input(format!("there are {} values for {} entries", values.len(), rows.nnz())));
    }
    let df = document_frequency(rows, threads, progress)?;
    turn_all(rows, values, df.into_iter(), threads, progress)
}

/// One pass, for few entries: blocks and threads would cost more than they save.
fn turn_at_once<T: Copy + Default>(
    rows: CsrView<'_>,
    values: &[T],
    indptr: Vec<u64>,
) -> Result<(Csr, Vec<T>)> {
    let mut next: Vec<u32> = room(indptr.len(), TURNED)?;
    next.extend(indptr.iter().map(|&start| start as u32));
    let mut indices: Vec<u32> = zeros(rows.nnz(), TURNED)?;
    let mut carried = filled(T::default(), rows.nnz(), TURNED)?;
    for row in 0..rows.rows() {
        let range = rows.range(row);
        for (&column, &value) in rows.row(row).iter().zip(&values[range]) {
            let place = &mut next[column as usize];
            indices[*place as usize] = row as u32;
            carried[*place as usize] = value;
            *place += 1;
        }
    }
    Ok((Csr { indptr, indices, columns: rows.rows() }, carried))
}

/// Transpose rows that are known to ascend, given the number of entries of each column.
fn turn_all<T: Copy + Default + Send + Sync>(
    rows: CsrView<'_>,
    values: &[T],
    df: impl Iterator<Item = u64>,
    threads: usize,
    progress: &Progress,
) -> Result<(Csr, Vec<T>)> {
    if u32::try_from(rows.rows()).is_err() {
        return Err(Error::input(format!("{} rows: ids have 32 bits", rows.rows())));
    }
    let mut indptr = room(rows.columns + 1, TURNED)?;
    indptr.push(0u64);
    let mut sum = 0;
    for count in df {
        sum += count;
        indptr.push(sum);
    }
    if rows.nnz() <= BLOCK {
        progress.check()?;
        return turn_at_once(rows, values, indptr);
    }
    let mut indices: Vec<u32> = zeros(rows.nnz(), TURNED)?;
    let mut carried = filled(T::default(), rows.nnz(), TURNED)?;
    {
        let blocks = blocks(&indptr, cores(threads));
        let (mut rest, mut rest_values) = (&mut indices[..], &mut carried[..]);
        let mut parts = Vec::with_capacity(blocks.len());
        for columns in blocks {
            let length = (indptr[columns.end] - indptr[columns.start]) as usize;
            let (ids, later) = rest.split_at_mut(length);
            let (own, later_values) = rest_values.split_at_mut(length);
            (rest, rest_values) = (later, later_values);
            parts.push(Mutex::new(Block { columns, ids, values: own }));
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
                block.turn(rows, values, &indptr, &mut reached, progress)?;
            }
            Ok(())
        })?;
    }
    Ok((Csr { indptr, indices, columns: rows.rows() }, carried))
}

/// Return ranges of columns with about the same number of entries.
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
struct Block<'a, T> {
    columns: std::ops::Range<usize>,
    ids: &'a mut [u32],
    values: &'a mut [T],
}

impl<T: Copy> Block<'_, T> {
    /// Fill the block. `reached` is how much of each row earlier blocks have taken.
    fn turn(
        &mut self,
        rows: CsrView<'_>,
        values: &[T],
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
            for (&column, &value) in rows.indices[first..entries.end].iter().zip(&values[first..]) {
                let Some(slot) = next.get_mut(column as usize - self.columns.start) else { break };
                self.ids[*slot as usize] = row as u32;
                self.values[*slot as usize] = value;
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
    use proptest::prelude::*;

    fn rows_of(rows: &[Vec<u32>], columns: usize) -> Csr {
        Csr::from_rows(rows, columns).unwrap()
    }

    #[test]
    fn pruning_keeps_the_middle() {
        // Word 0 in all 4 units, word 1 in 2, word 2 in 1, word 3 in none.
        let csr = rows_of(&[vec![0, 1], vec![0, 1, 2], vec![0], vec![0]], 4);
        let with = |min_df, max_df_ratio| {
            let pruning = Pruning { min_df, max_df_ratio };
            bipartite(csr.view(), pruning, 1, &Progress::none()).unwrap()
        };
        assert_eq!(with(1, 1.0).kept, [0, 1, 2]);
        assert_eq!(with(0, 0.5).kept, [1, 2]);
        let graph = with(2, 0.5);
        assert_eq!(graph.kept, [1]);
        assert_eq!(graph.keyword_units, rows_of(&[vec![0, 1]], 4));
        assert_eq!(graph.unit_keywords, rows_of(&[vec![0], vec![0], vec![], vec![]], 1));
        let bad = Pruning { min_df: 1, max_df_ratio: f64::NAN };
        assert!(bipartite(csr.view(), bad, 1, &Progress::none()).is_err());
    }

    #[test]
    fn bad_input_is_refused_and_a_stop_is_seen() {
        let unsorted = rows_of(&[vec![2, 1]], 3);
        assert!(transpose(unsorted.view(), 1, &Progress::none()).is_err());
        let csr = rows_of(&[vec![0, 1]], 3);
        assert!(transpose_values(csr.view(), &[1.0], 1, &Progress::none()).is_err());
        assert!(renumber(csr.view(), &[1, 1]).is_err());
        assert!(renumber(csr.view(), &[3]).is_err());
        let stopped = Progress::none();
        stopped.stop();
        assert_eq!(transpose(csr.view(), 1, &stopped), Err(Error::Cancelled));
    }

    #[test]
    fn large_graphs_are_turned_in_blocks() {
        // One column holds a third of all entries and therefore forms a block by itself.
        let rows: Vec<Vec<u32>> =
            (0..700_000u32).map(|i| vec![0, 1 + i % 97, 100 + i.wrapping_mul(48_271) % 50_000]).collect();
        let csr = rows_of(&rows, 50_100);
        assert!(blocks(&csr.view().transpose().unwrap().indptr, 5).len() > 2);
        let values: Vec<u64> = (0..csr.indices.len() as u64).collect();
        let (want, positions) = csr.view().transpose_with_positions().unwrap();
        for threads in [1, 2, 5] {
            let (got, carried) = transpose_values(csr.view(), &values, threads, &Progress::none()).unwrap();
            assert!(got == want && carried == positions);
        }
    }

    proptest! {
        #[test]
        fn equals_the_plain_transpose(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..30, 0..12), 0..25),
            threads in 1usize..4,
        ) {
            let rows: Vec<Vec<u32>> = rows.into_iter().map(|r| r.into_iter().collect()).collect();
            let csr = rows_of(&rows, 30);
            prop_assert_eq!(transpose(csr.view(), threads, &Progress::none()).unwrap(), csr.view().transpose().unwrap());
        }
    }
}
