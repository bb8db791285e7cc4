//! What the words of a typed query lead to in an opened generation: the units of phrases and prefixes, and the nearest
//! words for words that no document has.

use super::searcher::Searcher;
use crate::error::{Error, Result};
use crate::generation::Parts;
use crate::items::Items;
use crate::progress::Progress;
use crate::search::nearest::{missing_words, replaced, unknown_words};
pub use crate::search::phrase_units::Matching;
use crate::search::phrase_units::{Texts, Unit};
use crate::sparse::Mask;
use crate::text::languages::Language;

/// The unknown words of a query, each with its nearest word, and the text with these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corrected {
    pub words: Vec<(String, Option<String>)>,
    pub text: String,
}

impl Corrected {
    /// Return whether any word has a nearest word.
    pub fn replaces(&self) -> bool {
        self.words.iter().any(|(_, nearest)| nearest.is_some())
    }
}

/// A phrase, or words of which the last one may have any ending.
#[derive(Debug, Clone, Copy)]
pub struct Term<'a> {
    pub text: &'a str,
    pub is_prefix: bool,
    /// Whether it must be in the title.
    pub in_title: bool,
}

impl Searcher {
    /// Return the units that have a term, among those that pass the mask. `None` if the index has no keywords.
    pub fn matching(
        &self,
        term: Term<'_>,
        mask: Option<&Mask>,
        threads: usize,
        progress: &Progress,
    ) -> Result<Option<Matching>> {
        self.with_parts(|parts| {
            let Some(links) = parts.links()? else { return Ok(None) };
            if let Some(mask) = mask {
                mask.check(parts.len())?;
            }
            let languages = parts.unit_languages()?;
            let unit = |unit: u32| {
                let place =
                    parts.place(unit)?.ok_or_else(|| Error::input(format!("unit {unit} does not exist")))?;
                let document = parts.unit_documents()?[unit as usize];
                let language = language_of(languages, unit)?;
                Ok(Unit { title: place.title, text: place.text, document, language })
            };
            let labels = |unit: u32| parts.labels(unit);
            let headings = |unit: u32| Ok(parts.units()?.headings_within(unit));
            let titles = term.in_title;
            let texts = Texts { links, unit: &unit, labels: &labels, headings: &headings, threads, titles };
            texts.matching(term.text, term.is_prefix, mask, progress).map(Some)
        })
    }

    /// Return the words of a query that no document has; `None` if all are known.
    pub fn correct(&self, query: &str) -> Result<Option<Corrected>> {
        self.with_parts(|parts: &Parts<'_>| {
            let Some(links) = parts.links()? else { return Ok(None) };
            let languages = parts.unit_languages()?;
            let text = |unit: u32| {
                let place = parts.place(unit).ok()??;
                let (path, people) = parts.labels(unit).ok()?;
                let text = [place.title, place.text, path, &people].join("\n");
                Some((text, language_of(languages, unit).ok()?))
            };
            let unknown = unknown_words(links, query, text);
            if unknown.is_empty() {
                return Ok(None);
            }
            let text = replaced(query, &unknown);
            let words = unknown.into_iter().map(|one| (one.word.to_owned(), one.nearest)).collect();
            Ok(Some(Corrected { words, text }))
        })
    }

    /// Return all words of a query that the index does not contain, without similar ones: see [`missing_words`].
    pub fn missing_words(&self, query: &str) -> Result<Vec<String>> {
        self.with_parts(|parts: &Parts<'_>| {
            let links = parts.links()?;
            let found = links.map_or_else(Vec::new, |links| missing_words(links, query));
            Ok(found.into_iter().map(str::to_owned).collect())
        })
    }
}

/// Return the language of a unit; English if the index has no languages.
fn language_of(languages: Option<Items<'_, u8>>, unit: u32) -> Result<Language> {
    languages.map_or(Ok(Language::ENGLISH), |numbers| Language::numbered(numbers[unit as usize]))
}
