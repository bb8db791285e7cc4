//! Units of one shard with everything that a ranking reads of them, renumbered.
//!
//! Units keep their order, so ties and neighbours are decided as in the shard. Keywords, names and subjects are
//! written out, because each shard numbers them differently.

use crate::error::Result;
use crate::generation::Parts;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::rank::moments::Moments;
use crate::rank::sentence_rows::SentenceRows;
use crate::text::strings::{take, Strings, StringsBuf};

/// Number of units that are copied between two checks of the deadline, in under a millisecond.
pub(super) const CHECKED: usize = 64;

/// Strings in ascending order, with the number of units of the shard that have each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vocabulary {
    pub strings: StringsBuf,
    pub frequencies: Vec<u64>,
}

/// Rows of numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// One more than there are rows.
    pub ends: Vec<u64>,
    pub ids: Vec<u32>,
}

/// Units of one shard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// Their numbers in the shard, ascending.
    pub units: Vec<u32>,
    /// 1 for units that the filter permits to print, 0 for those that only lead to others.
    pub permitted: Vec<u8>,
    /// The document of each unit, numbered from 0 in the order of the units, and the ids of these documents.
    pub documents: Vec<u32>,
    pub document_ids: StringsBuf,
    /// The titles of these documents, and the texts of the units.
    pub titles: StringsBuf,
    pub texts: StringsBuf,
    /// Start and end of each unit in its document.
    pub spans: Vec<u32>,
    /// Two numbers for each unit that are equal for equal texts; empty if the index has none.
    pub keys: Vec<u64>,
    pub lengths: Vec<u32>,
    /// Number of the language of each unit; empty if all are English.
    pub languages: Vec<u8>,
    pub keywords: Vocabulary,
    pub names: Vocabulary,
    pub subjects: Vocabulary,
    pub unit_keywords: Rows,
    /// Parallel to the ids of `unit_keywords`.
    pub counts: Vec<u32>,
    pub unit_names: Rows,
    pub unit_subject: Vec<u32>,
    pub unit_mentions: Rows,
    /// n + 1 offsets into the sentences.
    pub first_sentence: Vec<u64>,
    /// Positions in the row of the unit.
    pub sentence_keywords: Rows,
    pub sentence_names: Rows,
    /// Moments of the scores of all units of the shard that match the query.
    pub matches: Moments,
}

impl Rows {
    fn new() -> Self {
        Self { ends: vec![0], ids: Vec::new() }
    }

    fn push(&mut self, ids: impl IntoIterator<Item = u32>) {
        self.ids.extend(ids);
        self.ends.push(self.ids.len() as u64);
    }

    pub fn row(&self, at: usize) -> &[u32] {
        &self.ids[self.ends[at] as usize..self.ends[at + 1] as usize]
    }

    pub fn count(&self) -> usize {
        self.ends.len().saturating_sub(1)
    }
}

/// Return the positions in the row of a unit that a sentence has. An index of an earlier version may have ids here that
/// the unit lacks; they are left out.
fn positions<'r>(rows: &SentenceRows<'r>, at: usize, sentence: usize) -> impl Iterator<Item = u32> + 'r {
    let count = rows.of_unit.row(at).len() as u32;
    rows.stored.row(sentence).iter().copied().take_while(move |&position| position < count)
}

/// Number the ids of rows in ascending order, and return the strings of these ids.
fn vocabulary<'r>(
    lists: impl IntoIterator<Item = &'r mut [u32]>,
    strings: Strings<'_>,
    units: impl Fn(usize) -> usize,
) -> Result<Vocabulary> {
    let mut lists: Vec<&mut [u32]> = lists.into_iter().collect();
    let mut all: Vec<u32> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    if all.last() == Some(&NONE) {
        all.pop();
    }
    for id in lists.iter_mut().flat_map(|list| list.iter_mut()).filter(|id| **id != NONE) {
        *id = all.partition_point(|&other| other < *id) as u32;
    }
    let frequencies = all.iter().map(|&id| units(id as usize) as u64).collect();
    Ok(Vocabulary { strings: take(strings, &all)?, frequencies })
}

impl Bundle {
    /// Copy all units of a shard.
    pub fn of_all(parts: &Parts<'_>, progress: &Progress) -> Result<Self> {
        match parts.links()? {
            Some(links) => Self::of(parts, links, (0..links.units() as u32).collect(), progress),
            None => Ok(Self { first_sentence: vec![0], ..Self::default() }),
        }
    }

    /// Copy units of a shard. `units` ascend.
    pub fn of(
        parts: &Parts<'_>,
        links: &LinksView<'_>,
        units: Vec<u32>,
        progress: &Progress,
    ) -> Result<Self> {
        Self::copied(parts, links, units, None, progress)
    }

