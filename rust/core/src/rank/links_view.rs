//! Borrowed view of the walk's arrays: vocabularies and rows.
//!
//! The index stage (`graph::links`) writes each array to its own file. The files are memory-mapped.

use crate::error::{Error, Result};
use crate::items::Items;
use crate::rank::links_weights::{Counts, Saturations, SharedStrings, Weights, Whole};
use crate::rank::sentence_rows::SentenceRows;
use crate::sparse::CsrView;
use crate::store::MappedArray;
use crate::text::languages::Language;
use crate::text::strings::Strings;
use std::sync::{Arc, OnceLock};

/// Column count that allows any u32 position or id.
pub const ANY_POSITION: usize = u32::MAX as usize + 1;

/// Marks a unit without a subject.
pub const NONE: u32 = u32::MAX;

/// Array (u8) of the language numbers that occur in the index. It exists only if some unit is not in English.
pub const LANGUAGES: &str = "languages";
/// Array (u8) of the language number of each unit. It exists together with [`LANGUAGES`].
pub const UNIT_LANGUAGE: &str = "unit_language";
/// Maximum number of distinct languages of an index. The query is analysed in each of them.
pub const MOST_LANGUAGES: usize = 64;

/// An array of one of the element types.
#[derive(Debug, Clone, Copy)]
pub enum Slice<'a> {
    U8(&'a [u8]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// Names and element types of the arrays, in the order of storage.
pub const ARRAYS: [(&str, &str); 27] = [
    ("keywords_blob", "u8"),
    ("keywords_offsets", "u64"),
    ("names_blob", "u8"),
    ("names_offsets", "u64"),
    ("subjects_blob", "u8"),
    ("subjects_offsets", "u64"),
    ("unit_keywords_indptr", "u64"),
    ("unit_keywords_indices", "u32"),
    ("unit_keywords_tf", "u32"),
    ("keyword_units_indptr", "u64"),
    ("keyword_units_indices", "u32"),
    ("keyword_units_tf", "u32"),
    ("unit_names_indptr", "u64"),
    ("unit_names_indices", "u32"),
    ("name_units_indptr", "u64"),
    ("name_units_indices", "u32"),
    ("unit_subject", "u32"),
    ("unit_mentions_indptr", "u64"),
    ("unit_mentions_indices", "u32"),
    ("subject_units_indptr", "u64"),
    ("subject_units_indices", "u32"),
    ("first_sentence", "u64"),
    ("sentence_keywords_indptr", "u64"),
    ("sentence_keywords_indices", "u32"),
    ("sentence_names_indptr", "u64"),
    ("sentence_names_indices", "u32"),
    ("unit_length", "u32"),
];

/// Units with their keywords, names and subjects, for `n` units and `s` sentences.
#[derive(Debug, Clone, Copy)]
pub struct LinksView<'a> {
    /// Vocabularies, in ascending byte order.
    pub keywords: Strings<'a>,
    pub names: Strings<'a>,
    pub subjects: Strings<'a>,
    /// Keywords of "title, text" with their counts.
    pub unit_keywords: CsrView<'a>,
    pub unit_tf: Items<'a, u32>,
    pub keyword_units: CsrView<'a>,
    pub keyword_tf: Items<'a, u32>,
    pub unit_names: CsrView<'a>,
    pub name_units: CsrView<'a>,
    /// The subject of a unit, or [`NONE`].
    pub unit_subject: Items<'a, u32>,
    pub unit_mentions: CsrView<'a>,
    /// The units that have a subject or mention it.
    pub subject_units: CsrView<'a>,
    /// n + 1 offsets into the sentences.
    pub first_sentence: Items<'a, u64>,
    pub sentence_keywords: SentenceRows<'a>,
    pub sentence_names: SentenceRows<'a>,
    /// Number of keywords of a unit, counting repetitions.
    pub unit_length: &'a [u32],
    /// See [`Weights`].
    pub saturations: &'a Saturations,
    pub keyword_idf: Items<'a, f64>,
    pub name_idf: Items<'a, f64>,
    pub subject_idf: Items<'a, f64>,
    /// What the weights are counted over, if it is more than these units.
    pub whole: Option<&'a Whole>,
    pub(crate) languages: Languages,
}

