//! The arrays of the walk, built from texts: keywords, names, subjects and mentions of units and sentences.
//!
//! Subjects are found first, from titles and openings, because mentions refer to them. Then the texts are
//! read in ranges of units, each with local word numbers; the vocabularies are merged and sorted, and every
//! range is renumbered to those of the index.

use crate::error::{Error, Result};
use crate::graph::links_pass::{read, renumber, subjects_of, Part, Rows, Subjects, Words};
pub use crate::graph::links_rows::Texts;
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::rank::links_view::{check_sentences, LinksView, Slice, NONE};
use crate::sparse::Csr;
use crate::text::interner::Interner;
use crate::text::names::SubjectTree;
use crate::text::strings::StringsBuf;
use std::sync::Mutex;

pub const K1: f64 = 1.2;
pub const B: f64 = 0.75;
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
    pub unit_subjects: Csr,
    pub subject_units: Csr,
    pub first_sentence: Vec<u64>,
    pub sentence_keywords: Csr,
    pub sentence_names: Csr,
    pub unit_length: Vec<u32>,
    pub unit_norm: Vec<f64>,
    pub keyword_idf: Vec<f64>,
    pub name_idf: Vec<f64>,
    pub subject_idf: Vec<f64>,
    pub unit_sums: Vec<f64>,
    pub keyword_sum: Vec<f64>,
    /// Units, ascending, that an update of the index must read again: see [`Rows`].
    pub reread_units: Vec<u32>,
}

/// One owned array of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

/// Return the idf of items by the number of `n` rows in which they occur.
pub fn inverse_document_frequency(n: usize, rows: &Csr) -> Vec<f64> {
    let n = n as f64;
    rows.indptr
        .windows(2)
        .map(|w| {
            let df = (w[1] - w[0]) as f64;
            (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
        })
        .collect()
}

impl Links {
    /// Build the arrays, identical on any number of threads (0: every core). Progress counts units, twice.
    pub fn build(input: &Texts<'_>, threads: usize, progress: &Progress) -> Result<Self> {
        let n = check_texts(input)?;
        progress.expect(2 * n as u64);
        let mut links = Self { first_sentence: input.first_sentence.to_vec(), ..Self::default() };
        let mut found =
            map_ranges(n, GRAIN, threads, progress, |r| subjects_of(input, &listed(r), progress))?;
        let (subjects, numbers) = merge(found.iter_mut().map(|(words, _)| std::mem::take(words)), progress)?;
        for ((_, own), numbers) in found.iter().zip(&numbers) {
            let of = own.iter().map(|&s| if s == NONE { NONE } else { numbers[s as usize] });
            links.unit_subject.extend(of);
        }
        let tree = SubjectTree::new(subjects.view());
        let known = Subjects { sorted: &subjects, tree: &tree, of_unit: &links.unit_subject };
        let mut parts =
            map_ranges(n, GRAIN, threads, progress, |r| read(input, &listed(r), &known, progress))?;
        drop(tree);
        let (keywords, keyword_numbers) =
            merge(parts.iter_mut().map(|p| std::mem::take(&mut p.keywords)), progress)?;
        let (names, name_numbers) = merge(parts.iter_mut().map(|p| std::mem::take(&mut p.names)), progress)?;
        (links.keywords, links.names, links.subjects) = (keywords, names, subjects);
        let parts: Vec<Mutex<Part>> = parts.into_iter().map(Mutex::new).collect();
        // Progress is not counted: this takes no time compared with reading.
        let rows = map_ranges(n, GRAIN, threads, &Progress::none(), |r| {
            let at = r.start / GRAIN;
            let part = std::mem::take(&mut *parts[at].lock().unwrap_or_else(|e| e.into_inner()));
            let numbers = (&keyword_numbers[at], &name_numbers[at]);
            renumber(part, &listed(r), input.first_sentence, numbers.0, numbers.1, progress)
        })?;
        drop((keyword_numbers, name_numbers));
        links.collect(rows);
        progress.check()?;
        links.weigh(threads, progress)?;
        Ok(links)
    }

    /// Append the rows of all ranges in order.
    pub(crate) fn collect(&mut self, parts: Vec<Rows>) {
        let mut all = Rows::default();
        for part in parts {
            all.unit_keywords.append(part.unit_keywords);
            all.tf.extend(part.tf);
            all.length.extend(part.length);
            all.unit_names.append(part.unit_names);
            all.mentions.append(part.mentions);
            all.subjects.append(part.subjects);
            all.sentence_keywords.append(part.sentence_keywords);
            all.sentence_names.append(part.sentence_names);
            self.reread_units.extend(part.reread);
        }
        let (keywords, names) = (self.keywords.len(), self.names.len());
        (self.unit_tf, self.unit_length) = (all.tf, all.length);
        self.unit_keywords = all.unit_keywords.finish(keywords);
        self.unit_names = all.unit_names.finish(names);
        self.unit_mentions = all.mentions.finish(self.subjects.len());
        self.unit_subjects = all.subjects.finish(self.subjects.len());
        self.sentence_keywords = all.sentence_keywords.finish(keywords);
        self.sentence_names = all.sentence_names.finish(names);
    }

    /// Compute transposes, idf and the sums by which the walk divides.
    pub(crate) fn weigh(&mut self, threads: usize, progress: &Progress) -> Result<()> {
        let n = self.unit_subject.len();
        let (turned, from) = self.unit_keywords.view().transpose_with_positions()?;
        self.keyword_tf = from.iter().map(|&at| self.unit_tf[at as usize]).collect();
        self.keyword_units = turned;
        progress.check()?;
        self.name_units = self.unit_names.view().transpose()?;
        self.subject_units = self.unit_subjects.view().transpose()?;
        progress.check()?;
        self.keyword_idf = inverse_document_frequency(n, &self.keyword_units);
        self.name_idf = inverse_document_frequency(n, &self.name_units);
        self.subject_idf = inverse_document_frequency(n, &self.subject_units);
        let mean = self.unit_length.iter().map(|&l| f64::from(l)).sum::<f64>() / n.max(1) as f64;
        let relative = |length: u32| f64::from(length) / mean.max(1e-9);
        self.unit_norm = self.unit_length.iter().map(|&l| K1 * (1.0 - B + B * relative(l))).collect();
        // Each sum adds its terms in one order, whichever thread computes it.
        let weight = |x: usize, tf: u32, unit: usize| {
            let tf = f64::from(tf);
            self.keyword_idf[x] * (tf / (tf + self.unit_norm[unit]))
        };
        let silent = Progress::none();
        let sums = map_ranges(n, GRAIN, threads, &silent, |units| {
            progress.check()?;
            let sum = |rows: &Csr, idf: &[f64], unit: usize| -> f64 {
                rows.view().row(unit).iter().map(|&x| idf[x as usize]).sum()
            };
            Ok(units
                .map(|unit| {
                    let terms = self.unit_keywords.view().range(unit);
                    let words = terms.fold(0.0, |sum, at| {
                        sum + weight(self.unit_keywords.indices[at] as usize, self.unit_tf[at], unit)
                    });
                    let names = sum(&self.unit_names, &self.name_idf, unit);
                    [words, names, sum(&self.unit_subjects, &self.subject_idf, unit)]
                })
                .collect::<Vec<_>>())
        })?;
        let keyword_sum = map_ranges(self.keyword_idf.len(), 4 * GRAIN, threads, &silent, |words| {
            progress.check()?;
            let one = |x: usize| {
                self.keyword_units.view().range(x).fold(0.0, |sum, at| {
                    sum + weight(x, self.keyword_tf[at], self.keyword_units.indices[at] as usize)
                })
            };
            Ok(words.map(one).collect::<Vec<_>>())
        })?;
        self.unit_sums = (0..3).flat_map(|kind| sums.iter().flatten().map(move |sum| sum[kind])).collect();
        self.keyword_sum = keyword_sum.concat();
        Ok(())
    }

    /// Return the arrays in the order of `rank::links_view::ARRAYS`, and `reread_units`, for storage.
    pub fn into_arrays(self) -> Vec<(&'static str, Array)> {
        use Array::{F64, U32, U64, U8};
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
            U64(self.unit_subjects.indptr),
            U32(self.unit_subjects.indices),
            U64(self.subject_units.indptr),
            U32(self.subject_units.indices),
            U64(self.first_sentence),
            U64(self.sentence_keywords.indptr),
            U32(self.sentence_keywords.indices),
            U64(self.sentence_names.indptr),
            U32(self.sentence_names.indices),
            F64(self.unit_norm),
            F64(self.keyword_idf),
            F64(self.name_idf),
            F64(self.subject_idf),
            F64(self.unit_sums),
            F64(self.keyword_sum),
            U32(self.unit_length),
        ];
        let more = ("reread_units", U32(self.reread_units));
        crate::rank::links_view::ARRAYS.iter().map(|a| a.0).zip(values).chain(Some(more)).collect()
    }
}

