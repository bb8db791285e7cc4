//! An array stored as changes to an earlier array: pieces of the earlier array and of new values, in order.
//!
//! A patch has as many pieces as there are changes, so that it can be computed, stored and read without touching the
//! rest of the array. [`Editor`] records the changes of a plain array, [`RowEditor`] those of compressed rows.

use crate::items::Items;
use std::collections::BTreeMap;
use std::ops::Range;

/// A run of adjacent values of the earlier array, or of new values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Position of the first value in the array.
    pub at: u64,
    /// Its position in the earlier array, or among the new values.
    pub start: u64,
    pub is_new: bool,
    /// Added to each value.
    pub shift: i64,
}

/// Changes to an array.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Patch {
    /// Ascending.
    pub pieces: Vec<Piece>,
    pub values: Vec<u64>,
    /// Length of the array.
    pub len: u64,
}

impl Patch {
    /// Call `each` with the pieces of a range, in order: the piece, and the positions of its values in its source.
    pub fn pieces_of(&self, range: Range<u64>, mut each: impl FnMut(&Piece, Range<u64>)) {
        let mut next = self.pieces.partition_point(|piece| piece.at <= range.start).saturating_sub(1);
        let mut at = range.start;
        while at < range.end {
            let Some(piece) = self.pieces.get(next) else { return };
            next += 1;
            let end = self.pieces.get(next).map_or(self.len, |after| after.at).min(range.end);
            let start = piece.start + (at - piece.at);
            each(piece, start..start + (end - at));
            at = end;
        }
    }

    /// Combine these changes with the changes `first` that precede them. `numbers` renumbers the ids present
    /// after `first`, if the array holds ids.
    pub fn after(&self, first: &Self, numbers: Option<&Numbering>) -> Self {
        let mut editor = Editor::default();
        self.pieces_of(0..self.len, |piece, range| {
            if piece.is_new {
                editor.insert(self.values[range.start as usize..range.end as usize].iter().copied());
                return;
            }
            first.pieces_of(range, |earlier, from| {
                if !earlier.is_new {
                    let shift = earlier.shift.wrapping_add(piece.shift);
                    let kept = Piece { at: editor.patch.len, start: from.start, is_new: false, shift };
                    editor.push(kept, from.end - from.start);
                    return;
                }
                let values = first.values[from.start as usize..from.end as usize].iter();
                match numbers {
                    Some(numbers) => editor.insert(values.map(|&id| numbers.of(id))),
                    None => editor.insert(values.map(|value| value.wrapping_add_signed(piece.shift))),
                }
            });
        });
        editor.patch
    }

    /// Return the values of a range, given the earlier array and, if it holds ids, the current number of each
    /// id.
    pub fn read(&self, range: Range<u64>, earlier: &[u64], numbers: Option<&Numbering>) -> Vec<u64> {
        let mut found = Vec::with_capacity((range.end - range.start) as usize);
        self.pieces_of(range, |piece, from| {
            let source = if piece.is_new { &self.values } else { earlier };
            let values = source[from.start as usize..from.end as usize].iter();
            match numbers.filter(|_| !piece.is_new) {
                Some(numbers) => found.extend(values.map(|&id| numbers.of(id))),
                None => found.extend(values.map(|value| value.wrapping_add_signed(piece.shift))),
            }
        });
        found
    }
}

/// The renumbering of items after some were removed and others were inserted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbering {
    /// For each start: the shift of the ids from there on.
    starts: Vec<u64>,
    shifts: Vec<i64>,
}

/// Marks the absence of an item, and keeps its number.
const NOTHING: u64 = u32::MAX as u64;

impl Numbering {
    /// `removed` are earlier ids. `added` has, for each new item, the earlier id before which it is inserted,
    /// ascending.
    pub fn new(removed: &[u32], added: &[u32]) -> Self {
        let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
        removed.iter().for_each(|&id| *steps.entry(u64::from(id) + 1).or_default() -= 1);
        added.iter().for_each(|&id| *steps.entry(u64::from(id)).or_default() += 1);
        let mut shift = 0;
        let mut numbers = Self::default();
        for (start, step) in steps {
            shift += step;
            numbers.starts.push(start);
            numbers.shifts.push(shift);
        }
        numbers
    }

    /// Create from ascending starts and the shift of the ids from each start on.
    pub fn from_parts(starts: Vec<u64>, shifts: Vec<i64>) -> Self {
        Self { starts, shifts }
    }

