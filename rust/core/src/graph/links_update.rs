//! Incremental update of the walk's arrays after documents changed, identical to the byte to [`Links::build`]
//! over the current units.
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

/// The previous index. `row` maps each current unit to its previous number, or [`NONE`]: its title, text and
/// sentences are then unchanged.
pub struct Earlier<'a> {
    pub links: LinksView<'a>,
    pub reread: &'a [u32],
    pub row: &'a [u32],
    /// The language of each previous unit.
    pub language: &'a [Language],
}

impl Earlier<'_> {
    /// Iterate over unchanged units and their previous numbers.
    fn kept(&self) -> impl Iterator<Item = (usize, &u32)> {
        self.row.iter().enumerate().filter(|(_, &row)| row != NONE)
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
        let before = earlier.links.units();
        let (mut again, mut now) = (vec![false; before], vec![NONE; before]);
        for &unit in earlier.reread {
            *again
                .get_mut(unit as usize)
                .ok_or_else(|| Error::input("a unit to read again does not exist"))? = true;
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

/// A current vocabulary: its strings, and the mapping of the previous strings and of each part's strings to
/// it.
struct Joined {
    strings: StringsBuf,
    before: Vec<u32>,
    parts: Vec<Vec<u32>>,
}

/// Merge the previous strings that are still in use with those of units that were read. Strings that only
/// sentences have get a number if some unit has them, too.
fn joined(was: Strings<'_>, used: &[u8], parts: Vec<Words>) -> Result<Joined> {
    let mut found = Interner::default();
    let mut numbers: Vec<Vec<u32>> =
        parts.iter().map(|part| found.add_first(&part.strings, part.of_units)).collect();
    let (sorted, place) = found.sorted();
    let merged = merge(was, used, sorted.view())?;
    let all = merged.strings.view();
    for (part, numbers) in parts.iter().zip(&mut numbers) {
        numbers.iter_mut().for_each(|number| *number = merged.second[place[*number as usize] as usize]);
        let others = part.strings.strings();
        numbers.extend(
            (part.of_units..part.strings.len())
                .map(|i| all.position(others.get(i)).map_or(NONE, |number| number as u32)),
        );
    }
    Ok(Joined { strings: merged.strings, before: merged.first, parts: numbers })
}

fn marked(count: usize, used: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut marks = vec![0; count];
    used.for_each(|id| marks[id as usize] = 1);
    marks
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
        let was = &earlier.links;
        if earlier.row.len() != n {
            return Err(Error::input(format!(
                "{n} units, but {} rows of the previous index",
                earlier.row.len()
            )));
        }
        if earlier.language.len() != was.units() {
            return Err(Error::input(format!(
                "{} units, but {} languages of the previous index",
                was.units(),
                earlier.language.len()
            )));
        }
        let kinds = Kinds::of(earlier)?;
        check_sentences(input, earlier)?;
        progress.expect((n + kinds.read.len()) as u64);
        let mut links = Self { first_sentence: input.first_sentence.to_vec(), ..Self::default() };

        let Owned { subjects, now: subject_now, of_unit } =
            owned_subjects(input, earlier, &kinds, threads, progress)?;
        links.unit_subject = of_unit;
        let tree = SubjectTree::new(subjects.view());
        let asked = looked_at(earlier, &kinds, &subjects, &subject_now)?;
        let mentions = map_ranges(asked.units.len(), GRAIN, threads, &Progress::none(), |r| {
            mentions_of(input, &asked.units[r], &tree, progress)
        })?;
        let known = Subjects { sorted: &subjects, tree: &tree, of_unit: &links.unit_subject };
        let mut parts = map_ranges(kinds.read.len(), GRAIN, threads, progress, |r| {
            read(input, &kinds.read[r], &known, progress)
        })?;
        drop(tree);

        let used = |rows: CsrView<'_>, count: usize| {
            marked(count, earlier.kept().flat_map(|(_, &row)| rows.row(row as usize).iter().copied()))
        };
        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.keywords)).collect();
        let keywords = joined(was.keywords, &used(was.unit_keywords, was.keywords.len()), words)?;
        progress.check()?;
        let words = parts.iter_mut().map(|p| std::mem::take(&mut p.names)).collect();
        let names = joined(was.names, &used(was.unit_names, was.names.len()), words)?;
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
    for (unit, &row) in earlier.kept() {
        let count = (input.first_sentence[unit + 1] - input.first_sentence[unit]) as usize;
        if count != earlier.links.sentences(row as usize).len() {
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
    now: Vec<u32>,
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
    let was = &earlier.links;
    let fresh: Vec<u32> = kinds.read.iter().copied().filter(|&u| earlier.row[u as usize] == NONE).collect();
    let found = map_ranges(fresh.len(), GRAIN, threads, &Progress::none(), |r| {
        subjects_of(input, &fresh[r], progress)
    })?;
    let owned = earlier.kept().map(|(_, &row)| was.unit_subject[row as usize]).filter(|&s| s != NONE);
    let (words, own): (Vec<Words>, Vec<Vec<u32>>) = found.into_iter().unzip();
    let Joined { strings: subjects, before: now, parts: numbers } =
        joined(was.subjects, &marked(was.subjects.len(), owned), words)?;
    let mut fresh_subjects = own
        .iter()
        .zip(&numbers)
        .flat_map(|(own, numbers)| own.iter().map(|&s| if s == NONE { NONE } else { numbers[s as usize] }));
    let of_unit = earlier
        .row
        .iter()
        .map(|&row| match row {
            NONE => fresh_subjects.next().unwrap_or(NONE),
            _ => {
                Some(was.unit_subject[row as usize]).filter(|&s| s != NONE).map_or(NONE, |s| now[s as usize])
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
    subject_now: &[u32],
) -> Result<LookedAt> {
    let was = &earlier.links;
    let mut marks = vec![false; earlier.row.len()];
    for (unit, &row) in earlier.row.iter().enumerate() {
        if row != NONE {
            marks[unit] =
                was.unit_mentions.row(row as usize).iter().any(|&s| subject_now[s as usize] == NONE);
        }
    }
    let mut known = vec![false; subjects.len()];
    subject_now.iter().filter(|&&s| s != NONE).for_each(|&s| known[s as usize] = true);
    let mut lexer = Lexer::default();
    for (id, known) in known.into_iter().enumerate() {
        let subject = subjects.get(id);
        // A subject that no unit owned for a while is new, unless the previous index had it.
        if known || was.subjects.position(subject).is_some() || subject.split(' ').nth(MAX_PHRASE).is_some() {
            continue;
        }
        match units_with(was, subject, &mut lexer) {
            Some(units) => units.iter().map(|&unit| kinds.now[unit as usize]).for_each(|unit| {
                if unit != NONE {
                    marks[unit as usize] = true;
                }
            }),
            // Only stop words: any text may contain it.
            None => marks.iter_mut().zip(earlier.row).for_each(|(mark, &row)| *mark |= row != NONE),
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
        let rarest = words.iter().min_by_key(|&&word| was.keyword_units.range(word).len())?;
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
    /// Mapping from previous to current numbers.
    subject: &'a [u32],
    keyword: &'a [u32],
    name: &'a [u32],
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
        let was = &self.earlier.links;
        let row = self.earlier.row[unit] as usize;
        // Numbers follow the order of the strings, before and now, so order is preserved.
        let numbered = |out: &mut RowBuilder, from: CsrView<'_>, row: usize, numbers: &[u32]| {
            out.values.extend(from.row(row).iter().map(|&id| numbers[id as usize]).filter(|&id| id != NONE));
            out.close();
        };
        rows.tf.extend_from_slice(&was.unit_tf[was.unit_keywords.range(row)]);
        rows.length.push(was.unit_length[row]);
        rows.languages.push(self.earlier.language[row]);
        numbered(&mut rows.unit_keywords, was.unit_keywords, row, self.keyword);
        numbered(&mut rows.unit_names, was.unit_names, row, self.name);
        match self.asked.place[unit] {
            NONE => numbered(&mut rows.mentions, was.unit_mentions, row, self.subject),
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