/// Return a view of stored arrays.
pub fn view<'a>(arrays: &'a [(&'static str, Array)]) -> Result<LinksView<'a>> {
    LinksView::new(|name| {
        let found = arrays.iter().find(|a| a.0 == name);
        let (_, array) = found.ok_or_else(|| Error::input(format!("{name} is missing")))?;
        Ok(match array {
            Array::U8(x) => Slice::U8(x),
            Array::U32(x) => Slice::U32(x),
            Array::U64(x) => Slice::U64(x),
            Array::F64(x) => Slice::F64(x),
        })
    })
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

fn listed(units: std::ops::Range<usize>) -> Vec<u32> {
    (units.start as u32..units.end as u32).collect()
}

/// Merge the vocabularies of units into one sorted list, and map each part's strings to it; strings that no
/// unit has map to `NONE`.
fn merge(parts: impl Iterator<Item = Words>, progress: &Progress) -> Result<(StringsBuf, Vec<Vec<u32>>)> {
    let parts: Vec<Words> = parts.collect();
    let mut all = Interner::default();
    let mut numbers: Vec<Vec<u32>> = Vec::with_capacity(parts.len());
    for part in &parts {
        progress.check()?;
        numbers.push(all.add_first(&part.strings, part.of_units));
    }
    let (sorted, place) = all.sorted();
    for (part, numbers) in parts.iter().zip(&mut numbers) {
        numbers.iter_mut().for_each(|number| *number = place[*number as usize]);
        let others = part.of_units..part.strings.len();
        numbers.extend(
            others.map(|i| all.get_of(&part.strings, i).map_or(NONE, |number| place[number as usize])),
        );
    }
    Ok((sorted, numbers))
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
