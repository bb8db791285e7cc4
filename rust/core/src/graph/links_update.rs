//! Update of the walk's arrays after documents changed or indexes were merged, identical to the byte to
//! [`Links::build`] over the current units.
//!
//! A unit's words and names depend only on its text: the rows of unchanged units are reused and only
//! renumbered. Three things depend on other units and are computed again: the subjects a unit mentions
//! (subjects come from all units), words and names that sentences have and their unit lacks (they count if
//! another unit has them), and every weight.

use crate::error::{Error, Result};
use crate::graph::links::{check_texts, Links, GRAIN};
use crate::graph::links_pass::{mentions_of, read, renumber, subjects_of, Rows, Subjects, Words};
use crate::graph::links_rows::{RowBuilder, Texts};
use crate::parallel::map_ranges;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, NONE};
use crate::sparse::CsrView;
use crate::text::interner::Interner;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::merged::merge;
use crate::text::names::{SubjectTree, MAX_PHRASE};
use crate::text::strings::{Strings, StringsBuf};

/// A previous index.
pub struct Part<'a> {
    pub links: LinksView<'a>,
    pub reread: &'a [u32],
    /// The language of each unit.
    pub language: &'a [Language],
}

/// The previous index, or those that are merged. `row` maps each current unit to its previous number, counting the
/// units of one part after another, or to [`NONE`]; with a number, its title, text and sentences are unchanged.
pub struct Earlier<'a> {
    parts: &'a [Part<'a>],
    row: &'a [u32],
    /// The number of the first unit of each part, and of all units.
    starts: Vec<usize>,
}

