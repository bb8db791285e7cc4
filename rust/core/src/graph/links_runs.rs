//! Builds the arrays of the walk in bounded memory. Runs of units are read one after another, and the result
//! of each is written to a temporary file. Once the vocabularies are complete, the rows are renumbered in the
//! same order.
//!
//! Only the vocabularies with their frequencies, the tree of subjects and a few numbers per unit stay in
//! memory. The result is identical to that of [`Links::build`], to the byte, whatever the size of the runs
//! and the number of threads.

use crate::error::{Error, Result};
use crate::graph::links::{Array, GRAIN};
use crate::graph::links_pass::{read, renumber, subjects_of, Part, Rows, Subjects, Words};
use crate::graph::links_pass::{RowBuilder, Texts};
use crate::graph::spill::{put, take, Piece, RowSink, Sink, Spill, Turned};
use crate::parallel::{held, map_ranges, map_ranges_then};
use crate::progress::Progress;
use crate::rank::links_view::{LANGUAGES, NONE, UNIT_LANGUAGE};
use crate::text::detection::Choice;
use crate::text::interner::Interner;
use crate::text::languages::Language;
use crate::text::names::SubjectTree;
use crate::text::strings::{slices, take as take_strings, Strings, StringsBuf};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[cfg(doc)]
use crate::graph::links::Links;

/// The units of an index, as the stage "units" stores them.
#[derive(Debug, Clone, Copy)]
pub struct Units<'a> {
    /// Titles of documents, and the document of each unit.
    pub titles: Strings<'a>,
    pub owners: &'a [u32],
    pub texts: Strings<'a>,
    /// The context of each unit. Its words count as words of the unit.
    pub before: Strings<'a>,
    /// First and last byte of each unit in its document.
    pub spans: &'a [u32],
    /// The unit of each sentence, ascending; its first and last byte in the document, within the unit; and
    /// whether it is a title, which is skipped.
    pub sentence_units: &'a [u32],
    pub sentence_spans: &'a [u32],
    pub sentence_titles: &'a [u8],
    pub language: Choice,
}

/// Limits of memory: number of units that are read together, and of entries of a transpose that are placed
/// together.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub units: usize,
    pub entries: usize,
}

impl Bounds {
    /// Return the number of units of a run. Several runs are in memory at once.
    fn grain(self, threads: usize) -> usize {
        (self.units / held(threads)).clamp(1, GRAIN)
    }
}

/// An array in memory, or in a file without a header in the byte order of the machine.
#[derive(Debug)]
pub enum Output {
    Memory(Array),
    File(PathBuf),
}

/// The texts of a run, and those of its units' sentences.
struct Run {
    titles: StringsBuf,
    texts: StringsBuf,
    sentences: StringsBuf,
    first_sentence: Vec<u64>,
}

impl Run {
    fn texts(&self, language: Choice) -> Texts<'_> {
        Texts {
            titles: self.titles.view(),
            texts: self.texts.view(),
            sentences: self.sentences.view(),
            first_sentence: &self.first_sentence,
            language,
        }
    }
}

impl Units<'_> {
    fn check(&self) -> Result<usize> {
        let (n, sentences) = (self.texts.len(), self.sentence_units.len());
        if self.owners.len() != n
            || self.before.len() != n
            || self.spans.len() != 2 * n
            || self.sentence_spans.len() != 2 * sentences
            || self.sentence_titles.len() != sentences
        {
            return Err(Error::input("the arrays of units and sentences differ in length"));
        }
        if n >= NONE as usize || sentences >= NONE as usize {
            return Err(Error::input("at most 2^32 - 2 units and sentences"));
        }
        let rises = self.sentence_units.windows(2).all(|w| w[0] <= w[1]);
        if !rises || self.sentence_units.last().is_some_and(|&last| last as usize >= n) {
            return Err(Error::input("the units of sentences must ascend and exist"));
        }
        Ok(n)
    }

    /// Return the texts of the given units, and their sentences if requested.
    fn run(&self, units: Range<usize>, sentences: bool) -> Result<Run> {
        let mut run = Run {
            titles: take_strings(self.titles, &self.owners[units.clone()])?,
            texts: StringsBuf::default(),
            sentences: StringsBuf::default(),
            first_sentence: vec![0],
        };
        for unit in units.clone() {
            match self.before.get(unit) {
                "" => run.texts.push(self.texts.get(unit)),
                before => run.texts.push(&[before, self.texts.get(unit)].concat()),
            }
        }
        if !sentences {
            run.first_sentence.resize(units.len() + 1, 0);
            return Ok(run);
        }
        let (mut owners, mut spans) = (Vec::new(), Vec::new());
        let mut at = self.sentence_units.partition_point(|&unit| (unit as usize) < units.start);
        for unit in units.clone() {
            while self.sentence_units.get(at) == Some(&(unit as u32)) {
                if self.sentence_titles[at] == 0 {
                    owners.push((unit - units.start) as u32);
                    // A span that starts before the unit becomes a large number, which is rejected.
                    let before = self.before.get(unit).len();
                    let relative = |end: u32| {
                        let inside = end.checked_sub(self.spans[2 * unit]).map(|at| at as usize + before);
                        inside.and_then(|at| u32::try_from(at).ok()).unwrap_or(u32::MAX)
                    };
                    spans.extend([
                        relative(self.sentence_spans[2 * at]),
                        relative(self.sentence_spans[2 * at + 1]),
                    ]);
                }
                at += 1;
            }
            run.first_sentence.push(owners.len() as u64);
        }
        run.sentences = slices(run.texts.view(), &owners, &spans)?;
        Ok(run)
    }
}

