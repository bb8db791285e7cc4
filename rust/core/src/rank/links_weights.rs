//! Weights derived from counts. They are computed when an index is first read, and not stored.

use crate::error::{caught, Error, Result};
use crate::items::Items;
use crate::memory::zeros;
use crate::rank::moments::Moments;
use crate::store::{Compose, Kind, MappedArray, Shape, Unpacked};
use crate::text::languages::{Language, Script};
use crate::text::strings::Strings;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub const K1: f64 = 1.2;
pub const B: f64 = 0.75;
/// Document frequencies up to this limit have a precomputed idf.
const COMMON: usize = 1 << 10;

/// Minimum number of units of a language. With one or two units, document frequencies say nothing about
/// rarity, and no query would find the only passage in a language.
const FEW: usize = 16;
/// Lengths and counts below these limits have a row and a column in the table of saturations.
const LENGTHS: usize = 1 << 10;
const TIMES: usize = 1 << 5;

/// BM25's saturations, count / (count + norm of the length).
#[derive(Debug, Clone, PartialEq)]
pub struct Saturations {
    mean: f64,
    /// Indexed by count, then by length. A query needs only a few counts and lengths, so the values that it
    /// needs stay in the cache.
    table: Arc<[f64; LENGTHS * TIMES]>,
}

impl Saturations {
    /// Compute the table for the lengths of all units.
    pub fn new(lengths: &[u32]) -> Result<Self> {
        Self::of_total(lengths.iter().map(|&length| u64::from(length)).sum(), lengths.len())
    }

    /// Compute the table for `units` units that have `total` keywords, counting repetitions.
    pub fn of_total(total: u64, units: usize) -> Result<Self> {
        let mean = mean_length(total, units);
        let mut table = zeros::<f64>(LENGTHS * TIMES, "the table of saturations")?;
        for (at, value) in table.iter_mut().enumerate() {
            *value = divided(mean, (at % LENGTHS) as u32, (at / LENGTHS) as u32);
        }
        let table = Arc::<[f64]>::from(table).try_into();
        Ok(Self {
            mean,
            table: table.map_err(|_| {
                Error::Internal("a table of weights has another size than its vocabulary".to_owned())
            })?,
        })
    }

    /// Like [`Saturations::of_total`], with the table of the last call if it had the same mean. Queries over several
    /// indexes need a table for each query, and the statistics rarely change between them.
    pub fn of_whole(total: u64, units: usize) -> Result<Self> {
        static LAST: Mutex<Option<Saturations>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = last.as_ref().filter(|last| last.mean == mean_length(total, units)) {
            return Ok(found.clone());
        }
        Ok(last.insert(Self::of_total(total, units)?).clone())
    }

    /// Return the saturation of a keyword with a count in a unit of a length.
    #[inline]
    pub fn of(&self, length: u32, count: u32) -> f64 {
        match (length as usize) < LENGTHS && (count as usize) < TIMES {
            true => self.table[count as usize * LENGTHS + length as usize],
            false => divided(self.mean, length, count),
        }
    }

    /// Return k1 (1 - b + b length / mean length).
    pub fn norm(&self, length: u32) -> f64 {
        norm(self.mean, length)
    }
}

fn mean_length(total: u64, units: usize) -> f64 {
    // Both are exact: integers below 2^53.
    (total as f64 / units.max(1) as f64).max(1e-9)
}

fn norm(mean: f64, length: u32) -> f64 {
    K1 * (1.0 - B + B * (f64::from(length) / mean))
}

#[inline(never)]
fn divided(mean: f64, length: u32, count: u32) -> f64 {
    let count = f64::from(count);
    count / (count + norm(mean, length))
}

/// Offsets of rows, and the array that holds them if it is unpacked as it is read.
pub type Ends<'a> = (Items<'a, u64>, Option<Arc<MappedArray>>);

/// The bytes and offsets of strings.
pub type SharedStrings = [Arc<MappedArray>; 2];
/// Strings, and the arrays that hold them if they are unpacked as they are read.
pub type Words<'a> = (Strings<'a>, Option<SharedStrings>);

/// The input from which the weights are computed.
#[derive(Debug, Clone)]
pub struct Counts<'a> {
    pub keywords: Words<'a>,
    /// Offsets of the units of each keyword, name and subject.
    pub keyword_units: Ends<'a>,
    pub name_units: Ends<'a>,
    pub subject_units: Ends<'a>,
    pub unit_length: &'a [u32],
    /// The language of each unit; empty if all are English.
    pub unit_language: &'a [u8],
}

/// Weights of units and of their keywords, names and subjects.
#[derive(Debug)]
pub struct Weights {
    pub saturations: Saturations,
    /// ln(1 + (n - df + 0.5) / (df + 0.5)).
    pub keyword_idf: Idf,
    pub name_idf: Idf,
    pub subject_idf: Idf,
    /// If the units are candidates from several indexes: what their statistics are counted over.
    pub whole: Option<Whole>,
}