/// Distinct languages, ascending.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Languages {
    list: [Language; MOST_LANGUAGES],
    count: usize,
}

impl Languages {
    fn new(numbers: &[u8]) -> Result<Self> {
        if numbers.len() > MOST_LANGUAGES || numbers.windows(2).any(|w| w[1] <= w[0]) {
            return Err(Error::input("languages must ascend"));
        }
        let mut list = [Language::ENGLISH; MOST_LANGUAGES];
        for (language, &number) in list.iter_mut().zip(numbers) {
            *language = Language::numbered(number)?;
        }
        Ok(Self { list, count: numbers.len() })
    }
}

impl<'a> LinksView<'a> {
    /// Create a view from arrays by name (see [`ARRAYS`]). Checks everything that a query relies on. The
    /// weights are computed unless the cell already holds them.
    pub fn new(find: impl Fn(&str) -> Result<Slice<'a>>, weights: &'a OnceLock<Weights>) -> Result<Self> {
        let view = Self::stored(&Checked(find), weights)?;
        view.check_values()?;
        Ok(view)
    }

    /// Create a view from arrays that were checked before they were written. Only lengths are checked.
    pub fn stored(source: &impl Source<'a>, weights: &'a OnceLock<Weights>) -> Result<Self> {
        let strings = |name: &str| source.strings(name);
        let rows = |name: &str, columns: usize| source.rows(name, columns);
        let unit_subject = source.u32s("unit_subject")?;
        let n = unit_subject.len();
        let (keywords, names, subjects) = (strings("keywords")?, strings("names")?, strings("subjects")?);
        let (unit_keywords, unit_tf) = source.counted_rows("unit_keywords", keywords.len())?;
        let (keyword_units, keyword_tf) = source.counted_rows("keyword_units", n)?;
        let (name_units, subject_units) = (rows("name_units", n)?, rows("subject_units", n)?);
        let unit_names = rows("unit_names", names.len())?;
        let sentences = |name: &str, of_unit| -> Result<SentenceRows<'a>> {
            Ok(SentenceRows { of_unit, stored: rows(name, ANY_POSITION)? })
        };
        let Slice::U32(unit_length) = source.slice("unit_length")? else {
            return Err(Error::input("unit_length must hold u32 values"));
        };
        let weights = match weights.get() {
            Some(weights) => weights,
            None => {
                let computed = Weights::new(&Counts {
                    keywords: (keywords, source.shared_strings("keywords")?),
                    keyword_units: (keyword_units.indptr, source.shared("keyword_units_indptr")?),
                    name_units: (name_units.indptr, source.shared("name_units_indptr")?),
                    subject_units: (subject_units.indptr, source.shared("subject_units_indptr")?),
                    unit_length,
                    unit_language: source.optional(UNIT_LANGUAGE)?,
                })?;
                weights.get_or_init(|| computed)
            }
        };
        let view = Self {
            keywords,
            names,
            subjects,
            unit_keywords,
            unit_tf,
            keyword_units,
            keyword_tf,
            unit_names,
            name_units,
            unit_subject,
            unit_mentions: rows("unit_mentions", subjects.len())?,
            subject_units,
            first_sentence: source.u64s("first_sentence")?,
            sentence_keywords: sentences("sentence_keywords", unit_keywords)?,
            sentence_names: sentences("sentence_names", unit_names)?,
            unit_length,
            saturations: &weights.saturations,
            keyword_idf: weights.keyword_idf.values(),
            name_idf: weights.name_idf.values(),
            subject_idf: weights.subject_idf.values(),
            whole: weights.whole.as_ref(),
            languages: Languages::new(source.optional(LANGUAGES)?)?,
        };
        view.check_lengths()?;
        Ok(view)
    }

    /// Return the element type of the array with this name.
    pub fn kind(name: &str) -> Result<&'static str> {
        let found = ARRAYS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind).ok_or_else(|| Error::input(format!("array {name} does not exist")))
    }

    fn check_lengths(&self) -> Result<()> {
        let n = self.units();
        let lengths = [
            ("unit_keywords", self.unit_keywords.rows(), n),
            ("unit_keywords_tf", self.unit_tf.len(), self.unit_keywords.nnz()),
            ("keyword_units", self.keyword_units.rows(), self.keywords.len()),
            ("keyword_units_tf", self.keyword_tf.len(), self.keyword_units.nnz()),
            ("unit_names", self.unit_names.rows(), n),
            ("name_units", self.name_units.rows(), self.names.len()),
            ("unit_mentions", self.unit_mentions.rows(), n),
            ("subject_units", self.subject_units.rows(), self.subjects.len()),
            ("first_sentence", self.first_sentence.len(), n + 1),
            ("sentence_names", self.sentence_names.rows(), self.sentence_keywords.rows()),
            ("unit_length", self.unit_length.len(), n),
            ("keyword_idf", self.keyword_idf.len(), self.keywords.len()),
            ("name_idf", self.name_idf.len(), self.names.len()),
            ("subject_idf", self.subject_idf.len(), self.subjects.len()),
        ];
        if let Some((name, found, wanted)) = lengths.iter().find(|(_, found, wanted)| found != wanted) {
            return Err(Error::input(format!("{name} has {found} rows or values, not {wanted}")));
        }
        Ok(())
    }

    fn check_values(&self) -> Result<()> {
        let known = |&s: &u32| s == NONE || (s as usize) < self.subjects.len();
        if let Some(unit) = self.unit_subject.all().iter().position(|s| !known(s)) {
            return Err(Error::input(format!("unit_subject of unit {unit} is not a subject")));
        }
        check_sentences(self.first_sentence.all(), self.sentence_keywords.rows() as u64)?;
        (0..self.units()).try_for_each(|unit| {
            self.sentence_keywords.check(unit, self.sentences(unit))?;
            self.sentence_names.check(unit, self.sentences(unit))
        })
    }

    /// Return the languages of the units; empty if all are English.
    #[inline]
    pub fn languages(&self) -> &[Language] {
        &self.languages.list[..self.languages.count]
    }

    #[inline]
    pub fn units(&self) -> usize {
        self.unit_subject.len()
    }

    /// Return the number of units that document frequencies are counted over.
    #[inline]
    pub fn population(&self) -> usize {
        self.whole.map_or(self.units(), |whole| whole.units)
    }

    /// Return the numbers of units that have each keyword, name or subject, if they are counted over more than
    /// these units.
    #[inline]
    pub fn frequencies(&self) -> [Option<&'a [u64]>; 3] {
        self.whole.map_or([None; 3], |whole| {
            let [keywords, names, subjects] = &whole.frequencies;
            [Some(keywords), Some(names), Some(subjects)]
        })
    }

    /// Return the number of units that have or mention a subject, counted over the same units as `population`.
    pub fn subject_frequency(&self, subject: u32) -> usize {
        let own = || self.subject_units.range(subject as usize).len();
        self.frequencies()[2].map_or_else(own, |counts| counts[subject as usize] as usize)
    }

    /// Return the subjects that a unit has or mentions, ascending.
    #[inline]
    pub fn unit_subjects(&self, unit: usize) -> impl Iterator<Item = u32> + Clone + 'a {
        let (about, mentioned) = (self.unit_subject[unit], self.unit_mentions.row(unit));
        let at = mentioned.partition_point(|&s| s < about);
        let own = (about != NONE && mentioned.get(at) != Some(&about)).then_some(about);
        mentioned[..at].iter().copied().chain(own).chain(mentioned[at..].iter().copied())
    }

    #[inline]
    pub fn sentences(&self, unit: usize) -> std::ops::Range<usize> {
        let [start, end] = self.first_sentence.pair(unit);
        start as usize..end as usize
    }
}

