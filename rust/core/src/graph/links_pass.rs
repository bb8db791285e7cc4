//! The passes over texts that produce the arrays of the walk.

use crate::error::Result;
use crate::graph::links_words::{KnownWords, UnitWords};
use crate::progress::Progress;
use crate::rank::links_view::NONE;
use crate::rank::sentence_rows::encode;
use crate::sparse::Csr;
use crate::text::detection::Choice;
use crate::text::interner::Interner;
use crate::text::labels::{split, suffix_of, Labelled};
use crate::text::languages::Language;
use crate::text::lexical::Lexer;
use crate::text::names::{is_small, name_spans, opening_subject, title_key, Naming, SubjectTree};
use crate::text::strings::Strings;
use crate::text::strings::StringsBuf;

/// How often a word of a title or of the headings in it counts: a field of BM25F with one saturation for all fields. A greater
/// weight prefers passages about a thing to those that mention it. Chosen with `benches/fields.py` on nine sets, each left out
/// in turn; the values 0, 1, 2 and 5 are in docs/internals/ranking.md.
const TITLE_WEIGHT: usize = 3;
/// Maximum number of distinct title keywords that a sentence inherits: a title of a million words must not be
/// repeated for each of a million sentences.
const TITLE_KEYWORDS: usize = 64;

/// The strings of a range of units. The first `of_units` occur in a unit as a whole. The others occur only in
/// sentences or subjects that were analysed separately, and get no number in the index.
#[derive(Default)]
pub(crate) struct Words {
    pub strings: Interner,
    pub of_units: usize,
}

/// A range of units in local numbers. Mentions and subjects use the numbers of the index.
#[derive(Default)]
pub(crate) struct Part {
    pub keywords: Words,
    pub names: Words,
    pub unit_keywords: RowBuilder,
    pub tf: Vec<u32>,
    /// Number of keywords of each unit, with repetitions, those of the title [`TITLE_WEIGHT`] times. Variants and keywords added by splitting code identifiers are
    /// not counted: a place in the text counts once.
    pub length: Vec<u32>,
    pub unit_names: RowBuilder,
    pub mentions: RowBuilder,
    pub subjects: RowBuilder,
    /// The language of each unit.
    pub languages: Vec<Language>,
    /// How the names of each unit are recognised.
    namings: Vec<Naming>,
    /// The keywords of a unit's title, then those of its subject, in order.
    of_title: RowBuilder,
    /// The subject of a unit as a name, or `NONE`.
    pub subject_name: Vec<u32>,
    /// In text order, with repetitions.
    sentence_keywords: RowBuilder,
    sentence_names: RowBuilder,
}

impl Part {
    /// Return all rows, for storage.
    pub fn rows(&self) -> [&RowBuilder; 7] {
        let Self {
            unit_keywords,
            unit_names,
            mentions,
            subjects,
            of_title,
            sentence_keywords,
            sentence_names,
            ..
        } = self;
        [unit_keywords, unit_names, mentions, subjects, of_title, sentence_keywords, sentence_names]
    }

    /// Return all rows in the same order, to replace them.
    pub fn rows_mut(&mut self) -> [&mut RowBuilder; 7] {
        let Self {
            unit_keywords,
            unit_names,
            mentions,
            subjects,
            of_title,
            sentence_keywords,
            sentence_names,
            ..
        } = self;
        [unit_keywords, unit_names, mentions, subjects, of_title, sentence_keywords, sentence_names]
    }
}

/// Find the subject of each unit, in local numbers (`NONE` if it has none): the key of the title, or the name
/// in the opening of an untitled text.
pub(crate) fn subjects_of(
    input: &Texts<'_>,
    units: &[u32],
    progress: &Progress,
) -> Result<(Words, Vec<u32>)> {
    let (mut found, mut lexer) = (Interner::default(), Lexer::default());
    let mut of = Vec::with_capacity(units.len());
    for &unit in units {
        progress.check()?;
        let unit = unit as usize;
        let title = input.title(unit);
        let subject = match title {
            "" => opening_subject(input.texts.get(unit), &mut lexer),
            _ => title_key(title, &mut lexer),
        };
        of.push(if subject.is_empty() { NONE } else { found.add(&subject) });
    }
    Ok((Words { of_units: found.len(), strings: found }, of))
}

/// The subjects, which are known before the texts are read.
pub(crate) struct Subjects<'a> {
    pub sorted: &'a StringsBuf,
    pub tree: &'a SubjectTree,
    /// The subject of each unit, or `NONE`.
    pub of_unit: &'a [u32],
}