    /// Return the combined renumbering of `first` followed by this one.
    pub fn after(&self, first: &Self) -> Self {
        let mut numbers = Self::default();
        let (mut next, mut last) = (0, 0);
        let mut add = |start: u64, shift: i64| {
            if shift != last {
                numbers.starts.push(start);
                numbers.shifts.push(shift);
                last = shift;
            }
        };
        // Ranges of ids with one shift each. The new numbers rise with the ids.
        for part in 0..=first.starts.len() {
            let start = part.checked_sub(1).map_or(0, |before| first.starts[before]);
            let shift = part.checked_sub(1).map_or(0, |before| first.shifts[before]);
            let end = first.starts.get(part).copied().unwrap_or(u64::MAX);
            let begin = start.wrapping_add_signed(shift);
            while self.starts.get(next).is_some_and(|&at| at <= begin) {
                next += 1;
            }
            let own = |next: usize| next.checked_sub(1).map_or(0, |before| self.shifts[before]);
            add(start, shift.wrapping_add(own(next)));
            let first_id = |at: &u64| at.wrapping_add_signed(shift.wrapping_neg());
            while let Some(at) = self.starts.get(next).map(first_id) {
                if at >= end {
                    break;
                }
                next += 1;
                add(at, shift.wrapping_add(own(next)));
            }
        }
        numbers
    }

    /// Return the starts and shifts.
    pub fn parts(&self) -> (&[u64], &[i64]) {
        (&self.starts, &self.shifts)
    }

    /// Return the current number of an item that was not removed.
    #[inline]
    pub fn of(&self, id: u64) -> u64 {
        if id == NOTHING {
            return id;
        }
        match self.starts.partition_point(|&start| start <= id) {
            0 => id,
            at => id.wrapping_add_signed(self.shifts[at - 1]),
        }
    }

    /// Return the number of new item `k`, which is inserted before the earlier id `before`.
    pub fn of_new(removed: &[u32], before: u32, k: usize) -> u32 {
        let gone = removed.partition_point(|&id| id < before);
        (before as usize - gone + k) as u32
    }
}

/// Call `each` with the added items (number, and the earlier item before which it is inserted) and the removed items,
/// in order.
pub fn each_change(removed: &[u32], added: &[u32], mut each: impl FnMut(Option<usize>, u32)) {
    let mut removed = removed.iter().copied().peekable();
    for (k, &place) in added.iter().enumerate() {
        while let Some(id) = removed.next_if(|&id| id < place) {
            each(None, id);
        }
        each(Some(k), place);
    }
    removed.for_each(|id| each(None, id));
}

/// Records the changes of an array from start to end.
#[derive(Debug, Default)]
pub struct Editor {
    patch: Patch,
    /// The next value of the earlier array.
    next: u64,
}

impl Editor {
    /// Keep the earlier values up to a position, increased by `shift`.
    pub fn keep(&mut self, end: u64, shift: i64) {
        if end > self.next {
            self.push(Piece { at: self.patch.len, start: self.next, is_new: false, shift }, end - self.next);
            self.next = end;
        }
    }

    /// Remove some earlier values.
    pub fn skip(&mut self, count: u64) {
        self.next += count;
    }

    /// Insert new values.
    pub fn insert(&mut self, values: impl IntoIterator<Item = u64>) {
        let start = self.patch.values.len() as u64;
        self.patch.values.extend(values);
        let count = self.patch.values.len() as u64 - start;
        if count > 0 {
            self.push(Piece { at: self.patch.len, start, is_new: true, shift: 0 }, count);
        }
    }

    fn push(&mut self, piece: Piece, count: u64) {
        let follows = self.patch.pieces.last().is_some_and(|last| {
            let same = (last.is_new, last.shift) == (piece.is_new, piece.shift);
            same && last.start + (piece.at - last.at) == piece.start
        });
        if !follows {
            self.patch.pieces.push(piece);
        }
        self.patch.len += count;
    }

    /// Keep the rest of an earlier array of `len` values.
    pub fn finish(mut self, len: u64) -> Patch {
        self.keep(len, 0);
        self.patch
    }
}

/// A change within a row: at a position of the earlier row, `removed` values are replaced by new ones.
#[derive(Debug, Clone, Default)]
pub struct RowChange {
    pub at: usize,
    pub removed: usize,
    /// New values, for each parallel array.
    pub values: Vec<Vec<u64>>,
}

/// Records changes of compressed rows, and of arrays parallel to their values, from the first row to the last.
#[derive(Debug)]
pub struct RowEditor<'a> {
    indptr: Items<'a, u64>,
    row: usize,
    /// The number of values added so far, minus those removed.
    grown: i64,
    starts: Editor,
    data: Vec<Editor>,
}