/// A source of arrays by name, for [`LinksView::stored`].
pub trait Source<'a> {
    /// Return a plain array.
    fn slice(&self, name: &str) -> Result<Slice<'a>>;
    /// Return an array from which a query may read only a few values.
    fn u32s(&self, name: &str) -> Result<Items<'a, u32>>;
    fn u64s(&self, name: &str) -> Result<Items<'a, u64>>;
    /// Return the array if it is unpacked as it is read.
    fn shared(&self, name: &str) -> Result<Option<Arc<MappedArray>>>;
    /// Return `NAME_blob` and `NAME_offsets` if their values are verified and unpacked as they are read.
    fn shared_strings(&self, name: &str) -> Result<Option<SharedStrings>>;
    /// Return `NAME_blob` and `NAME_offsets` as strings.
    fn strings(&self, name: &str) -> Result<Strings<'a>>;
    /// Return `NAME_indptr` and `NAME_indices` as rows.
    fn rows(&self, name: &str, columns: usize) -> Result<CsrView<'a>>;
    /// Like [`Source::rows`], together with `NAME_tf`, which is parallel to the ids.
    fn counted_rows(&self, name: &str, columns: usize) -> Result<(CsrView<'a>, Items<'a, u32>)>;
    /// Return the array [`LANGUAGES`] or [`UNIT_LANGUAGE`], or `None` if it is missing.
    fn optional(&self, name: &str) -> Result<&'a [u8]>;
}

