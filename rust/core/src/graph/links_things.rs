//! Vocabularies and lists of units after changes to a few units, for [`super::links_delta`].

use crate::items::Items;
use crate::sparse::CsrView;
use crate::store::patch::{each_change, Numbering, Patch, RowChange, RowEditor};
use crate::text::strings::Strings;
use std::collections::{BTreeMap, BTreeSet};

/// What the values of an array refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Nothing: values are counts, lengths, positions or bytes.
    Nothing,
    Keywords,
    Names,
    Subjects,
    Units,
    Documents,
    Chunks,
    /// Labels of locations.
    Labels,
}

/// A sorted vocabulary from which strings were removed and to which others were added.
pub(crate) struct Vocabulary<'a> {
    before: Strings<'a>,
    pub gone: Vec<u32>,
    /// Added strings, ascending, and the published id before which each is inserted.
    pub fresh: Vec<String>,
    places: Vec<u32>,
    pub numbers: Numbering,
}

impl<'a> Vocabulary<'a> {
    pub fn new(before: Strings<'a>, gone: Vec<u32>, fresh: BTreeSet<String>) -> Self {
        let fresh: Vec<String> = fresh.into_iter().collect();
        let places: Vec<u32> = fresh.iter().map(|text| first_not_below(before, text) as u32).collect();
        let numbers = Numbering::new(&gone, &places);
        Self { before, gone, fresh, places, numbers }
    }

    /// Return the new number of a string.
    pub fn id(&self, text: &str) -> Option<u32> {
        if let Ok(k) = self.fresh.binary_search_by(|fresh| fresh.as_str().cmp(text)) {
            return Some(self.of_fresh(k));
        }
        let id = self.before.position(text)? as u32;
        self.gone.binary_search(&id).is_err().then(|| self.numbers.of(u64::from(id)) as u32)
    }

    fn of_fresh(&self, k: usize) -> u32 {
        Numbering::of_new(&self.gone, self.places[k], k)
    }

    /// Return whether a current string begins with these bytes.
    pub fn begins(&self, start: &str) -> bool {
        let fresh = self.fresh.partition_point(|text| text.as_str() < start);
        let at = first_not_below(self.before, start);
        self.fresh.get(fresh).is_some_and(|text| text.starts_with(start))
            || (at < self.before.len() && self.before.bytes(at).starts_with(start.as_bytes()))
    }

