//! The arrays of the walk, built from texts: keywords, names, subjects and mentions of units and
//! sentences. Source: this project's specification of the walk, section 2.5 "Index".
//!
//! Two passes over the texts, in ranges of units. The first numbers the words of each range on its
//! own; the vocabularies are then merged and sorted. The second looks sentences and mentions up.

use crate::error::{Error, Result};
use crate::graph::links_pass::{first_pass, second_pass, Part, Vocabulary};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::rank::links_view::{check_sentences, LinksView, Slice, NONE};
use crate::sparse::Csr;
use crate::text::interner::Interner;
use crate::text::names::SubjectTree;
use crate::text::strings::{Strings, StringsBuf};

pub const K1: f64 = 1.2;
pub const B: f64 = 0.75;
const GRAIN: usize = 1024;

/// The texts of an index: `n` titles (may be empty), `n` texts, and the sentences of every unit, unit
/// `u`'s being `first_sentence[u]..first_sentence[u + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub titles: Strings<'a>,
    pub texts: Strings<'a>,
    pub sentences: Strings<'a>,
    pub first_sentence: &'a [u64],
}

/// Owned arrays; see [`LinksView`] for what each holds.
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
}

/// One owned array by its kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
}

/// idf of things that occur in so many of `n` rows.
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
    /// Same arrays on any number of threads (0: every core). Progress counts units, twice.
    pub fn build(input: &Texts<'_>, threads: usize, progress: &Progress) -> Result<Self> {
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
        progress.expect(2 * n as u64);
        let parts = map_ranges(n, GRAIN, threads, progress, |r| first_pass(input, r, progress))?;

        let mut links = Self { first_sentence: input.first_sentence.to_vec(), ..Self::default() };
        let keywords = merge(&parts, |p| &p.keywords, progress)?;
        let names = merge(&parts, |p| &p.names, progress)?;
        let subjects = merge(&parts, |p| &p.subjects, progress)?;
        links.collect(&parts, &keywords.1, &names.1, &subjects.1);
        drop(parts);
        let tree = SubjectTree::new(subjects.0.sorted.view());
        let known = Known { keywords: &keywords.0, names: &names.0, tree: &tree };
        let subject_of = |unit: usize| links.unit_subject[unit];
        let rows = map_ranges(n, GRAIN, threads, progress, |r| {
            second_pass(input, r, &known, &subjects.0.sorted, subject_of, progress)
        })?;
        let mut mentions = RowBuilder::default();
        let mut both = RowBuilder::default();
        let mut in_keywords = RowBuilder::default();
        let mut in_names = RowBuilder::default();
        for part in rows {
            mentions.append(part.mentions);
            both.append(part.subjects);
            in_keywords.append(part.keywords);
            in_names.append(part.names);
        }
        links.unit_mentions = mentions.finish(subjects.0.sorted.offsets.len() - 1);
        links.unit_subjects = both.finish(subjects.0.sorted.offsets.len() - 1);
        links.sentence_keywords = in_keywords.finish(keywords.0.sorted.offsets.len() - 1);
        links.sentence_names = in_names.finish(names.0.sorted.offsets.len() - 1);
        links.keywords = keywords.0.sorted;
        links.names = names.0.sorted;
        links.subjects = subjects.0.sorted;
        progress.check()?;
        links.weigh(progress)?;
        Ok(links)
    }

    /// Unit rows in the numbers of the merged vocabularies, ascending.
    fn collect(&mut self, parts: &[Part], keywords: &[Vec<u32>], names: &[Vec<u32>], subjects: &[Vec<u32>]) {
        let (mut words, mut named) = (RowBuilder::default(), RowBuilder::default());
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut row: Vec<u32> = Vec::new();
        for (part, ((keyword, name), subject)) in parts.iter().zip(keywords.iter().zip(names).zip(subjects)) {
            for unit in 0..part.subject.len() {
                let range = part.unit_keywords.range(unit);
                pairs.clear();
                let counts = part.unit_keywords.values[range.clone()].iter().zip(&part.tf[range]);
                pairs.extend(counts.map(|(&local, &tf)| (keyword[local as usize], tf)));
                pairs.sort_unstable();
                words.values.extend(pairs.iter().map(|p| p.0));
                self.unit_tf.extend(pairs.iter().map(|p| p.1));
                words.close();
                self.unit_length.push(pairs.iter().fold(0, |sum: u32, p| sum.saturating_add(p.1)));
                row.clear();
                let own = &part.unit_names.values[part.unit_names.range(unit)];
                row.extend(own.iter().map(|&local| name[local as usize]));
                row.sort_unstable();
                named.values.extend_from_slice(&row);
                named.close();
                let about = part.subject[unit];
                self.unit_subject.push(if about == NONE { NONE } else { subject[about as usize] });
            }
        }
        self.unit_keywords = words.finish(total(keywords));
        self.unit_names = named.finish(total(names));
    }

    /// Transposes, idf and the sums that the walk divides by.
    fn weigh(&mut self, progress: &Progress) -> Result<()> {
        let n = self.unit_subject.len();
        self.unit_keywords.columns = self.keywords.offsets.len() - 1;
        self.unit_names.columns = self.names.offsets.len() - 1;
        let (turned, from) = self.unit_keywords.view().transpose_with_positions();
        self.keyword_tf = from.iter().map(|&at| self.unit_tf[at as usize]).collect();
        self.keyword_units = turned;
        progress.check()?;
        self.name_units = self.unit_names.view().transpose();
        self.subject_units = self.unit_subjects.view().transpose();
        progress.check()?;
        self.keyword_idf = inverse_document_frequency(n, &self.keyword_units);
        self.name_idf = inverse_document_frequency(n, &self.name_units);
        self.subject_idf = inverse_document_frequency(n, &self.subject_units);
        let mean = self.unit_length.iter().map(|&l| f64::from(l)).sum::<f64>() / n.max(1) as f64;
        let relative = |length: u32| f64::from(length) / mean.max(1e-9);
        self.unit_norm = self.unit_length.iter().map(|&l| K1 * (1.0 - B + B * relative(l))).collect();
        self.unit_sums = vec![0.0; 3 * n];
        self.keyword_sum = vec![0.0; self.keyword_idf.len()];
        for unit in 0..n {
            for at in self.unit_keywords.view().range(unit) {
                let (x, tf) = (self.unit_keywords.indices[at] as usize, f64::from(self.unit_tf[at]));
                let weight = self.keyword_idf[x] * (tf / (tf + self.unit_norm[unit]));
                self.unit_sums[unit] += weight;
                self.keyword_sum[x] += weight;
            }
            let sum = |rows: &Csr, idf: &[f64]| -> f64 {
                rows.view().row(unit).iter().map(|&x| idf[x as usize]).sum()
            };
            self.unit_sums[n + unit] = sum(&self.unit_names, &self.name_idf);
            self.unit_sums[2 * n + unit] = sum(&self.unit_subjects, &self.subject_idf);
        }
        Ok(())
    }

    /// The arrays in the order of `rank::links_view::ARRAYS`, to be stored.
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
        crate::rank::links_view::ARRAYS.iter().map(|a| a.0).zip(values).collect()
    }
}

