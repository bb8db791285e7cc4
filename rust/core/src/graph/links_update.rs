//! Update of the walk's arrays after documents changed or indexes were merged, identical to the byte to
//! [`Links::build`] over the current units.
//!
//! A unit's words and names depend only on its text: the rows of unchanged units are reused and only
//! renumbered. Two things depend on other units and are computed again: the subjects a unit mentions
//! (subjects come from all units), and every weight.

use crate::error::{Error, Result};
use crate::graph::links::{check_texts, Links, GRAIN};
use crate::graph::links_earlier::{Earlier, Kinds};
use crate::graph::links_pass::{mentions_of, read, renumber, subjects_of, Rows, Subjects, Words};
use crate::graph::links_rows::{RowBuilder, Texts};
use crate::graph::links_search::{looked_at, LookedAt, Vocabularies};
use crate::parallel::{map_ranges, map_ranges_then};
use crate::progress::Progress;
use crate::rank::links_view::NONE;
use crate::sparse::CsrView;
use crate::text::interner::Interner;
use crate::text::merged::merge;
use crate::text::names::SubjectTree;
use crate::text::strings::{Strings, StringsBuf};

/// A current vocabulary: its strings, and the mapping of the strings of each previous index and of each range of
/// units that were read to it.
struct Joined {
    strings: StringsBuf,
    before: Vec<Vec<u32>>,
    parts: Vec<Vec<u32>>,
}

/// Merge the strings of previous indexes that are still in use with those of units that were read.
fn joined<'a>(was: impl Iterator<Item = Strings<'a>>, used: &[Vec<u8>], parts: Vec<Words>) -> Result<Joined> {
    let mut found = Interner::default();
    let mut numbers: Vec<Vec<u32>> =
        parts.iter().map(|part| found.add_first(&part.strings, part.of_units)).collect();
    let (mut strings, mut place) = found.sorted();
    let mut before: Vec<Vec<u32>> = Vec::new();
    for (was, used) in was.zip(used) {
        let merged = merge(was, used, strings.view())?;
        strings = merged.strings;
        for number in before.iter_mut().flatten().chain(&mut place).filter(|number| **number != NONE) {
            *number = merged.second[*number as usize];
        }
        before.push(merged.first);
    }
    numbers.iter_mut().flatten().for_each(|number| *number = place[*number as usize]);
    Ok(Joined { strings, before, parts: numbers })
}