/// Slices in memory. All of their values are checked.
struct Checked<F>(F);

impl<'a, F: Fn(&str) -> Result<Slice<'a>>> Checked<F> {
    fn plain_u32s(&self, name: &str) -> Result<&'a [u32]> {
        match (self.0)(name)? {
            Slice::U32(x) => Ok(x),
            _ => Err(Error::input(format!("{name} must hold u32 values"))),
        }
    }

    fn plain_u64s(&self, name: &str) -> Result<&'a [u64]> {
        match (self.0)(name)? {
            Slice::U64(x) => Ok(x),
            _ => Err(Error::input(format!("{name} must hold u64 values"))),
        }
    }
}

impl<'a, F: Fn(&str) -> Result<Slice<'a>>> Source<'a> for Checked<F> {
    fn slice(&self, name: &str) -> Result<Slice<'a>> {
        (self.0)(name)
    }

    fn u32s(&self, name: &str) -> Result<Items<'a, u32>> {
        Ok(self.plain_u32s(name)?.into())
    }

    fn u64s(&self, name: &str) -> Result<Items<'a, u64>> {
        Ok(self.plain_u64s(name)?.into())
    }

    fn shared(&self, _name: &str) -> Result<Option<Arc<MappedArray>>> {
        Ok(None)
    }

    fn shared_strings(&self, _name: &str) -> Result<Option<SharedStrings>> {
        Ok(None)
    }

    fn strings(&self, name: &str) -> Result<Strings<'a>> {
        let Slice::U8(blob) = (self.0)(&format!("{name}_blob"))? else {
            return Err(Error::input(format!("{name}_blob must hold u8 values")));
        };
        Strings::new(blob, self.plain_u64s(&format!("{name}_offsets"))?).map_err(|e| named(name, e))
    }

    fn rows(&self, name: &str, columns: usize) -> Result<CsrView<'a>> {
        let indptr = self.plain_u64s(&format!("{name}_indptr"))?;
        let indices = self.plain_u32s(&format!("{name}_indices"))?;
        CsrView::new(indptr, indices, columns).map_err(|e| named(name, e))
    }

    fn counted_rows(&self, name: &str, columns: usize) -> Result<(CsrView<'a>, Items<'a, u32>)> {
        Ok((self.rows(name, columns)?, self.u32s(&format!("{name}_tf"))?))
    }

    fn optional(&self, name: &str) -> Result<&'a [u8]> {
        match (self.0)(name) {
            Ok(Slice::U8(numbers)) => Ok(numbers),
            Ok(_) => Err(Error::input(format!("{name} must hold u8 values"))),
            // Return an array that may be missing.
            Err(_) => Ok(&[]),
        }
    }
}

fn named(name: &str, error: Error) -> Error {
    match error {
        Error::Input(text) => Error::Input(format!("{name}: {text}")),
        other => other,
    }
}

/// Check that there are n + 1 offsets that start at 0, never decrease and end at the number of sentences.
pub fn check_sentences(first: &[u64], sentences: u64) -> Result<()> {
    let ends = (first.first(), first.last());
    if ends != (Some(&0), Some(&sentences)) || first.windows(2).any(|w| w[1] < w[0]) {
        return Err(Error::input(format!(
            "first_sentence must rise from 0 to the number of sentences, {sentences}"
        )));
    }
    Ok(())
}