impl<'a> RowEditor<'a> {
    /// `arrays` is the number of parallel arrays.
    pub fn new(indptr: impl Into<Items<'a, u64>>, arrays: usize) -> Self {
        let data = (0..arrays).map(|_| Editor::default()).collect();
        Self { indptr: indptr.into(), row: 0, grown: 0, starts: Editor::default(), data }
    }

    /// Keep the rows before `row`.
    pub fn keep(&mut self, row: usize) {
        self.starts.keep(row as u64, self.grown);
        self.data.iter_mut().for_each(|data| data.keep(self.indptr[row], 0));
        self.row = row;
    }

    /// Insert a row of `len` values before the next one.
    pub fn insert<V: IntoIterator<Item = u64>>(&mut self, len: usize, values: impl IntoIterator<Item = V>) {
        self.starts.insert([self.indptr[self.row].wrapping_add_signed(self.grown)]);
        self.data.iter_mut().zip(values).for_each(|(data, values)| data.insert(values));
        self.grown += len as i64;
    }

    /// Remove the next row.
    pub fn remove(&mut self) {
        let [start, end] = self.indptr.pair(self.row);
        let len = end - start;
        self.starts.skip(1);
        self.data.iter_mut().for_each(|data| data.skip(len));
        self.grown -= len as i64;
        self.row += 1;
    }

    /// Change values of the next row, positions ascending.
    pub fn change(&mut self, changes: Vec<RowChange>) {
        let start = self.indptr[self.row];
        self.starts.keep(self.row as u64 + 1, self.grown);
        for change in changes {
            self.grown +=
                change.values.first().map_or(0, |values| values.len() as i64) - change.removed as i64;
            for (data, values) in self.data.iter_mut().zip(change.values) {
                data.keep(start + change.at as u64, 0);
                data.skip(change.removed as u64);
                data.insert(values);
            }
        }
        self.row += 1;
    }