/// Statistics of a collection of which only some units are at hand: the candidates from several indexes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Whole {
    pub units: usize,
    pub documents: usize,
    /// Number of keywords of all units, counting repetitions.
    pub length: u64,
    /// Number of units of each language; empty if all are English.
    pub languages: BTreeMap<u8, u64>,
    /// Number of units that have each keyword, that have each name, and that have or mention each subject.
    pub frequencies: [Vec<u64>; 3],
    /// Moments of the BM25 scores of all units that match the query.
    pub matches: Option<Moments>,
}

impl Whole {
    /// Return the weights of a vocabulary from the document frequencies of its keywords, names and subjects.
    pub fn weigh(self, keywords: Strings<'_>, frequencies: [Vec<u64>; 3]) -> Result<Weights> {
        let [keyword_units, name_units, subject_units] = &frequencies;
        let plain = OfCounts::new(self.units, None);
        let by_language = ByLanguage::of(self.languages.iter().map(|(&number, &count)| (number, count)))?;
        let of_keywords = OfCounts::new(self.units, by_language);
        Ok(Weights {
            saturations: Saturations::of_whole(self.length, self.units)?,
            keyword_idf: Idf::Whole(of_keywords.of_frequencies(keyword_units, 0, Some(keywords))),
            name_idf: Idf::Whole(plain.of_frequencies(name_units, 0, None)),
            subject_idf: Idf::Whole(plain.of_frequencies(subject_units, 0, None)),
            whole: Some(Self { frequencies, ..self }),
        })
    }
}

impl Weights {
    pub fn new(counts: &Counts<'_>) -> Result<Self> {
        let plain = OfCounts::new(counts.unit_length.len(), None);
        let of_keywords = OfCounts::new(counts.unit_length.len(), ByLanguage::new(counts.unit_language)?);
        Ok(Self {
            saturations: Saturations::new(counts.unit_length)?,
            keyword_idf: Idf::new(of_keywords, &counts.keyword_units, Some(&counts.keywords))?,
            name_idf: Idf::new(plain.clone(), &counts.name_units, None)?,
            subject_idf: Idf::new(plain, &counts.subject_units, None)?,
            whole: None,
        })
    }
}

/// The idf of each row of units.
#[derive(Debug)]
pub enum Idf {
    Whole(Vec<f64>),
    /// Computed on first read.
    Lazy(Unpacked),
}

impl Idf {
    pub fn values(&self) -> Items<'_, f64> {
        match self {
            Self::Whole(values) => values.into(),
            Self::Lazy(values) => values.items(),
        }
    }

    fn new(of_counts: OfCounts, (indptr, shared): &Ends<'_>, words: Option<&Words<'_>>) -> Result<Self> {
        let Some(indptr) = shared else {
            return Ok(Self::Whole(of_counts.of_rows(indptr.all(), 0, words.map(|words| words.0))));
        };
        let words = words.and_then(|words| words.1.clone());
        let rows = OfRows { indptr: indptr.clone(), words, of_counts };
        Ok(Self::Lazy(Unpacked::composed(Box::new(rows))?))
    }
}

/// The idf of each document frequency.
#[derive(Clone)]
struct OfCounts {
    n: usize,
    common: Vec<f64>,
    by_language: Option<ByLanguage>,
}

impl OfCounts {
    fn new(n: usize, by_language: Option<ByLanguage>) -> Self {
        let common = (0..COMMON as u64).map(|df| inverse_document_frequency(n, df)).collect();
        Self { n, common, by_language }
    }

    /// Return the idf of adjacent rows. `first` is the number of the first row.
    fn of_rows(&self, indptr: &[u64], first: usize, words: Option<Strings<'_>>) -> Vec<f64> {
        let frequencies: Vec<u64> = indptr.windows(2).map(|row| row[1].saturating_sub(row[0])).collect();
        self.of_frequencies(&frequencies, first, words)
    }

    /// Return the idf of adjacent rows with these numbers of units.
    fn of_frequencies(&self, frequencies: &[u64], first: usize, words: Option<Strings<'_>>) -> Vec<f64> {
        let idf = |(at, &df): (usize, &u64)| {
            let own = self.by_language.as_ref().zip(words);
            own.and_then(|(languages, words)| languages.idf(self.n, words.get(first + at), df))
                .unwrap_or_else(|| {
                    let known = self.common.get(df as usize).copied();
                    known.unwrap_or_else(|| inverse_document_frequency(self.n, df))
                })
        };
        frequencies.iter().enumerate().map(idf).collect()
    }
}

/// The number of units of each language, if the index has several.
#[derive(Clone)]
struct ByLanguage {
    of_code: BTreeMap<&'static str, usize>,
    /// Units of languages that mark unstemmed Latin words.
    whole: usize,
}

impl ByLanguage {
    /// `None` if the index has fewer than two languages.
    fn new(unit_language: &[u8]) -> Result<Option<Self>> {
        let mut units = [0u64; 256];
        unit_language.iter().for_each(|&number| units[usize::from(number)] += 1);
        Self::of((0u8..=255).zip(units))
    }