/// Read keywords with counts and names of each unit and of its sentences, and the subjects it mentions. Names
/// are those of the text, plus the title.
///
/// A few units are read at a time, first as units and then as sentences, so that their texts and words are
/// still in the L1 and L2 caches.
pub(crate) fn read(
    input: &Texts<'_>,
    units: &[u32],
    known: &Subjects<'_>,
    progress: &Progress,
) -> Result<Part> {
    let mut part = Part::default();
    let (mut lexer, mut other) = (Lexer::default(), Lexer::default());
    let mut words = KnownWords::default();
    let mut row: Vec<u32> = Vec::new();
    for &unit in units {
        progress.check()?;
        let unit = unit as usize;
        let title = input.title(unit);
        let (first_word, start) = read_unit(input, unit, &mut lexer);
        row.clear();
        let (language, naming) = language_of(input, &lexer, first_word);
        part.languages.push(language);
        part.namings.push(naming);
        let begin = (first_word, start);
        let variants =
            words.read_unit(&lexer, begin, language, known.tree, &mut part.keywords.strings, &mut row);
        let length = u32::try_from(row.len()).unwrap_or(u32::MAX).saturating_sub(variants);
        let more = repeat_title(&lexer, first_word, language, &mut part.keywords.strings, &mut row);
        part.length.push(length.saturating_add(more));
        lexer.keywords_of_names(language, |word| row.push(part.keywords.strings.add(word)));
        add_labels(input.fields(unit), language, &mut other, &mut part.keywords.strings, &mut row);
        row.sort_unstable();
        for same in row.chunk_by(|a, b| a == b) {
            part.unit_keywords.values.push(same[0]);
            part.tf.push(same.len() as u32);
        }
        part.unit_keywords.close();

        row.clear();
        name_spans(&lexer, first_word, naming, |name| row.push(part.names.strings.add(name)));
        let key = title_key(title, &mut other);
        if !key.is_empty() && !is_small(&key) {
            row.push(part.names.strings.add(&key));
        }
        part.unit_names.push_set(&mut row);

        let number = |k: usize| Some(words.in_tree[k]).filter(|&word| word != NONE);
        known.tree.mentions_of(&lexer, naming, number, |id| row.push(id));
        let mut both = row.clone();
        both.extend(Some(known.of_unit[unit]).filter(|&about| about != NONE));
        part.mentions.push_set(&mut row);
        part.subjects.push_set(&mut both);
    }
    part.keywords.of_units = part.keywords.strings.len();
    part.names.of_units = part.names.strings.len();
    for (at, &unit) in units.iter().enumerate() {
        progress.check()?;
        let manner = (part.languages[at], part.namings[at]);
        read_sentences(&mut part, input, (unit as usize, manner), words.unit(at), known, &mut lexer);
    }
    Ok(part)
}

/// Append the keywords of the title, the words before `first_word`, so that each counts [`TITLE_WEIGHT`] times. Return by how
/// much they make the unit longer.
fn repeat_title(
    lexer: &Lexer,
    first_word: usize,
    language: Language,
    keywords: &mut Interner,
    row: &mut Vec<u32>,
) -> u32 {
    let mut length = 0;
    lexer.keywords_where(
        language,
        |k| k < first_word,
        |word, is_variant| {
            let keyword = keywords.add(word);
            row.extend([keyword; TITLE_WEIGHT - 1]);
            length += if is_variant { 0 } else { TITLE_WEIGHT as u32 - 1 };
        },
    );
    length
}

/// Append the keywords of a unit's path and people that its title and text lack, once each, because most titles repeat the
/// name of the file. Twice or three times gains on folders named by the titles of musique-train100, and loses on those of
/// hotpotqa-train100 and 2wiki-101 (docs/internals/ranking.md). Small numbers, which count files ("003.md") or are parts of dates, and the suffix, which most files of a
/// folder share, would connect texts about different things.
fn add_labels(
    fields: Labelled<'_>,
    language: Language,
    lexer: &mut Lexer,
    keywords: &mut Interner,
    row: &mut Vec<u32>,
) {
    let suffix = suffix_of(fields.path).to_ascii_lowercase();
    let own = row.len();
    for field in [fields.path, fields.people].into_iter().filter(|field| !field.is_empty()) {
        lexer.read(field);
        lexer.keywords_in(language, |word| {
            if is_small(word.strip_suffix(&suffix).unwrap_or(word)) || word == suffix {
                return;
            }
            let keyword = keywords.add(word);
            if !row[..own].contains(&keyword) {
                row.push(keyword);
            }
        });
    }
}

/// Read the words of "title, text". Return the number of the first word of the text, and its first byte.
fn read_unit(input: &Texts<'_>, unit: usize, lexer: &mut Lexer) -> (usize, usize) {
    lexer.read(input.title(unit));
    let first_word = lexer.words.len();
    lexer.append("\n");
    (first_word, lexer.append(input.texts.get(unit)))
}

