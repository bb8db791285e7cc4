//! Keywords or names of sentences, stored as positions in the row of their unit.
//!
//! Every keyword of a sentence is also a keyword of its unit. Positions ascend in small steps, so they need a
//! fraction of the bits of ids. Earlier versions stored ids that the unit lacks after the positions,
//! increased by the length of the unit's row. Their indexes can still be read.

use crate::error::{Error, Result};
use crate::sparse::CsrView;

/// The rows of all sentences. A sentence's row is decoded with the row of its unit into ascending ids.
#[derive(Debug, Clone, Copy)]
pub struct SentenceRows<'a> {
    pub of_unit: CsrView<'a>,
    /// Positions, and ids that the unit lacks: see [`encode`].
    pub stored: CsrView<'a>,
}

impl<'a> SentenceRows<'a> {
    /// Return the number of sentences.
    pub fn rows(&self) -> usize {
        self.stored.rows()
    }

    /// Return the ids of a sentence of a unit, ascending.
    #[inline]
    pub fn row(&self, unit: usize, sentence: usize) -> Ids<'a> {
        Ids::new(self.of_unit.row(unit), self.stored.row(sentence), self.of_unit.columns)
    }

    /// Return an error for the first sentence of a unit whose ids do not ascend or are not below the number
    /// of columns.
    pub fn check(&self, unit: usize, sentences: std::ops::Range<usize>) -> Result<()> {
        let own = self.of_unit.row(unit);
        for sentence in sentences {
            let row = self.stored.row(sentence);
            let ascends = row.windows(2).all(|w| w[0] < w[1]);
            let limit = own.len() + self.of_unit.columns;
            if !ascends || row.last().is_some_and(|&last| last as usize >= limit) {
                return Err(Error::input(format!("the row of sentence {sentence} is invalid")));
            }
        }
        Ok(())
    }
}

/// Ids of one sentence.
#[derive(Debug, Clone)]
pub struct Ids<'a> {
    own: &'a [u32],
    positions: &'a [u32],
    /// Ids that the unit lacks, each increased by the length of `own`.
    strays: &'a [u32],
    columns: usize,
}

impl<'a> Ids<'a> {
    #[inline]
    fn new(own: &'a [u32], stored: &'a [u32], columns: usize) -> Self {
        let inside = |&position: &u32| (position as usize) < own.len();
        let count = match stored.last() {
            Some(last) if !inside(last) => stored.partition_point(inside),
            _ => stored.len(),
        };
        let (positions, strays) = stored.split_at(count);
        Self { own, positions, strays, columns }
    }

    /// Return the positions in the unit's row if the unit has all ids.
    #[inline]
    pub fn positions(&self) -> Option<&'a [u32]> {
        self.strays.is_empty().then_some(self.positions)
    }

    /// Return the next id that the unit lacks, without consuming it.
    fn stray(&self) -> Option<u32> {
        let id = self.strays.first()?.wrapping_sub(self.own.len() as u32);
        if id as usize >= self.columns {
            Error::damaged("a sentence has an id that does not exist".to_owned()).raise();
        }
        Some(id)
    }
}

impl Iterator for Ids<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let first = self.positions.split_first();
        if !self.strays.is_empty() {
            let stray = self.stray()?;
            if first.is_none_or(|(&position, _)| stray < self.own[position as usize]) {
                self.strays = &self.strays[1..];
                return Some(stray);
            }
        }
        let (&position, rest) = first?;
        self.positions = rest;
        Some(self.own[position as usize])
    }
}

/// Replace the ascending ids of a sentence by their stored form. `own` is the row of the unit.
pub fn encode(own: &[u32], row: &mut [u32]) {
    let (mut from, mut strays) = (0, Vec::new());
    let mut count = 0;
    for at in 0..row.len() {
        let id = row[at];
        from += own[from..].partition_point(|&x| x < id);
        if own.get(from) == Some(&id) {
            row[count] = from as u32;
            count += 1;
        } else {
            strays.push(own.len() as u32 + id);
        }
    }
    row[count..].copy_from_slice(&strays);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::Csr;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_come_back_in_order(
            own in prop::collection::btree_set(0u32..40, 0..20),
            sentence in prop::collection::btree_set(0u32..40, 0..20),
        ) {
            let ids: Vec<u32> = sentence.into_iter().collect();
            let own: Vec<u32> = own.into_iter().collect();
            let mut stored = ids.clone();
            encode(&own, &mut stored);
            prop_assert!(stored.windows(2).all(|w| w[0] < w[1]));
            let of_unit = Csr::from_rows(&[own], 40).unwrap();
            let stored = Csr::from_rows(&[stored], 1 << 32).unwrap();
            let rows = SentenceRows { of_unit: of_unit.view(), stored: stored.view() };
            rows.check(0, 0..1).unwrap();
            prop_assert_eq!(rows.row(0, 0).collect::<Vec<_>>(), ids);
        }
    }

    #[test]
    fn ids_that_do_not_exist_are_damage() {
        let of_unit = Csr::from_rows(&[vec![1, 3]], 4).unwrap();
        let none = Csr::from_rows(&[vec![]], 0).unwrap();
        let empty = SentenceRows { of_unit: none.view(), stored: none.view() };
        assert!(empty.check(0, 0..1).is_ok() && empty.row(0, 0).next().is_none());
        for (row, right) in [(vec![0, 5], true), (vec![0, 6], false), (vec![1, 0], false)] {
            let stored = Csr::from_rows(&[row], 1 << 32).unwrap();
            let rows = SentenceRows { of_unit: of_unit.view(), stored: stored.view() };
            assert_eq!(rows.check(0, 0..1).is_ok(), right);
        }
        let stored = Csr::from_rows(&[vec![9]], 1 << 32).unwrap();
        let rows = SentenceRows { of_unit: of_unit.view(), stored: stored.view() };
        let read = crate::error::caught(|| Ok(rows.row(0, 0).count()));
        assert!(matches!(read, Err(Error::Damaged(_))));
    }
}
