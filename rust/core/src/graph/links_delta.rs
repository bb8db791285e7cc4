//! Patches of the walk's arrays after a few units changed. The work is proportional to the change, not to the
//! index. The patched arrays are identical, to the byte, to the arrays that [`Links::build`] builds from the
//! current units.
//!
//! Values that depend on other units are treated as in [`super::links_update`]. Mentions are searched again
//! in units that mention a subject which no unit has any more, or that contain all words of a new subject.
//! Subjects are looked up in the sorted vocabulary, so no tree of all subjects is built.

use crate::error::{Error, Result};
use crate::graph::links_pass::{mentions_of, read, renumber, subjects_of, Part, Rows, Subjects};
use crate::graph::links_pass::{RowBuilder, Texts};
use crate::graph::links_search::units_with;
pub use crate::graph::links_things::Of;
use crate::graph::links_things::{changed, Things, Vocabulary};
use crate::items::Items;
use crate::progress::Progress;
use crate::rank::links_view::{LinksView, LANGUAGES, NONE, UNIT_LANGUAGE};
use crate::store::patch::{each_change, Editor, Numbering, Patch, RowChange, RowEditor};
use crate::text::detection::Choice;
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::names::{SubjectTree, MAX_PHRASE};
use crate::text::strings::{Strings, StringsBuf};
use std::collections::{BTreeMap, BTreeSet};

/// A change of the published units.
pub struct Change<'a> {
    pub links: LinksView<'a>,
    /// Titles and texts of the published units.
    pub titles: Strings<'a>,
    pub texts: Strings<'a>,
    /// The context of each published unit.
    pub contexts: Strings<'a>,
    /// The title of each published unit.
    pub title_of: Items<'a, u32>,
    /// The number of the language of each published unit; empty if all are English.
    pub language: &'a [u8],
    /// Removed units, ascending.
    pub gone: &'a [u32],
    /// Added units.
    pub fresh: Texts<'a>,
    /// The published unit before which each added unit is inserted; ascending.
    pub before: &'a [u32],
}

impl Change<'_> {
    fn check(&self) -> Result<()> {
        let Self { links, gone, fresh, before, .. } = self;
        if gone.windows(2).any(|w| w[0] >= w[1])
            || gone.last().is_some_and(|&unit| unit as usize >= links.units())
            || before.len() != fresh.texts.len()
            || before.windows(2).any(|w| w[0] > w[1])
            || before.last().is_some_and(|&unit| unit as usize > links.units())
        {
            return Err(Error::input("the changed units must ascend and exist"));
        }
        Ok(())
    }

    /// Return the sentences of an added unit.
    fn sentences(&self, k: usize) -> std::ops::Range<usize> {
        self.fresh.first_sentence[k] as usize..self.fresh.first_sentence[k + 1] as usize
    }
}