/// Return the language of a unit, and how its names are recognised. `lexer` holds the words of the title
/// followed by those of the text.
fn language_of(input: &Texts<'_>, lexer: &Lexer, first_word: usize) -> (Language, Naming) {
    // If the text has no words, use those of the title.
    let from = if first_word < lexer.words.len() { first_word } else { 0 };
    let language = input.language.language(lexer.lowers(from));
    (language, Naming::of(lexer, from, language))
}

/// Return, for each of the given units, the subjects that it mentions, ascending.
pub(crate) fn mentions_of(
    input: &Texts<'_>,
    units: &[u32],
    tree: &SubjectTree,
    progress: &Progress,
) -> Result<RowBuilder> {
    let (mut found, mut lexer, mut row) = (RowBuilder::default(), Lexer::default(), Vec::new());
    for &unit in units {
        progress.check()?;
        let (first_word, _) = read_unit(input, unit as usize, &mut lexer);
        tree.ask_for(0..lexer.words.len(), |k| lexer.lower(k));
        let (_, naming) = language_of(input, &lexer, first_word);
        tree.mentions(&lexer, naming, |id| row.push(id));
        found.push_set(&mut row);
    }
    Ok(found)
}

fn read_sentences(
    part: &mut Part,
    input: &Texts<'_>,
    (unit, (language, naming)): (usize, (Language, Naming)),
    mut words: UnitWords<'_>,
    known: &Subjects<'_>,
    lexer: &mut Lexer,
) {
    let (keywords, names) = (&mut part.keywords.strings, &mut part.names.strings);
    lexer.read(input.title(unit));
    lexer.keywords_in(language, |word| part.of_title.values.push(keywords.add(word)));
    let about = known.of_unit[unit];
    let mut subject_name = NONE;
    if about != NONE {
        let subject = known.sorted.get(about as usize);
        lexer.read(subject);
        lexer.keywords_in(language, |word| part.of_title.values.push(keywords.add(word)));
        subject_name = names.add(subject);
    }
    part.of_title.close();
    part.subject_name.push(subject_name);
    for sentence in input.first_sentence[unit]..input.first_sentence[unit + 1] {
        lexer.read(input.sentences.get(sentence as usize));
        words.read_sentence(lexer, language, keywords, &mut part.sentence_keywords.values);
        lexer.keywords_of_names(language, |word| part.sentence_keywords.values.push(keywords.add(word)));
        part.sentence_keywords.close();
        name_spans(lexer, 0, naming, |name| part.sentence_names.values.push(names.add(name)));
        part.sentence_names.close();
    }
}

/// The rows of a range in the numbers of the index, ascending.
#[derive(Default)]
pub(crate) struct Rows {
    pub unit_keywords: RowBuilder,
    pub tf: Vec<u32>,
    pub length: Vec<u32>,
    pub unit_names: RowBuilder,
    pub mentions: RowBuilder,
    pub subjects: RowBuilder,
    pub sentence_keywords: RowBuilder,
    pub sentence_names: RowBuilder,
    pub languages: Vec<Language>,
}

impl Rows {
    /// Append the rows of the next range.
    pub fn append(&mut self, part: Self) {
        self.unit_keywords.append(part.unit_keywords);
        self.tf.extend(part.tf);
        self.length.extend(part.length);
        self.unit_names.append(part.unit_names);
        self.mentions.append(part.mentions);
        self.subjects.append(part.subjects);
        self.sentence_keywords.append(part.sentence_keywords);
        self.sentence_names.append(part.sentence_names);
        self.languages.extend(part.languages);
    }
}