/// A vocabulary that grows with the runs: its strings, and the number of units that have each.
#[derive(Default)]
struct Vocabulary {
    strings: Interner,
    units: Vec<u32>,
}

impl Vocabulary {
    /// Add the strings of a part and return their numbers. Strings that no unit has yet are added too,
    /// because a later unit may have them.
    fn add(&mut self, words: &Words, rows: &RowBuilder) -> Vec<u32> {
        let numbers = self.strings.add_first(&words.strings, words.strings.len());
        self.units.resize(self.strings.len(), 0);
        rows.values.iter().for_each(|&own| self.units[numbers[own as usize] as usize] += 1);
        numbers
    }

    /// Return the strings that some unit has, in ascending order, the number of units of each, and for each
    /// old number its rank or `NONE`.
    fn finish(self) -> (StringsBuf, Vec<u32>, Vec<u32>) {
        let mut place = vec![NONE; self.units.len()];
        let (mut sorted, mut lengths) = (StringsBuf::default(), Vec::new());
        let strings = self.strings.strings();
        for number in self.strings.order() {
            if self.units[number as usize] > 0 {
                place[number as usize] = lengths.len() as u32;
                lengths.push(self.units[number as usize]);
                sorted.push(strings.get(number as usize));
            }
        }
        (sorted, lengths, place)
    }
}

/// A part that is stored in the temporary file.
struct Waiting {
    units: Range<usize>,
    piece: Piece,
}

/// Write a part, followed by the numbers of its keywords and of its names.
fn pack(part: &Part) -> Vec<u8> {
    let mut out = Vec::new();
    for rows in part.rows() {
        put(&mut out, &rows.values);
        put(&mut out, rows.ends());
    }
    put(&mut out, &part.tf);
    put(&mut out, &part.length);
    put(&mut out, &part.subject_name);
    put(&mut out, &part.languages.iter().map(|language| language.number()).collect::<Vec<u8>>());
    out
}

/// Read what [`pack`] wrote.
fn unpack(mut bytes: &[u8]) -> Result<(Part, Vec<u32>, Vec<u32>)> {
    let mut part = Part::default();
    for rows in part.rows_mut() {
        *rows = RowBuilder::from_parts(take(&mut bytes)?, take(&mut bytes)?);
    }
    part.tf = take(&mut bytes)?;
    part.length = take(&mut bytes)?;
    part.subject_name = take(&mut bytes)?;
    part.languages = take::<u8>(&mut bytes)?.into_iter().map(Language::numbered).collect::<Result<_>>()?;
    let (keywords, names) = (take(&mut bytes)?, take(&mut bytes)?);
    Ok((part, keywords, names))
}

/// Find the subjects of all units: the sorted list, and the subject of each unit.
fn all_subjects(
    units: &Units<'_>,
    bounds: Bounds,
    threads: usize,
    progress: &Progress,
) -> Result<(StringsBuf, Vec<u32>)> {
    let (mut all, mut of_unit) = (Interner::default(), Vec::with_capacity(units.texts.len()));
    map_ranges_then(
        units.texts.len(),
        bounds.grain(threads),
        threads,
        progress,
        |run| {
            let own = units.run(run.clone(), false)?;
            subjects_of(&own.texts(units.language), &listed(0..run.len()), progress)
        },
        |(words, own)| {
            let numbers = all.add_first(&words.strings, words.of_units);
            of_unit.extend(own.iter().map(|&s| if s == NONE { NONE } else { numbers[s as usize] }));
            Ok(())
        },
    )?;
    let (sorted, place) = all.sorted();
    of_unit.iter_mut().filter(|s| **s != NONE).for_each(|s| *s = place[*s as usize]);
    Ok((sorted, of_unit))
}