impl Links {
    /// Like [`Links::build`]; see the module. Progress counts units.
    pub fn update(
        input: &Texts<'_>,
        earlier: &Earlier<'_>,
        threads: usize,
        progress: &Progress,
    ) -> Result<Self> {
        let n = check_texts(input)?;
        earlier.check(n)?;
        let kinds = Kinds::of(earlier)?;
        check_sentences(input, earlier)?;
        progress.expect((n + kinds.read.len()) as u64);
        let mut links = Self { first_sentence: input.first_sentence.to_vec(), ..Self::default() };

        let Owned { subjects, now: subject_now, of_unit } =
            owned_subjects(input, earlier, &kinds, threads, progress)?;
        links.unit_subject = of_unit;
        let tree = SubjectTree::new(subjects.view());
        let known = Subjects { sorted: &subjects, tree: &tree, of_unit: &links.unit_subject };
        let mut parts = map_ranges(kinds.read.len(), GRAIN, threads, progress, |r| {
            read(input, &kinds.read[r], &known, progress)
        })?;

        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.keywords)).collect();
        let used =
            earlier.marked(|was| was.keywords.len(), |was, row| was.unit_keywords.row(row).iter().copied());
        let keywords = joined(earlier.parts.iter().map(|part| part.links.keywords), &used, words)?;
        progress.check()?;
        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.names)).collect();
        let used = earlier.marked(|was| was.names.len(), |was, row| was.unit_names.row(row).iter().copied());
        let names = joined(earlier.parts.iter().map(|part| part.links.names), &used, words)?;
        progress.check()?;
        let vocabularies = Vocabularies {
            keywords: keywords.strings.view(),
            keywords_of: &keywords.before,
            subjects: subjects.view(),
            subjects_of: &subject_now,
        };
        let asked = looked_at(earlier, &kinds, &vocabularies, threads, progress)?;
        let mentions = map_ranges(asked.units.len(), GRAIN, threads, &Progress::none(), |r| {
            mentions_of(input, &asked.units[r], &tree, progress)
        })?;
        drop(tree);
        (links.keywords, links.names, links.subjects) = (keywords.strings, names.strings, subjects);
        let read_rows = parts
            .into_iter()
            .enumerate()
            .map(|(at, part)| {
                let units = &kinds.read[at * GRAIN..((at + 1) * GRAIN).min(kinds.read.len())];
                renumber(part, units, input.first_sentence, &keywords.parts[at], &names.parts[at], progress)
            })
            .collect::<Result<Vec<_>>>()?;
        let taken = Taken {
            earlier,
            kinds: &kinds,
            first_sentence: input.first_sentence,
            read: &read_rows,
            read_sentences: sentence_starts(&kinds.read, input.first_sentence),
            mentions: &mentions,
            asked: &asked,
            subject: &subject_now,
            keyword: &keywords.before,
            name: &names.before,
            unit_subject: &links.unit_subject,
        };
        let mut rows = Rows::default();
        earlier.reserve(&mut rows);
        let append = |part| {
            rows.append(part);
            Ok(())
        };
        map_ranges_then(n, GRAIN, threads, progress, |r| taken.rows(r, progress), append)?;
        drop(read_rows);
        links.set_rows(rows);
        progress.check()?;
        links.transpose(progress)?;
        Ok(links)
    }
}

/// Check that an unchanged unit has as many sentences as before.
fn check_sentences(input: &Texts<'_>, earlier: &Earlier<'_>) -> Result<()> {
    for (unit, row) in earlier.kept() {
        let count = (input.first_sentence[unit + 1] - input.first_sentence[unit]) as usize;
        let (part, row) = earlier.find(row);
        if count != earlier.parts[part].links.sentences(row).len() {
            return Err(Error::input(format!(
                "unit {unit} does not have the sentences that it had in the previous index"
            )));
        }
    }
    Ok(())
}

/// The current subjects, the mapping of previous subjects to them, and the subject of each unit.
struct Owned {
    subjects: StringsBuf,
    now: Vec<Vec<u32>>,
    of_unit: Vec<u32>,
}

/// Collect the subjects of unchanged and of new units.
fn owned_subjects(
    input: &Texts<'_>,
    earlier: &Earlier<'_>,
    kinds: &Kinds,
    threads: usize,
    progress: &Progress,
) -> Result<Owned> {
    let fresh = &kinds.read;
    let found = map_ranges(fresh.len(), GRAIN, threads, &Progress::none(), |r| {
        subjects_of(input, &fresh[r], progress)
    })?;
    let owned = earlier.marked(
        |was| was.subjects.len(),
        |was, row| Some(was.unit_subject[row]).filter(|&subject| subject != NONE),
    );
    let (words, own): (Vec<Words>, Vec<Vec<u32>>) = found.into_iter().unzip();
    let Joined { strings: subjects, before: now, parts: numbers } =
        joined(earlier.parts.iter().map(|part| part.links.subjects), &owned, words)?;
    let mut fresh_subjects = own
        .iter()
        .zip(&numbers)
        .flat_map(|(own, numbers)| own.iter().map(|&s| if s == NONE { NONE } else { numbers[s as usize] }));
    let of_unit = earlier
        .row
        .iter()
        .map(|&row| match row {
            NONE => fresh_subjects.next().unwrap_or(NONE),
            row => {
                let (part, row) = earlier.find(row);
                let subject = earlier.parts[part].links.unit_subject[row];
                now[part].get(subject as usize).copied().unwrap_or(NONE)
            }
        })
        .collect();
    drop(fresh_subjects);
    Ok(Owned { subjects, now, of_unit })
}