/// Patches of all arrays, and the new numbers of the items (units, keywords, ...) that array values refer to.
#[derive(Debug, Default)]
pub struct Delta {
    pub arrays: Vec<(&'static str, Of, Patch)>,
    pub keywords: Numbering,
    pub names: Numbering,
    pub subjects: Numbering,
    pub units: Numbering,
}

impl Delta {
    /// Compute the patches. Return `None` if the whole index must be rebuilt: if the first non-English unit
    /// is added, the last one is removed, or a new subject consists of stop words.
    pub fn new(change: &Change<'_>, progress: &Progress) -> Result<Option<Self>> {
        let Change { links, gone, fresh, before, .. } = change;
        change.check()?;
        let listed: Vec<u32> = (0..fresh.texts.len() as u32).collect();
        let units = Numbering::new(gone, before);
        let number = |k: usize| Numbering::of_new(gone, before[k], k);

        let Some(found) = ReadAgain::new(change, &listed, progress)? else { return Ok(None) };
        let ReadAgain { subjects, phrases, ids, searched, mentions, subject_of, mut part } = found;
        let keyword_words = std::mem::take(&mut part.keywords);
        let name_words = std::mem::take(&mut part.names);
        let (own_keywords, own_names) = (keyword_words.strings.strings(), name_words.strings.strings());
        let (keywords, names) = vocabularies_now(change, &part, own_keywords, own_names);
        let numbered = |vocabulary: &Vocabulary<'_>, words: Strings<'_>| -> Vec<u32> {
            words.iter().map(|text| vocabulary.id(text).unwrap_or(NONE)).collect()
        };
        let of_keywords = numbered(&keywords, own_keywords);
        let of_names = numbered(&names, own_names);

        let mut lists = [Things::default(), Things::default(), Things::default()];
        remove_units(links, gone, &mut lists);
        for k in 0..listed.len() {
            let place = (number(k), before[k]);
            let range = part.unit_keywords.range(k);
            for (&own, &tf) in part.unit_keywords.values[range.clone()].iter().zip(&part.tf[range]) {
                lists[0].add(&keywords, own_keywords.get(own as usize), place, tf);
            }
            for &own in part.unit_names.row(k) {
                lists[1].add(&names, own_names.get(own as usize), place, 0);
            }
            for &own in part.subjects.row(k) {
                lists[2].add(&subjects, phrases.get(own as usize), place, 0);
            }
        }
        for (at, &unit) in searched.iter().enumerate() {
            let now = mentions.row(at).iter().map(|&x| phrases.get(x as usize));
            change_subjects(links, unit, now.collect(), &units, &subjects, &mut lists[2]);
        }
        lists.iter_mut().for_each(Things::sort);

        part.mentions.values.iter_mut().for_each(|x| *x = ids[*x as usize]);
        let rows = renumber(part, &listed, fresh.first_sentence, &of_keywords, &of_names, progress)?;

        let mut arrays = Vec::new();
        if !language_arrays(change, &rows.languages, &mut arrays) {
            return Ok(None);
        }
        keywords.patches(links.keywords.offsets(), ["keywords_blob", "keywords_offsets"], &mut arrays);
        names.patches(links.names.offsets(), ["names_blob", "names_offsets"], &mut arrays);
        subjects.patches(links.subjects.offsets(), ["subjects_blob", "subjects_offsets"], &mut arrays);

        let mentioned = searched.iter().enumerate();
        let mentioned: BTreeMap<u32, Vec<u32>> = mentioned
            .map(|(at, &unit)| (unit, mentions.row(at).iter().map(|&x| ids[x as usize]).collect()))
            .collect();
        unit_rows(change, &rows, &mentioned, &subject_of).finish(links.units(), &mut arrays);
        list_arrays(links, &mut lists, [&keywords, &names, &subjects], &mut arrays);
        Ok(Some(Self {
            arrays,
            keywords: keywords.numbers,
            names: names.numbers,
            subjects: subjects.numbers,
            units,
        }))
    }

    /// Return the new numbers of the items that the values of an array refer to.
    pub fn numbers(&self, of: Of) -> Option<&Numbering> {
        match of {
            Of::Nothing => None,
            Of::Keywords => Some(&self.keywords),
            Of::Names => Some(&self.names),
            Of::Subjects => Some(&self.subjects),
            Of::Units => Some(&self.units),
            Of::Documents | Of::Chunks | Of::Labels => None,
        }
    }
}

/// The changes of the rows of units and of their sentences.
struct UnitRows<'a> {
    keywords: RowEditor<'a>,
    names: RowEditor<'a>,
    mentions: RowEditor<'a>,
    /// The sentences of each unit.
    sentences: RowEditor<'a>,
    keyword_sentences: RowEditor<'a>,
    name_sentences: RowEditor<'a>,
    subjects: Editor,
    lengths: Editor,
}

impl<'a> UnitRows<'a> {
    fn new(links: &LinksView<'a>) -> Self {
        Self {
            keywords: RowEditor::new(links.unit_keywords.indptr, 2),
            names: RowEditor::new(links.unit_names.indptr, 1),
            mentions: RowEditor::new(links.unit_mentions.indptr, 1),
            sentences: RowEditor::new(links.first_sentence, 0),
            keyword_sentences: RowEditor::new(links.sentence_keywords.stored.indptr, 1),
            name_sentences: RowEditor::new(links.sentence_names.stored.indptr, 1),
            subjects: Editor::default(),
            lengths: Editor::default(),
        }
    }