/// A view of stored arrays.
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

fn total(places: &[Vec<u32>]) -> usize {
    places.iter().flatten().max().map_or(0, |&m| m as usize + 1)
}

/// What sentences and mentions are looked up in.
pub(crate) struct Known<'a> {
    pub keywords: &'a Vocabulary,
    pub names: &'a Vocabulary,
    pub tree: &'a SubjectTree,
}

/// One vocabulary of all parts, and for each part the place of each of its strings.
fn merge(
    parts: &[Part],
    of: impl Fn(&Part) -> &Interner,
    progress: &Progress,
) -> Result<(Vocabulary, Vec<Vec<u32>>)> {
    let mut all = Interner::default();
    let mut numbers: Vec<Vec<u32>> = Vec::with_capacity(parts.len());
    for part in parts {
        progress.check()?;
        numbers.push(of(part).strings().iter().map(|text| all.add(text)).collect());
    }
    let (sorted, place) = all.sorted();
    for number in numbers.iter_mut().flatten() {
        *number = place[*number as usize];
    }
    Ok((Vocabulary { interner: all, place, sorted }, numbers))
}

/// Rows that grow at their end.
#[derive(Debug, Default)]
pub(crate) struct RowBuilder {
    pub values: Vec<u32>,
    ends: Vec<u64>,
}

impl RowBuilder {
    pub fn close(&mut self) {
        self.ends.push(self.values.len() as u64);
    }

    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        start..self.ends[row] as usize
    }

    /// Ascending distinct values as the next row.
    pub fn push_set(&mut self, row: &mut Vec<u32>) {
        row.sort_unstable();
        row.dedup();
        self.values.append(row);
        self.close();
    }

    fn append(&mut self, other: Self) {
        let base = self.values.len() as u64;
        self.values.extend_from_slice(&other.values);
        self.ends.extend(other.ends.iter().map(|end| base + end));
    }

    fn finish(self, columns: usize) -> Csr {
        let indptr = std::iter::once(0).chain(self.ends).collect();
        Csr { indptr, indices: self.values, columns }
    }
}

#[cfg(test)]
#[path = "links_tests.rs"]
mod tests;