/// Return for each unit that is read the index of its first sentence among those of its part.
fn sentence_starts(units: &[u32], first_sentence: &[u64]) -> Vec<usize> {
    let mut starts = Vec::with_capacity(units.len());
    for part in units.chunks(GRAIN) {
        let mut at = 0;
        for &unit in part {
            starts.push(at);
            at += (first_sentence[unit as usize + 1] - first_sentence[unit as usize]) as usize;
        }
    }
    starts
}

/// Sources of the current rows.
struct Taken<'a> {
    earlier: &'a Earlier<'a>,
    kinds: &'a Kinds,
    first_sentence: &'a [u64],
    read: &'a [Rows],
    read_sentences: Vec<usize>,
    mentions: &'a [RowBuilder],
    asked: &'a LookedAt,
    /// Mappings from the previous numbers of each part to current ones.
    subject: &'a [Vec<u32>],
    keyword: &'a [Vec<u32>],
    name: &'a [Vec<u32>],
    unit_subject: &'a [u32],
}

impl Taken<'_> {
    fn rows(&self, units: std::ops::Range<usize>, progress: &Progress) -> Result<Rows> {
        let mut rows = Rows::default();
        for unit in units {
            progress.check()?;
            match self.kinds.place[unit] {
                NONE => self.kept(&mut rows, unit),
                place => self.read(&mut rows, unit, place as usize),
            }
        }
        Ok(rows)
    }

    fn read(&self, rows: &mut Rows, unit: usize, place: usize) {
        let (from, at) = (&self.read[place / GRAIN], place % GRAIN);
        rows.tf.extend_from_slice(&from.tf[from.unit_keywords.range(at)]);
        rows.length.push(from.length[at]);
        rows.languages.push(from.languages[at]);
        rows.unit_keywords.push(from.unit_keywords.row(at));
        rows.unit_names.push(from.unit_names.row(at));
        rows.mentions.push(from.mentions.row(at));
        rows.subjects.push(from.subjects.row(at));
        let first = self.read_sentences[place];
        let count = (self.first_sentence[unit + 1] - self.first_sentence[unit]) as usize;
        for sentence in first..first + count {
            rows.sentence_keywords.push(from.sentence_keywords.row(sentence));
            rows.sentence_names.push(from.sentence_names.row(sentence));
        }
    }

    fn kept(&self, rows: &mut Rows, unit: usize) {
        let (number, row) = self.earlier.find(self.earlier.row[unit]);
        let part = &self.earlier.parts[number];
        let was = &part.links;
        // Numbers follow the order of the strings, before and now, so order is preserved.
        let numbered = |out: &mut RowBuilder, from: CsrView<'_>, row: usize, numbers: &[u32]| {
            out.values.extend(from.row(row).iter().map(|&id| numbers[id as usize]).filter(|&id| id != NONE));
            out.close();
        };
        rows.tf.extend_from_slice(&was.unit_tf[was.unit_keywords.range(row)]);
        rows.length.push(was.unit_length[row]);
        rows.languages.push(part.language[row]);
        numbered(&mut rows.unit_keywords, was.unit_keywords, row, &self.keyword[number]);
        numbered(&mut rows.unit_names, was.unit_names, row, &self.name[number]);
        match self.asked.place[unit] {
            NONE => numbered(&mut rows.mentions, was.unit_mentions, row, &self.subject[number]),
            at => rows.mentions.push(self.mentions[at as usize / GRAIN].row(at as usize % GRAIN)),
        }
        let mut both = rows.mentions.last().to_vec();
        both.extend(Some(self.unit_subject[unit]).filter(|&about| about != NONE));
        rows.subjects.push_set(&mut both);
        for sentence in was.sentences(row) {
            // Positions in rows of units, which keep their order.
            rows.sentence_keywords.push(was.sentence_keywords.stored.row(sentence));
            rows.sentence_names.push(was.sentence_names.stored.row(sentence));
        }
    }
}

#[cfg(test)]
#[path = "links_update_tests.rs"]
mod tests;