    fn of_units(&mut self) -> [&mut RowEditor<'a>; 4] {
        [&mut self.keywords, &mut self.names, &mut self.mentions, &mut self.sentences]
    }

    /// Keep the units before `unit`.
    fn keep(&mut self, links: &LinksView<'_>, unit: u32) {
        self.of_units().into_iter().for_each(|rows| rows.keep(unit as usize));
        self.keyword_sentences.keep(links.first_sentence[unit as usize] as usize);
        self.name_sentences.keep(links.first_sentence[unit as usize] as usize);
        self.subjects.keep(u64::from(unit), 0);
        self.lengths.keep(u64::from(unit), 0);
    }

    /// Insert added unit `k`.
    fn insert(&mut self, change: &Change<'_>, k: usize, rows: &Rows, subject: u32) {
        let range = rows.unit_keywords.range(k);
        let ids = wide(&rows.unit_keywords.values[range.clone()]);
        self.keywords.insert(range.len(), [ids, wide(&rows.tf[range])]);
        self.names.insert(rows.unit_names.row(k).len(), [wide(rows.unit_names.row(k))]);
        self.mentions.insert(rows.mentions.row(k).len(), [wide(rows.mentions.row(k))]);
        self.subjects.insert([u64::from(subject)]);
        self.lengths.insert([u64::from(rows.length[k])]);
        let sentences = change.sentences(k);
        self.sentences.insert(sentences.len(), std::iter::empty::<Vec<u64>>());
        for sentence in sentences {
            let (words, names) = (rows.sentence_keywords.row(sentence), rows.sentence_names.row(sentence));
            self.keyword_sentences.insert(words.len(), [wide(words)]);
            self.name_sentences.insert(names.len(), [wide(names)]);
        }
    }

    fn remove(&mut self, links: &LinksView<'_>, unit: u32) {
        self.of_units().into_iter().for_each(RowEditor::remove);
        self.subjects.skip(1);
        self.lengths.skip(1);
        for _ in links.sentences(unit as usize) {
            self.keyword_sentences.remove();
            self.name_sentences.remove();
        }
    }

    /// Replace the mentions of a published unit.
    fn set_mentions(&mut self, links: &LinksView<'_>, unit: u32, now: &[u32]) {
        let removed = links.unit_mentions.range(unit as usize).len();
        self.mentions.keep(unit as usize);
        self.mentions.change(vec![RowChange { at: 0, removed, values: vec![wide(now)] }]);
    }

