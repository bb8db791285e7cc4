//! Views of the chunks, and of the space that embeds queries without a model.

use super::arrays::Sparse;
use super::arrays::{damaged, Arrays};
use crate::embed::builtin::embed_rows;
use crate::error::Error;
use crate::error::Result;
use crate::items::Items;
use crate::progress::Progress;
use crate::sparse::CsrView;
use crate::sparse::Mask;
use crate::text::languages::Language;
use crate::text::stopwords::StopWords;
use crate::text::strings::Strings;
use crate::text::words::Words;
use std::collections::BTreeMap;

/// A vector for each word. A query reads the vectors of its words.
pub struct Space<'a> {
    basis: Sparse<'a, f32>,
    dimension: usize,
    stop_words: StopWords,
    languages: Vec<Language>,
    vocabulary: Strings<'a>,
}

impl<'a> Space<'a> {
    pub(super) fn new(arrays: &'a Arrays, language: &str) -> Result<Self> {
        let dimension = arrays.shape("vectors.basis")?.1;
        let vocabulary = arrays.strings("words.vocabulary")?;
        let basis = match arrays.by_blocks() {
            true => arrays.sparse("vectors.basis")?,
            false => (arrays.values("vectors.basis")?, None),
        };
        let finite = arrays.by_blocks() || basis.0.iter().all(|x: &f32| x.is_finite());
        if basis.0.len() != vocabulary.len() * dimension || !finite {
            return Err(Error::damaged("vectors.basis does not fit the vocabulary"));
        }
        let numbers = match arrays.has("words.languages") {
            true => arrays.values("words.languages")?,
            false => &[],
        };
        let languages = numbers.iter().map(|&number| Language::numbered(number)).collect::<Result<_>>();
        let languages = languages.map_err(|e| damaged("words.languages", e))?;
        Ok(Self { basis, dimension, stop_words: StopWords::by_name(language)?, languages, vocabulary })
    }

    /// Return the query's vector; zero if none of its words is known.
    pub fn embed(&self, question: &str) -> Result<Vec<f32>> {
        let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
        Words::of_queries(self.stop_words, &self.languages).for_each_word(question, |word, _| {
            if let Some(id) = self.vocabulary.position(word) {
                *counts.entry(id as u32).or_default() += 1;
            }
        });
        let (ids, repeats): (Vec<u32>, Vec<u32>) = counts.into_iter().unzip();
        let (basis, guard) = self.basis;
        for at in ids.iter().map(|&id| id as usize * self.dimension) {
            guard.iter().for_each(|guard| guard.check(at..at + self.dimension));
        }
        let indptr = [0, ids.len() as u64];
        let row = CsrView::unchecked(&indptr, &ids, self.vocabulary.len());
        embed_rows(basis, self.dimension, row, &repeats, 1, &Progress::none())
    }
}

/// The units of chunk `c` are `first_unit[c]..first_unit[c + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Chunks<'a> {
    first_unit: Items<'a, u64>,
}

impl<'a> Chunks<'a> {
    /// `first_unit` has one more offset than there are chunks.
    pub(super) fn new(first_unit: Items<'a, u64>) -> Self {
        Self { first_unit }
    }

    pub fn len(&self) -> usize {
        self.first_unit.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn units(&self, chunk: usize) -> std::ops::Range<u32> {
        let [start, end] = self.first_unit.pair(chunk);
        start as u32..end as u32
    }

    /// Return the chunks that have a unit which passes the filter.
    pub fn left(&self, mask: &Mask) -> Mask {
        Mask::from_fn(self.len(), |chunk| self.units(chunk).any(|unit| mask.has(unit)))
    }
}