    /// Return the changes of the strings' bytes and offsets.
    pub fn patches(
        &self,
        offsets: Items<'_, u64>,
        names: [&'static str; 2],
        out: &mut Vec<(&'static str, Of, Patch)>,
    ) {
        let mut rows = RowEditor::new(offsets, 1);
        each_change(&self.gone, &self.places, |comes, at| {
            rows.keep(at as usize);
            match comes {
                Some(k) => rows.insert(self.fresh[k].len(), [self.fresh[k].bytes().map(u64::from)]),
                None => rows.remove(),
            }
        });
        let (ends, mut bytes) = rows.finish();
        out.push((names[0], Of::Nothing, bytes.remove(0)));
        out.push((names[1], Of::Nothing, ends));
    }
}

/// Return the first string that is not less than `text`.
fn first_not_below(strings: Strings<'_>, text: &str) -> usize {
    let (mut low, mut high) = (0, strings.len());
    while low < high {
        let middle = (low + high) / 2;
        match strings.bytes(middle) < text.as_bytes() {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// The changes of one list: the units of a keyword, name or subject.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    /// Published units that no longer have the item, ascending.
    pub gone: Vec<u32>,
    /// Units that now have it: new number, the published unit before which it is inserted, and the count.
    pub come: Vec<(u32, u32, u32)>,
}

type Lists = BTreeMap<u32, Postings>;

/// The items of units, by published id. New strings are numbered separately.
#[derive(Debug, Default)]
pub(crate) struct Things {
    pub known: Lists,
    fresh: Lists,
}

impl Things {
    pub fn of(&mut self, vocabulary: &Vocabulary<'_>, text: &str) -> Option<&mut Postings> {
        if let Ok(k) = vocabulary.fresh.binary_search_by(|fresh| fresh.as_str().cmp(text)) {
            return Some(self.fresh.entry(k as u32).or_default());
        }
        let id = vocabulary.before.position(text)? as u32;
        Some(self.known.entry(id).or_default())
    }

    /// Add a unit to the list of an item: its new number, and the published unit before which it is inserted.
    pub fn add(&mut self, vocabulary: &Vocabulary<'_>, text: &str, place: (u32, u32), count: u32) {
        let list = self.of(vocabulary, text);
        list.into_iter().for_each(|list| list.come.push((place.0, place.1, count)));
    }

    /// Sort the removed units.
    pub fn sort(&mut self) {
        self.known.values_mut().for_each(|list| list.gone.sort_unstable());
    }

    /// Return the patches of offsets, units and counts, given the published lists.
    pub fn patches(
        &mut self,
        lists: CsrView<'_>,
        vocabulary: &Vocabulary<'_>,
        arrays: usize,
    ) -> (Patch, Vec<Patch>) {
        let mut rows = RowEditor::new(lists.indptr, arrays);
        let values = |come: &[(u32, u32, u32)]| {
            [come.iter().map(|x| u64::from(x.0)).collect(), come.iter().map(|x| u64::from(x.2)).collect()]
        };
        let (known, fresh) = (&mut self.known, &mut self.fresh);
        known.retain(|id, _| vocabulary.gone.binary_search(id).is_err());
        let mut next = known.iter_mut().peekable();
        let new_edit = |at| RowChange { at, removed: 0, values: vec![Vec::new(); arrays] };
        let change = |rows: &mut RowEditor<'_>, id: u32, list: &mut Postings| {
            list.come.sort_unstable();
            let mut edits: BTreeMap<usize, RowChange> = BTreeMap::new();
            for come in list.come.chunk_by(|a, b| a.1 == b.1) {
                let (at, _) = place_in(lists, id, come[0].1);
                let edit = edits.entry(at).or_insert_with(|| new_edit(at));
                let [ids, counts]: [Vec<u64>; 2] = values(come);
                edit.values.iter_mut().zip([ids, counts]).for_each(|(all, some)| all.extend(some));
            }
            for unit in &list.gone {
                if let (at, true) = place_in(lists, id, *unit) {
                    edits.entry(at).or_insert_with(|| new_edit(at)).removed = 1;
                }
            }
            rows.keep(id as usize);
            rows.change(edits.into_values().collect());
        };
        each_change(&vocabulary.gone, &vocabulary.places, |comes, at| {
            while let Some((&id, list)) = next.next_if(|(&id, _)| id < at) {
                change(&mut rows, id, list);
            }
            rows.keep(at as usize);
            match comes {
                None => rows.remove(),
                Some(k) => {
                    let list = fresh.entry(k as u32).or_default();
                    list.come.sort_unstable();
                    let [ids, counts]: [Vec<u64>; 2] = values(&list.come);
                    rows.insert(list.come.len(), [ids, counts]);
                }
            }
        });
        for (&id, list) in next {
            change(&mut rows, id, list);
        }
        rows.finish()
    }
}

/// Return the position, in the list of an item, of the first unit that is not less than `unit`, and whether
/// it is that unit. A list may have as many entries as the index has units.
fn place_in(lists: CsrView<'_>, id: u32, unit: u32) -> (usize, bool) {
    let [start, end] = lists.indptr.pair(id as usize).map(|x| x as usize);
    let at = lists.indices.partition_point(start..end, |&own| own < unit);
    (at - start, at < end && lists.indices[at] == unit)
}

/// Return a vocabulary after removing and adding units. They have some of the published strings and some of
/// `words`.
pub(crate) fn changed<'a>(
    before: Strings<'a>,
    units_of: impl Fn(usize) -> usize,
    gone: impl Iterator<Item = u32>,
    come: impl Iterator<Item = u32>,
    words: Strings<'_>,
) -> Vocabulary<'a> {
    let mut units: BTreeMap<u32, i64> = BTreeMap::new();
    gone.for_each(|id| *units.entry(id).or_default() -= 1);
    let mut fresh = BTreeSet::new();
    let mut ids: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for own in come {
        let text = words.get(own as usize);
        match ids.entry(own).or_insert_with(|| before.position(text).map(|id| id as u32)) {
            Some(id) => *units.entry(*id).or_default() += 1,
            None => {
                fresh.insert(text.to_owned());
            }
        }
    }
    let ends = units.into_iter().filter(|&(id, count)| units_of(id as usize) as i64 + count == 0);
    Vocabulary::new(before, ends.map(|(id, _)| id).collect(), fresh)
}
