//! The arrays of the walk, built from texts: keywords, names, subjects and mentions of units and sentences.
//!
//! Subjects are found first, from titles and openings, because mentions refer to them. Then the texts are
//! read in ranges of units, each with local word numbers; the vocabularies are merged and sorted, and every
//! range is renumbered to those of the index. [`Links::update`] does this, for all units or for new ones.

use crate::error::{Error, Result};
use crate::graph::links_earlier::Earlier;
use crate::graph::links_pass::Rows;
pub use crate::graph::links_pass::Texts;
use crate::progress::Progress;
use crate::rank::links_view::{
    check_sentences, LinksView, Slice, ANY_POSITION, LANGUAGES, NONE, UNIT_LANGUAGE,
};
use crate::rank::links_weights::Weights;
use crate::sparse::Csr;
use crate::text::languages::Language;
use crate::text::strings::StringsBuf;
use std::sync::OnceLock;

pub(crate) const GRAIN: usize = 1024;

/// Owned arrays; see [`LinksView`] for the contents of each.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Links {
    pub keywords: StringsBuf,
    pub names: StringsBuf,
    pub subjects: StringsBuf,
    pub unit_keywords: Csr,
    pub unit_tf: Vec<u32>,
    pub keyword_units: Csr,
    pub keyword_tf: Vec<u32>,
    pub unit_names: Csr,
    pub name_units: Csr,
    pub unit_subject: Vec<u32>,
    pub unit_mentions: Csr,
    /// Subjects that a unit has or mentions. Not stored, because both arrays are.
    pub unit_subjects: Csr,
    pub subject_units: Csr,
    pub first_sentence: Vec<u64>,
    /// See [`crate::rank::sentence_rows`].
    pub sentence_keywords: Csr,
    pub sentence_names: Csr,
    pub unit_length: Vec<u32>,
    /// The language of each unit.
    pub unit_language: Vec<Language>,
}

/// An owned array of one of the element types.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Links {
    /// Build the arrays, identical on any number of threads (0: every core). Progress counts units, twice.
    pub fn build(input: &Texts<'_>, threads: usize, progress: &Progress) -> Result<Self> {
        let all_new = vec![NONE; input.texts.len()];
        Self::update(input, &Earlier::new(&[], &all_new), threads, progress)
    }

    /// Set the rows of all units.
    pub(crate) fn set_rows(&mut self, all: Rows) {
        self.unit_language = all.languages;
        let (keywords, names) = (self.keywords.len(), self.names.len());
        (self.unit_tf, self.unit_length) = (all.tf, all.length);
        self.unit_keywords = all.unit_keywords.finish(keywords);
        self.unit_names = all.unit_names.finish(names);
        self.unit_mentions = all.mentions.finish(self.subjects.len());
        self.unit_subjects = all.subjects.finish(self.subjects.len());
        self.sentence_keywords = all.sentence_keywords.finish(ANY_POSITION);
        self.sentence_names = all.sentence_names.finish(ANY_POSITION);
    }

    /// Compute the transposes.
    pub(crate) fn transpose(&mut self, progress: &Progress) -> Result<()> {
        (self.keyword_units, self.keyword_tf) = self.unit_keywords.view().transpose_with(&self.unit_tf)?;
        progress.check()?;
        self.name_units = self.unit_names.view().transpose()?;
        self.subject_units = self.unit_subjects.view().transpose()?;
        progress.check()
    }

    /// Return the arrays in the order of `rank::links_view::ARRAYS`, for storage. If some unit is not in
    /// English, also return the language of each unit and the list of distinct languages.
    pub fn into_arrays(self) -> Vec<(&'static str, Array)> {
        use Array::{U32, U64, U8};
        let values = vec![
            U8(self.keywords.blob),
            U64(self.keywords.offsets),
            U8(self.names.blob),
            U64(self.names.offsets),
            U8(self.subjects.blob),
            U64(self.subjects.offsets),
            U64(self.unit_keywords.indptr),
            U32(self.unit_keywords.indices),
            U32(self.unit_tf),
            U64(self.keyword_units.indptr),
            U32(self.keyword_units.indices),
            U32(self.keyword_tf),
            U64(self.unit_names.indptr),
            U32(self.unit_names.indices),
            U64(self.name_units.indptr),
            U32(self.name_units.indices),
            U32(self.unit_subject),
            U64(self.unit_mentions.indptr),
            U32(self.unit_mentions.indices),
            U64(self.subject_units.indptr),
            U32(self.subject_units.indices),
            U64(self.first_sentence),
            U64(self.sentence_keywords.indptr),
            U32(self.sentence_keywords.indices),
            U64(self.sentence_names.indptr),
            U32(self.sentence_names.indices),
            U32(self.unit_length),
        ];
        let mut arrays: Vec<_> = crate::rank::links_view::ARRAYS.iter().map(|a| a.0).zip(values).collect();
        if self.unit_language.iter().any(|&language| language != Language::ENGLISH) {
            let each: Vec<u8> = self.unit_language.iter().map(|language| language.number()).collect();
            let distinct: std::collections::BTreeSet<u8> = each.iter().copied().collect();
            arrays.push((LANGUAGES, U8(distinct.into_iter().collect())));
            arrays.push((UNIT_LANGUAGE, U8(each)));
        }
        arrays
    }
}

/// Return a view of stored arrays. Their weights are computed into the cell.
pub fn view<'a>(
    arrays: &'a [(&'static str, Array)],
    weights: &'a OnceLock<Weights>,
) -> Result<LinksView<'a>> {
    let find = |name: &str| {
        let found = arrays.iter().find(|a| a.0 == name);
        let (_, array) = found.ok_or_else(|| Error::input(format!("{name} is missing")))?;
        Ok(match array {
            Array::U8(x) => Slice::U8(x),
            Array::U32(x) => Slice::U32(x),
            Array::U64(x) => Slice::U64(x),
        })
    };
    LinksView::new(find, weights)
}

/// Return the number of units, or an error if the lists do not fit together.
pub(crate) fn check_texts(input: &Texts<'_>) -> Result<usize> {
    let n = input.texts.len();
    if input.titles.len() != n || input.first_sentence.len() != n + 1 {
        return Err(Error::input(format!(
            "{n} texts need as many titles, not {}, and {} sentence offsets, not {}",
            input.titles.len(),
            n + 1,
            input.first_sentence.len()
        )));
    }
    check_sentences(input.first_sentence, input.sentences.len() as u64)?;
    if n >= NONE as usize || input.sentences.len() >= NONE as usize {
        return Err(Error::input("at most 2^32 - 2 units and sentences"));
    }
    Ok(n)
}
