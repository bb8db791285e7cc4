//! Update of the walk's arrays after documents changed or indexes were merged, identical to the byte to
//! [`Links::build`] over the current units.
//!
//! A unit's words and names depend only on its text: the rows of unchanged units are reused and only
//! renumbered. Two values depend on other units and are computed again: the subjects that a unit mentions,
//! because subjects come from all units, and all weights.

use crate::error::{Error, Result};
use crate::graph::links::{check_texts, Links, GRAIN};
use crate::graph::links_earlier::{Earlier, Kinds};
use crate::graph::links_pass::{mentions_of, read, renumber, subjects_of, Rows, Subjects, Words};
use crate::graph::links_pass::{RowBuilder, Texts};
use crate::graph::links_search::{looked_at, LookedAt, Vocabularies};
use crate::parallel::{map_ranges, map_ranges_then};
use crate::progress::Progress;
use crate::rank::links_view::NONE;
use crate::sparse::CsrView;
use crate::text::interner::Interner;
use crate::text::merged::merge;
use crate::text::names::SubjectTree;
use crate::text::strings::{Strings, StringsBuf};

/// A current vocabulary: its strings, and the mapping from the strings of each previous index and of each
/// range of new units.
struct Joined {
    strings: StringsBuf,
    before: Vec<Vec<u32>>,
    parts: Vec<Vec<u32>>,
}

/// Merge the strings of previous indexes that are still in use with those of new units.
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
    /// Like [`Links::build`], but reuses previous rows: see the module. Progress counts units.
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

/// Check that an unchanged unit has the same number of sentences as before.
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

/// The current subjects, the mapping from previous subjects, and the subject of each unit.
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