    fn finish(self, units: usize, out: &mut Vec<(&'static str, Of, Patch)>) {
        let tf = push_rows(
            out,
            ["unit_keywords_indptr", "unit_keywords_indices"],
            Of::Keywords,
            self.keywords.finish(),
        );
        out.extend(tf.map(|tf| ("unit_keywords_tf", Of::Nothing, tf)));
        let names = ["unit_names_indptr", "unit_names_indices"];
        push_rows(out, names, Of::Names, self.names.finish());
        let names = ["unit_mentions_indptr", "unit_mentions_indices"];
        push_rows(out, names, Of::Subjects, self.mentions.finish());
        let names = ["sentence_keywords_indptr", "sentence_keywords_indices"];
        push_rows(out, names, Of::Nothing, self.keyword_sentences.finish());
        let names = ["sentence_names_indptr", "sentence_names_indices"];
        push_rows(out, names, Of::Nothing, self.name_sentences.finish());
        out.push(("unit_subject", Of::Subjects, self.subjects.finish(units as u64)));
        out.push(("unit_length", Of::Nothing, self.lengths.finish(units as u64)));
        out.push(("first_sentence", Of::Nothing, self.sentences.finish().0));
    }
}

/// Add the patches of the lists of units of keywords, names and subjects.
fn list_arrays(
    links: &LinksView<'_>,
    [keywords, names, subjects]: &mut [Things; 3],
    vocabularies: [&Vocabulary<'_>; 3],
    out: &mut Vec<(&'static str, Of, Patch)>,
) {
    let found = keywords.patches(links.keyword_units, vocabularies[0], 2);
    let tf = push_rows(out, ["keyword_units_indptr", "keyword_units_indices"], Of::Units, found);
    out.extend(tf.map(|tf| ("keyword_units_tf", Of::Nothing, tf)));
    let found = names.patches(links.name_units, vocabularies[1], 1);
    push_rows(out, ["name_units_indptr", "name_units_indices"], Of::Units, found);
    let found = subjects.patches(links.subject_units, vocabularies[2], 1);
    push_rows(out, ["subject_units_indptr", "subject_units_indices"], Of::Units, found);
}

/// Add the patches of the languages of units, given the languages of the added units. Return false if the
/// arrays must be created or deleted.
fn language_arrays(change: &Change<'_>, come: &[Language], out: &mut Vec<(&'static str, Of, Patch)>) -> bool {
    let Change { language, gone, before, .. } = change;
    if language.is_empty() {
        return come.iter().all(|&language| language == Language::ENGLISH);
    }
    let mut counts = [0i64; 256];
    language.iter().for_each(|&number| counts[usize::from(number)] += 1);
    let mut each = Editor::default();
    each_change(gone, before, |comes, at| {
        each.keep(u64::from(at), 0);
        match comes {
            Some(k) => {
                each.insert([u64::from(come[k].number())]);
                counts[usize::from(come[k].number())] += 1;
            }
            None => {
                each.skip(1);
                counts[usize::from(language[at as usize])] -= 1;
            }
        }
    });
    out.push((UNIT_LANGUAGE, Of::Nothing, each.finish(language.len() as u64)));
    let now: Vec<u64> = (0..256).filter(|&number| counts[number as usize] > 0).collect();
    let known: Vec<u64> =
        change.links.languages().iter().map(|language| u64::from(language.number())).collect();
    let mut distinct = Editor::default();
    if now != known {
        distinct.skip(known.len() as u64);
        distinct.insert(now.iter().copied());
    }
    out.push((LANGUAGES, Of::Nothing, distinct.finish(known.len() as u64)));
    now.iter().any(|&number| number != u64::from(Language::ENGLISH.number()))
}

/// Return the current subjects; `titles` are the titles of the added units.
fn subjects_now<'a>(change: &Change<'a>, titles: &[Option<&str>]) -> Vocabulary<'a> {
    let links = &change.links;
    let stays = |unit: &u32| change.gone.binary_search(unit).is_err();
    let mut ownerless: BTreeSet<u32> =
        change.gone.iter().map(|&unit| links.unit_subject[unit as usize]).filter(|&s| s != NONE).collect();
    ownerless.retain(|&s| {
        let text = links.subjects.get(s as usize);
        let mut others = links.subject_units.row(s as usize).iter();
        !titles.contains(&Some(text))
            && !others.any(|unit| links.unit_subject[*unit as usize] == s && stays(unit))
    });
    let new = titles.iter().flatten().filter(|text| links.subjects.position(text).is_none());
    let new: BTreeSet<String> = new.map(|text| (*text).to_owned()).collect();
    Vocabulary::new(links.subjects, ownerless.into_iter().collect(), new)
}

/// Return the keywords and names that units now have.
fn vocabularies_now<'a>(
    change: &Change<'a>,
    part: &Part,
    keywords: Strings<'_>,
    names: Strings<'_>,
) -> (Vocabulary<'a>, Vocabulary<'a>) {
    let Change { links, gone, .. } = change;
    let found = changed(
        links.keywords,
        |id| links.keyword_units.len_of(id),
        gone.iter().flat_map(|&unit| links.unit_keywords.row(unit as usize).iter().copied()),
        part.unit_keywords.values.iter().copied(),
        keywords,
    );
    let names = changed(
        links.names,
        |id| links.name_units.len_of(id),
        gone.iter().flat_map(|&unit| links.unit_names.row(unit as usize).iter().copied()),
        part.unit_names.values.iter().copied(),
        names,
    );
    (found, names)
}