fn listed(units: Range<usize>) -> Vec<u32> {
    (units.start as u32..units.end as u32).collect()
}

/// The outputs that grow with the number of units.
struct Sinks {
    unit_keywords: RowSink,
    tf: Sink,
    unit_names: RowSink,
    mentions: RowSink,
    sentence_keywords: RowSink,
    sentence_names: RowSink,
    lengths: Sink,
    keyword_units: Turned,
    name_units: Turned,
    subject_units: Turned,
}

impl Sinks {
    /// Create the files. The length of each keyword, name and subject is its number of units.
    fn create(folder: &Path, [keywords, names, subjects]: [&[u32]; 3], most: usize) -> Result<Self> {
        Ok(Self {
            unit_keywords: RowSink::create(folder, "unit_keywords")?,
            tf: Sink::create(folder, "unit_keywords_tf")?,
            unit_names: RowSink::create(folder, "unit_names")?,
            mentions: RowSink::create(folder, "unit_mentions")?,
            sentence_keywords: RowSink::create(folder, "sentence_keywords")?,
            sentence_names: RowSink::create(folder, "sentence_names")?,
            lengths: Sink::create(folder, "unit_length")?,
            keyword_units: Turned::new(folder, "turned_keywords", keywords, most)?,
            name_units: Turned::new(folder, "turned_names", names, most)?,
            subject_units: Turned::new(folder, "turned_subjects", subjects, most)?,
        })
    }

    /// Append the rows of the units from `first` on.
    fn push(&mut self, rows: &Rows, first: usize) -> Result<()> {
        let Rows { unit_keywords, unit_names, mentions, subjects, .. } = rows;
        self.unit_keywords.push(&unit_keywords.values, unit_keywords.ends())?;
        self.tf.push(&rows.tf)?;
        self.unit_names.push(&unit_names.values, unit_names.ends())?;
        self.mentions.push(&mentions.values, mentions.ends())?;
        self.sentence_keywords.push(&rows.sentence_keywords.values, rows.sentence_keywords.ends())?;
        self.sentence_names.push(&rows.sentence_names.values, rows.sentence_names.ends())?;
        self.lengths.push(&rows.length)?;
        for at in 0..rows.length.len() {
            let unit = (first + at) as u32;
            for (&keyword, &tf) in unit_keywords.row(at).iter().zip(&rows.tf[unit_keywords.range(at)]) {
                self.keyword_units.push(keyword, unit, tf)?;
            }
            unit_names.row(at).iter().try_for_each(|&name| self.name_units.push(name, unit, 0))?;
            subjects.row(at).iter().try_for_each(|&subject| self.subject_units.push(subject, unit, 0))?;
        }
        Ok(())
    }
}