/// Return, for each new unit, the index of its first sentence within its part.
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
    /// Mappings from the previous numbers of each part to the current ones.
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
        // Numbers follow the order of the strings before and after, so the order of a row is preserved.
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
            // These are positions in the rows of units, which keep their order.
            rows.sentence_keywords.push(was.sentence_keywords.stored.row(sentence));
            rows.sentence_names.push(was.sentence_names.stored.row(sentence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::links;
    use crate::graph::links_earlier::Part;
    use proptest::prelude::*;

    type Unit = (String, Vec<String>, String);

    /// Titles, texts and sentences. A text may differ from its sentences, as in units made of windows.
    fn with<T>(units: &[Unit], work: impl FnOnce(&Texts<'_>) -> T) -> T {
        let titles: StringsBuf = units.iter().map(|u| &u.0).collect();
        let texts: StringsBuf = units.iter().map(|u| u.1.join(" ") + &u.2).collect();
        let sentences: StringsBuf = units.iter().flat_map(|u| u.1.iter()).collect();
        let mut first_sentence = vec![0];
        for unit in units {
            first_sentence.push(first_sentence.last().unwrap() + unit.1.len() as u64);
        }
        work(&Texts {
            titles: titles.view(),
            texts: texts.view(),
            sentences: sentences.view(),
            first_sentence: &first_sentence,
            language: crate::text::detection::Choice::Detect,
        })
    }

    fn build(units: &[Unit]) -> Links {
        with(units, |texts| Links::build(texts, 2, &Progress::none()).unwrap())
    }

    fn update(before: &Links, units: &[Unit], row: &[u32], threads: usize) -> Result<Links> {
        let arrays = before.clone().into_arrays();
        let weights = std::sync::OnceLock::new();
        let part = Part { links: links::view(&arrays, &weights)?, language: &before.unit_language };
        let earlier = Earlier::new(std::slice::from_ref(&part), row);
        with(units, |texts| Links::update(texts, &earlier, threads, &Progress::none()))
    }

    /// Merge indexes. `row` numbers the units across the indexes, one after another.
    fn merge(before: &[Links], units: &[Unit], row: &[u32], threads: usize) -> Result<Links> {
        let arrays: Vec<_> = before.iter().map(|links| links.clone().into_arrays()).collect();
        let weights: Vec<std::sync::OnceLock<_>> =
            before.iter().map(|_| std::sync::OnceLock::new()).collect();
        let parts = before.iter().zip(&arrays).zip(&weights).map(|((links, arrays), weights)| {
            Ok(Part { links: links::view(arrays, weights)?, language: &links.unit_language[..] })
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let earlier = Earlier::new(&parts, row);
        with(units, |texts| Links::update(texts, &earlier, threads, &Progress::none()))
    }

    fn unit() -> impl Strategy<Value = Unit> {
        let word =
            "[A-C][a-b]{0,2}|[a-c]{1,2}|of|the|The|[0-9]{4}|Who|日本|é|der|und|nicht|Häuser|город|города";
        let sentence = prop::collection::vec(word, 1..7).prop_map(|words| words.join(" ") + ".");
        let title =
            prop_oneof![Just(String::new()), prop::collection::vec(word, 1..3).prop_map(|w| w.join(" "))];
        (
            title,
            prop::collection::vec(sentence, 0..3),
            prop_oneof![Just(String::new()), Just("x Aa".to_owned())],
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn an_update_is_a_build(
            before in prop::collection::vec(unit(), 0..9),
            fresh in prop::collection::vec(unit(), 0..4),
            kept in prop::collection::vec(any::<bool>(), 9),
            moved in any::<prop::sample::Index>(),
        ) {
            let mut now: Vec<(u32, &Unit)> =
                before.iter().enumerate().filter(|(at, _)| kept[*at]).map(|(at, unit)| (at as u32, unit)).collect();
            for unit in &fresh {
                now.insert(moved.index(now.len() + 1), (NONE, unit));
            }
            if !now.is_empty() {
                let at = moved.index(now.len());
                now.rotate_left(at / 2);
            }
            let (row, units): (Vec<u32>, Vec<Unit>) = now.into_iter().map(|(row, unit)| (row, unit.clone())).unzip();
            let was = build(&before);
            let wanted = build(&units);
            prop_assert_eq!(&update(&was, &units, &row, 1).unwrap(), &wanted);
            prop_assert_eq!(&update(&was, &units, &row, 3).unwrap(), &wanted);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_merge_is_a_build(
            parts in prop::collection::vec(prop::collection::vec((unit(), any::<bool>(), any::<u16>()), 0..6), 1..5),
            fresh in prop::collection::vec((unit(), any::<u16>()), 0..3),
        ) {
            let before: Vec<Links> =
                parts.iter().map(|part| build(&part.iter().map(|one| one.0.clone()).collect::<Vec<_>>())).collect();
            let all = parts.iter().flatten().zip(0u32..).filter(|(one, _)| one.1);
            let mut now: Vec<(u16, u32, &Unit)> = all.map(|(one, row)| (one.2, row, &one.0)).collect();
            now.extend(fresh.iter().map(|(unit, place)| (*place, NONE, unit)));
            now.sort_by_key(|one| one.0);
            let row: Vec<u32> = now.iter().map(|one| one.1).collect();
            let units: Vec<Unit> = now.iter().map(|one| one.2.clone()).collect();
            let wanted = build(&units);
            prop_assert_eq!(&merge(&before, &units, &row, 1).unwrap(), &wanted);
            prop_assert_eq!(&merge(&before, &units, &row, 3).unwrap(), &wanted);
        }
    }

    #[test]
    fn many_units_are_more_than_one_range() {
        let unit = |at: usize| -> Unit {
            (
                format!("Name{}", at % 700),
                vec![format!("Word{at} of Name{} and More.", (at * 7) % 900)],
                String::new(),
            )
        };
        let before: Vec<Unit> = (0..2 * GRAIN + 9).map(unit).collect();
        let mut units = before.clone();
        let mut row: Vec<u32> = (0..units.len() as u32).collect();
        for at in (3..units.len()).rev().step_by(500) {
            units[at] = unit(at + 5000);
            row[at] = NONE;
        }
        assert_eq!(update(&build(&before), &units, &row, 2).unwrap(), build(&units));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let units: Vec<Unit> =
            ["Some words.", "Others."].map(|s| (String::new(), vec![s.to_owned()], String::new())).into();
        let before = build(&units);
        for row in [&[0][..], &[0, 0], &[0, 2]] {
            assert!(matches!(update(&before, &units, row, 1), Err(Error::Input(_))), "{row:?}");
        }
        let other: Vec<Unit> = vec![(String::new(), vec![], String::new()), units[1].clone()];
        assert!(matches!(update(&before, &other, &[0, 1], 1), Err(Error::Input(_))));
    }
}