    /// Like [`ByLanguage::new`], from the number of units of each language.
    fn of(units: impl Iterator<Item = (u8, u64)>) -> Result<Option<Self>> {
        let (mut of_code, mut whole) = (BTreeMap::new(), 0);
        for (number, count) in units.filter(|&(_, count)| count > 0) {
            let language = Language::numbered(number)?;
            of_code.insert(language.code(), count as usize);
            whole += if language.marks_latin() { 0 } else { count as usize };
        }
        Ok((of_code.len() >= 2).then_some(Self { of_code, whole }))
    }

    /// Return the idf of a stem that occurs in only one language, computed over the units of this language.
    /// Otherwise every word of a minority language would look rare in the whole index. For the same reason an
    /// unstemmed Latin word is counted over the units that have unstemmed words: a German passage classified
    /// as English has no stems, so all of its words would look rare. Returns `None` for all other words.
    fn idf(&self, n: usize, keyword: &str, df: u64) -> Option<f64> {
        let found = match keyword.split_once('@') {
            Some((_, code)) => self.of_code.get(code).copied(),
            None => (Script::of_word(keyword) == Some(Script::Latin)).then_some(self.whole),
        };
        found.map(|count| inverse_document_frequency(count.max(df as usize).max(FEW.min(n)), df))
    }
}

/// The idf of rows whose offsets are unpacked as they are read.
struct OfRows {
    indptr: Arc<MappedArray>,
    words: Option<SharedStrings>,
    of_counts: OfCounts,
}

impl Compose for OfRows {
    fn name(&self) -> &str {
        "the rarity of words"
    }

    fn shape(&self) -> Shape {
        Shape { kind: Kind::F64, rows: self.indptr.shape().0.saturating_sub(1), columns: None }
    }

    fn fill(&self, offset: usize, out: &mut [u8]) -> Result<()> {
        let (first, count) = (offset / size_of::<f64>(), out.len() / size_of::<f64>());
        let indptr = self.indptr.items::<u64>()?;
        let found = caught(|| {
            let words = match &self.words {
                Some([blob, offsets]) => Some(Strings::stored(blob.items()?, offsets.items()?)?),
                None => None,
            };
            Ok(self.of_counts.of_rows(indptr.get(first..first + count + 1), first, words))
        })?;
        out.copy_from_slice(bytemuck::cast_slice(&found));
        Ok(())
    }
}

/// Return the idf of an item that `df` of `n` units have.
fn inverse_document_frequency(n: usize, df: u64) -> f64 {
    let (n, df) = (n as f64, df as f64);
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Progress;
    use crate::store::{pack, Item, MappedFile};
    use crate::text::strings::StringsBuf;

    fn mapped<T: Item>(name: &str, values: &[T]) -> Arc<MappedArray> {
        let path = std::env::temp_dir().join(format!("ketrag-weights-{name}-{}", std::process::id()));
        let shape = Shape { kind: T::KIND, rows: values.len(), columns: None };
        let packed = pack(shape, bytemuck::cast_slice(values), 1, &Progress::none()).unwrap().unwrap();
        std::fs::write(&path, packed).unwrap();
        let array = MappedArray::new(Arc::new(MappedFile::open(&path, None, None, None).unwrap())).unwrap();
        let _ = std::fs::remove_file(&path); // Windows does not delete a mapped file
        Arc::new(array)
    }

    #[test]
    fn rarities_do_not_depend_on_when_they_are_computed() {
        let (count, n) = (3_000, 5_000);
        let forms = ["ice", "polhavet@no", "ship@en", "\u{5317}\u{6781}", "Fram"];
        let words: StringsBuf = (0..count).map(|at| format!("{at}{}", forms[at % forms.len()])).collect();
        let mut ends = vec![0u64];
        (0..count).for_each(|at| ends.push(ends[at] + 1 + (at * at % 4_999) as u64));
        let languages: Vec<u8> = (0..n).map(|at| (at % 3) as u8).collect();
        let shared = [mapped("blob", &words.blob), mapped("offsets", &words.offsets)];
        let array = mapped("indptr", &ends);
        for languages in [&languages[..], &[]] {
            let of = || OfCounts::new(n, ByLanguage::new(languages).unwrap());
            let whole = Idf::new(of(), &((&ends).into(), None), Some(&(words.view(), None))).unwrap();
            let given = (words.view(), Some(shared.clone()));
            let lazy = Idf::new(of(), &((&ends).into(), Some(array.clone())), Some(&given)).unwrap();
            assert!(matches!((&whole, &lazy), (Idf::Whole(_), Idf::Lazy(_))));
            let (whole, lazy) = (whole.values(), lazy.values());
            assert_eq!(whole.len(), lazy.len());
            for at in (0..count).rev().step_by(7) {
                assert_eq!(whole[at].to_bits(), lazy[at].to_bits());
            }
            assert_eq!(whole.all(), lazy.all());
        }
    }
}