/// Build the arrays, with files in `folder`, which must be empty. Progress counts units, twice.
pub fn build_in_runs(
    units: &Units<'_>,
    bounds: Bounds,
    folder: &Path,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<(&'static str, Output)>> {
    let n = units.check()?;
    progress.expect(2 * n as u64);
    let (subjects, of_unit) = all_subjects(units, bounds, threads, progress)?;
    let tree = SubjectTree::new(subjects.view());
    let mut spill = Spill::create(folder, "parts")?;
    let (mut keywords, mut names) = (Vocabulary::default(), Vocabulary::default());
    let (mut waiting, mut first_sentence) = (Vec::new(), vec![0u64]);
    let mut subject_lengths = vec![0u32; subjects.len()];
    let mut languages: Vec<u8> = Vec::with_capacity(n);
    map_ranges_then(
        n,
        bounds.grain(threads),
        threads,
        progress,
        |run| {
            let own = units.run(run.clone(), true)?;
            let known = Subjects { sorted: &subjects, tree: &tree, of_unit: &of_unit[run.clone()] };
            let part = read(&own.texts(units.language), &listed(0..run.len()), &known, progress)?;
            let packed = pack(&part);
            Ok((run, own.first_sentence, part, packed))
        },
        |(run, ends, part, mut packed)| {
            put(&mut packed, &keywords.add(&part.keywords, &part.unit_keywords));
            put(&mut packed, &names.add(&part.names, &part.unit_names));
            part.subjects.values.iter().for_each(|&subject| subject_lengths[subject as usize] += 1);
            languages.extend(part.languages.iter().map(|language| language.number()));
            waiting.push(Waiting { units: run, piece: spill.append(&packed)? });
            let before = first_sentence.last().copied().unwrap_or(0);
            first_sentence.extend(ends[1..].iter().map(|end| before + end));
            Ok(())
        },
    )?;
    drop(tree);
    let both = [Mutex::new(keywords), Mutex::new(names)];
    let mut sorted = map_ranges(both.len(), 1, threads, &Progress::none(), |r| {
        Ok(std::mem::take(&mut *both[r.start].lock().unwrap_or_else(|e| e.into_inner())).finish())
    })?
    .into_iter();
    let (keywords, keyword_lengths, keyword_place) = sorted.next().unwrap_or_default();
    let (names, name_lengths, name_place) = sorted.next().unwrap_or_default();
    let lengths = [&keyword_lengths[..], &name_lengths, &subject_lengths];
    let mut sinks = Sinks::create(folder, lengths, bounds.entries)?;
    // Not counted as progress: it takes little time compared with reading.
    map_ranges_then(
        waiting.len(),
        1,
        threads,
        &Progress::none(),
        |r| {
            let one: &Waiting = &waiting[r.start];
            let (part, own_keywords, own_names) = unpack(&spill.read(one.piece)?)?;
            let ranks = |numbers: &[u32], place: &[u32]| -> Vec<u32> {
                numbers.iter().map(|&number| place[number as usize]).collect()
            };
            let (own_keywords, own_names) =
                (ranks(&own_keywords, &keyword_place), ranks(&own_names, &name_place));
            let units = listed(one.units.clone());
            let rows = renumber(part, &units, &first_sentence, &own_keywords, &own_names, progress)?;
            Ok((one.units.start, rows))
        },
        |(first, rows)| {
            progress.check()?;
            sinks.push(&rows, first)
        },
    )?;
    drop((spill, waiting, keyword_place, name_place));
    let vocabularies = [("keywords", keywords), ("names", names), ("subjects", subjects)];
    outputs(sinks, vocabularies, (of_unit, first_sentence, languages), folder, progress)
}

/// Finish the files and return all arrays.
fn outputs(
    sinks: Sinks,
    vocabularies: [(&'static str, StringsBuf); 3],
    (of_unit, first_sentence, languages): (Vec<u32>, Vec<u64>, Vec<u8>),
    folder: &Path,
    progress: &Progress,
) -> Result<Vec<(&'static str, Output)>> {
    use Output::{File, Memory};
    let mut out = Vec::new();
    let names = [
        ("keywords_blob", "keywords_offsets"),
        ("names_blob", "names_offsets"),
        ("subjects_blob", "subjects_offsets"),
    ];
    for ((_, strings), (blob, offsets)) in vocabularies.into_iter().zip(names) {
        out.push((blob, Memory(Array::U8(strings.blob))));
        out.push((offsets, Memory(Array::U64(strings.offsets))));
    }
    for (rows, indptr, indices) in [
        (sinks.unit_keywords, "unit_keywords_indptr", "unit_keywords_indices"),
        (sinks.unit_names, "unit_names_indptr", "unit_names_indices"),
        (sinks.mentions, "unit_mentions_indptr", "unit_mentions_indices"),
        (sinks.sentence_keywords, "sentence_keywords_indptr", "sentence_keywords_indices"),
        (sinks.sentence_names, "sentence_names_indptr", "sentence_names_indices"),
    ] {
        let (ends, values) = rows.finish()?;
        out.extend([(indptr, File(ends)), (indices, File(values))]);
    }
    let mut tf = Sink::create(folder, "keyword_units_tf")?;
    for (turned, has_counts, indptr, indices) in [
        (sinks.keyword_units, true, "keyword_units_indptr", "keyword_units_indices"),
        (sinks.name_units, false, "name_units_indptr", "name_units_indices"),
        (sinks.subject_units, false, "subject_units_indptr", "subject_units_indices"),
    ] {
        let mut rows = Sink::create(folder, indices)?;
        let ends = turned.finish(&mut rows, has_counts.then_some(&mut tf), progress)?;
        out.extend([(indptr, Memory(Array::U64(ends))), (indices, File(rows.finish()?))]);
    }
    out.extend([
        ("keyword_units_tf", File(tf.finish()?)),
        ("unit_keywords_tf", File(sinks.tf.finish()?)),
        ("unit_length", File(sinks.lengths.finish()?)),
        ("unit_subject", Memory(Array::U32(of_unit))),
        ("first_sentence", Memory(Array::U64(first_sentence))),
    ]);
    if languages.iter().any(|&language| language != Language::ENGLISH.number()) {
        let distinct: std::collections::BTreeSet<u8> = languages.iter().copied().collect();
        out.push((LANGUAGES, Memory(Array::U8(distinct.into_iter().collect()))));
        out.push((UNIT_LANGUAGE, Memory(Array::U8(languages))));
    }
    Ok(out)
}

#[cfg(test)]
#[path = "links_runs_tests.rs"]
mod tests;