    /// Copy units of a shard with no other keywords than these, whose ids ascend, and without names, subjects and texts.
    /// That is all that BM25, relevance and the search for copies read.
    pub fn narrow(
        parts: &Parts<'_>,
        links: &LinksView<'_>,
        units: Vec<u32>,
        keywords: &[u32],
        progress: &Progress,
    ) -> Result<Self> {
        Self::copied(parts, links, units, Some(keywords), progress)
    }

    fn copied(
        parts: &Parts<'_>,
        links: &LinksView<'_>,
        units: Vec<u32>,
        only: Option<&[u32]>,
        progress: &Progress,
    ) -> Result<Self> {
        let (spans, documents, languages) =
            (parts.unit_spans()?, parts.unit_documents()?, parts.unit_languages()?);
        let mut own = Self {
            permitted: vec![1; units.len()],
            first_sentence: vec![0],
            unit_keywords: Rows::new(),
            unit_names: Rows::new(),
            unit_mentions: Rows::new(),
            sentence_keywords: Rows::new(),
            sentence_names: Rows::new(),
            ..Self::default()
        };
        let mut last = None;
        for (row, &unit) in units.iter().enumerate() {
            if row % CHECKED == 0 {
                progress.check()?;
            }
            let (at, place) = (unit as usize, parts.place(unit)?);
            own.spans.extend(spans.pair(2 * at));
            own.lengths.push(links.unit_length[at]);
            own.languages.extend(languages.map(|languages| languages[at]));
            if last != Some(documents[at]) {
                last = Some(documents[at]);
                own.document_ids.push(place.map_or("", |place| place.document));
                own.titles.push(place.filter(|_| only.is_none()).map_or("", |place| place.title));
            }
            own.texts.push(place.filter(|_| only.is_none()).map_or("", |place| place.text));
            own.documents.push(own.document_ids.len() as u32 - 1);
            own.keys.extend(parts.unit_keys(unit)?.into_iter().flatten());
            if let Some(only) = only {
                own.add_keywords(links, at, only);
                continue;
            }
            own.unit_keywords.push(links.unit_keywords.row(at).iter().copied());
            own.counts.extend_from_slice(links.unit_tf.get(links.unit_keywords.range(at)));
            own.unit_names.push(links.unit_names.row(at).iter().copied());
            own.unit_subject.push(links.unit_subject[at]);
            own.unit_mentions.push(links.unit_mentions.row(at).iter().copied());
            for sentence in links.sentences(at) {
                own.sentence_keywords.push(positions(&links.sentence_keywords, at, sentence));
                own.sentence_names.push(positions(&links.sentence_names, at, sentence));
            }
            own.first_sentence.push(own.sentence_keywords.count() as u64);
        }
        let Self { unit_keywords, unit_names, unit_subject, unit_mentions, .. } = &mut own;
        let keywords =
            vocabulary([&mut unit_keywords.ids[..]], links.keywords, |id| links.keyword_units.len_of(id))?;
        let names = vocabulary([&mut unit_names.ids[..]], links.names, |id| links.name_units.len_of(id))?;
        let subjects =
            vocabulary([&mut unit_subject[..], &mut unit_mentions.ids[..]], links.subjects, |id| {
                links.subject_units.len_of(id)
            })?;
        Ok(Self { keywords, names, subjects, units, ..own })
    }

    /// Add the keywords of a unit, and of its sentences, that are among these. The unit has no names and no subjects.
    fn add_keywords(&mut self, links: &LinksView<'_>, at: usize, only: &[u32]) {
        let row = links.unit_keywords.row(at);
        let counts = links.unit_tf.get(links.unit_keywords.range(at));
        // Positions in the row of the index, ascending.
        let mut kept: Vec<u32> = Vec::new();
        for id in only {
            kept.extend(row.binary_search(id).ok().map(|position| position as u32));
        }
        self.unit_keywords.push(kept.iter().map(|&position| row[position as usize]));
        self.counts.extend(kept.iter().map(|&position| counts[position as usize]));
        self.unit_names.push([]);
        self.unit_subject.push(NONE);
        self.unit_mentions.push([]);
        for sentence in links.sentences(at) {
            let stored = links.sentence_keywords.stored.row(sentence);
            let found = stored.iter().filter_map(|position| kept.binary_search(position).ok());
            self.sentence_keywords.push(found.map(|position| position as u32));
            self.sentence_names.push([]);
        }
        self.first_sentence.push(self.sentence_keywords.count() as u64);
    }
}