/// Titles and texts of published units.
struct PublishedTexts {
    titles: StringsBuf,
    texts: StringsBuf,
    sentences: StringsBuf,
    first_sentence: Vec<u64>,
}

impl PublishedTexts {
    fn new(change: &Change<'_>, units: &[u32]) -> Self {
        let title = |unit: u32| change.titles.get(change.title_of[unit as usize] as usize);
        Self {
            titles: units.iter().map(|&unit| title(unit)).collect(),
            texts: units
                .iter()
                .map(|&unit| [change.contexts.get(unit as usize), change.texts.get(unit as usize)].concat())
                .collect(),
            sentences: StringsBuf::default(),
            first_sentence: vec![0; units.len() + 1],
        }
    }

    fn input(&self, language: Choice) -> Texts<'_> {
        let Self { titles, texts, sentences, first_sentence } = self;
        let (titles, texts, sentences) = (titles.view(), texts.view(), sentences.view());
        Texts { titles, texts, sentences, first_sentence, language }
    }
}

/// Return the changes of the rows of units.
fn unit_rows<'a>(
    change: &Change<'a>,
    rows: &Rows,
    mentioned: &BTreeMap<u32, Vec<u32>>,
    subject_of: &[u32],
) -> UnitRows<'a> {
    let Change { links, gone, before, .. } = change;
    let mut edited = UnitRows::new(links);
    let mut next = mentioned.iter().peekable();
    each_change(gone, before, |comes, at| {
        while let Some((&unit, now)) = next.next_if(|(&unit, _)| unit < at) {
            edited.set_mentions(links, unit, now);
        }
        edited.keep(links, at);
        match comes {
            Some(k) => edited.insert(change, k, rows, subject_of[k]),
            None => edited.remove(links, at),
        }
    });
    for (&unit, now) in next {
        edited.set_mentions(links, unit, now);
    }
    edited
}

/// The result of reading the texts of a change: the rows of the added units, and the subjects of published
/// units that are searched again.
struct ReadAgain<'a> {
    subjects: Vocabulary<'a>,
    /// Subjects in these texts, ascending, and their new numbers.
    phrases: StringsBuf,
    ids: Vec<u32>,
    searched: Vec<u32>,
    /// For each searched unit: its phrases.
    mentions: RowBuilder,
    /// The subject of each added unit.
    subject_of: Vec<u32>,
    part: Part,
}

impl<'a> ReadAgain<'a> {
    fn new(change: &Change<'a>, listed: &[u32], progress: &Progress) -> Result<Option<Self>> {
        let fresh = &change.fresh;
        // Subjects.
        let (words, own) = subjects_of(fresh, listed, progress)?;
        let named = words.strings.strings();
        let titles: Vec<Option<&str>> =
            own.iter().map(|&s| (s != NONE).then(|| named.get(s as usize))).collect();
        let subjects = subjects_now(change, &titles);
        let Some(searched) = searched_again(change, &subjects) else { return Ok(None) };
        let texts = PublishedTexts::new(change, &searched);
        let again = texts.input(fresh.language);
        let mut phrases: BTreeSet<String> = titles.iter().flatten().map(|text| (*text).to_owned()).collect();
        known_phrases(fresh, &subjects, &mut phrases);
        known_phrases(&again, &subjects, &mut phrases);
        let phrases: StringsBuf = phrases.into_iter().collect();
        let tree = SubjectTree::new(phrases.view());
        let ids: Vec<u32> = phrases.view().iter().map(|text| subjects.id(text).unwrap_or(NONE)).collect();
        let all: Vec<u32> = (0..searched.len() as u32).collect();
        let mentions = mentions_of(&again, &all, &tree, progress)?;
        // The added units.
        let own_phrase: Vec<u32> = titles
            .iter()
            .map(|text| text.and_then(|text| phrases.view().position(text)).map_or(NONE, |at| at as u32))
            .collect();
        let known = Subjects { sorted: &phrases, tree: &tree, of_unit: &own_phrase };
        let part = read(fresh, listed, &known, progress)?;
        let subject_of: Vec<u32> =
            titles.iter().map(|text| text.and_then(|text| subjects.id(text)).unwrap_or(NONE)).collect();
        Ok(Some(Self { subjects, ids, searched, mentions, subject_of, part, phrases }))
    }
}