impl<'a> Earlier<'a> {
    pub fn new(parts: &'a [Part<'a>], row: &'a [u32]) -> Self {
        let mut starts = vec![0];
        parts.iter().for_each(|part| starts.push(starts[starts.len() - 1] + part.links.units()));
        Self { parts, row, starts }
    }

    fn units(&self) -> usize {
        self.starts[self.parts.len()]
    }

    /// Return the number of the part of a previous unit, and its row there.
    #[inline]
    fn find(&self, row: u32) -> (usize, usize) {
        let part = self.starts.partition_point(|&start| start <= row as usize) - 1;
        // Empty parts start where the next one does, which is the one that has the unit.
        (part, row as usize - self.starts[part])
    }

    /// Iterate over unchanged units and their previous numbers.
    fn kept(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.row.iter().enumerate().filter(|(_, &row)| row != NONE).map(|(unit, &row)| (unit, row))
    }

    /// Mark the things of each part that unchanged units have.
    fn marked<R: IntoIterator<Item = u32>>(
        &self,
        count: impl Fn(&LinksView<'a>) -> usize,
        row_of: impl Fn(&LinksView<'a>, usize) -> R,
    ) -> Vec<Vec<u8>> {
        let mut marks: Vec<Vec<u8>> = self.parts.iter().map(|part| vec![0; count(&part.links)]).collect();
        for (_, row) in self.kept() {
            let (part, row) = self.find(row);
            row_of(&self.parts[part].links, row).into_iter().for_each(|id| marks[part][id as usize] = 1);
        }
        marks
    }
}

/// The current units, split into two kinds.
struct Kinds {
    /// Units to read: new ones, and those whose sentences depend on other units.
    read: Vec<u32>,
    /// For each unit its index in `read`, or [`NONE`].
    place: Vec<u32>,
    /// For each previous unit its current number, or [`NONE`].
    now: Vec<u32>,
}

impl Kinds {
    fn of(earlier: &Earlier<'_>) -> Result<Self> {
        let before = earlier.units();
        let (mut again, mut now) = (vec![false; before], vec![NONE; before]);
        for (part, &start) in earlier.parts.iter().zip(&earlier.starts) {
            let own = &mut again[start..start + part.links.units()];
            for &unit in part.reread {
                *own.get_mut(unit as usize)
                    .ok_or_else(|| Error::input("a unit to read again does not exist"))? = true;
            }
        }
        let mut kinds = Self { read: Vec::new(), place: vec![NONE; earlier.row.len()], now: Vec::new() };
        for (unit, &row) in earlier.row.iter().enumerate() {
            if row != NONE {
                let there = now.get_mut(row as usize);
                let there = there.ok_or_else(|| {
                    Error::input(format!("unit {unit} is not a unit of the previous index"))
                })?;
                if *there != NONE {
                    return Err(Error::input(format!(
                        "units {there} and {unit} are the same unit of the previous index"
                    )));
                }
                *there = unit as u32;
            }
            if row == NONE || again[row as usize] {
                kinds.place[unit] = kinds.read.len() as u32;
                kinds.read.push(unit as u32);
            }
        }
        kinds.now = now;
        Ok(kinds)
    }
}

/// A current vocabulary: its strings, and the mapping of the strings of each previous index and of each range of
/// units that were read to it.
struct Joined {
    strings: StringsBuf,
    before: Vec<Vec<u32>>,
    parts: Vec<Vec<u32>>,
}

/// Merge the strings of previous indexes that are still in use with those of units that were read. Strings that only
/// sentences have get a number if some unit has them, too.
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
    let all = strings.view();
    for (part, numbers) in parts.iter().zip(&mut numbers) {
        numbers.iter_mut().for_each(|number| *number = place[*number as usize]);
        let others = part.strings.strings();
        numbers.extend(
            (part.of_units..part.strings.len())
                .map(|i| all.position(others.get(i)).map_or(NONE, |number| number as u32)),
        );
    }
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
        if earlier.row.len() != n {
            return Err(Error::input(format!(
                "{n} units, but {} rows of the previous index",
                earlier.row.len()
            )));
        }
        for Part { links, language, .. } in earlier.parts {
            if language.len() != links.units() {
                return Err(Error::input(format!(
                    "{} units, but {} languages of the previous index",
                    links.units(),
                    language.len()
                )));
            }
        }
        let kinds = Kinds::of(earlier)?;
        check_sentences(input, earlier)?;
        progress.expect((n + kinds.read.len()) as u64);
        let mut links = Self { first_sentence: input.first_sentence.to_vec(), ..Self::default() };

        let Owned { subjects, now: subject_now, of_unit } =
            owned_subjects(input, earlier, &kinds, threads, progress)?;
        links.unit_subject = of_unit;
        let tree = SubjectTree::new(subjects.view());
        let asked = looked_at(earlier, &kinds, &subjects, &subject_now, threads, progress)?;
        let mentions = map_ranges(asked.units.len(), GRAIN, threads, &Progress::none(), |r| {
            mentions_of(input, &asked.units[r], &tree, progress)
        })?;
        let known = Subjects { sorted: &subjects, tree: &tree, of_unit: &links.unit_subject };
        let mut parts = map_ranges(kinds.read.len(), GRAIN, threads, progress, |r| {
            read(input, &kinds.read[r], &known, progress)
        })?;
        drop(tree);

        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.keywords)).collect();
        let used =
            earlier.marked(|was| was.keywords.len(), |was, row| was.unit_keywords.row(row).iter().copied());
        let keywords = joined(earlier.parts.iter().map(|part| part.links.keywords), &used, words)?;
        progress.check()?;
        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.names)).collect();
        let used = earlier.marked(|was| was.names.len(), |was, row| was.unit_names.row(row).iter().copied());
        let names = joined(earlier.parts.iter().map(|part| part.links.names), &used, words)?;
        progress.check()?;
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
        let rows = map_ranges(n, GRAIN, threads, progress, |r| taken.rows(r, progress))?;
        drop(read_rows);
        links.collect(rows);
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
    let fresh: Vec<u32> = kinds.read.iter().copied().filter(|&u| earlier.row[u as usize] == NONE).collect();
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

/// Unchanged units whose mentions are searched again.
struct LookedAt {
    units: Vec<u32>,
    /// For each unit its index in `units`, or [`NONE`].
    place: Vec<u32>,
}

