//! Row filters of a search, and the runs in which the passing rows are scored.

use crate::error::{Error, Result};
use std::ops::Range;

/// Rows per call of the fast product. Their scores stay in the L1 cache.
pub(super) const BLOCK: usize = 256;
/// If at least this many of 64 rows are wanted, all 64 are scored.
const DENSE: u32 = 16;

/// The rows that take part in a search.
#[derive(Debug, Clone, Copy, Default)]
pub enum Filter<'a> {
    #[default]
    All,
    /// Strictly ascending ids.
    Ids(&'a [u32]),
    /// Bit `i % 64` of word `i / 64` is row `i`. There are at least as many bits as rows.
    Bits(&'a [u64]),
}

impl Filter<'_> {
    pub fn check(&self, rows: usize) -> Result<()> {
        match self {
            Self::All => Ok(()),
            Self::Ids(ids) if ids.windows(2).any(|w| w[1] <= w[0]) => {
                Err(Error::input("the ids of a filter must strictly ascend"))
            }
            Self::Ids(ids) if ids.last().is_some_and(|&id| id as usize >= rows) => {
                Err(Error::input(format!("a filter names a row that is not among the {rows}")))
            }
            Self::Bits(words) if words.len() < rows.div_ceil(64) => {
                Err(Error::input(format!("a filter of {} words for {rows} rows", words.len())))
            }
            _ => Ok(()),
        }
    }

    /// Return whether a row of [`Filter::runs`] takes part.
    #[inline]
    pub fn leaves(&self, row: usize) -> bool {
        match self {
            Self::Bits(words) => words[row / 64] >> (row % 64) & 1 == 1,
            Self::All | Self::Ids(_) => true,
        }
    }

    /// Call `work` on runs of at most [`BLOCK`] adjacent rows, ascending. If enough bits of a 64-bit block
    /// are set, all of its rows are included: scoring them together is faster than scoring the wanted ones
    /// separately.
    pub fn runs(&self, rows: usize, mut work: impl FnMut(Range<usize>)) {
        let mut open = 0..0;
        let mut add = |rows: Range<usize>| {
            if open.end == rows.start && open.len() + rows.len() <= BLOCK {
                open.end = rows.end;
            } else {
                let run = std::mem::replace(&mut open, rows);
                if !run.is_empty() {
                    work(run);
                }
            }
        };
        match self {
            Self::All => {
                for start in (0..rows).step_by(BLOCK) {
                    work(start..(start + BLOCK).min(rows));
                }
                return;
            }
            Self::Ids(ids) => ids.iter().for_each(|&id| add(id as usize..id as usize + 1)),
            Self::Bits(words) => {
                for (start, &word) in (0..rows).step_by(64).zip(*words) {
                    let own = start..(start + 64).min(rows);
                    let mut left = word & (u64::MAX >> (64 - own.len()));
                    if left.count_ones() >= DENSE {
                        add(own);
                        continue;
                    }
                    while left != 0 {
                        let row = start + left.trailing_zeros() as usize;
                        left &= left - 1;
                        add(row..row + 1);
                    }
                }
            }
        }
        if !open.is_empty() {
            work(open);
        }
    }
}