fn wide(values: &[u32]) -> Vec<u64> {
    values.iter().map(|&x| u64::from(x)).collect()
}

/// Add the patches of offsets and ids. Returns the patch of a second array that is parallel to the ids.
fn push_rows(
    out: &mut Vec<(&'static str, Of, Patch)>,
    names: [&'static str; 2],
    of: Of,
    (ends, mut values): (Patch, Vec<Patch>),
) -> Option<Patch> {
    out.push((names[0], Of::Nothing, ends));
    out.push((names[1], of, values.remove(0)));
    values.pop()
}

/// Remove units from the lists of their keywords, names and subjects.
fn remove_units(links: &LinksView<'_>, gone: &[u32], lists: &mut [Things; 3]) {
    for &unit in gone {
        let at = unit as usize;
        let rows = [
            links.unit_keywords.row(at).to_vec(),
            links.unit_names.row(at).to_vec(),
            links.unit_subjects(at).collect(),
        ];
        for (things, row) in lists.iter_mut().zip(rows) {
            row.iter().for_each(|&id| things.known.entry(id).or_default().gone.push(unit));
        }
    }
}

/// Record the subjects that a published unit now mentions.
fn change_subjects<'a>(
    links: &LinksView<'a>,
    unit: u32,
    mut now: BTreeSet<&'a str>,
    units: &Numbering,
    subjects: &Vocabulary<'_>,
    lists: &mut Things,
) {
    let about = links.unit_subject[unit as usize];
    if about != NONE {
        now.insert(links.subjects.get(about as usize));
    }
    for id in links.unit_subjects(unit as usize) {
        if !now.remove(links.subjects.get(id as usize)) {
            lists.known.entry(id).or_default().gone.push(unit);
        }
    }
    let place = (units.of(u64::from(unit)) as u32, unit);
    now.into_iter().for_each(|text| lists.add(subjects, text, place, 0));
}

/// Return the remaining published units whose mentions may change, ascending; `None` if any unit's mentions
/// may change.
fn searched_again(change: &Change<'_>, subjects: &Vocabulary<'_>) -> Option<Vec<u32>> {
    let links = &change.links;
    let mut found = BTreeSet::new();
    for &subject in &subjects.gone {
        let units = links.subject_units.row(subject as usize).iter();
        found.extend(units.filter(|unit| links.unit_mentions.row(**unit as usize).contains(&subject)));
    }
    let mut lexer = Lexer::default();
    for subject in subjects.fresh.iter().filter(|text| text.split(' ').nth(MAX_PHRASE).is_none()) {
        found.extend(units_with(links, subject, &mut lexer)?);
    }
    found.retain(|unit| change.gone.binary_search(unit).is_err());
    Some(found.into_iter().collect())
}

/// Collect the phrases of the given texts that are subjects.
fn known_phrases(texts: &Texts<'_>, subjects: &Vocabulary<'_>, found: &mut BTreeSet<String>) {
    let (mut lexer, mut phrase) = (Lexer::default(), String::new());
    for unit in 0..texts.texts.len() {
        lexer.read(texts.titles.get(unit));
        lexer.append("\n");
        lexer.append(texts.texts.get(unit));
        for first in 0..lexer.words.len() {
            phrase.clear();
            for k in first..lexer.words.len().min(first + MAX_PHRASE) {
                if k > first {
                    phrase.push(' ');
                }
                phrase.push_str(lexer.lower(k));
                if !subjects.begins(&phrase) {
                    break;
                }
                if subjects.id(&phrase).is_some() {
                    found.insert(phrase.clone());
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "links_delta_tests.rs"]
mod tests;