    /// Keep the remaining rows; return the changes of the offsets and of the parallel arrays.
    pub fn finish(mut self) -> (Patch, Vec<Patch>) {
        let rows = self.indptr.len() - 1;
        self.keep(rows);
        self.starts.keep(rows as u64 + 1, self.grown);
        let len = self.indptr[rows];
        (self.starts.patch, self.data.into_iter().map(|data| data.finish(len)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The change of a row: it is kept, removed, or one of its values is replaced by others; and the rows
    /// inserted before it.
    #[derive(Debug, Clone)]
    enum What {
        Keep,
        Remove,
        Change(prop::sample::Index, bool, Vec<u64>),
    }

    fn what() -> impl Strategy<Value = What> {
        let change = (any::<prop::sample::Index>(), any::<bool>(), prop::collection::vec(0u64..9, 0..3));
        prop_oneof![
            3 => Just(What::Keep),
            1 => Just(What::Remove),
            1 => change.prop_map(|(at, removes, values)| What::Change(at, removes, values)),
        ]
    }

    fn offsets(rows: &[Vec<u64>]) -> Vec<u64> {
        let mut ends = vec![0];
        rows.iter().for_each(|row| ends.push(ends.last().unwrap() + row.len() as u64));
        ends
    }

    proptest! {
        #[test]
        fn changed_rows_are_read_in_any_part(
            rows in prop::collection::vec((prop::collection::vec(0u64..99, 0..5), what()), 0..9),
            fresh in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(100u64..199, 0..4)), 0..4),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
        ) {
            let before: Vec<Vec<u64>> = rows.iter().map(|(row, _)| row.clone()).collect();
            let mut places: Vec<(usize, &Vec<u64>)> =
                fresh.iter().map(|(at, row)| (at.index(rows.len() + 1), row)).collect();
            places.sort_by_key(|place| place.0);
            let indptr = offsets(&before);
            let mut editor = RowEditor::new(&indptr, 1);
            let mut now: Vec<Vec<u64>> = Vec::new();
            for at in 0..=rows.len() {
                for (_, row) in places.iter().filter(|place| place.0 == at) {
                    editor.keep(at);
                    editor.insert(row.len(), [row.iter().copied()]);
                    now.push((*row).clone());
                }
                let Some((row, what)) = rows.get(at) else { break };
                match what {
                    What::Keep => now.push(row.clone()),
                    What::Remove => {
                        editor.keep(at);
                        editor.remove();
                    }
                    What::Change(place, removes, values) => {
                        let place = place.index(row.len() + 1);
                        let removed = usize::from(*removes && place < row.len());
                        editor.keep(at);
                        editor.change(vec![RowChange { at: place, removed, values: vec![values.clone()] }]);
                        let mut row = row.clone();
                        row.splice(place..place + removed, values.iter().copied());
                        now.push(row);
                    }
                }
            }
            let (starts, data) = editor.finish();
            for (patch, earlier, wanted) in
                [(&starts, indptr.clone(), offsets(&now)), (&data[0], before.concat(), now.concat())]
            {
                prop_assert_eq!(patch.len as usize, wanted.len());
                prop_assert_eq!(&patch.read(0..patch.len, &earlier, None), &wanted);
                let mut part: Vec<usize> = cuts.iter().map(|cut| cut.index(wanted.len() + 1)).collect();
                part.sort_unstable();
                let found = patch.read(part[0] as u64..part[1] as u64, &earlier, None);
                prop_assert_eq!(&found[..], &wanted[part[0]..part[1]]);
            }
        }

        #[test]
        fn numbers_are_positions(
            kept in prop::collection::vec(any::<bool>(), 0..12),
            added in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let mut added: Vec<u32> = added.iter().map(|at| at.index(kept.len() + 1) as u32).collect();
            added.sort_unstable();
            let removed: Vec<u32> =
                kept.iter().zip(0..).filter(|(kept, _)| !**kept).map(|(_, id)| id).collect();
            let numbers = Numbering::new(&removed, &added);
            let mut next = 0;
            for id in 0..=kept.len() as u32 {
                for (k, _) in added.iter().enumerate().filter(|(_, &before)| before == id) {
                    prop_assert_eq!(Numbering::of_new(&removed, id, k), next);
                    next += 1;
                }
                if kept.get(id as usize) == Some(&true) {
                    prop_assert_eq!(numbers.of(u64::from(id)), u64::from(next));
                    next += 1;
                }
            }
            prop_assert_eq!(numbers.of(u64::from(u32::MAX)), u64::from(u32::MAX));
        }

        #[test]
        fn changes_after_changes_are_those_of_the_first_array(
            kept in prop::collection::vec(any::<bool>(), 0..14),
            added in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
            kept_again in prop::collection::vec(any::<bool>(), 19),
            added_again in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let (count, (one, patch)) = (kept.len() as u64, change(&kept, &added));
            let middle: Vec<bool> = kept_again[..patch.len as usize].to_vec();
            let (two, again) = change(&middle, &added_again);
            let both = two.after(&one);
            // The ids of items that exist after the first change, and after both.
            let ids: Vec<u64> = (0..count).collect();
            let ids = patch.read(0..patch.len, &ids, Some(&one));
            prop_assert_eq!(&ids, &(0..patch.len).collect::<Vec<u64>>());
            let wanted = again.read(0..again.len, &ids, Some(&two));
            let joined = again.after(&patch, Some(&two));
            let before: Vec<u64> = (0..count).collect();
            prop_assert_eq!(joined.read(0..joined.len, &before, Some(&both)), wanted);
            prop_assert!(joined.pieces.windows(2).all(|two| two[0].at < two[1].at));
            // The same changes for an array that holds no ids, with other shifts.
            let shifted = |patch: &Patch, by: i64| {
                let mut patch = patch.clone();
                patch.pieces.iter_mut().filter(|piece| !piece.is_new).for_each(|piece| piece.shift = by);
                patch
            };
            let (first, second) = (shifted(&patch, 7), shifted(&again, -3));
            let values: Vec<u64> = (100..100 + count).collect();
            let wanted = second.read(0..second.len, &first.read(0..first.len, &values, None), None);
            let joined = second.after(&first, None);
            prop_assert_eq!(joined.read(0..joined.len, &values, None), wanted);
        }
    }

    /// Return the renumbering for a set of kept and inserted items, and the changes of a list of all their
    /// ids.
    fn change(kept: &[bool], added: &[prop::sample::Index]) -> (Numbering, Patch) {
        let mut added: Vec<u32> = added.iter().map(|at| at.index(kept.len() + 1) as u32).collect();
        added.sort_unstable();
        let removed: Vec<u32> = kept.iter().zip(0..).filter(|(kept, _)| !**kept).map(|(_, id)| id).collect();
        let (mut editor, mut next) = (Editor::default(), 0);
        for id in 0..=kept.len() as u32 {
            for (k, _) in added.iter().enumerate().filter(|(_, &before)| before == id) {
                editor.keep(u64::from(id), 0);
                editor.insert([u64::from(Numbering::of_new(&removed, id, k))]);
                next += 1;
            }
            match kept.get(id as usize) {
                Some(true) => next += 1,
                Some(false) => {
                    editor.keep(u64::from(id), 0);
                    editor.skip(1);
                }
                None => (),
            }
        }
        let patch = editor.finish(kept.len() as u64);
        assert_eq!(patch.len, next);
        (Numbering::new(&removed, &added), patch)
    }
}