/// Find these units: mentions change only if a unit mentioned a removed subject or has all the words of a new
/// one.
fn looked_at(
    earlier: &Earlier<'_>,
    kinds: &Kinds,
    subjects: &StringsBuf,
    subject_now: &[Vec<u32>],
    threads: usize,
    progress: &Progress,
) -> Result<LookedAt> {
    let mut marks = vec![false; earlier.row.len()];
    for (unit, row) in earlier.kept() {
        let (part, row) = earlier.find(row);
        let mentioned = earlier.parts[part].links.unit_mentions.row(row);
        marks[unit] = mentioned.iter().any(|&s| subject_now[part][s as usize] == NONE);
    }
    for ((part, now), &start) in earlier.parts.iter().zip(subject_now).zip(&earlier.starts) {
        let was = &part.links;
        let mut known = vec![false; subjects.len()];
        now.iter().filter(|&&s| s != NONE).for_each(|&s| known[s as usize] = true);
        let found = map_ranges(subjects.len(), GRAIN, threads, &Progress::none(), |ids| {
            let (mut lexer, mut units) = (Lexer::default(), Vec::new());
            for id in ids.filter(|&id| !known[id]) {
                progress.check()?;
                let subject = subjects.get(id);
                // A subject that no unit owned for a while is new, unless the previous index had it.
                if was.subjects.position(subject).is_some() || subject.split(' ').nth(MAX_PHRASE).is_some() {
                    continue;
                }
                match units_with(was, subject, &mut lexer) {
                    Some(found) => units.extend(found),
                    // Only stop words: any text may contain it.
                    None => units.extend(0..was.units() as u32),
                }
            }
            units.sort_unstable();
            units.dedup();
            Ok(units)
        })?;
        for now in found.iter().flatten().map(|&unit| kinds.now[start + unit as usize]) {
            if now != NONE {
                marks[now as usize] = true;
            }
        }
    }
    let units: Vec<u32> =
        (0..marks.len() as u32).filter(|&u| marks[u as usize] && kinds.place[u as usize] == NONE).collect();
    let mut place = vec![NONE; marks.len()];
    units.iter().zip(0..).for_each(|(&unit, at)| place[unit as usize] = at);
    Ok(LookedAt { units, place })
}

/// Return the previous units that have every keyword of a phrase in the analysis of a language of the index, or `None`
/// if the phrase has no keyword in one of them.
pub(crate) fn units_with(was: &LinksView<'_>, phrase: &str, lexer: &mut Lexer) -> Option<Vec<u32>> {
    lexer.read(phrase);
    let mut found = Vec::new();
    let languages = if was.languages().is_empty() { &[Language::ENGLISH] } else { was.languages() };
    for &language in languages {
        let mut words: Vec<Option<usize>> = Vec::new();
        lexer.keywords_in(language, |word| words.push(was.keywords.position(word)));
        if words.is_empty() {
            return None;
        }
        let Some(words) = words.into_iter().collect::<Option<Vec<usize>>>() else { continue };
        let rarest = words.iter().min_by_key(|&&word| was.keyword_units.len_of(word))?;
        let has = |unit: u32| {
            let row = was.unit_keywords.row(unit as usize);
            words.iter().all(|&word| row.binary_search(&(word as u32)).is_ok())
        };
        found.extend(was.keyword_units.row(*rarest).iter().copied().filter(|&unit| has(unit)));
    }
    Some(found)
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
        if from.reread.binary_search(&(unit as u32)).is_ok() {
            rows.reread.push(unit as u32);
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
            // Positions in rows of units, which keep their order; units with other ids are read again.
            rows.sentence_keywords.push(was.sentence_keywords.stored.row(sentence));
            rows.sentence_names.push(was.sentence_names.stored.row(sentence));
        }
    }
}

#[cfg(test)]
#[path = "links_update_tests.rs"]
mod tests;