/// Renumber a part. A sentence inherits the keywords of its unit's title and subject, and the subject as a
/// name. `keywords` and `names` map local numbers to those of the index.
///
/// Items that a sentence has and its unit as a whole lacks are omitted, so that no row depends on other
/// units. For example, a name is sometimes recognised only in a sentence alone.
pub(crate) fn renumber(
    part: Part,
    units: &[u32],
    first_sentence: &[u64],
    keywords: &[u32],
    names: &[u32],
    progress: &Progress,
) -> Result<Rows> {
    let mut rows = Rows {
        length: part.length,
        mentions: part.mentions,
        subjects: part.subjects,
        languages: part.languages,
        ..Rows::default()
    };
    let mut pairs: Vec<u64> = Vec::new();
    let (mut row, mut of_title): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    /// Add the numbers of strings that a unit has.
    fn add(to: &mut Vec<u32>, some: &[u32], of_unit: &[u32], numbers: &[u32]) {
        let known = some.iter().filter(|own| of_unit.binary_search(own).is_ok());
        to.extend(known.map(|&own| numbers[own as usize]));
    }
    let mut sentence = 0;
    for (at, &unit) in units.iter().enumerate() {
        progress.check()?;
        let range = part.unit_keywords.range(at);
        let counts = part.unit_keywords.values[range.clone()].iter().zip(&part.tf[range]);
        pairs.clear();
        // The number is in the high half and the count in the low half, so sorting one value sorts both.
        pairs.extend(counts.map(|(&own, &tf)| u64::from(keywords[own as usize]) << 32 | u64::from(tf)));
        pairs.sort_unstable();
        rows.unit_keywords.values.extend(pairs.iter().map(|pair| (pair >> 32) as u32));
        rows.unit_keywords.close();
        rows.tf.extend(pairs.iter().map(|&pair| pair as u32));
        row.extend(part.unit_names.row(at).iter().map(|&own| names[own as usize]));
        rows.unit_names.push_set(&mut row);

        let (own_keywords, own_names) = (part.unit_keywords.row(at), part.unit_names.row(at));
        of_title.clear();
        add(&mut of_title, part.of_title.row(at), own_keywords, keywords);
        keep_first(&mut of_title);
        let ends = &first_sentence[unit as usize..][..2];
        for _ in ends[0]..ends[1] {
            row.extend_from_slice(&of_title);
            add(&mut row, part.sentence_keywords.row(sentence), own_keywords, keywords);
            rows.sentence_keywords.push_set(&mut row);
            encode(rows.unit_keywords.last(), rows.sentence_keywords.last_mut());
            add(&mut row, part.sentence_names.row(sentence), own_names, names);
            add(&mut row, &part.subject_name[at..=at], own_names, names);
            rows.sentence_names.push_set(&mut row);
            encode(rows.unit_names.last(), rows.sentence_names.last_mut());
            sentence += 1;
        }
    }
    Ok(rows)
}

/// Keep the first [`TITLE_KEYWORDS`] distinct values.
fn keep_first(of_title: &mut Vec<u32>) {
    of_title.truncate(1 << 16);
    let mut seen = 0;
    while seen < of_title.len() && seen < TITLE_KEYWORDS {
        let x = of_title[seen];
        if of_title[..seen].contains(&x) {
            of_title.remove(seen);
        } else {
            seen += 1;
        }
    }
    of_title.truncate(seen);
}

/// The texts of an index: `n` titles (may be empty, and may have a label after them), `n` texts, and the sentences of every unit. The
/// sentences of unit `u` are `first_sentence[u]..first_sentence[u + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    pub titles: Strings<'a>,
    pub texts: Strings<'a>,
    pub sentences: Strings<'a>,
    pub first_sentence: &'a [u64],
    /// The language of each unit.
    pub language: Choice,
}

impl<'a> Texts<'a> {
    /// Return the title of a unit.
    pub fn title(&self, unit: usize) -> &'a str {
        self.fields(unit).title
    }

    /// Return the title of a unit, the path of its file, and the people of a mail.
    pub fn fields(&self, unit: usize) -> Labelled<'a> {
        split(self.titles.get(unit))
    }
}

/// Rows to which values are appended.
#[derive(Debug, Default)]
pub(crate) struct RowBuilder {
    pub values: Vec<u32>,
    ends: Vec<u64>,
}

impl RowBuilder {
    /// Return rows from their values and the end of each row.
    pub fn from_parts(values: Vec<u32>, ends: Vec<u64>) -> Self {
        Self { values, ends }
    }

    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    pub fn close(&mut self) {
        self.ends.push(self.values.len() as u64);
    }

    pub fn range(&self, row: usize) -> std::ops::Range<usize> {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        start..self.ends[row] as usize
    }

    pub fn row(&self, row: usize) -> &[u32] {
        &self.values[self.range(row)]
    }

    /// Append values as the next row.
    pub fn push(&mut self, row: &[u32]) {
        self.values.extend_from_slice(row);
        self.close();
    }

    /// Return the last row.
    pub fn last(&self) -> &[u32] {
        self.row(self.ends.len() - 1)
    }

    /// Return the last row, to replace its values.
    pub fn last_mut(&mut self) -> &mut [u32] {
        let range = self.range(self.ends.len() - 1);
        &mut self.values[range]
    }

    /// Append distinct values, sorted, as the next row.
    pub fn push_set(&mut self, row: &mut Vec<u32>) {
        row.sort_unstable();
        row.dedup();
        self.values.append(row);
        self.close();
    }

    pub fn reserve(&mut self, rows: usize, values: usize) {
        self.ends.reserve(rows);
        self.values.reserve(values);
    }

    pub fn append(&mut self, other: Self) {
        let base = self.values.len() as u64;
        self.values.extend_from_slice(&other.values);
        self.ends.extend(other.ends.iter().map(|end| base + end));
    }

    pub fn finish(self, columns: usize) -> Csr {
        let indptr = std::iter::once(0).chain(self.ends).collect();
        Csr { indptr, indices: self.values, columns }
    }
}
